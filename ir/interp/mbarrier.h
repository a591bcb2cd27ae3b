// Barriers in shared memory as the interpreter keeps them, and where they lie. Internal.
#pragma once

#include <cstdint>

#include "heddle/ir/interp/machine.h"

namespace heddle::ir::interp {

// An mbarrier's 64 bits, in a form of the interpreter's own.
struct Mbarrier {
  uint64_t pending : 20;   // arrivals that this phase still lacks
  uint64_t expected : 20;  // arrivals of each phase
  int64_t bytes : 22;      // announced and not yet come
  uint64_t phase : 1;      // parity of the current one
  uint64_t valid : 1;

  void complete() {
    if (pending != 0 || bytes != 0) return;
    phase ^= 1;
    pending = expected;
  }
};
static_assert(sizeof(Mbarrier) == 8);

// The block of the cluster whose shared memory has these bytes; nullptr where none has.
Block* block_of(const Warp& warp, uint64_t address, uint64_t bytes);
// What is wrong with bytes of a block, or of none, that should lie in an array, which may be kNone:
// "byte 512 of 'tile', which has 384"; empty if nothing is.
std::string beyond_array(const Warp& warp, const Block* block, uint32_t array, uint64_t address,
                         uint64_t bytes);
// The barrier at an address; nullptr, and a report, where there is none, or where there is one that
// should be initialised only now. `copies`: a copy is going to tell it.
Mbarrier* find_mbarrier(const Instr* instr, const Warp& warp, uint64_t address, uint32_t array,
                        bool initialised, int lane, bool copies = false);

}  // namespace heddle::ir::interp
