#include "heddle/runtime/graph/graph_memory.h"

#include <vector>

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

bool GraphMemory::give_back(Backend& device, DeviceAddress address) noexcept {
  if (count_.load(std::memory_order_acquire) == 0) return false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = blocks_.find(address);
    if (found == blocks_.end()) return false;
    found->second.free = true;
    if (found->second.owner != nullptr) return true;
    blocks_.erase(found);
    --count_;
  }
  device.deallocate(address);
  return true;
}

void GraphMemory::release(Backend& device, Owner owner) noexcept {
  // Freed without the lock, as that waits for the device.
  std::vector<DeviceAddress> freed;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto at = blocks_.begin(); at != blocks_.end();) {
      Block& block = at->second;
      if (block.owner == owner && block.free) {
        freed.push_back(at->first);
        at = blocks_.erase(at);
        --count_;
        continue;
      }
      if (block.owner == owner) block.owner = nullptr;
      ++at;
    }
  }
  for (const DeviceAddress address : freed) device.deallocate(address);
}

void GraphMemory::forget(StreamHandle stream) noexcept {
  if (count_.load(std::memory_order_acquire) == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [address, block] : blocks_) {
    if (block.stream == stream) block.stream = StreamHandle::kDefault;
  }
}

}  // namespace heddle::runtime
