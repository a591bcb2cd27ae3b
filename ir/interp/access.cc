// Loads, stores, addresses and bounds.
//
// Addresses are host addresses, in global and in shared memory alike. With checks on, an access
// goes through legal_lanes() first, which asks the cheap questions for the whole warp and looks at
// lanes one by one only where an answer is no.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "heddle/ir/interp/elementwise.h"
#include "heddle/ir/interp/report.h"

namespace heddle::ir::interp {
namespace {

// A span of bytes that one access of a whole warp may cover and still be checked as one piece.
constexpr uint64_t kWarpSpan = 4096;

Mask bit(int lane) { return Mask{1} << lane; }

// A tensor's layout and coordinate, with the numbers that the kernel computed.
std::string tensor_text(const BoundsCheck& bounds, const Warp& warp, int lane) {
  std::string text;
  size_t next = bounds.view_modes;
  for (const char c : warp.block->machine->code->texts[bounds.tensor]) {
    if (c == '%') {
      absl::StrAppend(&text, index_at(warp, bounds.coordinates[next++], lane));
    } else {
      text.push_back(c);
    }
  }
  return text;
}

// "reads x(3, 8)", "writes 'x' at element offset 7 [tensor<ptr<f32, gmem> o (4,2):(2,1)> at (3,1)]"
std::string describe(const Access& access, const Warp& warp, int lane) {
  const Code& code = *warp.block->machine->code;
  const std::string& name = code.texts[access.view_name];
  const int elements = static_cast<int>(access.bytes) / bytes_of(access.scalar);
  std::string text = access.atomic ? "atomically updates " : access.store ? "writes " : "reads ";
  if (elements > 1) absl::StrAppend(&text, elements, " elements of ");
  const BoundsCheck* const bounds = access.bounds == kNone ? nullptr : &code.bounds[access.bounds];
  if (bounds != nullptr && bounds->view_modes > 0) {
    std::vector<int64_t> coordinates;
    for (size_t d = 0; d < bounds->view_modes; ++d) {
      coordinates.push_back(index_at(warp, bounds->coordinates[d], lane));
    }
    absl::StrAppend(&text, name, coordinates_text(coordinates));
  } else {
    absl::StrAppend(&text, "'", name, "' at element offset ", index_at(warp, access.offset, lane));
  }
  if (bounds != nullptr && bounds->tensor != kNone) {
    absl::StrAppend(&text, " [", tensor_text(*bounds, warp, lane), "]");
  }
  return text;
}

bool report_bounds(const Instr* instr, const Warp& warp, const Access& access, Mask bad) {
  constexpr char kFix[] =
      "guard the access with an If, or check the extents that the launch passes";
  const Machine& machine = *warp.block->machine;
  const int lane = std::countr_zero(bad);
  const std::string& name = machine.code->texts[access.view_name];
  const std::string what = describe(access, warp, lane);
  if (access.bounds == kNone) {
    return machine.reporter->add(warp, instr, bad,
                                 absl::StrCat(what, ", outside the extents of '", name, "'"), kFix);
  }
  const BoundsCheck& bounds = machine.code->bounds[access.bounds];
  std::vector<int64_t> extents;
  size_t guilty = bounds.extents.size();
  for (size_t d = 0; d < bounds.extents.size(); ++d) {
    extents.push_back(index_at(warp, bounds.extents[d], lane));
    const int64_t at = index_at(warp, bounds.coordinates[d], lane);
    const int64_t width = d < bounds.view_modes && d == bounds.run_mode ? bounds.width : 1;
    if (guilty == bounds.extents.size() &&
        (at < 0 || at >= extents[d] || extents[d] - at < width)) {
      guilty = d;
    }
  }
  if (guilty >= bounds.view_modes && guilty < bounds.extents.size()) {
    return machine.reporter->add(
        warp, instr, bad,
        absl::StrCat(what, ", outside the tensor's shape: ",
                     index_at(warp, bounds.coordinates[guilty], lane), " is not in [0, ",
                     extents[guilty], ")"),
        "guard the access with an If, or check the tile that the tensor was cut into");
  }
  std::string why;
  if (guilty < bounds.view_modes) {
    const int64_t at = index_at(warp, bounds.coordinates[guilty], lane);
    const bool spans = guilty == bounds.run_mode && bounds.width > 1 && at >= 0;
    why = spans ? absl::StrCat(": its ", bounds.width, " elements start at index ", at, " of mode ",
                               guilty, ", which has ", extents[guilty])
                : absl::StrCat(": index ", at, " of mode ", guilty, " is not in [0, ",
                               extents[guilty], ")");
  }
  extents.resize(bounds.view_modes);
  return machine.reporter->add(
      warp, instr, bad,
      absl::StrCat(what, ", outside its extents ", coordinates_text(extents), why), kFix);
}

bool report_alignment(const Instr* instr, const Warp& warp, const Access& access, Mask bad) {
  const int lane = std::countr_zero(bad);
  return warp.block->machine->reporter->add(
      warp, instr, bad,
      absl::StrCat(describe(access, warp, lane), ", whose address is not a multiple of ",
                   access.bytes, " as an access of ", access.bytes, " bytes needs"),
      access.bytes > static_cast<uint32_t>(bytes_of(access.scalar))
          ? "start vectors at a multiple of their width, with aligned data, or access single "
            "elements"
          : "pass data that is aligned to its element");
}

bool report_outside(const Instr* instr, const Warp& warp, const Access& access, Mask bad,
                    uint64_t address) {
  const int lane = std::countr_zero(bad);
  const Block& block = *warp.block;
  std::string where;
  std::string fix;
  if (access.space == Space::kLocal || access.space == Space::kConst) {
    where = "the array ends before";
    fix = "check the index";
  } else if (access.space == Space::kSharedCluster) {
    where = "no block of the cluster has these bytes of shared memory";
    fix = "check the index";
  } else if (access.space == Space::kShared) {
    where = absl::StrCat(access.bytes, " bytes at byte ",
                         static_cast<int64_t>(address - block.shared_address()), " of the block's ",
                         block.shared_bytes, " bytes of shared memory");
    fix = "check the index, and the dynamic shared memory that the launch asks for";
  } else {
    where = block.machine->memory->explain(address, access.bytes);
    fix = "check the index, and that the buffer is alive and as large as the kernel expects";
  }
  return block.machine->reporter->add(
      warp, instr, bad,
      absl::StrCat(describe(access, warp, lane), ", which is not in memory: ", where), fix);
}

bool report_unwritten(const Instr* instr, const Warp& warp, const Access& access, Mask bad) {
  const int lane = std::countr_zero(bad);
  const bool shared = access.space != Space::kGlobal;
  return warp.block->machine->reporter->add(
      warp, instr, bad, absl::StrCat(describe(access, warp, lane), ", which nobody has written"),
      shared ? "store to it first, with a barrier in between where another thread does"
             : "copy or fill the buffer before the launch, or write it first");
}

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

template <class Offset, class Bytes>
void compute_addresses(const Instr* instr, const Warp& warp, Bytes element_bytes,
                       uint64_t* __restrict addresses) {
  const uint64_t* base = warp.reg<uint64_t>(instr->a);
  const Offset* offset = warp.reg<Offset>(instr->b);
  for (int l = 0; l < kLanes; ++l) {
    addresses[l] = base[l] + static_cast<uint64_t>(int64_t{offset[l]}) * element_bytes;
  }
}

template <class T, class Offset>
void compute_addresses(const Instr* instr, const Warp& warp, Addresses* addresses) {
  constexpr std::integral_constant<uint32_t, sizeof(T)> kElementBytes;
  compute_addresses<Offset>(instr, warp, kElementBytes, addresses->at);
  const uint64_t bytes = sizeof(T) * instr->count;
  uint64_t difference = 0;
  uint64_t expected = addresses->at[0];
  for (int l = 0; l < kLanes; ++l) {
    difference |= addresses->at[l] ^ expected;
    expected += bytes;
  }
  addresses->contiguous = difference == 0 && warp.mask == kAllLanes;
}

template <class T>
T load_from(uint64_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof(T));
  return value;
}
template <class T>
void store_to(uint64_t address, T value) {
  std::memcpy(reinterpret_cast<void*>(address), &value, sizeof(T));
}

template <class T, bool kIsBool>
void move_in(const Instr* instr, const Warp& warp, Mask mask, const Addresses& addresses) {
  T* d = warp.reg<T>(instr->dst);
  if (addresses.contiguous && instr->count == 1) {
    std::memcpy(d, reinterpret_cast<const void*>(addresses.at[0]), sizeof(T) * kLanes);
    for (int l = 0; kIsBool && l < kLanes; ++l) d[l] = static_cast<T>(d[l] != 0);
    return;
  }
  for (uint32_t e = 0; e < instr->count; ++e, d += kLanes) {
    const auto one = [&](int l) {
      const T value = load_from<T>(addresses.at[l] + e * sizeof(T));
      d[l] = kIsBool ? static_cast<T>(value != 0) : value;
    };
    if (mask == kAllLanes) {
      for (int l = 0; l < kLanes; ++l) one(l);
    } else {
      for_each_lane(mask, one);
    }
  }
}

template <class T>
void move_out(const Instr* instr, const Warp& warp, Mask mask, const Addresses& addresses) {
  const T* c = warp.reg<T>(instr->c);
  if (addresses.contiguous && instr->count == 1) {
    std::memcpy(reinterpret_cast<void*>(addresses.at[0]), c, sizeof(T) * kLanes);
    return;
  }
  for (uint32_t e = 0; e < instr->count; ++e, c += kLanes) {
    const auto one = [&](int l) { store_to<T>(addresses.at[l] + e * sizeof(T), c[l]); };
    if (mask == kAllLanes) {
      for (int l = 0; l < kLanes; ++l) one(l);
    } else {
      for_each_lane(mask, one);
    }
  }
}

// Two lanes that store to one place: the higher lane wins.
template <class T, class Offset, bool kStore, bool kIsBool>
const Instr* run_access(const Instr* instr, Warp& warp) {
  Addresses addresses;
  compute_addresses<T, Offset>(instr, warp, &addresses);
  if constexpr (kStore) {
    move_out<T>(instr, warp, warp.mask, addresses);
  } else {
    move_in<T, kIsBool>(instr, warp, warp.mask, addresses);
  }
  return instr + 1;
}

template <class MemoryKind, class T, class Offset, bool kStore, bool kIsBool>
const Instr* run_checked_access(const Instr* instr, Warp& warp) {
  const Access& access = warp.block->machine->code->accesses[instr->aux];
  Addresses addresses;
  compute_addresses<T, Offset>(instr, warp, &addresses);
  Mask lanes = 0;
  if (legal_lanes<MemoryKind>(instr, warp, access, warp.mask, addresses, &lanes)) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  if constexpr (kStore) {
    move_out<T>(instr, warp, lanes, addresses);
  } else {
    if (lanes != warp.mask) {
      // A run that goes on after a report reads zeros where it may not read.
      std::fill_n(warp.reg<T>(instr->dst), instr->count * kLanes, T{});
    }
    move_in<T, kIsBool>(instr, warp, lanes, addresses);
  }
  return instr + 1;
}

// One lane after the other; a warp's lanes see each other's.
template <class T>
void update(const Instr* instr, const Warp& warp, Mask mask, const Addresses& addresses,
            const Access& access) {
  T* d = warp.reg<T>(instr->dst);
  const T* c = warp.reg<T>(instr->c);
  const T* compare = access.compare == kNone ? nullptr : warp.reg<T>(access.compare);
  // Element after element, each of which is an atomic of its own.
  for (uint32_t e = 0; e < instr->count; ++e) {
    const uint32_t first = e * kLanes;
    for_each_lane(mask, [&](int l) {
      const uint32_t i = first + static_cast<uint32_t>(l);
      const uint64_t at = addresses.at[l] + e * sizeof(T);
      const T old = load_from<T>(at);
      if (compare == nullptr) {
        store_to<T>(at, static_cast<T>(access.step(old, c[i])));
      } else if (old == compare[i]) {
        store_to<T>(at, c[i]);
      }
      d[i] = old;  // last: an operand may end here and leave its register to the result
    });
  }
}

template <class MemoryKind, class T, class Offset>
const Instr* run_atomic(const Instr* instr, Warp& warp) {
  const Access& access = warp.block->machine->code->accesses[instr->aux];
  Addresses addresses;
  compute_addresses<T, Offset>(instr, warp, &addresses);
  Mask lanes = warp.mask;
  if constexpr (!std::is_void_v<MemoryKind>) {
    if (legal_lanes<MemoryKind>(instr, warp, access, warp.mask, addresses, &lanes)) {
      return warp.suspend(WarpState::kStopped, instr);
    }
    if (lanes != warp.mask) std::fill_n(warp.reg<T>(instr->dst), instr->count * kLanes, T{});
  }
  update<T>(instr, warp, lanes, addresses, access);
  return instr + 1;
}

// The lanes whose copy reads its source; the others' gives zeros.
Mask reading_lanes(const Instr* instr, const Warp& warp) {
  return instr->c == kNone ? warp.mask : warp.mask & mask_of(warp.reg<Bool>(instr->c));
}

void copy_lanes(Mask mask, Mask reading, const uint64_t* to, const uint64_t* from, uint32_t bytes) {
  for_each_lane(mask, [&](int l) {
    void* const target = reinterpret_cast<void*>(to[l]);
    if ((reading & bit(l)) != 0) {
      std::memcpy(target, reinterpret_cast<const void*>(from[l]), bytes);
    } else {
      std::memset(target, 0, bytes);
    }
  });
}

const Instr* run_copy(const Instr* instr, Warp& warp) {
  copy_lanes(warp.mask, reading_lanes(instr, warp), warp.reg<uint64_t>(instr->b),
             warp.reg<uint64_t>(instr->a), warp.block->machine->code->accesses[instr->aux].bytes);
  return instr + 1;
}

const Instr* run_checked_copy(const Instr* instr, Warp& warp) {
  const Access* const access = &warp.block->machine->code->accesses[instr->aux];
  const Mask reading = reading_lanes(instr, warp);
  Addresses from, to;
  std::copy_n(warp.reg<uint64_t>(instr->a), kLanes, from.at);
  std::copy_n(warp.reg<uint64_t>(instr->b), kLanes, to.at);
  Mask readable = 0, writable = 0;
  if (legal_lanes<GlobalMemory>(instr, warp, access[0], reading, from, &readable) ||
      legal_lanes<SharedMemory>(instr, warp, access[1], warp.mask, to, &writable)) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  copy_lanes(writable & (readable | ~reading), reading, to.at, from.at, access->bytes);
  return instr + 1;
}

template <class T, class Offset>
Handler atomic_of(Space space, bool checked) {
  if (!checked) return &run_atomic<void, T, Offset>;
  if (space == Space::kSharedCluster) return &run_atomic<ClusterMemory, T, Offset>;
  return space == Space::kShared ? &run_atomic<SharedMemory, T, Offset>
                                 : &run_atomic<GlobalMemory, T, Offset>;
}

template <class T, class Offset, bool kStore, bool kIsBool>
Handler access_of(Space space, bool checked) {
  if (!checked) return &run_access<T, Offset, kStore, kIsBool>;
  if (space == Space::kSharedCluster) {
    return &run_checked_access<ClusterMemory, T, Offset, kStore, kIsBool>;
  }
  if (space == Space::kLocal) {
    return &run_checked_access<LocalMemory, T, Offset, kStore, kIsBool>;
  }
  if (space == Space::kConst) {
    return &run_checked_access<TableMemory, T, Offset, kStore, kIsBool>;
  }
  return space == Space::kShared ? &run_checked_access<SharedMemory, T, Offset, kStore, kIsBool>
                                 : &run_checked_access<GlobalMemory, T, Offset, kStore, kIsBool>;
}

template <class T, bool kIsBool = false>
Handler access_of(const Access& access, bool checked) {
  if (access.atomic) {
    return access.offset.wide ? atomic_of<T, int64_t>(access.space, checked)
                              : atomic_of<T, int32_t>(access.space, checked);
  }
  if (access.offset.wide) {
    return access.store ? access_of<T, int64_t, true, kIsBool>(access.space, checked)
                        : access_of<T, int64_t, false, kIsBool>(access.space, checked);
  }
  return access.store ? access_of<T, int32_t, true, kIsBool>(access.space, checked)
                      : access_of<T, int32_t, false, kIsBool>(access.space, checked);
}

const Instr* run_begin_local(const Instr* instr, Warp& warp) {
  const uint64_t* addresses = warp.reg<uint64_t>(instr->a);
  for_each_lane(warp.mask, [&](int l) {
    std::memset(warp.local_written + LocalMemory{warp}.offset(addresses[l]), 0, instr->aux);
  });
  return instr + 1;
}

template <class Offset>
const Instr* run_address(const Instr* instr, Warp& warp) {
  compute_addresses<Offset>(instr, warp, instr->aux, warp.reg<uint64_t>(instr->dst));
  return instr + 1;
}

// Whether `width` elements from coordinate c on lie in [0, e).
template <class C, class E>
bool in_extent(C c, E e, uint32_t width) {
  if constexpr (sizeof(C) == sizeof(E)) {
    return c >= 0 && c < e && static_cast<Unsigned<E>>(e) - static_cast<Unsigned<C>>(c) >= width;
  } else {
    return in_extent(int64_t{c}, int64_t{e}, width);
  }
}
inline bool in_extent(int32_t c, uint32_t clamped, uint32_t width) {
  // A negative coordinate becomes too large a number, unless the extent is clamped at 2^32 - 1.
  const uint32_t limit = clamped >= width ? clamped - width + 1 : 0;
  return c >= 0 && static_cast<uint32_t>(c) < limit;
}

template <class C, class E>
const Instr* run_bounds(const Instr* instr, Warp& warp) {
  const C* c = warp.reg<C>(instr->a);
  const E* e = warp.reg<E>(instr->b);
  const uint32_t width = instr->count;
  Bool ok[kLanes];
  for (int l = 0; l < kLanes; ++l) ok[l] = in_extent(c[l], e[l], width) ? 1 : 0;
  Bool* d = warp.reg<Bool>(instr->dst);
  if (instr->aux != 0) {
    for (int l = 0; l < kLanes; ++l) d[l] &= ok[l];
  } else {
    std::memcpy(d, ok, kLanes);
  }
  return instr + 1;
}

}  // namespace

