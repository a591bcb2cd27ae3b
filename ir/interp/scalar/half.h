// Floats below 32 bits, and tf32, on the host, for the interpreter alone: it shares no scalar code with the constant
// folder or the rest of Heddle, so that a mistake in one shows as a difference.
//
// Everything here is free of branches where a lane loop calls it, so that compilers vectorise it.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace heddle::ir::interp {

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
struct E4M3 {
  uint8_t bits;
};
struct E5M2 {
  uint8_t bits;
};
struct E8M0 {
  uint8_t bits;
};
struct TF32 {
  uint32_t bits;
};
struct E2M1x2 {
  uint8_t bits;
};

inline uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }
inline uint64_t bits_of(double x) { return std::bit_cast<uint64_t>(x); }
inline float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }
inline double double_of(uint64_t bits) { return std::bit_cast<double>(bits); }

// --- Exact widening ---

inline float to_float(BF16 x) { return float_of(uint32_t{x.bits} << 16); }

// Its lower 13 bits count as zeros.
inline float to_float(TF32 x) { return float_of(x.bits & 0xFFFFE000u); }

inline float to_float(F16 x) {
  const uint32_t sign = (uint32_t{x.bits} & 0x8000u) << 16;
  const uint32_t magnitude = uint32_t{x.bits} & 0x7FFFu;
  // Exponent and fraction moved into place are 2^112 too small; the product is exact, also for
  // subnormals. Infinity and NaN then need their exponent filled up.
  const uint32_t scaled = bits_of(float_of(magnitude << 13) * 0x1p112f);
  const uint32_t special = magnitude >= 0x7C00u ? 0x7F800000u : 0u;
  return float_of(sign | scaled | special);
}

inline float to_float(E5M2 x) { return to_float(F16{static_cast<uint16_t>(x.bits << 8)}); }

inline float to_float(E4M3 x) {
  const uint32_t sign = (uint32_t{x.bits} & 0x80u) << 24;
  const uint32_t magnitude = uint32_t{x.bits} & 0x7Fu;
  const uint32_t scaled = bits_of(float_of(magnitude << 20) * 0x1p120f);
  return float_of(sign | (magnitude == 0x7Fu ? 0x7FC00000u : scaled));
}

inline float to_float(E8M0 x) {
  // The exponent's place; 2^-127 is a subnormal f32.
  const uint32_t power = x.bits == 0 ? 0x00400000u : uint32_t{x.bits} << 23;
  return float_of(x.bits == 0xFFu ? 0x7FC00000u : power);
}

// The four lower bits: two of exponent and one of fraction, twice the number's halves.
inline F16 e2m1_to_f16(uint32_t bits) {
  constexpr uint16_t kNumbers[8] = {0x0000, 0x3800, 0x3C00, 0x3E00, 0x4000, 0x4200, 0x4400, 0x4600};
  return {static_cast<uint16_t>(kNumbers[bits & 7] | (bits & 8) << 12)};
}

// --- Rounding to nearest even, once ---

inline BF16 bf16_from(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  // Rounding would carry a NaN's fraction into the sign; it stays a quiet NaN instead.
  const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return {static_cast<uint16_t>(nan ? (bits >> 16) | 0x40u : rounded)};
}

// To nearest, ties away from zero: a carry out of the largest finite number gives infinity.
inline TF32 tf32_from(float x) {
  const uint32_t bits = bits_of(x);
  const bool finite = (bits & 0x7FFFFFFFu) < 0x7F800000u;
  return {(bits + (finite ? 0x1000u : 0u)) & 0xFFFFE000u};
}

