// Shapes of calls as the command line has them: 4096x4096x64, or m=4096,n=4096,k=64.
#pragma once

#include <string>

#include "heddle/ir/status.h"
#include "heddle/runtime/operation/operation.h"
#include "heddle/tools/command/kernel_choice.h"

namespace heddle::tools {

// The sizes of the kernel's named dimensions: numbers in the order of its outputs' and then its inputs' dimensions, or
// name=N in any order; others are as kernel.sizes has them. A dimension that is a setting too, such as topk's k, is no number
// of the first form. kInvalidArgument says which form the kernel takes; `option`
// is named.
StatusOr<runtime::Sizes> parse_shape(const std::string& option, const ChosenKernel& kernel,
                                     const std::string& text);

// Sizes in the first form: "4096x4096x64".
std::string shape_text(const ChosenKernel& kernel, const runtime::Sizes& sizes);

}  // namespace heddle::tools
