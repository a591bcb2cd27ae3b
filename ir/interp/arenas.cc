#include "heddle/ir/interp/arenas.h"

#include <algorithm>

namespace heddle::ir::interp {
namespace {

// Begins of an array beyond which the older half is forgotten.
constexpr size_t kMostBegins = 4096;

uint64_t granules_of(uint64_t bytes) { return (bytes + Granule::kBytes - 1) / Granule::kBytes; }

}  // namespace

void Arenas::resize(const Code& code, size_t blocks, uint64_t bytes_each) {
  shadow_bytes_ = granules_of(bytes_each) * Granule::kBytes;
  array_count_ = code.shared_arrays.size();
  for (const SharedArray& array : code.shared_arrays) {
    if (array.region == kNone) continue;
    const uint64_t end = granules_of(array.place + array.bytes) * Granule::kBytes;
    arena_bytes_ = std::max(arena_bytes_, end);
  }
  if (arena_bytes_ == 0) return;
  arrays_.assign(granules_of(bytes_each), kNone);
  places_.resize(arrays_.size());
  std::vector<Owner> first(granules_of(arena_bytes_));
  for (uint32_t number = 0; number < array_count_; ++number) {
    const SharedArray& array = code.shared_arrays[number];
    if (array.region == kNone) continue;
    for (uint64_t i = 0; i < granules_of(array.bytes); ++i) {
      const uint64_t granule = array.offset / Granule::kBytes + i;
      const uint64_t place = array.place / Granule::kBytes + i;
      arrays_[granule] = number;
      places_[granule] = shadow_bytes_ + place * Granule::kBytes;
      Owner& owner = first[place];
      if (owner.array == kNone || array.region < code.shared_arrays[owner.array].region) {
        owner.array = number;
      }
    }
  }
  shadow_bytes_ += arena_bytes_;
  for (size_t block = 0; block < blocks; ++block) {
    owners_.insert(owners_.end(), first.begin(), first.end());
  }
  histories_.resize(blocks * array_count_);
}

void Arenas::note(size_t block, uint32_t array, const Begin& begin, bool takes_all,
                  bool takes_some) {
  History& history = histories_[block * array_count_ + array];
  std::vector<Begin>& begins = history.begins;
  if (takes_all) begins.clear();
  if (takes_some) history.last_taken = begin.event;
  // Who is ordered behind a warp's first begin need not be behind its next.
  const bool known = std::any_of(begins.begin(), begins.end(), [&](const Begin& one) {
    return one.actor == begin.actor && one.event >= history.last_taken;
  });
  if (known) return;
  if (begins.size() == kMostBegins) {
    begins.erase(begins.begin(), begins.begin() + kMostBegins / 2);
    history.oldest = begins.front().event;
  }
  begins.push_back(begin);
}

}  // namespace heddle::ir::interp
