// Which array of an arena has each byte of shared memory. Internal.
//
// The interpreter keeps arrays of arenas apart, so that an address says through which array it goes;
// here they meet: each granule (shadow.h) of an arena has one owner, the array that began last.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/ir/interp/shadow.h"

namespace heddle::ir::interp {

class Arenas {
 public:
  // Of a granule: the array, in Code::shared_arrays, and the event that took it over; 0: it had it
  // from the start.
  struct Owner {
    uint32_t array = kNone;
    uint32_t since = 0;
  };
  // A warp that has begun an array.
  struct Begin {
    uint32_t event = 0;  // Event::id
    uint32_t actor = 0;
    uint32_t clock = 0;
    const Instr* instr = nullptr;
    uint32_t lane = 0;
  };

  // Of so many blocks with so many bytes of shared memory each.
  void resize(const Code& code, size_t blocks, uint64_t bytes_each);

  // Bytes of shadow that a block takes.
  uint64_t shadow_bytes() const { return shadow_bytes_; }
  // Where the shadow of a byte is: arrays that share it share that.
  uint64_t shadow_of(uint64_t offset) const {
    const uint64_t granule = offset / Granule::kBytes;
    return granule < places_.size() && arrays_[granule] != kNone
               ? places_[granule] + offset % Granule::kBytes
               : offset;
  }
  // The array of an arena that a byte belongs to; kNone: it is in none.
  uint32_t array_at(uint64_t offset) const {
    const uint64_t granule = offset / Granule::kBytes;
    return granule < arrays_.size() ? arrays_[granule] : kNone;
  }
  // Of a byte of an arena's array.
  Owner& owner(size_t block, uint64_t offset) {
    const uint64_t first = shadow_bytes_ - arena_bytes_;
    return owners_[(block * arena_bytes_ + shadow_of(offset) - first) / Granule::kBytes];
  }

  // The warps that have begun an array since what `since` took over; nullptr: too long ago to be known.
  const std::vector<Begin>* begins(size_t block, uint32_t array, uint32_t since) const {
    const History& history = histories_[block * array_count_ + array];
    return since < history.oldest ? nullptr : &history.begins;
  }
  // Notes one. `takes_all`: it took all of the array over; `takes_some`: a part of it.
  void note(size_t block, uint32_t array, const Begin& begin, bool takes_all, bool takes_some);

 private:
  struct History {
    std::vector<Begin> begins;
    uint32_t oldest = 0;      // those of earlier events are forgotten
    uint32_t last_taken = 0;  // the event that took bytes over last
  };

  uint64_t shadow_bytes_ = 0, arena_bytes_ = 0;
  size_t array_count_ = 0;
  std::vector<uint32_t> arrays_;  // by granule of a block's memory; empty where there is no arena
  std::vector<uint64_t> places_;  // likewise, where there is an array
  std::vector<Owner> owners_;     // by block and granule of all arenas
  std::vector<History> histories_;
};

}  // namespace heddle::ir::interp
