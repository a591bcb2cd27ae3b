// A plug-in for the heddle command: y = a * x + y, in place.
//
//   heddle run saxpy --plugin libsaxpy_plugin.so --in x=x.npy --in y=y.npy --out y=sum.npy --set
//   a=2
#include <cmath>

#include "absl/strings/numbers.h"
#include "heddle/heddle.h"
#include "heddle/runtime/operation/registry.h"

namespace {

using namespace heddle;

constexpr int kThreads = 128;

const auto saxpy =
    define_kernel("saxpy(x, y, a)", [](Tensor<const float, 1> x, Tensor<float, 1> y, Float a) {
      Int i = block_idx.x * kThreads + thread_idx.x;
      If(i < x.shape(0), [&] { y(i) = a * x(i) + y(i); });
    });

Status launch_saxpy(const Stream& stream, const TensorRef<const float, 1>& x,
                    const TensorRef<float, 1>& y, float a) {
  const int64_t n = y.extents[0];
  if (n == 0) return OkStatus();
  return saxpy.launch(stream, {.grid = (n + kThreads - 1) / kThreads, .block = kThreads}, x, y, a);
}

StatusOr<std::map<std::string, runtime::Expected>> reference(
    const Settings& settings, const std::map<std::string, runtime::HostValues>& inputs) {
  float a = 0;
  if (!absl::SimpleAtof(settings.at("a"), &a)) return InternalError("a is no number");
  const std::vector<double>& x = inputs.at("x").values;
  const std::vector<double>& y = inputs.at("y").values;
  runtime::Expected result;
  for (size_t i = 0; i < x.size(); ++i) {
    result.values.push_back(a * x[i] + y[i]);
    result.tolerance.push_back(0x1p-23 * (std::abs(a * x[i]) + std::abs(y[i])));
  }
  return std::map<std::string, runtime::Expected>{{"y", result}};
}

const Registered registered({.name = "saxpy",
                             .summary = "y = a * x + y",
                             .arguments = {"x: f32[n]", "y: inout f32[n]", "a: f32"},
                             .functions = {host_function(launch_saxpy)},
                             .settings = {{.name = "a", .help = "factor", .default_value = "2"}},
                             .sizes = {{"n", 1 << 16}},
                             .reference = reference});

}  // namespace