Handler access_handler(const Access& access, bool checked) {
  if (access.scalar == Scalar::kBool) return access_of<uint8_t, true>(access, checked);
  switch (bytes_of(access.scalar)) {
    case 1:
      return access_of<uint8_t>(access, checked);
    case 2:
      return access_of<uint16_t>(access, checked);
    case 4:
      return access_of<uint32_t>(access, checked);
    case 8:
      return access_of<uint64_t>(access, checked);
  }
  return nullptr;
}

Handler copy_handler_async(bool checked) { return checked ? &run_checked_copy : &run_copy; }

Handler begin_local_handler() { return &run_begin_local; }

Handler address_handler(bool wide) { return wide ? &run_address<int64_t> : &run_address<int32_t>; }

Handler bounds_handler(bool wide_coordinate, ExtentKind extent) {
  switch (extent) {
    case ExtentKind::kClamped:
      return &run_bounds<int32_t, uint32_t>;
    case ExtentKind::kNarrow:
      return wide_coordinate ? &run_bounds<int64_t, int32_t> : &run_bounds<int32_t, int32_t>;
    case ExtentKind::kWide:
      return wide_coordinate ? &run_bounds<int64_t, int64_t> : &run_bounds<int32_t, int64_t>;
  }
  return nullptr;
}

}  // namespace heddle::ir::interp
