// axpby as an operation.
#include <cmath>

#include "heddle/kernels/axpby.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

using runtime::Expected;
using runtime::HostValues;

// Rounded three times: the product in f32, the sum in f32, and to the element's type.
StatusOr<std::map<std::string, Expected>> axpby_reference(
    const Settings& settings, const std::map<std::string, HostValues>& inputs) {
  const HostValues& x = inputs.at("x");
  const HostValues& y = inputs.at("y");
  const double alpha = std::stod(settings.find("alpha")->second);
  const double beta = std::stod(settings.find("beta")->second);
  const ir::Scalar dtype = y.shape.dtype;
  const double last = dtype == ir::Scalar::kF32   ? 0x1p-24
                      : dtype == ir::Scalar::kF16 ? 0x1p-11
                                                  : 0x1p-8;
  Expected sum;
  for (size_t i = 0; i < x.values.size(); ++i) {
    const double a = alpha * x.values[i];
    const double b = beta == 0 ? 0 : beta * y.values[i];
    sum.values.push_back(a + b);
    sum.tolerance.push_back((std::abs(a) + std::abs(b)) * (0x1p-23 + last));
  }
  return std::map<std::string, Expected>{{"y", std::move(sum)}};
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
