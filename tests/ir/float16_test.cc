#include "heddle/ir/float16.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>

#include "gtest/gtest.h"

namespace heddle::ir {
namespace {

// An independent account of a 16-bit format: values by arithmetic, not by moving bits about.
struct Reference {
  int exponent_bits;
  int mantissa_bits;

  double value(uint16_t bits) const {
    const double sign = bits & 0x8000 ? -1 : 1;
    const int exponent = (bits & 0x7FFF) >> mantissa_bits;
    const int fraction = bits & ((1 << mantissa_bits) - 1);
    const int bias = (1 << (exponent_bits - 1)) - 1;
    if (exponent == (1 << exponent_bits) - 1) {
      return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
    }
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - mantissa_bits);
    return sign * std::ldexp(fraction + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  }
  uint16_t infinity() const {
    return static_cast<uint16_t>(((1 << exponent_bits) - 1) << mantissa_bits);
  }

  // The nearest of two neighbours, found by bisection over the non-negative encodings, which are in
  // the order of their values.
  uint16_t nearest(double v) const {
    const uint16_t sign = std::signbit(v) ? 0x8000 : 0;
    const long double magnitude = std::fabs(v);
    uint16_t low = 0;
    uint16_t high = infinity();
    while (high - low > 1) {
      const auto middle = static_cast<uint16_t>((low + high) / 2);
      (value(middle) <= magnitude ? low : high) = middle;
    }
    if (std::isinf(v)) return sign | infinity();
    // Where the format ends, the next value would be one unit further.
    const long double below = value(low);
    const long double above = high == infinity()
                                  ? below + (below - static_cast<long double>(value(low - 1)))
                                  : static_cast<long double>(value(high));
    const long double to_low = magnitude - below;
    const long double to_high = above - magnitude;
    const bool up = to_high < to_low || (to_high == to_low && (low & 1) != 0);
    return sign | (up ? high : low);
  }
};

constexpr Reference kF16{5, 10};
constexpr Reference kBF16{8, 7};

TEST(Float16, EveryHalfToFloatAndBack) {
  for (int i = 0; i <= 0xFFFF; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = f16_to_float(bits);
    if (std::isnan(kF16.value(bits))) {
      ASSERT_TRUE(std::isnan(value)) << i;
      ASSERT_TRUE(std::isnan(f16_to_float(float_to_f16(value)))) << i;
      continue;
    }
    ASSERT_EQ(value, kF16.value(bits)) << i;
    ASSERT_EQ(std::signbit(value), i >= 0x8000) << i;
    ASSERT_EQ(float_to_f16(value), bits) << i;
    ASSERT_EQ(double_to_f16(value), bits) << i;
  }
}

TEST(Float16, EveryBfloatToFloatAndBack) {
  for (int i = 0; i <= 0xFFFF; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    const float value = bf16_to_float(bits);
    if (std::isnan(kBF16.value(bits))) {
      ASSERT_TRUE(std::isnan(value)) << i;
      ASSERT_TRUE(std::isnan(bf16_to_float(float_to_bf16(value)))) << i;
      continue;
    }
    ASSERT_EQ(value, kBF16.value(bits)) << i;
    ASSERT_EQ(float_to_bf16(value), bits) << i;
    ASSERT_EQ(double_to_bf16(value), bits) << i;
  }
}

// Every value between neighbours: just below the tie, the tie, and just above it, in double, where
// rounding through float first would go wrong.
TEST(Float16, TiesGoToEvenAndNothingIsRoundedTwice) {
  for (const Reference& format : {kF16, kBF16}) {
    const auto convert = [&](double v) {
      return format.mantissa_bits == 10 ? double_to_f16(v) : double_to_bf16(v);
    };
    for (uint16_t low = 0; low < format.infinity(); ++low) {
      const double below = format.value(low);
      const double above = low + 1 == format.infinity() ? below + (below - format.value(low - 1))
                                                        : format.value(low + 1);
      const double tie = below + (above - below) / 2;
      const auto high = static_cast<uint16_t>(low + 1);
      ASSERT_EQ(convert(tie), low % 2 == 0 ? low : high) << low;
      ASSERT_EQ(convert(std::nextafter(tie, 0.0)), low) << low;
      ASSERT_EQ(convert(std::nextafter(tie, 1e300)), high) << low;
      ASSERT_EQ(convert(-tie), 0x8000 | (low % 2 == 0 ? low : high)) << low;
    }
  }
}

TEST(Float16, RandomFloatsAndDoublesRoundLikeTheReference) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 300'000; ++i) {
    const uint64_t bits = random();
    float f;
    const auto low = static_cast<uint32_t>(bits);
    std::memcpy(&f, &low, sizeof f);
    if (!std::isnan(f)) {
      ASSERT_EQ(float_to_f16(f), kF16.nearest(f)) << f;
      ASSERT_EQ(float_to_bf16(f), kBF16.nearest(f)) << f;
    }
    // Doubles whose exponent is near the formats' range.
    const int exponent = static_cast<int>(bits % 320) - 160;
    const double d = std::ldexp(1 + static_cast<double>(bits >> 12) * 0x1p-52, exponent);
    ASSERT_EQ(double_to_f16(d), kF16.nearest(d)) << d;
    ASSERT_EQ(double_to_bf16(-d), kBF16.nearest(-d)) << d;
  }
}

TEST(Float16, SpecialValues) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(double_to_f16(inf), 0x7C00);
  EXPECT_EQ(double_to_f16(-inf), 0xFC00);
  EXPECT_EQ(double_to_f16(65519.999), 0x7BFF);
  EXPECT_EQ(double_to_f16(65520), 0x7C00);
  EXPECT_EQ(double_to_f16(1e300), 0x7C00);
  EXPECT_EQ(double_to_f16(-0.0), 0x8000);
  EXPECT_EQ(double_to_f16(5e-324), 0);
  EXPECT_EQ(double_to_bf16(1e300), 0x7F80);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(double_to_bf16(-5e-324), 0x8000);
  // A NaN whose payload lies only in the bits that are dropped must not turn into infinity.
  uint32_t thin = 0x7F800001;
  float nan;
  std::memcpy(&nan, &thin, sizeof nan);
  EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(nan))));
  EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(nan))));
  static_assert(float_to_f16(1.0f) == 0x3C00 && f16_to_float(0x3C00) == 1.0f);
  static_assert(float_to_bf16(1.0f) == 0x3F80 && bf16_to_float(0x3F80) == 1.0f);
}

}  // namespace
}  // namespace heddle::ir