inline F16 f16_from(float x) {
  const uint32_t bits = bits_of(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  // Normal results: rebias the exponent by 15 - 127 and round away 13 bits; a carry out of the
  // largest finite number gives infinity.
  const uint32_t normal = (magnitude + 0xC8000FFFu + ((magnitude >> 13) & 1u)) >> 13;
  // Below 2^-14: the addition puts the result's unit, 2^-24, at the sum's last place and rounds
  // there.
  const uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - 0x3F000000u;
  const uint32_t special = magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u;
  uint32_t result = magnitude < 0x38800000u ? subnormal : normal;
  result = magnitude >= 0x47800000u ? special : result;
  return {static_cast<uint16_t>(sign | result)};
}

// Rounds to a byte of `kFraction` bits of fraction whose smallest normal number is 2^kLeast.
// Numbers from `largest` on, by its bits in the result, stay there; a NaN gives 0x7f.
template <int kFraction, int kLeast, uint32_t kLargest>
uint8_t byte_from(float x) {
  constexpr int kDropped = 23 - kFraction;
  const uint32_t bits = bits_of(x);
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  const uint32_t even = (magnitude >> kDropped) & 1u;
  const uint32_t rounded = (magnitude + ((1u << (kDropped - 1)) - 1u) + even) >> kDropped;
  const uint32_t normal = rounded - (static_cast<uint32_t>(kLeast - 1 + 127) << kFraction);
  // Adding this power of two puts the result's unit at the sum's last place and rounds there.
  constexpr uint32_t kAlign = static_cast<uint32_t>(kLeast - kFraction + 23 + 127) << 23;
  const uint32_t subnormal = bits_of(float_of(magnitude) + float_of(kAlign)) - kAlign;
  const bool small = magnitude < static_cast<uint32_t>(kLeast + 127) << 23;
  uint32_t result = small ? subnormal : normal;
  result = !small && result > kLargest ? kLargest : result;
  result |= (bits >> 24) & 0x80u;
  return static_cast<uint8_t>(magnitude > 0x7F800000u ? 0x7Fu : result);
}
inline E4M3 e4m3_from(float x) { return {byte_from<3, -6, 0x7E>(x)}; }
inline E5M2 e5m2_from(float x) { return {byte_from<2, -14, 0x7B>(x)}; }

// Four bits: how many of the points halfway between neighbours lie below. A tie goes to the even
// one.
inline uint32_t e2m1_from(float x) {
  const float m = std::fabs(x);
  if (m != m) return 7;
  const uint32_t number = (m > 0.25f) + (m >= 0.75f) + (m > 1.25f) + (m >= 1.75f) + (m > 2.5f) +
                          (m >= 3.5f) + (m > 5.0f);
  return number | (bits_of(x) >> 28 & 8u);
}

// The magnitude's exponent, one more where anything is left and it rounds up.
template <bool kUp>
inline E8M0 e8m0_from(float x) {
  const uint32_t magnitude = bits_of(x) & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return {0xFF};
  const uint32_t exponent = magnitude >> 23;
  const bool more = exponent == 0 ? magnitude > 0x00400000u : (magnitude & 0x7FFFFFu) != 0;
  return {static_cast<uint8_t>(std::min(exponent + (kUp && more ? 1u : 0u), 0xFEu))};
}

// --- Rounding to odd: a later rounding to a narrower type is then as good as rounding once ---

inline float odd_float_from(double x) {
  const float nearest = static_cast<float>(x);
  const double back = static_cast<double>(nearest);
  if (!(back < x || back > x)) return nearest;  // exact, or a NaN
  uint32_t bits = bits_of(nearest);
  if (std::fabs(back) > std::fabs(x)) --bits;  // Toward zero; infinity becomes the largest number.
  return float_of(bits | 1u);
}

inline float odd_float_from(uint64_t x) {
  const int shift = std::max(0, 64 - 24 - std::countl_zero(x));
  const uint64_t lost = x & ((uint64_t{1} << shift) - 1);
  const uint64_t kept = (x >> shift) | (lost != 0 ? 1u : 0u);
  return std::ldexp(static_cast<float>(kept), shift);
}

inline float odd_float_from(int64_t x) {
  return x < 0 ? -odd_float_from(uint64_t{0} - static_cast<uint64_t>(x))
               : odd_float_from(static_cast<uint64_t>(x));
}

// a + b as a double rounded to odd. Neither may overflow or be so small that the error is lost: the
// callers add products and terms of narrower types.
inline double odd_sum(double a, double b) {
  const double sum = a + b;
  // What the rounded sum lacks, exactly (Knuth's two-sum). Infinities and NaNs give a NaN: no
  // change.
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  const bool inexact = error < 0 || error > 0;
  const bool even = (bits_of(sum) & 1u) == 0;
  const bool grow = (error > 0) == (sum > 0);
  const uint64_t step = grow ? uint64_t{1} : ~uint64_t{0};
  return double_of(bits_of(sum) + (inexact && even ? step : 0));
}

}  // namespace heddle::ir::interp
