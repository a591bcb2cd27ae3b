// Random kernels that run to their end: arithmetic of every type, loops, ifs, variables, loads and
// stores, nested as it comes. The same seed gives the same kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/ir/kernel.h"
#include "ir/analysis/thread_oracle.h"

namespace heddle::ir {

struct RandomOptions {
  bool floats = true;
  int statements = 30;  // about as many in the kernel's body
};

Kernel random_kernel(uint64_t seed, const RandomOptions& options);
// Arguments for it, by the same seed: scalars at the edges of their types, memory of any bits.
std::vector<ThreadOracle::Argument> random_arguments(const Kernel& kernel, uint64_t seed);

}  // namespace heddle::ir
