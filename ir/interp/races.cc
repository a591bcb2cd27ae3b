#include "heddle/ir/interp/races.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

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

std::optional<WriteRaces::Race> WriteRaces::write(const Warp& warp, uint32_t instr, Mask mask,
                                                  const uint64_t* addresses, bool contiguous,
                                                  uint32_t bytes) {
  Table& table = table_for(bytes);
  const uint64_t first = bytes < kWord ? addresses[0] : addresses[0] / kWord;
  const uint32_t places = (bytes < kWord ? bytes : bytes / kWord) * kLanes;
  const uint32_t at = static_cast<uint32_t>(first) % kPlaces;
  if (!contiguous || at + places > kPlaces) {
    return write_lanes(table, warp, instr, mask, addresses, bytes);
  }
  // Lanes side by side cannot meet each other, and others only where somebody was in this epoch.
  uint32_t* const where = table.where.get() + at;
  uint32_t* const who = table.who.get() + at;
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
  if (met != 0) return write_lanes(table, warp, instr, mask, addresses, bytes);
  uint32_t* const by = table.instr.get() + at;
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
                                                        uint32_t instr, Mask mask,
                                                        const uint64_t* addresses, uint32_t bytes) {
  constexpr uint32_t kLaneBits = 5;  // of a thread's number
  const uint32_t self = (((warp.block->epoch << kPhaseBits) | warp.phase) << kThreadBits) +
                        static_cast<uint32_t>(warp.index * kLanes);
  const uint32_t places = bytes < kWord ? bytes : bytes / kWord;
  Race race;
  for_each_lane(mask, [&](int lane) {
    const uint64_t first = bytes < kWord ? addresses[lane] : addresses[lane] / kWord;
    for (uint32_t i = 0; i < places; ++i) {
      const uint32_t at = static_cast<uint32_t>(first + i) % kPlaces;
      const auto tag = static_cast<uint32_t>((first + i) >> kIndexBits);
      const uint32_t me = self + static_cast<uint32_t>(lane);
      const uint32_t difference = table.who[at] ^ me;
      const bool same_epoch = (difference >> (kPhaseBits + kThreadBits)) == 0;
      const uint32_t thread = difference % (1u << kThreadBits);
      const bool same_phase = (difference >> kThreadBits) == 0;
      const bool same_warp = (thread >> kLaneBits) == 0;
      if (table.where[at] == tag && same_epoch && thread != 0 && (same_phase || !same_warp)) {
        if (race.lanes == 0) {
          race.thread = static_cast<int>(table.who[at] % (1u << kThreadBits));
          race.instr = table.instr[at];
        }
        race.lanes |= Mask{1} << lane;
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
