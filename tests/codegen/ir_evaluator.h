// What one thread of a kernel does by the meaning of its IR: integers, bools, loops, branches and
// accesses to views of one mode. It shares no code with the emitter, the folder or the interpreter.
//
//   evaluate(kernel, {.params = params, .base = base, .thread = 5}, memory);
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/ir/kernel.h"

namespace heddle::codegen {

struct EvaluatedThread {
  // Address and extent of each view, then the one number.
  const std::vector<uint64_t>& params;
  uint64_t base = 0;  // the address of the memory's first byte
  uint64_t thread = 0;
};

void evaluate(const ir::Kernel& kernel, const EvaluatedThread& thread,
              std::vector<uint8_t>& memory);

}  // namespace heddle::codegen
