// Which lanes of an access may make it: the checks that loads, stores, atomics, copies and the
// matrices of a warp share. Internal.
//
// legal_lanes() asks the cheap questions for the whole warp and looks at lanes one by one only
// where an answer is no.
#pragma once

#include <algorithm>
#include <cstring>

#include "heddle/ir/interp/report.h"
#include "heddle/ir/interp/scalar/elementwise.h"

namespace heddle::ir::interp {

// A span of bytes that one access of a whole warp may cover and still be checked as one piece.
inline constexpr uint64_t kWarpSpan = 4096;

inline Mask bit(int lane) { return Mask{1} << lane; }

// Where the lanes of an access go.
struct Addresses {
  alignas(64) uint64_t at[kLanes];
  // All 32 lanes, neighbours in memory in the order of lanes: how nearly every access looks.
  bool contiguous = false;

  // The bytes of the lanes of the mask, from the lowest address to the highest end.
  struct Span {
    uint64_t begin;
    uint64_t bytes;
  };
  Span span(Mask mask, uint32_t bytes) const {
    if (contiguous) return {at[0], uint64_t{bytes} * kLanes};
    uint64_t low = ~uint64_t{0};
    uint64_t high = 0;
    for_each_lane(mask, [&](int l) {
      low = std::min(low, at[l]);
      high = std::max(high, at[l]);
    });
    return {low, high - low + bytes};
  }
};

// What is wrong with the access in the lanes of `bad`; true when the run has to stop.
bool report_bounds(const Instr* instr, const Warp& warp, const Access& access, Mask bad);
bool report_alignment(const Instr* instr, const Warp& warp, const Access& access, Mask bad);
bool report_outside(const Instr* instr, const Warp& warp, const Access& access, Mask bad,
                    uint64_t address);
bool report_unwritten(const Instr* instr, const Warp& warp, const Access& access, Mask bad);
// Records an exclusive store of these lanes, and reports those that meet another thread's.
bool report_races(const Instr* instr, const Warp& warp, const Access& access, Mask lanes,
                  const Addresses& addresses);

// Global memory: lanes outside every live allocation, and lanes that would read unwritten bytes.
struct GlobalMemory {
  MemoryCursor& cursor;

  static GlobalMemory of(const Instr* instr, const Warp& warp) {
    return {warp.block->machine->cursors[instr->aux]};
  }
  bool contains(uint64_t address, uint64_t bytes) { return cursor.find(address, bytes) != nullptr; }
  bool written(uint64_t address, uint64_t bytes) {
    const Allocation* allocation = cursor.find(address, bytes);
    return allocation != nullptr && allocation->initialized(address, bytes);
  }
  void mark_written(uint64_t address, uint64_t bytes) {
    cursor.find(address, bytes)->mark_initialized(address, bytes);
  }
};

// The block's shared memory and its shadow.
struct SharedMemory {
  const Block& block;

  static SharedMemory of(const Instr*, const Warp& warp) { return {*warp.block}; }
  bool contains(uint64_t address, uint64_t bytes) const {
    const uint64_t offset = address - block.shared_address();
    return offset <= block.shared_bytes && bytes <= block.shared_bytes - offset;
  }
  bool written(uint64_t address, uint64_t bytes) const {
    return std::memchr(block.shared_written + (address - block.shared_address()), 0, bytes) ==
           nullptr;
  }
  void mark_written(uint64_t address, uint64_t bytes) const {
    std::memset(block.shared_written + (address - block.shared_address()), kWritten, bytes);
  }
};

// The local memory of the warp's lanes, one behind the other. An address is in it, not perhaps in
// the lane's own: bounds tell that.
struct LocalMemory {
  const Warp& warp;

  static LocalMemory of(const Instr*, const Warp& warp) { return {warp}; }
  uint64_t offset(uint64_t address) const {
    return address - reinterpret_cast<uint64_t>(warp.local);
  }
  bool contains(uint64_t address, uint64_t bytes) const {
    const auto size = static_cast<uint64_t>(warp.block->machine->code->local_bytes) * kLanes;
    return offset(address) <= size && bytes <= size - offset(address);
  }
  bool written(uint64_t address, uint64_t bytes) const {
    return std::memchr(warp.local_written + offset(address), 0, bytes) == nullptr;
  }
  void mark_written(uint64_t address, uint64_t bytes) const {
    std::memset(warp.local_written + offset(address), kWritten, bytes);
  }
};

// Constant arrays.
struct TableMemory {
  const std::vector<std::string>& tables;

