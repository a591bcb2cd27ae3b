// The oracle: what a kernel writes, found by a second evaluator. It shares no code with the passes,
// with the constant folder and the interpreter: what it knows of ops are the comments in ir/ops.def,
// of kernels ir/kernel.h.
//
// The threads of a block go through the program together, op by op; an `if` or a loop is gone
// through by those of them that go there. That is one of the orders that a program without races
// may run in, in which a barrier has nothing left to do and the lanes of a warp meet by themselves.
// It knows the ops that the generator makes. Any other is an error that names it.
#pragma once

#include "fuzz/inputs.h"
#include "fuzz/outcome.h"
#include "heddle/ir/kernel.h"

namespace heddle::fuzz {

// Runs a kernel on its inputs. The error says what is wrong with the program, or what the oracle
// does not know.
Outcome consult_oracle(const ir::Kernel& kernel, const Inputs& inputs);

}  // namespace heddle::fuzz
