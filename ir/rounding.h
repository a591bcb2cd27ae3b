// Rounding modes, as the attribute `rounding` of the ops that round otherwise than to nearest, or
// whatever the passes do.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace heddle::ir {

enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp };  // kNearest: ties to even
inline constexpr int kRoundingCount = 4;
inline constexpr absl::string_view kRoundingNames[] = {"nearest", "zero", "down", "up"};

}  // namespace heddle::ir
