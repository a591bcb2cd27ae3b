// What the analyses say of a kernel's values, put into the kernel as promises for the interpreter
// to check: an assume_range behind each integer of which bounds or a divisor are known, an
// assume_uniform behind each that is said to be the same throughout a warp.
#pragma once

#include "heddle/ir/kernel.h"

namespace heddle::fuzz {

ir::Kernel with_claims(const ir::Kernel& kernel);

}  // namespace heddle::fuzz
