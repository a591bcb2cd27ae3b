// The arguments of a launch as plain words, by which a launch that comes again is recognised (launch_memo.h).
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace heddle::runtime {

// A kernel's arguments: bits, extents, strides and the bytes of memory of each.
struct LaunchKey {
  absl::Span<const uint64_t> words;  // in the order of the parameters
  uint64_t hash;                     // of the addresses
};

}  // namespace heddle::runtime
