// Kernels that are wrong in every way that the heddle command must survive. Each takes x and writes
// y, an f32 vector of the same length.
#include <stdexcept>

#include "heddle/heddle.h"
#include "heddle/runtime/registry.h"

namespace {

using namespace heddle;
using runtime::Expected;
using runtime::HostValues;

constexpr int kThreads = 32;

using VectorKernel = Kernel<Tensor<const float, 1>, Tensor<float, 1>>;

const VectorKernel copy =
    define_kernel("copy(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
      Int i = block_idx.x * kThreads + thread_idx.x;
      If(i < x.shape(0), [&] { y(i) = x(i); });
    });
const VectorKernel out_of_bounds =
    define_kernel("out_of_bounds(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
      Int i = block_idx.x * kThreads + thread_idx.x;
      y(i) = x(i + 1);
    });
const VectorKernel mistaken =
    define_kernel("mistaken(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
      If(thread_idx.x < 7, [&] {
        sync_threads();
        y(thread_idx.x) = x(thread_idx.x);
      });
    });

absl::StatusOr<LaunchPlan> plan_for(const VectorKernel& kernel,
                                    const std::map<std::string, TensorShape>& inputs) {
  const auto x = inputs.find("x");
  if (x == inputs.end()) return absl::InvalidArgumentError("the input x is missing");
  LaunchPlan plan;
  plan.source = &kernel.source();
  plan.parameters = {{.name = "x", .shape = x->second},
                     {.name = "y", .output = true, .shape = x->second}};
  plan.config.grid = (x->second.extents[0] + kThreads - 1) / kThreads;
  plan.config.block = kThreads;
  return plan;
}

KernelEntry entry(const char* name, const VectorKernel& kernel) {
  CompileOptions options;
  options.block = {kThreads, 1, 1};
  return {.name = name,
          .summary = "does wrong",
          .settings = {},
          .variant = [&kernel, options](const Settings&) -> absl::StatusOr<Variant> {
            return Variant{&kernel.source(), {tensor({kAny}), tensor({kAny})}, options};
          },
          .plan =
              [&kernel](const Settings&, const std::map<std::string, TensorShape>& inputs) {
                return plan_for(kernel, inputs);
              },
          .reference = nullptr};
}

using Outputs = absl::StatusOr<std::map<std::string, Expected>>;
using Inputs = std::map<std::string, HostValues>;

KernelEntry with_reference(KernelEntry entry,
                           Outputs (*reference)(const Settings&, const Inputs&)) {
  entry.reference = reference;
  return entry;
}

// Expects every element but the first two to be one more than it is.
Outputs one_more(const Settings&, const Inputs& inputs) {
  Expected y;
  for (const double x : inputs.at("x").values) {
    y.values.push_back(y.values.size() < 2 ? x : x + 1);
    y.tolerance.push_back(0.25);
  }
  return std::map<std::string, Expected>{{"y", y}};
}
Outputs too_short(const Settings&, const Inputs&) {
  return std::map<std::string, Expected>{{"y", {{1.0}, {0.0}}}};
}
Outputs of_another(const Settings&, const Inputs&) {
  return std::map<std::string, Expected>{{"z", {{1.0}, {0.0}}}};
}
Outputs thrown(const Settings&, const Inputs&) { throw std::runtime_error("the reference threw"); }

KernelEntry without(KernelEntry entry, bool variant, bool plan) {
  if (!variant) entry.variant = nullptr;
  if (!plan) entry.plan = nullptr;
  return entry;
}

// A plan that forgets a parameter.
KernelEntry with_short_plan(KernelEntry entry) {
  entry.plan = [](const Settings&, const std::map<std::string, TensorShape>&) {
    LaunchPlan plan;
    plan.source = &copy.source();
    return absl::StatusOr<LaunchPlan>(plan);
  };
  return entry;
}

KernelEntry with_null_variant(KernelEntry entry) {
  entry.variant = [](const Settings&) { return absl::StatusOr<Variant>(Variant{}); };
  return entry;
}
KernelEntry with_null_plan(KernelEntry entry) {
  entry.plan = [](const Settings&, const std::map<std::string, TensorShape>&) {
    return absl::StatusOr<LaunchPlan>(LaunchPlan{});
  };
  return entry;
}

const Registered entries[] = {
    Registered(with_reference(entry("wrong_result", copy), one_more)),
    Registered(with_reference(entry("short_reference", copy), too_short)),
    Registered(with_reference(entry("other_reference", copy), of_another)),
    Registered(with_reference(entry("throwing_reference", copy), thrown)),
    Registered(entry("out_of_bounds", out_of_bounds)),
    Registered(entry("mistaken", mistaken)),
    Registered(without(entry("not_dumped", copy), false, true)),
    Registered(without(entry("not_run", copy), true, false)),
    Registered(with_short_plan(entry("short_plan", copy))),
    Registered(with_null_variant(entry("null_variant", copy))),
    Registered(with_null_plan(entry("null_plan", copy))),
};

}  // namespace
