// Makes a kernel smaller while it still shows what it showed: ops are dropped, regions take the
// place of the ops that own them, values give way to constants and to operands.
#pragma once

#include <functional>

#include "heddle/ir/kernel.h"

namespace heddle::fuzz {

using Predicate = std::function<bool(const ir::Kernel&)>;

// A kernel for which `shows` is true, as it must be for this one, and of which no single step of
// the reduction keeps it so. At most `attempts` kernels are tried.
ir::Kernel reduce(const ir::Kernel& kernel, const Predicate& shows, int attempts = 20'000);

// Ops in the kernel's text, not counting yields.
int count_ops(const ir::Kernel& kernel);

}  // namespace heddle::fuzz
