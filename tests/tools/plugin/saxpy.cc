// A plug-in for the heddle command: y = a * x + y, in place.
//
//   heddle run saxpy --plugin libsaxpy_plugin.so --in x=x.npy --in y=y.npy --out y=sum.npy --set
//   a=2
#include <cmath>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "heddle/heddle.h"
#include "heddle/runtime/registry.h"

namespace {

using namespace heddle;

constexpr int kThreads = 128;

const auto saxpy =
    define_kernel("saxpy(x, y, a)", [](Tensor<const float, 1> x, Tensor<float, 1> y, Float a) {
      Int i = block_idx.x * kThreads + thread_idx.x;
      If(i < x.shape(0), [&] { y(i) = a * x(i) + y(i); });
    });

absl::StatusOr<float> factor(const Settings& settings) {
  float a = 0;
  if (!absl::SimpleAtof(settings.at("a"), &a)) {
    return absl::InvalidArgumentError(
        absl::StrCat("saxpy's a is a number, not '", settings.at("a"), "'"));
  }
  return a;
}

absl::StatusOr<Variant> variant(const Settings&) {
  CompileOptions options;
  options.block = {kThreads, 1, 1};
  return Variant{&saxpy.source(), {tensor({kAny}), tensor({kAny}), scalar()}, options};
}

absl::StatusOr<LaunchPlan> plan(const Settings& settings,
                                const std::map<std::string, TensorShape>& inputs) {
  const absl::StatusOr<float> a = factor(settings);
  if (!a.ok()) return a.status();
  const auto x = inputs.find("x");
  const auto y = inputs.find("y");
  if (x == inputs.end() || y == inputs.end()) {
    return absl::InvalidArgumentError("saxpy needs its inputs x and y");
  }
  if (x->second.extents.size() != 1 || x->second.extents != y->second.extents) {
    return absl::InvalidArgumentError("saxpy's x and y are vectors of one length");
  }
  uint32_t bits = 0;
  std::memcpy(&bits, &*a, sizeof(bits));
  LaunchPlan plan;
  plan.source = &saxpy.source();
  plan.parameters = {{.name = "x", .shape = x->second},
                     {.name = "y", .shape = y->second},
                     {.name = "a", .is_scalar = true, .scalar_bits = bits}};
  plan.config.grid = (x->second.extents[0] + kThreads - 1) / kThreads;
  plan.config.block = kThreads;
  return plan;
}

absl::StatusOr<std::map<std::string, runtime::Expected>> reference(
    const Settings& settings, const std::map<std::string, runtime::HostValues>& inputs) {
  const absl::StatusOr<float> a = factor(settings);
  if (!a.ok()) return a.status();
  const std::vector<double>& x = inputs.at("x").values;
  const std::vector<double>& y = inputs.at("y").values;
  runtime::Expected result;
  for (size_t i = 0; i < x.size(); ++i) {
    result.values.push_back(*a * x[i] + y[i]);
    result.tolerance.push_back(0x1p-23 * (std::abs(*a * x[i]) + std::abs(y[i])));
  }
  return std::map<std::string, runtime::Expected>{{"y", result}};
}

const Registered registered({.name = "saxpy",
                             .summary = "y = a * x + y",
                             .settings = {{.name = "a", .help = "factor", .default_value = "2"}},
                             .variant = variant,
                             .plan = plan,
                             .reference = reference});

}  // namespace
