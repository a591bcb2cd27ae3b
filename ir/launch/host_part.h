// What the host does of a kernel: what it computes before launches, what it requires of them, their grid, and tensor maps.
#pragma once

#include "heddle/ir/kernel.h"

namespace heddle::ir {

// A kernel with the same parameters, block, cluster and target, and no ops but at_launch, require, launch_grid, tensor_map and those
// that they are computed from, in the order in which they stood; no fact is known of its arguments. A LaunchProgram and TensorMaps of it do what those of the kernel do.
Kernel host_part(const Kernel& kernel);

}  // namespace heddle::ir
