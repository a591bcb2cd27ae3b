// Who accessed each byte of a cluster's shared memory last. Internal.
//
// Bytes are kept in granules of 16, which is what copies and tensor cores move: of each the latest
// writers and readers, with the bytes that were theirs. What is remembered is bounded, in granules
// by slots and in all by events. What is forgotten counts as over and visible, so that mistakes are
// missed and none is made up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "heddle/ir/interp/code.h"

namespace heddle::ir::interp {

enum class AccessKind : uint8_t {
  kRead,         // loads, ldmatrix
  kWrite,        // stores, stmatrix
  kAtomic,       // atomics and volatile accesses
  kTakeOver,     // shared.begin: no access, but what was done before it is over
  kCopyWrite,    // copy.async: asynchronous, in the generic proxy
  kStoreAsync,   // store.async: likewise
  kBulkWrite,    // a bulk copy's or box's destination
  kBulkReduce,   // a bulk reduction's destination: such accesses may meet
  kBulkRead,     // a bulk copy's or box's source
  kProductRead,  // wgmma's tiles
};

// One warp's, or one asynchronous operation's, access. Of an asynchronous one, what ends it: phase
// `phase` of an mbarrier, or a wait of the warps that issued it.
struct Event {
  static constexpr uint32_t kUnknownPhase = ~uint32_t{0};

  uint32_t id = 0;  // 0: forgotten
  const Instr* instr = nullptr;
  uint32_t actor = 0;  // the warp, in the cluster; of a product, the first of its four
  uint32_t clock = 0;  // its own count at the issue
  AccessKind kind = AccessKind::kRead;
  uint8_t lane = 0;                // of bulk operations
  uint32_t barrier = kNone;        // component of the mbarrier that counts its bytes
  uint32_t phase = kUnknownPhase;  // ended phases that include it; unknown while bytes lack
  uint32_t lanes_done = 0;         // copy.async, bulk reads: the lanes that have waited
  std::array<uint32_t, 4> done{};  // the counts of the warps that have waited; 0: not yet
};

// An event's part of a granule.
struct Slot {
  uint32_t event = 0;  // Event::id; 0: nothing
  uint16_t bytes = 0;  // bit i: byte i
  uint16_t who = 0;    // actor and lane

  uint32_t lane() const { return who % kLanes; }
  uint32_t actor() const { return who / kLanes; }
};

struct Granule {
  static constexpr uint64_t kBytes = 16;
  static constexpr size_t kSlots = 4;
  std::array<Slot, kSlots> writers{}, readers{};
};

class Shadow {
 public:
  // Of so many blocks with so many bytes of shared memory each.
  void resize(size_t blocks, uint64_t bytes_each);

  // The granule of a byte of a block.
  Granule& at(size_t block, uint64_t offset) {
    return granules_[block * granules_each_ + offset / Granule::kBytes];
  }

  // A new event, which gets its id.
  Event& add(Event event);
  // nullptr where it is forgotten.
  Event* find(uint32_t id) {
    Event& event = events_[id % kEvents];
    return event.id == id ? &event : nullptr;
  }

  // Records that an event read or wrote these bytes.
  void record_read(Granule& granule, const Event& event, uint16_t bytes, uint32_t lane);
  void record_write(Granule& granule, const Event& event, uint16_t bytes, uint32_t lane);

 private:
  static constexpr uint32_t kEvents = 1u << 15;

  void put(std::array<Slot, Granule::kSlots>& slots, const Event& event, Slot slot);

  std::vector<Granule> granules_;
  size_t granules_each_ = 0;
  std::vector<Event> events_ = std::vector<Event>(1);
  uint32_t last_ = 0;
};

}  // namespace heddle::ir::interp
