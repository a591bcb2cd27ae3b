#include "heddle/kernels/gemm/gemm.h"

#include "absl/strings/str_cat.h"
#include "heddle/kernels/gemm/hopper.h"

namespace heddle::kernels {
namespace {

// A matrix as a batch of one.
template <class T>
TensorRef<T, 3> batch_of(const TensorRef<T, 2>& x) {
  TensorRef<T, 3> batch(x.data, {x.extents[0], x.extents[1], 1},
                        {x.strides[0], x.strides[1], x.extents[0] * x.strides[0]});
  batch.capacity_bytes = x.capacity_bytes;
  batch.memory = x.memory;
  batch.allocation = x.allocation;
  return batch;
}

template <class T>
Status launch_gemm(const Stream& stream, const TensorRef<const T, 3>& a,
                   const TensorRef<const T, 3>& b, const TensorRef<T, 3>& d) {
  const GemmProblem problem{.m = a.extents[0],
                            .n = b.extents[0],
                            .k = a.extents[1],
                            .batches = d.extents[2],
                            .element_bytes = sizeof(T),
                            .result_bytes = sizeof(T)};
  if (b.extents[1] != problem.k || d.extents[0] != problem.m || d.extents[1] != problem.n ||
      problem.k == 0) {
    return InvalidArgumentError(
        absl::StrCat("gemm: a is ", problem.m, " x ", problem.k, ", b ", problem.n, " x ",
                     b.extents[1], " and d ", d.extents[0], " x ", d.extents[1],
                     "; a takes m x k, b n x k and d m x n, with k above 0"));
  }
  if (problem.m == 0 || problem.n == 0 || problem.batches == 0) return OkStatus();
  const runtime::DeviceInfo& device = stream.device().info();
  const GemmConfig config = choose_gemm(problem, device);
  return hopper_gemm<T>(config).launch(stream, gemm_shape(config, problem, device), a, b, d);
}

}  // namespace

Status gemm(const Stream& stream, const TensorRef<const half, 2>& a,
            const TensorRef<const half, 2>& b, const TensorRef<half, 2>& d) {
  return launch_gemm(stream, batch_of(a), batch_of(b), batch_of(d));
}
Status gemm(const Stream& stream, const TensorRef<const bfloat16, 2>& a,
            const TensorRef<const bfloat16, 2>& b, const TensorRef<bfloat16, 2>& d) {
  return launch_gemm(stream, batch_of(a), batch_of(b), batch_of(d));
}

}  // namespace heddle::kernels
