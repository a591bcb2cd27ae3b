// Bytes of a block's shared memory, or of an allocation, that a copy reads or writes. Internal.
#pragma once

#include <cstdint>
#include <cstring>

#include "heddle/ir/interp/machine.h"
#include "heddle/ir/interp/memory.h"

namespace heddle::ir::interp {

// The allocation is not looked up where nothing is checked.
struct ByteRange {
  uint64_t address = 0;
  uint64_t bytes = 0;
  Block* block = nullptr;
  Allocation* allocation = nullptr;

  bool written() const {
    return block != nullptr ? std::memchr(shadow(), 0, bytes) == nullptr
                            : allocation->initialized(address, bytes);
  }
  void mark_written() const {
    if (block != nullptr) {
      std::memset(shadow(), kWritten, bytes);
    } else {
      allocation->mark_initialized(address, bytes);
    }
  }

 private:
  uint8_t* shadow() const { return block->shared_written + (address - block->shared_address()); }
};

}  // namespace heddle::ir::interp
