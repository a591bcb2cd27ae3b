// The two 8-bit float formats on the host: e4m3 (four bits of exponent, three of fraction, no
// infinity, one NaN of each sign) and e5m2 (the upper half of an f16).
//
//   uint8_t tiny = double_to_e4m3(0.1);      // rounded to nearest even, once
//   float back = e4m3_to_float(tiny);        // exact
//
// Too large a number, and infinity, become the largest number of that sign, as conversions on the
// GPU do; subnormals are kept; every NaN becomes 0x7f. Format: OCP 8-bit floating point
// specification 1.0.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "heddle/ir/float16.h"

namespace heddle::ir {
namespace internal {

// Sign, `exponent_bits`, `mantissa_bits`; `largest` are the bits of the largest number.
template <int exponent_bits, int mantissa_bits, uint8_t largest>
struct Format8 {
  static_assert(1 + exponent_bits + mantissa_bits == 8);
  static constexpr int kBias = (1 << (exponent_bits - 1)) - 1;

  static uint8_t from_double(double value) {
    if (std::isnan(value)) return 0x7F;
    const auto sign = static_cast<uint8_t>(std::signbit(value) ? 0x80 : 0);
    const double magnitude = std::fabs(value);
    if (magnitude > double{to_float(largest)}) return sign | largest;
    // In units of the last place: the exponent of the smallest normal number serves subnormals too.
    const int exponent = std::max(magnitude == 0 ? 1 - kBias : std::ilogb(magnitude), 1 - kBias);
    const double units = std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent));
    // The implicit one, and a carry out of the fraction, both add into the exponent's field.
    const int base = (exponent + kBias - 1) << mantissa_bits;
    return static_cast<uint8_t>(sign | (base + static_cast<int>(units)));
  }

  static float to_float(uint8_t bits) {
    const int magnitude = bits & 0x7F;
    const int exponent = magnitude >> mantissa_bits;
    const int fraction = magnitude & ((1 << mantissa_bits) - 1);
    const int unit = std::max(exponent, 1) - kBias - mantissa_bits;
    const int significand = fraction + (exponent != 0 ? 1 << mantissa_bits : 0);
    const float number = std::ldexp(static_cast<float>(significand), unit);
    return (bits & 0x80) != 0 ? -number : number;
  }
};

}  // namespace internal

inline uint8_t double_to_e4m3(double value) {
  return internal::Format8<4, 3, 0x7E>::from_double(value);
}
inline float e4m3_to_float(uint8_t bits) {
  if ((bits & 0x7F) == 0x7F) return std::bit_cast<float>(0x7FC00000u | uint32_t{bits} >> 7 << 31);
  return internal::Format8<4, 3, 0x7E>::to_float(bits);
}

inline uint8_t double_to_e5m2(double value) {
  return internal::Format8<5, 2, 0x7B>::from_double(value);
}
inline float e5m2_to_float(uint8_t bits) { return f16_to_float(static_cast<uint16_t>(bits << 8)); }

}  // namespace heddle::ir
