// Whether the tensors that a user gives are what a kernel takes. Every refusal is kInvalidArgument
// and says what would fit.
#pragma once

#include <map>
#include <string>

#include "absl/status/status.h"
#include "heddle/runtime/registry.h"
#include "heddle/tools/command/kernel_choice.h"

namespace heddle::tools {

using InputShapes = std::map<std::string, runtime::TensorShape>;

// "f32[1024, 1000]"
std::string describe(const runtime::TensorShape& shape);

// Against the plan that was made for them: neither more nor less than its parameters need.
absl::Status check_inputs(const ChosenKernel& kernel, const runtime::LaunchPlan& plan,
                          const InputShapes& inputs);

// Without a plan, as far as the parameters of the kernel that the settings choose tell: names,
// element types and modes.
absl::Status check_inputs(const ChosenKernel& kernel, const InputShapes& inputs);

}  // namespace heddle::tools
