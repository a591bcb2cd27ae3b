// Random kernels for the fuzzer: all scalar types, constants at the edges of their types, loops
// whose bounds lie there too, vectors and fragments, memory that may overlap, shared arrays between
// barriers, divergent conditions, collectives of a warp, promises.
//
// They are right by construction: free of races, of reads of what nobody wrote and of results that
// ops.def leaves unspecified, for the arguments of inputs_for(kernel, seed). So what such a kernel
// writes may not change.
#pragma once

#include <cstdint>

#include "heddle/ir/kernel.h"

namespace heddle::fuzz {

// The same seed gives the same kernel.
ir::Kernel random_program(uint64_t seed);

}  // namespace heddle::fuzz
