// gemm as an operation.
#include "heddle/kernels/gemm/gemm.h"
#include "heddle/kernels/reference_internal.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

// Half the distance of neighbours of an element type, relatively; and what the tensor cores, which add with
// fewer bits than f32 has, lose of the sum of the magnitudes.
double rounding_of(ir::Scalar scalar) { return scalar == ir::Scalar::kF16 ? 0x1p-11 : 0x1p-8; }
constexpr double kTensorCoreRounding = 0x1p-20;

Outputs gemm_reference(const Settings&, const Tensors& tensors) {
  const runtime::HostValues& a = tensors.at("a");
  const runtime::HostValues& b = tensors.at("b");
  const int64_t depth = a.shape.extents[1];
  const int64_t columns = b.shape.extents[0];
  const double rounding = rounding_of(a.shape.dtype);
  return only_output(tensors, "d", [&](int64_t i) {
    const double* const row = a.values.data() + i / columns * depth;
    const double* const column = b.values.data() + i % columns * depth;
    Sum sum;
    for (int64_t k = 0; k < depth; ++k) sum.add(row[k] * column[k]);
    return Close{sum.value, std::abs(sum.value) * rounding + sum.magnitude * kTensorCoreRounding};
  });
}

template <class T>
using Gemm = Status(const Stream&, const TensorRef<const T, 2>&, const TensorRef<const T, 2>&,
                    const TensorRef<T, 2>&);

const Registered registered_gemm({
    .name = "gemm",
    .summary = "d = a b^T on Hopper's tensor cores, summed in f32",
    .arguments = {"a: dtype[m, k]", "b: dtype[n, k]", "d: dtype[m, n]"},
    .functions = {host_function<Gemm<half>>(gemm), host_function<Gemm<bfloat16>>(gemm)},
    .settings = {{.name = "dtype", .help = "element type of a, b and d"}},
    .sizes = {{"m", 4096}, {"n", 4096}, {"k", 4096}},
    .reference = gemm_reference,
});

}  // namespace
}  // namespace heddle::kernels
