#include "heddle/runtime/graph/graph_memory.h"

namespace heddle::runtime {

// Of a block that is given back, at least this part is used again.
constexpr size_t kLargestWaste = 2;

StatusOr<DeviceAddress> GraphMemory::allocate(Backend& device, Owner owner, StreamHandle stream,
                                              size_t bytes) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    auto best = blocks_.end();
    for (auto at = blocks_.begin(); at != blocks_.end(); ++at) {
      const Block& block = at->second;
      if (!block.free || block.owner != owner || block.stream != stream) continue;
      if (block.bytes < bytes || block.bytes / kLargestWaste > bytes) continue;
      if (best == blocks_.end() || block.bytes < best->second.bytes) best = at;
    }
    if (best != blocks_.end()) {
      best->second.free = false;
      return best->first;
    }
  }
  StatusOr<DeviceAddress> address = device.allocate(bytes);
  if (!address.ok()) return address;
  const std::lock_guard<std::mutex> lock(mutex_);
  blocks_[*address] = {.owner = owner, .stream = stream, .bytes = bytes, .free = false};
  ++count_;
  return address;
}

bool GraphMemory::give_back(DeviceAddress address) {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = blocks_.find(address);
  if (found == blocks_.end()) return false;
  found->second.free = true;
  return true;
}

void GraphMemory::release(Backend& device, Owner owner) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto at = blocks_.begin(); at != blocks_.end();) {
    if (at->second.owner != owner) {
      ++at;
      continue;
    }
    device.deallocate(at->first);
    at = blocks_.erase(at);
    --count_;
  }
}

}  // namespace heddle::runtime
