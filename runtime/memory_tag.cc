#include "heddle/runtime/memory_tag.h"

#include <deque>
#include <mutex>
#include <vector>

namespace heddle::runtime {
namespace {

// Tags of all devices: whoever holds on to one may ask after its device is gone.
struct Tags {
  std::mutex mutex;
  std::deque<MemoryTag> all;
  std::vector<MemoryTag*> free;
  uint64_t last_number = 0;
};

Tags& tags() {
  static Tags& tags = *new Tags;
  return tags;
}

}  // namespace

MemoryTag* tag_memory(const Backend* device) {
  Tags& t = tags();
  const std::lock_guard<std::mutex> lock(t.mutex);
  MemoryTag* tag = nullptr;
  if (t.free.empty()) {
    tag = &t.all.emplace_back();
  } else {
    tag = t.free.back();
    t.free.pop_back();
  }
  tag->device.store(device, std::memory_order_relaxed);
  tag->allocation.store(++t.last_number, std::memory_order_relaxed);
  return tag;
}

void untag_memory(MemoryTag* tag) {
  Tags& t = tags();
  const std::lock_guard<std::mutex> lock(t.mutex);
  tag->allocation.store(0, std::memory_order_relaxed);
  tag->device.store(nullptr, std::memory_order_relaxed);
  t.free.push_back(tag);
}

}  // namespace heddle::runtime
