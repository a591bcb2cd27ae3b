// The table of rungs, and each of them as an operation.
#include "heddle/kernels/learn/product/ladder.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/learn/product/01_naive.h"
#include "heddle/kernels/learn/product/02_shared.h"
#include "heddle/kernels/learn/product/03_registers.h"
#include "heddle/kernels/learn/product/04_mma.h"
#include "heddle/kernels/learn/product/05_cp_async.h"
#include "heddle/kernels/learn/product/06_wgmma.h"
#include "heddle/kernels/learn/product/07_pipeline.h"
#include "heddle/kernels/learn/product/08_roles.h"
#include "heddle/kernels/learn/product/09_persistent.h"
#include "heddle/kernels/learn/product/10_cluster.h"
#include "heddle/kernels/reference_internal.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::learn {
namespace {

using kernels::Outputs, kernels::Tensors;

template <const LaunchShape& kShape>
LaunchShape fixed(const DeviceInfo&) {
  return kShape;
}

// d within its rounding to bf16, and what the tensor cores, which add with fewer bits than f32 has,
// lose of the sum of the magnitudes.
Outputs product_reference(const Settings&, const Tensors& tensors) {
  const runtime::HostValues &a = tensors.at("a"), &b = tensors.at("b");
  const int64_t depth = a.shape.extents[1], columns = b.shape.extents[0];
  return kernels::only_output(tensors, "d", [&](int64_t i) {
    const double* const row = a.values.data() + i / columns * depth;
    const double* const column = b.values.data() + i % columns * depth;
    kernels::Sum sum;
    for (int64_t k = 0; k < depth; ++k) sum.add(row[k] * column[k]);
    return kernels::Close{sum.value, std::abs(sum.value) * 0x1p-8 + sum.magnitude * 0x1p-20};
  });
}

// "product_01_naive" and so on.
OperationSpec operation_of(const ProductRung& rung, int number) {
  return {.name = absl::StrCat("product_", number < 10 ? "0" : "", number, "_", rung.name),
          .summary = absl::StrCat("d = a b^T, rung ", number, ": ", rung.change),
          .arguments = {"a: bf16[m, k]", "b: bf16[n, k]", "d: bf16[m, n]"},
          .functions = {host_function(
              [&rung](const Stream& stream, const TensorRef<const bfloat16, 2>& a,
                      const TensorRef<const bfloat16, 2>& b,
                      const TensorRef<bfloat16, 2>& d) { return rung.launch(stream, a, b, d); })},
          .sizes = {{"m", 4096}, {"n", 4096}, {"k", 4096}},
          .reference = product_reference};
}

std::vector<std::unique_ptr<Registered>> all_registered() {
  std::vector<std::unique_ptr<Registered>> all;
  for (const ProductRung& rung : product_ladder()) {
    const int number = static_cast<int>(all.size()) + 1;
    all.push_back(std::make_unique<Registered>(operation_of(rung, number)));
  }
  return all;
}
const std::vector<std::unique_ptr<Registered>> kRegistered = all_registered();

}  // namespace

const std::vector<ProductRung>& product_ladder() {
  static const auto& rungs = *new std::vector<ProductRung>{
      {"naive", "a thread for each element", product_naive, fixed<product_naive_shape>},
      {"shared", "tiles in shared memory", product_shared, fixed<product_shared_shape>},
      {"registers", "8 x 8 elements in a thread's registers", product_registers,
       fixed<product_registers_shape>},
      {"mma", "tensor cores, by mma.sync and ldmatrix", product_mma, fixed<product_mma_shape>},
      {"cp_async", "four stages that cp.async fills ahead", product_cp_async,
       fixed<product_cp_async_shape>},
      {"wgmma", "Hopper's tensor cores and copy engine", product_wgmma, fixed<product_wgmma_shape>},
      {"pipeline", "four stages that the copy engine fills ahead", product_pipeline,
       fixed<product_pipeline_shape>},
      {"roles", "a warp that loads for two warpgroups that multiply, 128 x 256", product_roles,
       fixed<product_roles_shape>},
      {"persistent", "blocks that stay, and results that the copy engine stores",
       product_persistent, product_persistent_shape},
      {"cluster", "two blocks share what they load, and results leave while products run",
       product_cluster, product_cluster_shape},
  };
  return rungs;
}

}  // namespace heddle::learn
