#include "heddle/ir/float16.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

namespace heddle::ir {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Float16, KnownValues) {
  EXPECT_EQ(f16_to_float(0x3C00), 1.0f);
  EXPECT_EQ(f16_to_float(0xC000), -2.0f);
  EXPECT_EQ(f16_to_float(0x7BFF), 65504.0f);
  EXPECT_EQ(f16_to_float(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_to_float(0x7C00), kInf);
  EXPECT_TRUE(std::isnan(f16_to_float(0x7E00)));
  EXPECT_EQ(bf16_to_float(0x3F80), 1.0f);
  EXPECT_EQ(bf16_to_float(0xFF80), -kInf);
}

TEST(Float16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    if (std::isnan(f16_to_float(half))) {
      EXPECT_TRUE(std::isnan(f16_to_float(float_to_f16(f16_to_float(half)))));
    } else {
      EXPECT_EQ(float_to_f16(f16_to_float(half)), half);
    }
    if (std::isnan(bf16_to_float(half))) {
      EXPECT_TRUE(std::isnan(bf16_to_float(float_to_bf16(bf16_to_float(half)))));
    } else {
      EXPECT_EQ(float_to_bf16(bf16_to_float(half)), half);
    }
  }
}

// Halfway between two neighbours the even one wins, a hair to either side the nearer one does.
TEST(Float16, RoundsToNearestEven) {
  const auto check = [](float (*widen)(uint16_t), uint16_t (*narrow)(float), uint16_t last) {
    for (uint32_t bits = 0; bits < last; ++bits) {
      const auto low = static_cast<uint16_t>(bits);
      const auto high = static_cast<uint16_t>(bits + 1);
      // Summed in double: the middle of two bf16 subnormals is exact there and in float.
      const auto middle = static_cast<float>((double{widen(low)} + double{widen(high)}) / 2);
      EXPECT_EQ(narrow(middle), bits % 2 == 0 ? low : high);
      EXPECT_EQ(narrow(std::nextafter(middle, 0.0f)), low);
      EXPECT_EQ(narrow(std::nextafter(middle, kInf)), high);
      EXPECT_EQ(narrow(-middle), (bits % 2 == 0 ? low : high) | 0x8000);
    }
  };
  check(f16_to_float, float_to_f16, 0x7BFF);
  check(bf16_to_float, float_to_bf16, 0x7F7F);
}

TEST(Float16, TooLargeBecomesInfinity) {
  EXPECT_EQ(float_to_f16(65519.0f), 0x7BFF);
  EXPECT_EQ(float_to_f16(65520.0f), 0x7C00);
  EXPECT_EQ(float_to_f16(-1e30f), 0xFC00);
  EXPECT_EQ(float_to_f16(kInf), 0x7C00);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(float_to_bf16(-kInf), 0xFF80);
}

}  // namespace
}  // namespace heddle::ir
