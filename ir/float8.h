// The float formats below 16 bits on the host: e4m3 (four bits of exponent, three of fraction, no
// infinity, one NaN of each sign), e5m2 (the upper half of an f16), e8m0 (an exponent alone: the
// powers of two from 2^-127 to 2^127, and the NaN 0xff) and e2m1 (four bits: 0, 0.5, 1, 1.5, 2, 3,
// 4 and 6 of either sign).
//
//   uint8_t tiny = double_to_e4m3(0.1);      // rounded to nearest even, once
//   float back = e4m3_to_float(tiny);        // exact
//
// Too large a number, and infinity, become the largest number of that sign, as conversions on the
// GPU do; subnormals are kept; every NaN becomes 0x7f. e8m0 has neither sign nor zero: a number's
// magnitude is rounded up, or toward zero where one asks for that, but not below 2^-127. A NaN
// becomes the e2m1 6. Formats: OCP 8-bit floating point specification 1.0, OCP microscaling formats
// specification 1.0.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "heddle/ir/float16.h"

namespace heddle::ir {
namespace internal {

// Sign, `exponent_bits`, `mantissa_bits`; `largest` are the bits of the largest number, `nan` those
// that a NaN becomes.
template <int exponent_bits, int mantissa_bits, uint8_t largest, uint8_t nan>
struct NarrowFormat {
  static constexpr int kSign = 1 << (exponent_bits + mantissa_bits);
  static constexpr int kBias = (1 << (exponent_bits - 1)) - 1;

  static uint8_t from_double(double value) {
    if (std::isnan(value)) return nan;
    const auto sign = static_cast<uint8_t>(std::signbit(value) ? kSign : 0);
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
    const int magnitude = bits & (kSign - 1);
    const int exponent = magnitude >> mantissa_bits;
    const int fraction = magnitude & ((1 << mantissa_bits) - 1);
    const int unit = std::max(exponent, 1) - kBias - mantissa_bits;
    const int significand = fraction + (exponent != 0 ? 1 << mantissa_bits : 0);
    const float number = std::ldexp(static_cast<float>(significand), unit);
    return (bits & kSign) != 0 ? -number : number;
  }
};
using E4M3 = NarrowFormat<4, 3, 0x7E, 0x7F>;
using E5M2 = NarrowFormat<5, 2, 0x7B, 0x7F>;
using E2M1 = NarrowFormat<2, 1, 0x7, 0x7>;

}  // namespace internal

inline uint8_t double_to_e4m3(double value) { return internal::E4M3::from_double(value); }
inline float e4m3_to_float(uint8_t bits) {
  if ((bits & 0x7F) == 0x7F) return std::bit_cast<float>(0x7FC00000u | uint32_t{bits} >> 7 << 31);
  return internal::E4M3::to_float(bits);
}

inline uint8_t double_to_e5m2(double value) { return internal::E5M2::from_double(value); }
inline float e5m2_to_float(uint8_t bits) { return f16_to_float(static_cast<uint16_t>(bits << 8)); }

inline uint8_t double_to_e8m0(double value, bool toward_zero = false) {
  if (std::isnan(value)) return 0xFF;
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // 0.5 is a power of two's
  if (std::isinf(value)) return 0xFE;
  if (fraction == 0) return 0;
  const int floor = exponent - 1;
  const int rounded = fraction == 0.5 || toward_zero ? floor : floor + 1;
  return static_cast<uint8_t>(std::clamp(rounded, -127, 127) + 127);
}
inline float e8m0_to_float(uint8_t bits) {
  if (bits == 0xFF) return std::bit_cast<float>(0x7FC00000u);
  return std::ldexp(1.0f, bits - 127);
}

// Four bits; and two of them in a byte, the first one below.
inline uint8_t double_to_e2m1(double value) { return internal::E2M1::from_double(value); }
inline float e2m1_to_float(uint8_t bits) { return internal::E2M1::to_float(bits & 0xF); }
inline uint8_t doubles_to_e2m1x2(double first, double second) {
  return static_cast<uint8_t>(double_to_e2m1(first) | double_to_e2m1(second) << 4);
}

}  // namespace heddle::ir
