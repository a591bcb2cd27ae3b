// The last launches of a context, kept because a fault surfaces at some later call: then these are
// the ones that may have caused it.
//
// Writing is wait-free and costs a dozen stores, so that a launch can afford it. Reading happens
// when something failed, and may miss a launch that another thread is just writing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "heddle/runtime/backend.h"
#include "heddle/runtime/launch_limits.h"

namespace heddle::runtime::cuda {

// One launch as remembered: `cooperative` and `programmatic` are not kept.
struct LaunchRecord {
  LaunchSite site;
  LaunchShape shape;
  StreamHandle stream;
  uint64_t ticket = 0;  // of LaunchRing::add
};

class LaunchRing {
 public:
  static constexpr size_t kSize = 16;

  // Remembers a launch, over the oldest one. The shape must have passed check_launch_limits.
  // Returns its ticket; tickets count up from 0.
  uint64_t add(const LaunchSite& site, const LaunchShape& shape, StreamHandle stream);
  // Forgets a launch that the driver refused.
  void remove(uint64_t ticket);

  // The ticket that the next launch gets.
  uint64_t next_ticket() const { return next_.load(std::memory_order_acquire); }
  // Forgets the launches before `ticket`, of one stream or of all: a wait for them succeeded.
  void complete(StreamHandle stream, uint64_t ticket);
  void complete_all(uint64_t ticket);

  // What is remembered, newest first.
  std::vector<LaunchRecord> records() const;

 private:
  // Stream; grid; block; cluster; dynamic shared bytes; site.
  static constexpr size_t kWords = 6;

  // `state` is 0 for an empty slot, else 2 × (ticket + 1), plus 1 while the words are written.
  // Words are only believed if the state is even and the same before and after they were read.
  struct alignas(64) Slot {
    std::atomic<uint64_t> state{0};
    std::array<std::atomic<uint64_t>, kWords> words{};
  };

  static uint64_t ready_state(uint64_t ticket) { return 2 * (ticket + 1); }
  void complete_if(uint64_t ticket, bool any_stream, StreamHandle stream);

  std::atomic<uint64_t> next_{0};
  std::array<Slot, kSize> slots_;
};

}  // namespace heddle::runtime::cuda
