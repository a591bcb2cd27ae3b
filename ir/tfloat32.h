// The float format tf32 on the host: an f32 of which only the upper 19 bits count, ten of them of fraction. Tensor
// cores multiply such numbers.
//
//   uint32_t number = double_to_tf32(0.1);   // rounded to nearest, ties away from zero, once
//   float back = tf32_to_float(number);       // exact
//
// Too large a number becomes infinity; subnormals are kept; a NaN stays one. The lower 13 bits are zeros.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace heddle::ir {

inline constexpr uint32_t kTf32Mask = 0xFFFFE000;

inline float tf32_to_float(uint32_t bits) { return std::bit_cast<float>(bits & kTf32Mask); }

inline uint32_t double_to_tf32(double value) {
  constexpr int kFraction = 10;
  constexpr int kLeast = -126;  // exponent of the smallest normal number
  const uint32_t sign = std::signbit(value) ? 0x80000000u : 0;
  if (std::isnan(value)) return sign | 0x7FFFE000u;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return sign | 0x7F800000u;
  const int unit = std::max(std::ilogb(magnitude), kLeast) - kFraction;
  const double rounded = std::ldexp(std::round(std::ldexp(magnitude, -unit)), unit);
  if (rounded >= 0x1p128) return sign | 0x7F800000u;
  return sign | std::bit_cast<uint32_t>(static_cast<float>(rounded));
}

}  // namespace heddle::ir
