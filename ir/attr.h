// Attributes: the host-constant part of an op. Each is a key and a 64-bit value, read by its key's
// kind: an integer, an enumerator, an interned string, or an interned list of integers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/cache_hint.h"
#include "heddle/ir/rounding.h"

namespace heddle::ir {

enum class AttrKey : uint8_t {
  kBits,      // const: the element's bits, zero-extended
  kAxis,      // thread_idx…: which coordinate
  kDim,       // extent, stride, bounds: which mode of the view
  kIndex,     // extract, slice: first element
  kExtents,   // shared, local, table: elements in each mode
  kAlign,     // shared: bytes that divide the array's address, 16 to 1024
  kWidth,     // bounds, copy.async…: elements along the last mode; shuffles: segment width
  kMessage,   // assert, require: what is asked for; printf: the format; inline_ptx: the text
  kGroups,    // wgmma.wait, copy.wait, bulk.wait…: commit groups that may stay in flight
  kLeading,   // smem.desc: leading byte offset
  kStride,    // smem.desc: stride byte offset
  kSwizzle,   // smem.desc: bytes of a swizzle row
  kVolatile,  // load, store: 1 where the access must happen as written
  kOp,        // atomic, redux, bulk.reduce: an AtomicOp
  kOrder,     // atomic, atomic.cas, fence: a MemoryOrder
  kScope,     // the same: a MemoryScope
  kRounding,  // add.rounded…: a Rounding
  kCache,     // load, store: a CacheHint
  kL2Evict,   // accesses to global memory: an L2Evict
  kPercent,   // beside it: of how many accesses in a hundred; of all where it is not given
  kLevel,     // prefetch: a CacheLevel
  kRule,      // inline_ptx: the number of its PtxRule (kernel.h)
  kThreads,   // barrier.sync, barrier.arrive: threads that the barrier waits for
  kData,      // table: the elements' bytes in memory, two hexadecimal digits each
  kCount,     // set_max_registers: registers of a thread; ldmatrix, stmatrix: matrices
  kFtz,       // add…: 1 where subnormal operands and results count as zeros
  kUnroll,    // for: trips side by side
  kLikely,    // expect: 1 or 0
  kMin,       // assume_range: the bounds, both included
  kMax,
  kDivisor,    // assume_range: what divides the value
  kIncrease,   // set_max_registers: 1 to ask for more
  kTranspose,  // ldmatrix, stmatrix: 1 where rows become columns
  kTensor,     // bounds: how the tensor is laid out, and at which coordinate
  kFix,        // require: what to do about it
  kName,       // a hint for people: the variable or array as the user calls it
};
inline constexpr int kAttrKeyCount = 36;

enum class AttrKind : uint8_t { kInt, kEnum, kString, kInts, kBits };

struct AttrInfo {
  absl::string_view name;
  AttrKind kind;
  absl::Span<const absl::string_view> enumerators;  // kEnum only
};

struct Attr {
  AttrKey key;
  int64_t value;
  bool operator==(const Attr&) const = default;
};

enum class Axis : uint8_t { kX, kY, kZ };

inline constexpr absl::string_view kAxisNames[] = {"x", "y", "z"};

// In the order of AttrKey.
inline constexpr std::array<AttrInfo, kAttrKeyCount> kAttrs = {{
    {"bits", AttrKind::kBits, {}},
    {"axis", AttrKind::kEnum, kAxisNames},
    {"dim", AttrKind::kInt, {}},
    {"index", AttrKind::kInt, {}},
    {"extents", AttrKind::kInts, {}},
    {"align", AttrKind::kInt, {}},
    {"width", AttrKind::kInt, {}},
    {"message", AttrKind::kString, {}},
    {"groups", AttrKind::kInt, {}},
    {"leading", AttrKind::kInt, {}},
    {"stride", AttrKind::kInt, {}},
    {"swizzle", AttrKind::kInt, {}},
    {"volatile", AttrKind::kInt, {}},
    {"op", AttrKind::kEnum, kAtomicOpNames},
    {"order", AttrKind::kEnum, kMemoryOrderNames},
    {"scope", AttrKind::kEnum, kMemoryScopeNames},
    {"rounding", AttrKind::kEnum, kRoundingNames},
    {"cache", AttrKind::kEnum, kCacheHintNames},
    {"l2_evict", AttrKind::kEnum, kL2EvictNames},
    {"percent", AttrKind::kInt, {}},
    {"level", AttrKind::kEnum, kCacheLevelNames},
    {"rule", AttrKind::kInt, {}},
    {"threads", AttrKind::kInt, {}},
    {"data", AttrKind::kString, {}},
    {"count", AttrKind::kInt, {}},
    {"ftz", AttrKind::kInt, {}},
    {"unroll", AttrKind::kInt, {}},
    {"likely", AttrKind::kInt, {}},
    {"min", AttrKind::kInt, {}},
    {"max", AttrKind::kInt, {}},
    {"divisor", AttrKind::kInt, {}},
    {"increase", AttrKind::kInt, {}},
    {"transpose", AttrKind::kInt, {}},
    {"tensor", AttrKind::kString, {}},
    {"fix", AttrKind::kString, {}},
    {"name", AttrKind::kString, {}},
}};

constexpr const AttrInfo& info(AttrKey key) { return kAttrs[static_cast<size_t>(key)]; }
std::optional<AttrKey> attr_from_name(absl::string_view name);

}  // namespace heddle::ir
