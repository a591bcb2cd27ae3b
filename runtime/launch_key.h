// The arguments of a launch as plain words, by which a launch that comes again is recognised (launch_memo.h).
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace heddle::runtime {

struct LaunchKey {
  absl::Span<const uint64_t> words;
  uint64_t hash;
};

}  // namespace heddle::runtime
