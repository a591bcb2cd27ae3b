// Bytes of a block's shared memory, or of an allocation, that a copy reads or writes. Internal.
#pragma once

#include <cstdint>
#include <cstring>

#include "heddle/ir/interp/machine.h"
#include "heddle/ir/interp/memory.h"

namespace heddle::ir::interp {

// The shadow of a byte of a block's shared memory, and of what is behind it.
inline uint8_t* shadow_of(const Block& block, uint64_t address) {
  return block.shared_written + (address - block.shared_address());
}

// The allocation is not looked up, and nothing is marked in it, where nothing is checked.
struct ByteRange {
  uint64_t address = 0;
  uint64_t bytes = 0;
  Block* block = nullptr;
  Allocation* allocation = nullptr;

  const std::byte* data() const { return reinterpret_cast<const std::byte*>(address); }
  bool written() const {
    return block != nullptr ? std::memchr(shadow_of(*block, address), 0, bytes) == nullptr
                            : allocation->initialized(address, bytes);
  }
  void mark_written() const {
    if (block != nullptr) {
      std::memset(shadow_of(*block, address), kWritten, bytes);
    } else if (allocation != nullptr) {
      allocation->mark_initialized(address, bytes);
    }
  }
};

}  // namespace heddle::ir::interp
