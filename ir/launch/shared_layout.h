// Where each array lies in a block's shared memory: one arena that Heddle lays out itself, with the
// dynamic shared memory behind the arrays.
#pragma once

#include "heddle/ir/kernel.h"

namespace heddle::ir {

struct SharedLayout {
  IdMap<OpId, int> offset{-1};  // of each `shared` op, in bytes from the arena's start
  int bytes = 0;                // of all arrays; dynamic shared memory starts here, rounded up
  int align = 16;               // of the arena

  // Dynamic shared memory starts here.
  int dynamic_offset() const { return (bytes + 15) / 16 * 16; }
};

SharedLayout shared_layout(const Kernel& kernel);

// The same for the arrays of a thread, `local`.
SharedLayout local_layout(const Kernel& kernel);

}  // namespace heddle::ir
