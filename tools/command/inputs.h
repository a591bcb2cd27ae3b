// A kernel's inputs from .npy files, with the element types that it takes.
#pragma once

#include "heddle/ir/status.h"
#include "heddle/tools/command/execution.h"
#include "heddle/tools/command/option_values.h"

namespace heddle::tools {

// Reads the files and says what it has read. Of a float type that NumPy lacks a file has the bit
// patterns, or it has float32, which is rounded once. Errors: read_npy()'s. What does not fit the
// kernel is read as it is: bind_inputs() says what is wrong.
StatusOr<HostArrays> read_inputs(const ChosenKernel& kernel, const Assignments& files);

}  // namespace heddle::tools
