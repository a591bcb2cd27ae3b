// Whether the tensors that a user gives are what a kernel takes. Every refusal is kInvalidArgument
// and says what would fit.
#pragma once

#include <string>

#include "heddle/ir/status.h"
#include "heddle/runtime/operation/operation.h"
#include "heddle/tools/command/kernel_choice.h"

namespace heddle::tools {

// "f32[1024, 1000]"
std::string describe(const runtime::TensorShape& shape);

// Exactly what the kernel reads, by names, element types and modes. bind() checks whether the extents
// fit each other.
Status check_inputs(const ChosenKernel& kernel, const runtime::Shapes& inputs);

}  // namespace heddle::tools
