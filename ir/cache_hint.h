// What an access to global memory asks of the caches: the attribute `cache` of loads and stores. A
// hint changes how fast an access is, never what it does.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace heddle::ir {

enum class CacheHint : uint8_t {
  kL2,            // keep it in L2 alone
  kStreaming,     // likely used once: evict first, from both levels
  kLastUse,       // loads: will not be used again
  kWriteThrough,  // stores: write through L2 to memory
  kEvictFirst,    // of L1: before others, after others, not placed there at all
  kEvictLast,
  kNoAllocate,
};
inline constexpr int kCacheHintCount = 7;
inline constexpr absl::string_view kCacheHintNames[] = {
    "l2", "streaming", "last_use", "write_through", "evict_first", "evict_last", "no_allocate"};

inline constexpr bool for_loads(CacheHint hint) { return hint != CacheHint::kWriteThrough; }
inline constexpr bool for_stores(CacheHint hint) { return hint != CacheHint::kLastUse; }

// When a line that an access brings to L2, or finds there, leaves it: the attribute `l2_evict`.
enum class L2Evict : uint8_t { kFirst, kLast, kNormal, kUnchanged };
inline constexpr int kL2EvictCount = 4;
inline constexpr absl::string_view kL2EvictNames[] = {"first", "last", "normal", "unchanged"};

// The level that a prefetch brings a line to: the attribute `level`.
enum class CacheLevel : uint8_t { kL1, kL2 };
inline constexpr absl::string_view kCacheLevelNames[] = {"l1", "l2"};

}  // namespace heddle::ir
