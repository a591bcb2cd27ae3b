// CUTLASS as a peer (peer.h): the kernels of cutlass_gemm.def. build_cutlass.sh compiles it.
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "cutlass/version.h"
#include "cutlass_gemm.h"
#include "peer.h"

namespace peer {
namespace {

#define SM90(number, ...) made_row<number>(),
#define SM80(number, ...) made_row<number>(),
#define SM90_BLOCKS(number, ...) made_row<number>(),
#define SM90_GROUPS(number, ...) made_row<number>(),
const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
#include "cutlass_gemm.def"
  };
  return all;
}

thread_local std::string error_text;

const char* error(std::string text) {
  error_text = std::move(text);
  return error_text.c_str();
}

// A kernel, and a choice of the order of its tiles.
struct Candidate {
  const Row* row;
  int swizzle;
  std::string name;
};

// Whether a kernel is one of a problem's operation and variant; it has its operations one after the other.
bool solves(const Row& row, const PeerProblem& problem) {
  return std::strcmp(row.variant, problem.variant) == 0 &&
         (" " + std::string(row.operations) + " ")
                 .find(" " + std::string(problem.operation) + " ") != std::string::npos;
}

// Where a matrix's rows are contiguous, and how far apart they or its columns are.
bool along_last(const PeerTensor& t, int64_t* leading) {
  const int rows = t.rank - 2, columns = t.rank - 1;
  const bool last = t.stride[columns] == 1;
  *leading = t.stride[last ? rows : columns];
  return last;
}

}  // namespace
}  // namespace peer

struct PeerPlan {
  peer::Problem problem;
  size_t workspace = 0;
  int more = 0;  // operands behind d
  std::vector<peer::Candidate> candidates;
  // By candidate and pointers: encoding tensor maps is no part of a launch.
  std::map<std::array<const void*, 7>, std::unique_ptr<peer::Bound>> bound;
};

extern "C" {

int peer_abi(void) { return HEDDLE_PEER_ABI; }

const char* peer_open(const char*) {
  const cudaError_t status = cudaFree(nullptr);
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}

const char* peer_name(void) { return "cutlass"; }

const char* peer_version(void) {
  static const std::string text = std::to_string(CUTLASS_MAJOR) + "." +
                                  std::to_string(CUTLASS_MINOR) + "." +
                                  std::to_string(CUTLASS_PATCH) + ", nvcc " + HEDDLE_NVCC_VERSION;
  return text.c_str();
}

const char* peer_prepare(const PeerProblem* problem, PeerPlan** plan) {
  using peer::error;
  const PeerTensor &a = problem->tensor[0], &b = problem->tensor[1], &d = problem->tensor[2];
  const bool of_groups = b.rank == 3 && std::strcmp(problem->operation, "gemm") != 0;
  const int rank = d.rank;
  auto made = std::make_unique<PeerPlan>();
  peer::Problem& p = made->problem;
  p.m = static_cast<int>(d.extent[rank - 2]);
  p.n = static_cast<int>(d.extent[rank - 1]);
  p.k = static_cast<int>(a.extent[rank - 1]);
  p.batch = b.rank == 3 ? static_cast<int>(b.extent[0]) : 1;
  p.masked = of_groups && rank == 3;
  const bool a_along_k = peer::along_last(a, &p.lda), b_along_k = peer::along_last(b, &p.ldb);
  if (!peer::along_last(d, &p.ldd)) return error("d's rows are not contiguous");
  p.batch_a = rank == 3 ? a.stride[0] : 0;
  p.batch_b = b.rank == 3 ? b.stride[0] : 0;
  p.batch_d = rank == 3 ? d.stride[0] : 0;
  for (const peer::Row& row : peer::rows()) {
    if (!peer::solves(row, *problem) || row.a_along_k != a_along_k || row.b_along_k != b_along_k ||
        std::strcmp(row.dtype, a.dtype) != 0 || std::strcmp(row.dtype, b.dtype) != 0 ||
        std::strcmp(row.dtype_d, d.dtype) != 0) {
      continue;
    }
    for (int swizzle = 0; swizzle < row.swizzles; ++swizzle) {
      const std::string suffix =
          row.swizzles > 1 ? ", swizzle " + std::to_string(1 << (2 * swizzle)) : "";
      made->candidates.push_back({&row, swizzle, row.name + suffix});
    }
    made->workspace = std::max(made->workspace, row.workspace(p));
  }
  if (made->candidates.empty())
    return error(std::string("no kernel of ") + problem->operation + " '" + problem->variant +
                 "' of these element types and layouts was built");
  for (int i = 3; i < problem->tensors; ++i) ++made->more;
  *plan = made.release();
  return nullptr;
}

int peer_candidates(const PeerPlan* plan) { return static_cast<int>(plan->candidates.size()); }

const char* peer_candidate(const PeerPlan* plan, int candidate) {
  return plan->candidates[candidate].name.c_str();
}

size_t peer_workspace(const PeerPlan* plan) { return plan->workspace; }

const char* peer_launch(PeerPlan* plan, int candidate, void* const* pointers, void* workspace,
                        void* stream) {
  const peer::Candidate& chosen = plan->candidates[candidate];
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  const void* const more[] = {plan->more > 0 ? pointers[3] : nullptr,
                              plan->more > 1 ? pointers[4] : nullptr};
  auto& bound =
      plan->bound[{&chosen, pointers[0], pointers[1], pointers[2], workspace, more[0], more[1]}];
  if (bound == nullptr) {
    const char* why = nullptr;
    bound = chosen.row->bind(plan->problem,
                             {pointers[0], pointers[1], pointers[2], workspace, {more[0], more[1]}},
                             chosen.swizzle, cuda_stream, &why);
    if (bound == nullptr) return why;
  }
  return bound->run(cuda_stream);
}

void peer_release(PeerPlan* plan) { delete plan; }

}  // extern "C"
