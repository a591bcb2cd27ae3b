#include "heddle/ir/interp/shadow.h"

#include <algorithm>

namespace heddle::ir::interp {

void Shadow::resize(size_t blocks, uint64_t bytes_each) {
  granules_each_ = static_cast<size_t>((bytes_each + Granule::kBytes - 1) / Granule::kBytes);
  granules_.assign(blocks * granules_each_, Granule{});
}

Event& Shadow::add(Event event) {
  event.id = ++last_;
  // Grows as it is used: few kernels fill it.
  if (event.id < kEvents && event.id >= events_.size()) {
    events_.resize(std::min<size_t>(kEvents, 2 * events_.size() + 64));
  }
  Event& place = events_[event.id % kEvents];
  place = event;
  return place;
}

// In the place of what it makes needless to remember, else of the oldest. Needless is an access of the
// same warp and kind that ends with this one, or a reader's that ends before it and has no other bytes.
void Shadow::put(std::array<Slot, Granule::kSlots>& slots, const Event& event, Slot slot) {
  const bool reads = event.kind == AccessKind::kRead || event.kind == AccessKind::kBulkRead ||
                     event.kind == AccessKind::kProductRead;
  const bool asynchronous = event.kind >= AccessKind::kCopyWrite;
  Slot* place = &slots[0];
  for (Slot& candidate : slots) {
    // Lanes wait for their copies one by one.
    const bool same = candidate.event != 0 && (asynchronous ? candidate.who == slot.who
                                                            : candidate.actor() == slot.actor());
    if (same) {
      const Event* const before = find(candidate.event);
      const bool together =
          before == &event || (before != nullptr && !asynchronous && before->clock == event.clock);
      const bool covered = reads && (candidate.bytes & ~slot.bytes) == 0;
      if (before != nullptr && before->kind == event.kind && (together || covered)) {
        slot.bytes |= candidate.bytes;
        candidate = slot;
        return;
      }
    }
    if (candidate.event < place->event) place = &candidate;
  }
  *place = slot;
}

void Shadow::record_read(Granule& granule, const Event& event, uint16_t bytes, uint32_t lane) {
  put(granule.readers, event,
      {.event = event.id,
       .bytes = bytes,
       .who = static_cast<uint16_t>(event.actor * kLanes + lane)});
}

void Shadow::record_write(Granule& granule, const Event& event, uint16_t bytes, uint32_t lane) {
  // Whoever is ordered behind this write is behind what was ordered before it.
  for (auto* slots : {&granule.writers, &granule.readers}) {
    for (Slot& slot : *slots) {
      slot.bytes &= static_cast<uint16_t>(~bytes);
      if (slot.bytes == 0) slot = {};
    }
  }
  put(granule.writers, event,
      {.event = event.id,
       .bytes = bytes,
       .who = static_cast<uint16_t>(event.actor * kLanes + lane)});
}

}  // namespace heddle::ir::interp
