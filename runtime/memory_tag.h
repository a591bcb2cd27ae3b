// Which device a buffer's memory belongs to, and whether it is still alive: what a launch asks of
// each tensor that as_tensor() made, in two comparisons.
//
// A tag belongs to an allocation and outlives it: later allocations use it again, with another
// number. So tag and number together can be checked at any time.
#pragma once

#include <atomic>
#include <cstdint>

namespace heddle::runtime {
class Backend;
}  // namespace heddle::runtime

namespace heddle::detail {

struct MemoryTag {
  std::atomic<uint64_t> allocation{0};  // 0: none lies here now
  std::atomic<const runtime::Backend*> device{nullptr};

  [[gnu::always_inline]] bool holds(uint64_t number, const runtime::Backend* where) const {
    return allocation.load(std::memory_order_relaxed) == number &&
           device.load(std::memory_order_relaxed) == where;
  }
};

}  // namespace heddle::detail

namespace heddle::runtime {

using heddle::detail::MemoryTag;

// A tag for memory of this device, with a number that no other allocation has or will have.
MemoryTag* tag_memory(const Backend* device);
// The memory is gone.
void untag_memory(MemoryTag* tag);

}  // namespace heddle::runtime
