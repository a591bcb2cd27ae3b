// The library's kernels on a GPU beside CUDA C++ twins of the same algorithm (library/*.cu): pairs.h. Of about 2^26
// elements each. gemm has none: what its loop takes stands beside CUTLASS's.
#include "bench/library/dropout.h"
#include "bench/library/embedding.h"
#include "bench/library/maps.h"
#include "bench/library/norms.h"
#include "bench/library/reductions.h"
#include "bench/library/rotary.h"
#include "bench/library/rows.h"
#include "bench/library/scans.h"
#include "bench/library/topk.h"
#include "bench/pairs.h"

namespace heddle::bench {
namespace {

class Bench : public Pairs {
 public:
  using Pairs::Pairs;

  nlohmann::ordered_json all() {
    for (const auto compare_all :
         {library::maps, library::reductions, library::rows, library::norms,
          library::norms_backward, library::scans, library::topk, library::embedding,
          library::dropout, library::rotary}) {
      compare_all(*this);
    }
    return figures();
  }
};

}  // namespace
}  // namespace heddle::bench

int main(int argc, char** argv) {
  return heddle::bench::run_pairs<heddle::bench::Bench>(
      "The library's kernels beside their CUDA C++ twins.", argc, argv);
}
