#include "heddle/ir/interp/races.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "heddle/ir/check.h"
#include "heddle/ir/interp/machine.h"

namespace heddle::ir::interp {
namespace {

// Pages that no store reaches are never touched.
uint32_t* zeroed_words(size_t count) {
  void* const words = std::calloc(count, sizeof(uint32_t));
  HEDDLE_CHECK(words != nullptr, "the host is out of memory");
  return static_cast<uint32_t*>(words);
}

constexpr uint32_t kWord = 4;

}  // namespace

void WriteRaces::FreeDeleter::operator()(uint32_t* words) const { std::free(words); }

WriteRaces::Table& WriteRaces::table_for(uint32_t bytes) {
  Table& table = bytes < kWord ? bytes_ : words_;
  if (table.who == nullptr) {
    table.where.reset(zeroed_words(kPlaces));
    table.who.reset(zeroed_words(kPlaces));
    table.instr.reset(zeroed_words(kPlaces));
  }
  return table;
}

void WriteRaces::enter(const std::vector<Block*>& blocks) {
  blocks_ = blocks;
  for (Block* const block : blocks) {
    for (Warp& warp : block->warps) warp.phase = 0;
    order(*block);
  }
}

void WriteRaces::order(Block& block) {
  if (epoch_ < kLastEpoch) {
    block.epoch = ++epoch_;
    return;
  }
  // Forgets all, so that a number that is used again meets none of its first use.
  for (Table* const table : {&words_, &bytes_}) {
    if (table->who != nullptr) std::fill_n(table->who.get(), kPlaces, 0u);
  }
  epoch_ = 0;
  for (Block* const resident : blocks_) resident->epoch = ++epoch_;
}

void WriteRaces::order(Warp& warp) {
  warp.phase = (warp.phase + 1) % (1u << kPhaseBits);
  if (warp.phase == 0) order(*warp.block);
}

namespace {

// `count` bytes of what a lane stores, from byte `from` on.
void copy_stored(const WriteRaces::Store& store, int lane, uint32_t from, uint32_t count,
                 std::byte* to) {
  for (uint32_t at = from; at < from + count; ++at) {
    const uint32_t element = at / store.element_bytes * kLanes + static_cast<uint32_t>(lane);
    *to++ = store.values[element * store.element_bytes + at % store.element_bytes];
  }
}

// Whether a lane leaves `count` bytes of its own as another thread has stored them: `lower`, if it
// is 0 or more, is that thread's lane in this very store.
bool stores_the_same(const WriteRaces::Store& store, int lane, uint32_t from, uint32_t count,
                     int lower) {
  if (store.values == nullptr) return false;
  std::byte mine[kWord], theirs[kWord];
  copy_stored(store, lane, from, count, mine);
  const uint64_t address = store.addresses[lane] + from;
  const uint64_t offset = lower >= 0 ? address - store.addresses[lower] : store.bytes;
  if (offset < store.bytes) {
    copy_stored(store, lower, static_cast<uint32_t>(offset), count, theirs);
  } else {
    std::memcpy(theirs, reinterpret_cast<const void*>(address), count);
  }
  return std::memcmp(mine, theirs, count) == 0;
}

}  // namespace

std::optional<WriteRaces::Race> WriteRaces::write(const Warp& warp, uint32_t instr,
                                                  const Store& store) {
  Table& table = table_for(store.bytes);
  const bool narrow = store.bytes < kWord;
  const uint64_t first = narrow ? store.addresses[0] : store.addresses[0] / kWord;
  const uint32_t places = (narrow ? store.bytes : store.bytes / kWord) * kLanes;
  const uint32_t at = static_cast<uint32_t>(first) % kPlaces;
  if (!store.contiguous || at + places > kPlaces) return write_lanes(table, warp, instr, store);
  // Lanes side by side cannot meet each other, and others only where somebody was in this epoch.
  uint32_t* const where = table.where.get() + at;
  uint32_t* const who = table.who.get() + at;
  uint32_t* const by = table.instr.get() + at;
  const auto tag = static_cast<uint32_t>(first >> kIndexBits);
  const uint32_t self = (((warp.block->epoch << kPhaseBits) | warp.phase) << kThreadBits) +
                        static_cast<uint32_t>(warp.index * kLanes);
  const int shift = std::countr_zero(places / kLanes);
  uint32_t met = 0;
  for (uint32_t chunk = 0; chunk < places; chunk += kLanes) {
    for (uint32_t i = chunk; i < chunk + kLanes; ++i) {
      const uint32_t difference = who[i] ^ (self + (i >> shift));
      const bool same_epoch = (difference >> (kPhaseBits + kThreadBits)) == 0;
      met |= static_cast<uint32_t>(same_epoch) & static_cast<uint32_t>(difference != 0) &
             static_cast<uint32_t>(where[i] == tag);
    }
  }
  if (met != 0) return write_lanes(table, warp, instr, store);
  for (uint32_t chunk = 0; chunk < places; chunk += kLanes) {
    for (uint32_t i = chunk; i < chunk + kLanes; ++i) {
      who[i] = self + (i >> shift);
      where[i] = tag;
      by[i] = instr;
    }
  }
  return std::nullopt;
}

std::optional<WriteRaces::Race> WriteRaces::write_lanes(Table& table, const Warp& warp,
                                                        uint32_t instr, const Store& store) {
  constexpr uint32_t kThreads = 1u << kThreadBits;
  const uint32_t unit = store.bytes < kWord ? 1 : kWord;
  const uint32_t self = (((warp.block->epoch << kPhaseBits) | warp.phase) << kThreadBits) +
                        static_cast<uint32_t>(warp.index * kLanes);
  Race race;
  for_each_lane(store.mask, [&](int lane) {
    const uint32_t me = self + static_cast<uint32_t>(lane);
    for (uint32_t byte = 0; byte < store.bytes; byte += unit) {
      const uint64_t place = (store.addresses[lane] + byte) / unit;
      const uint32_t at = static_cast<uint32_t>(place) % kPlaces;
      const auto tag = static_cast<uint32_t>(place >> kIndexBits);
      const uint32_t difference = table.who[at] ^ me;
      const bool same_epoch = (difference >> (kPhaseBits + kThreadBits)) == 0;
      const bool same_phase = (difference >> kThreadBits) == 0;
      const bool same_warp = difference % kThreads < kLanes;
      const bool other_thread = difference % kThreads != 0;
      if (table.where[at] == tag && same_epoch && other_thread && (same_phase || !same_warp)) {
        const int other = static_cast<int>(table.who[at] % kThreads);
        const int other_lane = other % kLanes;
        const bool lower = same_warp && other_lane < lane && (store.mask >> other_lane & 1) != 0;
        if (!stores_the_same(store, lane, byte, unit, lower ? other_lane : -1)) {
          if (race.lanes == 0) {
            race.thread = other;
            race.instr = table.instr[at];
          }
          race.lanes |= Mask{1} << lane;
        }
      }
      table.where[at] = tag;
      table.who[at] = me;
      table.instr[at] = instr;
    }
  });
  if (race.lanes == 0) return std::nullopt;
  return race;
}

}  // namespace heddle::ir::interp
