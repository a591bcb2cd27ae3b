#include "heddle/runtime/cuda/launch_ring.h"

#include <algorithm>
#include <utility>

namespace heddle::runtime::cuda {
namespace {

// Acquire and release on each word order them against the slot's state without a fence; on x86 both
// are plain moves.
constexpr auto kRead = std::memory_order_acquire;
constexpr auto kWrite = std::memory_order_release;

uint64_t pack(const Dim3& dim) {
  // x has up to 31 bits, y and z at most 16.
  return static_cast<uint64_t>(dim.x) | static_cast<uint64_t>(dim.y) << 32 |
         static_cast<uint64_t>(dim.z) << 48;
}

Dim3 unpack(uint64_t word) { return Dim3(word & 0xFFFFFFFFu, word >> 32 & 0xFFFFu, word >> 48); }

}  // namespace

uint64_t LaunchRing::add(const LaunchSite& site, const LaunchShape& shape, StreamHandle stream) {
  const uint64_t ticket = next_.fetch_add(1, std::memory_order_acq_rel);
  Slot& slot = slots_[ticket % kSize];
  uint64_t state = slot.state.load(std::memory_order_relaxed);
  // Odd: the ring went round while another thread still writes this slot. One launch goes
  // unrecorded.
  if (state % 2 != 0 || !slot.state.compare_exchange_strong(state, ready_state(ticket) + 1,
                                                            std::memory_order_acq_rel)) {
    return ticket;
  }
  size_t word = 0;
  slot.words[word++].store(static_cast<uint64_t>(stream), kWrite);
  slot.words[word++].store(pack(shape.grid), kWrite);
  slot.words[word++].store(pack(shape.block), kWrite);
  slot.words[word++].store(pack(shape.cluster), kWrite);
  slot.words[word++].store(static_cast<uint64_t>(shape.shared_bytes), kWrite);
  slot.words[word++].store(site.word(), kWrite);
  slot.state.store(ready_state(ticket), std::memory_order_release);
  return ticket;
}

void LaunchRing::remove(uint64_t ticket) {
  uint64_t expected = ready_state(ticket);
  slots_[ticket % kSize].state.compare_exchange_strong(expected, 0, std::memory_order_acq_rel);
}

void LaunchRing::complete_if(uint64_t ticket, bool any_stream, StreamHandle stream) {
  for (Slot& slot : slots_) {
    uint64_t state = slot.state.load(std::memory_order_acquire);
    if (state == 0 || state % 2 != 0 || state >= ready_state(ticket)) continue;
    if (!any_stream && slot.words[0].load(kRead) != static_cast<uint64_t>(stream)) continue;
    // Fails if the slot was taken over meanwhile, which is then another launch's.
    slot.state.compare_exchange_strong(state, 0, std::memory_order_acq_rel);
  }
}

void LaunchRing::complete(StreamHandle stream, uint64_t ticket) {
  complete_if(ticket, /*any_stream=*/false, stream);
}

void LaunchRing::complete_all(uint64_t ticket) {
  complete_if(ticket, /*any_stream=*/true, StreamHandle::kDefault);
}

std::vector<LaunchRecord> LaunchRing::records() const {
  std::vector<std::pair<uint64_t, LaunchRecord>> found;
  for (const Slot& slot : slots_) {
    const uint64_t state = slot.state.load(std::memory_order_acquire);
    if (state == 0 || state % 2 != 0) continue;
    std::array<uint64_t, kWords> words;
    for (size_t i = 0; i < kWords; ++i) words[i] = slot.words[i].load(kRead);
    if (slot.state.load(std::memory_order_relaxed) != state) continue;
    LaunchShape shape;
    shape.grid = unpack(words[1]);
    shape.block = unpack(words[2]);
    shape.cluster = unpack(words[3]);
    shape.shared_bytes = static_cast<int64_t>(words[4]);
    found.emplace_back(state,
                       LaunchRecord{LaunchSite::of_word(words[5]), shape,
                                    StreamHandle{static_cast<uintptr_t>(words[0])}, state / 2 - 1});
  }
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<LaunchRecord> records;
  for (auto& [state, record] : found) records.push_back(std::move(record));
  return records;
}

}  // namespace heddle::runtime::cuda
