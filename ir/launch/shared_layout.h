// Where each array lies in a block's shared memory, which Heddle lays out itself, with the dynamic
// shared memory behind the arrays. Arrays of different regions of an arena share bytes.
#pragma once

#include "heddle/ir/kernel.h"

namespace heddle::ir {

struct SharedLayout {
  IdMap<OpId, int> offset{-1};  // of each `shared` op, in bytes from the start
  int64_t bytes = 0;            // of all arrays; dynamic shared memory starts here, rounded up
  int align = 16;               // of the whole

  // Dynamic shared memory starts here.
  int dynamic_offset() const { return static_cast<int>((bytes + 15) / 16 * 16); }
};

SharedLayout shared_layout(const Kernel& kernel);
// Bytes of one array; of one that fits nowhere, a great many.
int64_t array_bytes(const Kernel& kernel, OpId array);
// With bytes of its own for each array, also in arenas: where the interpreter keeps them, so that an
// address says through which array it goes.
SharedLayout apart_layout(const Kernel& kernel);

// The same for the arrays of a thread, `local`.
SharedLayout local_layout(const Kernel& kernel);

}  // namespace heddle::ir
