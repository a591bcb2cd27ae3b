// The scratch memory of a device's graphs: what streams allocate while their work is recorded. It
// is the graph's from then on, as the graph's kernels have its addresses.
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "heddle/ir/status.h"
#include "heddle/runtime/backend.h"

namespace heddle::runtime {

// Thread-safe.
class GraphMemory {
 public:
  // Whose memory it is: any address of the graph's own.
  using Owner = const void*;

  // Memory for work that is recorded on a stream: some that the same stream has given back since,
  // or new.
  StatusOr<DeviceAddress> allocate(Backend& device, Owner owner, StreamHandle stream, size_t bytes);
  // Gives memory back, for what the stream records next; frees it where its owner is gone. False where it is no graph's.
  bool give_back(Backend& device, DeviceAddress address) noexcept;
  // Frees what an owner has, but for what was not given back yet.
  void release(Backend& device, Owner owner) noexcept;
  // A stream is gone: another one that gets its handle is in no order with it.
  void forget(StreamHandle stream) noexcept;

 private:
  struct Block {
    Owner owner;          // nullptr: gone
    StreamHandle stream;  // kDefault, which is never recorded: gone
    size_t bytes;
    bool free;
  };
  std::atomic<int> count_{0};  // usually none, and then nobody has to look
  std::mutex mutex_;
  std::map<DeviceAddress, Block> blocks_;
};

}  // namespace heddle::runtime
