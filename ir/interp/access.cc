// Loads, stores, addresses and bounds.
//
// Addresses are host addresses, in global and in shared memory alike. With checks on, an access
// goes through legal_lanes() (legal.h) first.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "heddle/ir/interp/legal.h"
#include "heddle/ir/interp/watch.h"

namespace heddle::ir::interp {
namespace {

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
  const Mask lanes = writable & (readable | ~reading);
  Watch* const watch = watch_of(warp);
  if (watch == nullptr) {
    copy_lanes(lanes, reading, to.at, from.at, access->bytes);
    return instr + 1;
  }
  uint32_t event = 0;
  if (watch->access(instr, warp, AccessKind::kCopyWrite, lanes, to.at, access[1].bytes, &event)) {
    return warp.suspend(WarpState::kStopped, instr);
  }
  watch->add_copies(warp, event, lanes, watch->pending().add([=, bytes = access->bytes] {
    copy_lanes(lanes, reading, to.at, from.at, bytes);
  }));
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
