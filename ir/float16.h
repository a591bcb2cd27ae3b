// The two 16-bit float formats on the host: f16 (IEEE binary16) and bf16 (the upper half of an
// f32).
//
//   uint16_t half = double_to_f16(0.1);     // rounded to nearest even, once
//   float back = f16_to_float(half);          // exact
//
// A value that a caller holds as a double is never rounded to float on the way: rounding twice
// gives other results near ties. Too large a number becomes infinity; subnormals are kept; a NaN
// stays a quiet NaN with its sign and as much of its payload as fits.
#pragma once

#include <bit>
#include <cstdint>

namespace heddle::ir {
namespace internal {

// A binary format of 16 bits: sign, `exponent_bits`, `mantissa_bits`, biased and encoded as IEEE
// does.
template <int exponent_bits, int mantissa_bits>
struct Format16 {
  static_assert(1 + exponent_bits + mantissa_bits == 16);
  static constexpr int kBias = (1 << (exponent_bits - 1)) - 1;
  static constexpr uint16_t kInfinity = ((1 << exponent_bits) - 1) << mantissa_bits;

  static constexpr uint16_t from_double(double value) {
    const uint64_t bits = std::bit_cast<uint64_t>(value);
    const auto sign = static_cast<uint16_t>(bits >> 63 << 15);
    const int exponent = static_cast<int>(bits >> 52 & 0x7FF) - 1023;
    const uint64_t fraction = bits & ((uint64_t{1} << 52) - 1);
    if (exponent == 1024) {  // infinity or NaN
      const auto payload = static_cast<uint16_t>(fraction >> (52 - mantissa_bits));
      const auto quiet = static_cast<uint16_t>(1 << (mantissa_bits - 1));
      return fraction == 0 ? sign | kInfinity : sign | kInfinity | quiet | payload;
    }
    // In units of the last place of the result: 1.fraction * 2^(exponent), shifted right. Below the
    // normal range the unit stays what it is at the smallest normal exponent.
    const bool normal = exponent >= 1 - kBias;
    const int unit = (normal ? exponent : 1 - kBias) - mantissa_bits;
    const int drop = 52 - exponent + unit;  // bits of the 53-bit significand below the unit
    if (drop > 54) return sign;             // below half of the smallest subnormal
    const uint64_t significand = fraction | uint64_t{1} << 52;
    uint64_t rounded = significand >> drop;
    const uint64_t rest = significand & ((uint64_t{1} << drop) - 1);
    const uint64_t half = uint64_t{1} << (drop - 1);
    if (rest > half || (rest == half && (rounded & 1) != 0)) ++rounded;
    // The implicit one, and a carry out of the mantissa, both add into the exponent field.
    const int base = normal ? exponent + kBias - 1 : 0;
    const uint64_t result = (static_cast<uint64_t>(base) << mantissa_bits) + rounded;
    return sign | (result >= kInfinity ? kInfinity : static_cast<uint16_t>(result));
  }

  static constexpr float to_float(uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
    const uint32_t magnitude = bits & 0x7FFFu;
    uint32_t exponent = magnitude >> mantissa_bits;
    uint32_t fraction = magnitude & ((1u << mantissa_bits) - 1);
    if (exponent == (1u << exponent_bits) - 1) {
      exponent = 0xFF;
    } else if constexpr (exponent_bits < 8) {
      if (exponent != 0) {
        exponent += 127 - kBias;
      } else if (fraction != 0) {  // a subnormal here is a normal float
        const int shift = std::countl_zero(fraction) - (31 - mantissa_bits);
        fraction = (fraction << shift) & ((1u << mantissa_bits) - 1);
        exponent = static_cast<uint32_t>(127 - kBias + 1 - shift);
      }
    }
    return std::bit_cast<float>(sign | exponent << 23 | fraction << (23 - mantissa_bits));
  }
};
using F16 = Format16<5, 10>;
using BF16 = Format16<8, 7>;

}  // namespace internal

constexpr uint16_t double_to_f16(double value) { return internal::F16::from_double(value); }
constexpr uint16_t float_to_f16(float value) { return double_to_f16(value); }
constexpr float f16_to_float(uint16_t bits) { return internal::F16::to_float(bits); }

constexpr uint16_t double_to_bf16(double value) { return internal::BF16::from_double(value); }
constexpr uint16_t float_to_bf16(float value) { return double_to_bf16(value); }
constexpr float bf16_to_float(uint16_t bits) { return internal::BF16::to_float(bits); }

}  // namespace heddle::ir
