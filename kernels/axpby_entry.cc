// axpby as an operation.
#include "heddle/kernels/axpby.h"
#include "heddle/kernels/reference_internal.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

// The product and the sum are rounded in f32, the result to the element's type.
Outputs axpby_reference(const Settings& settings, const Tensors& tensors) {
  const std::vector<double>& x = tensors.at("x").values;
  const std::vector<double>& y = tensors.at("y").values;
  const double alpha = real(settings, "alpha");
  const double beta = real(settings, "beta");
  const Rounding last = rounding_of(tensors.at("y").shape.dtype);
  return only_output(tensors, "y", [&](int64_t i) {
    const double a = alpha * x[i];
    const double b = beta == 0 ? 0 : beta * y[i];
    return last.of(a + b, (std::abs(a) + std::abs(b)) * 2 * kRounding + 0x1p-149);
  });
}

template <class T>
using Axpby = Status(const Stream&, float, const TensorRef<const T, 1>&, float,
                     const TensorRef<T, 1>&);

const Registered registered_axpby({
    .name = "axpby",
    .summary = "y(i) = alpha x(i) + beta y(i), computed in f32",
    .arguments = {"alpha: f32", "x: dtype[n]", "beta: f32", "y: inout dtype[n]"},
    .functions = {host_function<Axpby<float>>(axpby), host_function<Axpby<half>>(axpby),
                  host_function<Axpby<bfloat16>>(axpby)},
    .settings = {{.name = "dtype", .help = "element type of x and y"},
                 {.name = "alpha", .help = "factor of x", .default_value = "2"},
                 {.name = "beta", .help = "factor of y; 0: y is not read", .default_value = "0.5"}},
    .sizes = {{"n", 1 << 26}},
    .reference = axpby_reference,
});

}  // namespace
}  // namespace heddle::kernels
