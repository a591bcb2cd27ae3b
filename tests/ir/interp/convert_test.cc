// Conversions between every two types, against exact arithmetic.
#include <random>

#include "heddle/ir/interp/scalar/half.h"
#include "ir/interp/harness.h"
#include "ir/interp/oracle.h"

namespace heddle::ir::interp {
namespace {

constexpr Scalar kAll[] = {Scalar::kBool, Scalar::kI8,  Scalar::kU8,   Scalar::kI16, Scalar::kU16,
                           Scalar::kI32,  Scalar::kU32, Scalar::kI64,  Scalar::kU64, Scalar::kE4M3,
                           Scalar::kE5M2, Scalar::kF16, Scalar::kBF16, Scalar::kF32, Scalar::kF64};

uint64_t mask_of(Scalar scalar) {
  return info(scalar).bits == 64 ? ~uint64_t{0} : (uint64_t{1} << info(scalar).bits) - 1;
}

// What ops.def says of convert.
uint64_t to_integer(Scalar from, uint64_t bits, Scalar to) {
  const int width = info(to).bits;
  const Exact value = value_of(from, bits);
  if (is_nan(value)) {
    return width == 64 || info(from).bits == 64 ? uint64_t{1} << (width - 1) : 0;
  }
  const uint64_t top = uint64_t{1} << (width - 1);
  if (is_signed(to)) {
    if (value >= power_of_two(width - 1)) return top - 1;
    if (value < -power_of_two(width - 1)) return top;
    return static_cast<uint64_t>(static_cast<int64_t>(value)) & mask_of(to);
  }
  if (value >= power_of_two(width)) return mask_of(to);
  if (value <= -1) return 0;
  return static_cast<uint64_t>(value < 0 ? Exact(0) : value);
}

void expect_converted(Scalar from, Scalar to, const std::vector<uint64_t>& values) {
  const std::vector<uint64_t> got = evaluate(Opcode::kConvert, {from}, to, {values});
  int failures = 0;
  for (size_t i = 0; i < values.size() && failures < 10; ++i) {
    bool right = false;
    const Exact value = value_of(from, values[i]);
    if (to == from) {
      right = got[i] == values[i];
    } else if (to == Scalar::kBool) {
      right = got[i] == (is_nan(value) || value != 0 ? 1u : 0u);
    } else if (is_float(to)) {
      right = is_value(to, got[i], round_to(to, value));
    } else if (is_float(from)) {
      right = got[i] == to_integer(from, values[i], to);
    } else {
      const int unused = 64 - info(from).bits;
      const auto left = static_cast<int64_t>(values[i] << unused);
      const uint64_t extended = is_signed(from) ? static_cast<uint64_t>(left >> unused) : values[i];
      right = got[i] == (extended & mask_of(to));
    }
    EXPECT_TRUE(right) << info(from).name << " " << text_of(from, values[i]) << " to "
                       << info(to).name << " gives " << text_of(to, got[i]);
    failures += right ? 0 : 1;
  }
}

// Values of a type that lie on, and next to, the points where rounding to `to` changes.
std::vector<uint64_t> around_midpoints(Scalar from, Scalar to, int count) {
  std::vector<uint64_t> values;
  std::mt19937_64 generator(3);
  const int fraction_to = to == Scalar::kF16 ? 10 : to == Scalar::kBF16 ? 7 : 23;
  const int fraction_from = from == Scalar::kF32 ? 23 : 52;
  for (int i = 0; i < count; ++i) {
    const uint64_t narrow = generator() & (mask_of(to) >> 1);
    if (is_nan(to, narrow) || is_nan(to, narrow + 1)) continue;
    const Exact middle = (value_of(to, narrow) + value_of(to, narrow + 1)) / 2;
    if (middle - middle != 0) continue;
    const double wide = static_cast<double>(middle);
    const uint64_t bits =
        from == Scalar::kF32 ? bits_of_f32(static_cast<float>(wide)) : bits_of_f64(wide);
    for (const int64_t step :
         {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{1} << (fraction_from - fraction_to - 1)}) {
      const uint64_t near = bits + static_cast<uint64_t>(step);
      values.push_back(near);
      values.push_back(near | uint64_t{1} << (info(from).bits - 1));
    }
  }
  return values;
}

TEST(InterpConvert, EveryPairOfTypes) {
  for (const Scalar from : kAll) {
    std::vector<uint64_t> values =
        is_float(from) ? interesting_floats(from, 100, 14) : interesting_integers(from);
    if (from == Scalar::kF32 || from == Scalar::kF64) {
      // Around the ends of the integers' ranges.
      for (const double edge : {2147483648.0, 4294967296.0, 9223372036854775808.0,
                                18446744073709551616.0, 16777217.0, 0.5, 0.99, 3e9, 1e30}) {
        for (const double x : {edge, -edge, edge * (1 - 1e-7), -edge * (1 + 1e-7), -edge - 1}) {
          values.push_back(from == Scalar::kF32 ? bits_of_f32(static_cast<float>(x))
                                                : bits_of_f64(x));
        }
      }
    }
    for (const Scalar to : kAll) expect_converted(from, to, values);
  }
}

TEST(InterpConvert, EveryHalf) {
  std::vector<uint64_t> values(65536);
  for (size_t i = 0; i < values.size(); ++i) values[i] = i;
  for (const Scalar from : {Scalar::kF16, Scalar::kBF16}) {
    for (const Scalar to : {Scalar::kF32, Scalar::kF16, Scalar::kBF16, Scalar::kI32}) {
      expect_converted(from, to, values);
    }
  }
}

TEST(InterpConvert, FloatsRoundOnceToHalves) {
  for (const Scalar from : {Scalar::kF32, Scalar::kF64}) {
    for (const Scalar to : {Scalar::kF16, Scalar::kBF16}) {
      expect_converted(from, to, around_midpoints(from, to, 1500));
    }
  }
  expect_converted(Scalar::kF64, Scalar::kF32, around_midpoints(Scalar::kF64, Scalar::kF32, 1500));
}

// 64-bit integers next to the midpoints of f32, f16 and bf16, where rounding twice goes wrong.
TEST(InterpConvert, IntegersRoundOnce) {
  std::vector<uint64_t> values;
  std::mt19937_64 generator(5);
  for (const int precision : {8, 11, 24, 53}) {
    for (int shift = 1; precision + shift < 64; ++shift) {
      const uint64_t kept =
          (uint64_t{1} << (precision - 1)) | (generator() & ((uint64_t{1} << (precision - 1)) - 1));
      const uint64_t middle = (kept << shift) + (uint64_t{1} << (shift - 1));
      for (const uint64_t near : {middle - 1, middle, middle + 1}) {
        values.push_back(near);
        values.push_back(~near + 1);
      }
    }
  }
  for (const Scalar to : {Scalar::kF16, Scalar::kBF16, Scalar::kF32, Scalar::kF64}) {
    expect_converted(Scalar::kI64, to, values);
    expect_converted(Scalar::kU64, to, values);
    std::vector<uint64_t> narrow = values;
    for (uint64_t& value : narrow) value &= 0xFFFFFFFFu;
    expect_converted(Scalar::kI32, to, narrow);
    expect_converted(Scalar::kU32, to, narrow);
  }
  EXPECT_EQ(evaluate(Opcode::kConvert, {Scalar::kI32}, Scalar::kF32, {{16777217}})[0], 0x4B800000u);
  EXPECT_EQ(evaluate(Opcode::kConvert, {Scalar::kF32}, Scalar::kBF16, {{0x3F818000}})[0], 0x3F82u);
}

TEST(InterpConvert, NansBecomeIntegersByWidth) {
  const uint64_t nan32 = 0x7FC00000;
  const uint64_t nan64 = uint64_t{0x7FF8} << 48;
  const auto convert = [](Scalar from, Scalar to, uint64_t bits) {
    return evaluate(Opcode::kConvert, {from}, to, {{bits}})[0];
  };
  EXPECT_EQ(convert(Scalar::kF32, Scalar::kI32, nan32), 0u);
  EXPECT_EQ(convert(Scalar::kF32, Scalar::kU32, nan32), 0u);
  EXPECT_EQ(convert(Scalar::kF16, Scalar::kI32, 0x7E00), 0u);
  EXPECT_EQ(convert(Scalar::kF32, Scalar::kI64, nan32), uint64_t{1} << 63);
  EXPECT_EQ(convert(Scalar::kF32, Scalar::kU64, nan32), uint64_t{1} << 63);
  EXPECT_EQ(convert(Scalar::kBF16, Scalar::kU64, 0x7FC0), uint64_t{1} << 63);
  EXPECT_EQ(convert(Scalar::kF64, Scalar::kI32, nan64), 0x80000000u);
  EXPECT_EQ(convert(Scalar::kF64, Scalar::kU32, nan64), 0x80000000u);
  EXPECT_EQ(convert(Scalar::kF64, Scalar::kI64, nan64), uint64_t{1} << 63);
}

TEST(InterpConvert, BitcastKeepsBits) {
  EXPECT_EQ(evaluate(Opcode::kBitcast, {Scalar::kF32}, Scalar::kI32, {{0x7F800001, 0x80000000}}),
            (std::vector<uint64_t>{0x7F800001, 0x80000000}));
  EXPECT_EQ(evaluate(Opcode::kBitcast, {Scalar::kU64}, Scalar::kF64, {{0x7FF0000000000001}}),
            (std::vector<uint64_t>{0x7FF0000000000001}));
  EXPECT_EQ(evaluate(Opcode::kBitcast, {Scalar::kF16}, Scalar::kBF16, {{0xFC01}}),
            (std::vector<uint64_t>{0xFC01}));
}

// Rounding to odd keeps enough for a later rounding: half of a unit above a tie is not a tie.
TEST(InterpRounding, OddRoundingRemembersWhatWasLost) {
  EXPECT_EQ(odd_float_from(1.0 + 0x1p-40), 1.0f + 0x1p-23f);
  EXPECT_EQ(odd_float_from(1.0 - 0x1p-40), std::nextafter(1.0f, 0.0f));
  EXPECT_EQ(odd_float_from(-(1.0 + 0x1p-40)), -(1.0f + 0x1p-23f));
  EXPECT_EQ(odd_float_from(1.5), 1.5f);
  EXPECT_EQ(odd_float_from(1e300), std::numeric_limits<float>::max());
  EXPECT_EQ(odd_float_from(1e-300), std::numeric_limits<float>::denorm_min());
  EXPECT_EQ(odd_float_from(uint64_t{0xFFFFFFFFFFFFFFFF}), 0x1.fffffep63f);
  EXPECT_EQ(odd_float_from(int64_t{-3}), -3.0f);
  EXPECT_EQ(odd_sum(1.0, 0x1p-80), 1.0 + 0x1p-52);
  EXPECT_EQ(odd_sum(1.0, -0x1p-80), std::nextafter(1.0, 0.0));
  EXPECT_EQ(odd_sum(1.0, 2.0), 3.0);
}

}  // namespace
}  // namespace heddle::ir::interp
