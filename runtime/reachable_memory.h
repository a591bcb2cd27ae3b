// Whether a device's kernels reach the memory of their arguments: what a launch asks for pointers that are nobody's Buffer,
// when it needs code that is not loaded yet. Later launches of that code are not asked, for an answer costs as much as
// the rest of a launch.
#pragma once

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/argument.h"
#include "heddle/runtime/backend.h"

namespace heddle::runtime {

// kInvalidArgument where the memory at an argument's address is known to be out of reach: "<what> lies in memory of the
// host, which …". OK for numbers, null pointers, tensors without elements and Buffers, and on devices other than GPUs.
Status check_reach(const Argument& argument, absl::string_view what, Backend& device);

// The same for all arguments of a kernel, which `kernel` describes.
Status check_reach(absl::string_view kernel, absl::Span<const ir::ParamInfo> params,
                   Arguments arguments, Backend& device);

}  // namespace heddle::runtime