  static TableMemory of(const Instr*, const Warp& warp) {
    return {warp.block->machine->code->tables};
  }
  bool contains(uint64_t address, uint64_t bytes) const {
    return std::any_of(tables.begin(), tables.end(), [&](const std::string& table) {
      const uint64_t offset = address - reinterpret_cast<uint64_t>(table.data());
      return offset <= table.size() && bytes <= table.size() - offset;
    });
  }
  bool written(uint64_t, uint64_t) const { return true; }
  void mark_written(uint64_t, uint64_t) const {}  // the verifier lets no store through
};

// The shared memory of the cluster's blocks: each address in one of them.
struct ClusterMemory {
  const Cluster& cluster;

  static ClusterMemory of(const Instr*, const Warp& warp) { return {*warp.block->cluster}; }
  const Block* block_of(uint64_t address, uint64_t bytes) const {
    for (const Block* block : cluster.blocks) {
      if (SharedMemory{*block}.contains(address, bytes)) return block;
    }
    return nullptr;
  }
  bool contains(uint64_t address, uint64_t bytes) const {
    return block_of(address, bytes) != nullptr;
  }
  bool written(uint64_t address, uint64_t bytes) const {
    return SharedMemory{*block_of(address, bytes)}.written(address, bytes);
  }
  void mark_written(uint64_t address, uint64_t bytes) const {
    SharedMemory{*block_of(address, bytes)}.mark_written(address, bytes);
  }
};

// The lanes of `mask` whose access is legal, in *lanes; true when the run has to stop.
template <class MemoryKind>
bool legal_lanes(const Instr* instr, const Warp& warp, const Access& access, Mask mask,
                 Addresses& addresses, Mask* lanes) {
  // Leaves out lanes that were reported.
  const auto drop = [&](Mask bad) {
    mask &= ~bad;
    addresses.contiguous = false;
  };
  if (access.ok != kNone) {
    const Mask bad = mask & ~mask_of(warp.reg<Bool>(access.ok));
    if (bad != 0) {
      if (report_bounds(instr, warp, access, bad)) return true;
      drop(bad);
    }
  }
  const uint64_t low_bits = access.bytes - 1;
  uint64_t misaligned = addresses.at[0] & low_bits;
  if (!addresses.contiguous) {
    misaligned = 0;
    for_each_lane(mask, [&](int l) { misaligned |= addresses.at[l] & low_bits; });
  }
  if (misaligned != 0) {
    Mask bad = 0;
    for_each_lane(mask, [&](int l) {
      if ((addresses.at[l] & low_bits) != 0) bad |= bit(l);
    });
    if (report_alignment(instr, warp, access, bad)) return true;
    drop(bad);
  }
  *lanes = mask;
  if (mask == 0) return false;

  MemoryKind memory = MemoryKind::of(instr, warp);
  const Addresses::Span span = addresses.span(mask, access.bytes);
  const bool inside = span.bytes >= access.bytes && memory.contains(span.begin, span.bytes);
  if (!inside) {
    Mask bad = 0;
    for_each_lane(mask, [&](int l) {
      if (!memory.contains(addresses.at[l], access.bytes)) bad |= bit(l);
    });
    if (bad != 0) {
      if (report_outside(instr, warp, access, bad, addresses.at[std::countr_zero(bad)])) {
        return true;
      }
      drop(bad);
      *lanes = mask;
    }
  }
  if (access.store) {
    if (access.exclusive && report_races(instr, warp, access, mask, addresses)) return true;
    if (addresses.contiguous && inside) {
      memory.mark_written(span.begin, span.bytes);
    } else {
      for_each_lane(mask, [&](int l) { memory.mark_written(addresses.at[l], access.bytes); });
    }
    return false;
  }
  if (inside && span.bytes <= kWarpSpan && memory.written(span.begin, span.bytes)) return false;
  Mask bad = 0;
  for_each_lane(mask, [&](int l) {
    if (!memory.written(addresses.at[l], access.bytes)) bad |= bit(l);
  });
  if (bad != 0) {
    if (report_unwritten(instr, warp, access, bad)) return true;
    drop(bad);
    *lanes = mask;
  }
  return false;
}

}  // namespace heddle::ir::interp
