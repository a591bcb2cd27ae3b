#include "heddle/ir/text/literal.h"

#include <limits>
#include <random>

#include "absl/base/casts.h"
#include "gtest/gtest.h"

namespace heddle::ir {
namespace {

uint64_t bits(double value) { return absl::bit_cast<uint64_t>(value); }
uint64_t bits(float value) { return absl::bit_cast<uint32_t>(value); }

TEST(Literal, PrintsTheShortestDecimal) {
  EXPECT_EQ(literal_to_string(Scalar::kF32, bits(0.5f)), "0.5");
  EXPECT_EQ(literal_to_string(Scalar::kF32, bits(1.0f)), "1.0");
  EXPECT_EQ(literal_to_string(Scalar::kF32, bits(0.1f)), "0.1");
  EXPECT_EQ(literal_to_string(Scalar::kF32, bits(1e30f)), "1e+30");
  EXPECT_EQ(literal_to_string(Scalar::kF32, bits(-16777216.0f)), "-16777216.0");
  EXPECT_EQ(literal_to_string(Scalar::kF32, bits(0.0f)), "0.0");
  EXPECT_EQ(literal_to_string(Scalar::kF64, bits(0.1)), "0.1");
  EXPECT_EQ(literal_to_string(Scalar::kF64, bits(1.0 / 3)), "0.3333333333333333");
  EXPECT_EQ(literal_to_string(Scalar::kF16, 0x3C01), "1.001");
  EXPECT_EQ(literal_to_string(Scalar::kBF16, 0x3F81), "1.01");
}

TEST(Literal, PrintsWhatHasNoDecimalAsBits) {
  EXPECT_EQ(literal_to_string(Scalar::kF32, 0x7FC00000), "0x7fc00000");
  EXPECT_EQ(literal_to_string(Scalar::kF32, 0xFF800000), "0xff800000");
  EXPECT_EQ(literal_to_string(Scalar::kF32, 0x80000000), "0x80000000");
  EXPECT_EQ(literal_to_string(Scalar::kF16, 0x7C00), "0x7c00");
  EXPECT_EQ(literal_to_string(Scalar::kF64, bits(-0.0)), "0x8000000000000000");
  EXPECT_EQ(literal_to_string(Scalar::kBool, 2), "0x2");
  EXPECT_EQ(literal_to_string(Scalar::kI32, 0x100000000), "0x100000000");
}

TEST(Literal, PrintsIntegersByTheirSign) {
  EXPECT_EQ(literal_to_string(Scalar::kI32, 0xFFFFFFFF), "-1");
  EXPECT_EQ(literal_to_string(Scalar::kU32, 0xFFFFFFFF), "4294967295");
  EXPECT_EQ(literal_to_string(Scalar::kI64, ~uint64_t{0}), "-1");
  EXPECT_EQ(literal_to_string(Scalar::kU64, ~uint64_t{0}), "18446744073709551615");
  EXPECT_EQ(literal_to_string(Scalar::kBool, 1), "true");
}

TEST(Literal, EverySixteenBitFloatReadsBack) {
  for (const Scalar scalar : {Scalar::kF16, Scalar::kBF16}) {
    for (uint64_t b = 0; b <= 0xFFFF; ++b) {
      ASSERT_EQ(literal_from_string(scalar, literal_to_string(scalar, b)).value(), b);
    }
  }
}

TEST(Literal, RandomBitsReadBack) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const uint64_t b = random();
    for (int s = 1; s < kScalarCount; ++s) {
      const auto scalar = static_cast<Scalar>(s);
      const uint64_t masked = b >> (64 - value_bits(scalar));
      ASSERT_EQ(literal_from_string(scalar, literal_to_string(scalar, masked)).value(), masked)
          << info(scalar).name << " " << masked;
    }
  }
}

// 1 + 2^-11 lies halfway between two f16 numbers. What follows is too little for a float to show,
// but decides the direction.
TEST(Literal, RoundsOnce) {
  EXPECT_EQ(literal_from_string(Scalar::kF16, "1.00048828125").value(), 0x3C00);
  EXPECT_EQ(literal_from_string(Scalar::kF16, "1.000488281250001").value(), 0x3C01);
  EXPECT_EQ(literal_from_string(Scalar::kF16, "-1.000488281250001").value(), 0xBC01);
  EXPECT_EQ(literal_from_string(Scalar::kBF16, "1.00390625").value(), 0x3F80);
  EXPECT_EQ(literal_from_string(Scalar::kBF16, "1.003906250000001").value(), 0x3F81);
  EXPECT_EQ(literal_from_string(Scalar::kBF16, "1.003906249999999").value(), 0x3F80);
}

TEST(Literal, SaysWhyTextIsNoValue) {
  const auto error = [](Scalar scalar, absl::string_view text) {
    return std::string(literal_from_string(scalar, text).status().message());
  };
  EXPECT_EQ(error(Scalar::kI32, "2147483648"), "'2147483648' is not a value of i32");
  EXPECT_EQ(error(Scalar::kI32, "0.5"), "'0.5' is not a value of i32");
  EXPECT_EQ(error(Scalar::kU32, "-1"), "'-1' is not a value of u32");
  EXPECT_EQ(error(Scalar::kF32, "inf"), "'inf' is not a value of f32");
  EXPECT_EQ(error(Scalar::kBool, "1"), "'1' is not a bool; write true or false");
  EXPECT_EQ(error(Scalar::kF16, "65520"),
            "'65520' is too large for f16; write infinity as its bits, 0x7c00");
  EXPECT_EQ(error(Scalar::kF32, "-1e99"),
            "'-1e99' is too large for f32; write infinity as its bits, 0xff800000");
  EXPECT_EQ(error(Scalar::kF16, "0x10000"), "'0x10000' has more bits than f16, which has 16");
  EXPECT_EQ(error(Scalar::kF16, "0xq"), "'0xq' is not a hexadecimal number");
  EXPECT_EQ(error(Scalar::kNone, "1"), "this type has no constants");
}

}  // namespace
}  // namespace heddle::ir
