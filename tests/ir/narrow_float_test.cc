// e8m0, e2m1 and tf32: the host's formats, the interpreter and the folder against the lists of the
// numbers that there are.
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/analysis/fold_scalar.h"
#include "heddle/ir/float8.h"
#include "heddle/ir/float_bits.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/tfloat32.h"
#include "ir/interp/harness.h"
#include "ir/interp/oracle.h"
#include "ir/verify/support.h"

namespace heddle::ir::interp {
namespace {

using testing::HasSubstr;

// The least power of two that is no smaller, or the greatest that is no larger; the nearest end
// where there is none.
uint64_t power_for(Exact value, bool up) {
  if (is_nan(value)) return 0xFF;
  const Exact magnitude = value < 0 ? -value : value;
  uint64_t result = up ? 254 : 0;
  for (uint64_t i = 0; i < 255; ++i) {
    const Exact power = power_of_two(static_cast<int>(i) - 127);
    if (up && power >= magnitude) return i;
    if (!up && power <= magnitude) result = i;
  }
  return result;
}

constexpr double kE2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

// The nearest number; of two, the one whose last bit is clear.
uint8_t nearest_e2m1(double value) {
  if (std::isnan(value)) return 7;
  const double magnitude = std::fabs(value);
  int best = 0;
  for (int i = 1; i < 8; ++i) {
    const double gain = std::fabs(magnitude - kE2m1[best]) - std::fabs(magnitude - kE2m1[i]);
    if (gain > 0 || (gain == 0 && i % 2 == 0)) best = i;
  }
  if (magnitude > 6) best = 7;
  return static_cast<uint8_t>(best | (std::signbit(value) ? 8 : 0));
}

std::vector<uint64_t> sources_of(Scalar from) {
  std::vector<uint64_t> values =
      is_float(from) ? interesting_floats(from, 500, 40) : interesting_integers(from);
  if (from != Scalar::kF32 && from != Scalar::kF64) return values;
  for (const int exponent : {-149, -128, -127, -126, -1, 0, 1, 126, 127}) {
    for (const double factor : {1.0, 1 - 0x1p-24, 1 + 0x1p-23, 1.5, -1.0, -1.25}) {
      const double value = std::ldexp(factor, exponent);
      values.push_back(from == Scalar::kF32 ? bits_of_f32(static_cast<float>(value))
                                            : bits_of_f64(value));
    }
  }
  return values;
}

TEST(PowersOfTwo, AreRoundedUp) {
  for (const Scalar from :
       {Scalar::kF32, Scalar::kF64, Scalar::kF16, Scalar::kBF16, Scalar::kI32, Scalar::kU64,
        Scalar::kI64, Scalar::kI8, Scalar::kE4M3, Scalar::kBool}) {
    const std::vector<uint64_t> values =
        from == Scalar::kBool ? std::vector<uint64_t>{0, 1} : sources_of(from);
    const std::vector<uint64_t> got = evaluate(Opcode::kConvert, {from}, Scalar::kE8M0, {values});
    for (size_t i = 0; i < values.size(); ++i) {
      const Exact value = value_of(from, values[i]);
      const uint64_t expected = power_for(value, true);
      ASSERT_EQ(got[i], expected) << info(from).name << " " << text_of(from, values[i]);
      const auto folded =
          fold_scalar(Opcode::kConvert, from, Scalar::kE8M0, absl::MakeConstSpan(&values[i], 1));
      if (is_nan(value)) continue;  // whose bits are the device's
      ASSERT_EQ(folded, expected) << info(from).name << " " << text_of(from, values[i]);
    }
  }
}

TEST(PowersOfTwo, AreExactInWiderTypes) {
  std::vector<uint64_t> bytes(256);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = i;
  for (const Scalar to : {Scalar::kF32, Scalar::kF64, Scalar::kBF16, Scalar::kF16, Scalar::kI32,
                          Scalar::kE4M3, Scalar::kBool}) {
    const std::vector<uint64_t> got = evaluate(Opcode::kConvert, {Scalar::kE8M0}, to, {bytes});
    for (int i = 0; i < 256; ++i) {
      const auto at = static_cast<size_t>(i);
      const Exact value = i == 255 ? std::nan("") : power_of_two(i - 127);
      const uint64_t byte = bytes[at];
      const auto folded =
          fold_scalar(Opcode::kConvert, Scalar::kE8M0, to, absl::MakeConstSpan(&byte, 1));
      if (to == Scalar::kBool) {
        EXPECT_EQ(got[at], 1u) << i;
      } else if (to == Scalar::kI32) {
        const bool fits = i >= 127 && i < 127 + 31;
        EXPECT_EQ(got[at], i == 255 ? 0 : fits ? 1u << (i - 127) : i < 127 ? 0 : 0x7FFFFFFFu) << i;
      } else {
        EXPECT_TRUE(is_value(to, got[at], round_to(to, value))) << info(to).name << " " << i;
        if (i == 255) continue;
      }
      EXPECT_EQ(folded, got[at]) << info(to).name << " " << i;
    }
  }
}

TEST(PowersOfTwo, AreRoundedTowardZeroOnRequest) {
  const std::vector<uint64_t> values = sources_of(Scalar::kF32);
  for (const Rounding rounding : {Rounding::kUp, Rounding::kZero}) {
    KernelTest t;
    const auto count = static_cast<int64_t>(values.size());
    const ValueId x = t.tensor("x", Scalar::kF32, {count});
    const ValueId y = t.tensor("y", Scalar::kE8M0, {count});
    const ValueId i = t.axis(Opcode::kBlockIdx, 0);
    t.store(y, i,
            t.op(Opcode::kConvertRounded, {t.load(x, i)}, Type::of(Scalar::kE8M0),
                 {{AttrKey::kRounding, static_cast<int64_t>(rounding)}}));
    std::vector<float> floats;
    for (const uint64_t bits : values) floats.push_back(f32_of_bits(bits));
    t.fill<float>(0, floats);
    ASSERT_OK(t.run({.grid = {static_cast<int>(count), 1, 1}, .block = {1, 1, 1}}));
    const std::vector<uint8_t> got = t.read<uint8_t>(1);
    for (size_t k = 0; k < values.size(); ++k) {
      const Exact value = value_of(Scalar::kF32, values[k]);
      EXPECT_EQ(got[k], power_for(value, rounding == Rounding::kUp)) << floats[k];
      EXPECT_EQ(got[k], double_to_e8m0(static_cast<double>(floats[k]), rounding == Rounding::kZero))
          << floats[k];
    }
  }
}

// To nearest, ties away from zero, in the upper 19 bits of an f32.
uint64_t nearest_tf32(Exact value) {
  const Exact magnitude = value < 0 ? -value : value;
  int exponent = -126;
  while (exponent < 128 && power_of_two(exponent + 1) <= magnitude) ++exponent;
  const Exact unit = power_of_two(exponent - 10);
  const auto steps = static_cast<uint64_t>(exponent == 128 ? 0 : magnitude / unit + Exact(0.5));
  const Exact rounded = Exact(steps) * unit;
  const bool overflows = exponent == 128 || rounded >= power_of_two(128);
  const auto sign = static_cast<uint64_t>(value < 0) << 31;
  return sign | (overflows ? 0x7F800000u : bits_of_f32(static_cast<float>(rounded)));
}

TEST(Tfloat32, IsRoundedToNearestWithTiesAwayFromZero) {
  for (const Scalar from : {Scalar::kF32, Scalar::kF64, Scalar::kF16, Scalar::kBF16, Scalar::kI32,
                            Scalar::kU32, Scalar::kI64, Scalar::kU64, Scalar::kU8, Scalar::kE5M2}) {
    std::vector<uint64_t> values = sources_of(from);
    for (uint64_t i = 0; from == Scalar::kF32 && i < 4000; ++i) {
      values.push_back((0x3F800000 + (i << 10)) | (i & 1) << 31);  // ties, and numbers beside them
    }
    const std::vector<uint64_t> got = evaluate(Opcode::kConvert, {from}, Scalar::kTF32, {values});
    for (size_t i = 0; i < values.size(); ++i) {
      const Exact value = value_of(from, values[i]);
      if (is_nan(value) || value == 0) continue;
      const uint64_t expected = nearest_tf32(value);
      ASSERT_EQ(got[i], expected) << info(from).name << " " << text_of(from, values[i]);
      EXPECT_EQ(
          fold_scalar(Opcode::kConvert, from, Scalar::kTF32, absl::MakeConstSpan(&values[i], 1)),
          expected)
          << info(from).name << " " << text_of(from, values[i]);
      if (from == Scalar::kF32 || from == Scalar::kF64) {
        EXPECT_EQ(double_to_tf32(float_value(from, values[i])), expected);
      }
    }
  }
}

TEST(Tfloat32, HasItsNumberInTheUpperBits) {
  std::vector<uint64_t> values = interesting_floats(Scalar::kF32, 500, 41);
  for (const Scalar to : {Scalar::kF32, Scalar::kF64, Scalar::kI32, Scalar::kF16, Scalar::kBool}) {
    const std::vector<uint64_t> got = evaluate(Opcode::kConvert, {Scalar::kTF32}, to, {values});
    for (uint64_t& bits : values) bits &= 0xFFFFE000;
    const std::vector<uint64_t> wanted = evaluate(Opcode::kConvert, {Scalar::kF32}, to, {values});
    for (size_t i = 0; i < values.size(); ++i) {
      if (is_nan(value_of(Scalar::kF32, values[i]))) continue;
      EXPECT_EQ(got[i], wanted[i]) << info(to).name << " " << text_of(Scalar::kF32, values[i]);
    }
    for (uint64_t& bits : values) bits |= 0x1234;
  }
  EXPECT_TRUE(std::isnan(tf32_to_float(double_to_tf32(std::nan("")))));
  EXPECT_EQ(double_to_tf32(-INFINITY), 0xFF800000u);
  EXPECT_EQ(double_to_tf32(-0.0), 0x80000000u);
}

TEST(PowersOfTwo, DoNotSkipATypeThatLacksThem) {
  const auto steps = [](absl::string_view middle) {
    StatusOr<Kernel> kernel =
        parse(absl::StrCat(
                  "kernel @k(%x: view<e8m0, global, 1> [?] strides [1], %y: view<f32, global, 1> "
                  "[?] strides [1], %n: i32) block(32, 1, 1) target(sm_100a) {\n"
                  "%a = load %x, %n : e8m0\n%b = convert %a : ",
                  middle, "\n%c = convert %b : f32\nstore %y, %c, %n\n}"),
              "k.ir");
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    EXPECT_TRUE(run_pipeline(*kernel, "fold,dce", {.verify_each = true}).ok());
    int conversions = 0;
    kernel->walk([&](OpId id) { conversions += kernel->op(id).opcode == Opcode::kConvert; });
    return conversions;
  };
  EXPECT_EQ(steps("f16"), 2);
  EXPECT_EQ(steps("bf16"), 1);
  EXPECT_EQ(steps("f64"), 1);
}

TEST(PairsOfE2m1, RoundToTheNearestOfSixteen) {
  for (int i = 0; i < 16; ++i) {
    const double value = i < 8 ? kE2m1[i] : -kE2m1[i - 8];
    EXPECT_EQ(e2m1_to_float(static_cast<uint8_t>(i)), value) << i;
  }
  std::vector<float> values = {INFINITY, -INFINITY, NAN, -0.0f, 1e30f, -1e-30f};
  for (int i = -60; i <= 60; ++i) {
    for (const float step : {-0x1p-22f, 0.0f, 0x1p-22f}) {
      values.push_back(static_cast<float>(i) / 8 * (1 + step));
    }
  }
  if (values.size() % 4 != 0) values.resize(values.size() / 4 * 4);
  KernelTest t;
  const auto count = static_cast<int64_t>(values.size());
  const ValueId x = t.tensor("x", Scalar::kF32, {count});
  const ValueId y = t.tensor("y", Scalar::kE2M1X2, {count / 2});
  const ValueId z = t.tensor("z", Scalar::kF16, {count});
  const ValueId block = t.axis(Opcode::kBlockIdx, 0);
  const ValueId four = t.op(Opcode::kMul, {block, t.i32(4)});
  const ValueId v = t.load(x, four, Type::vector(Scalar::kF32, 4));
  const ValueId pairs = t.op(Opcode::kE2m1Pack, {v}, Type::vector(Scalar::kE2M1X2, 2));
  t.store(y, t.op(Opcode::kMul, {block, t.i32(2)}), pairs);
  t.store(z, four, t.op(Opcode::kE2m1Unpack, {pairs}, Type::vector(Scalar::kF16, 4)));
  t.fill<float>(0, values);
  ASSERT_OK(t.run({.grid = {static_cast<int>(count / 4), 1, 1}, .block = {1, 1, 1}}));
  const std::vector<uint8_t> codes = t.read<uint8_t>(1);
  const std::vector<uint16_t> halves = t.read<uint16_t>(2);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto expected = nearest_e2m1(static_cast<double>(values[i]));
    EXPECT_EQ(codes[i / 2] >> (4 * (i % 2)) & 0xF, expected) << values[i];
    EXPECT_EQ(double_to_e2m1(static_cast<double>(values[i])), expected) << values[i];
    EXPECT_EQ(halves[i], double_to_f16(static_cast<double>(e2m1_to_float(expected)))) << values[i];
  }
}

TEST(PairsOfE2m1, AreTestedWhereTheyAreTakenApart) {
  KernelTest t;
  const ValueId z = t.tensor("z", Scalar::kF16, {2});
  const ValueId pair = t.op(Opcode::kUndef, {}, Type::of(Scalar::kE2M1X2));
  t.line(9);
  const ValueId both = t.op(Opcode::kE2m1Unpack, {pair}, Type::vector(Scalar::kF16, 2));
  t.store(z, t.i32(0), both);
  const std::string message = t.failure({.block = {1, 1, 1}});
  EXPECT_THAT(message, HasSubstr("this conversion of pairs reads a value that nobody has written"));
  EXPECT_THAT(message, HasSubstr("kernel.cc:9"));
}

TEST(NarrowFloats, NeedATargetThatHasThem) {
  const auto mistakes = [](absl::string_view target, absl::string_view body) {
    return mistakes_of(with_body(body, absl::StrCat("block(32, 1, 1) target(", target, ")")));
  };
  constexpr char kPower[] = "%a = convert %f : e8m0";
  constexpr char kRounded[] = "%a = convert.rounded %f {rounding = zero} : e8m0";
  constexpr char kPair[] =
      "%v = load %x, %n : vec<f32, 2>\n%a = e2m1.pack %v : e2m1x2\n"
      "%b = e2m1.unpack %a : vec<f16, 2>";
  for (const char* target : {"sm_100a", "sm_103a", "sm_110a", "sm_120a"}) {
    for (const char* body : {kPower, kRounded, kPair}) EXPECT_EQ(mistakes(target, body), "");
  }
  constexpr char kFirst[] = "; sm_100a is the first that has; compile the kernel for sm_100a";
  for (const char* target : {"sm_90a", "sm_100", "sm_120"}) {
    EXPECT_EQ(mistakes(target, kPower),
              absl::StrCat("2: ", target, " has no 'convert' for e8m0", kFirst));
    EXPECT_EQ(mistakes(target, kRounded),
              absl::StrCat("2: ", target, " has no 'convert.rounded' for e8m0", kFirst));
    EXPECT_THAT(mistakes(target, kPair),
                HasSubstr(absl::StrCat("3: ", target, " has no 'e2m1.pack'")));
  }
}

TEST(NarrowFloats, AreRefusedWhereTheyDoNotFit) {
  const auto mistakes = [](absl::string_view body) {
    return mistakes_of(with_body(body, "block(32, 1, 1) target(sm_100a)"));
  };
  EXPECT_EQ(mistakes("%a = convert %f : e2m1x2"),
            "2: no GPU has 'convert' for e2m1x2; use e2m1.pack and e2m1.unpack");
  EXPECT_EQ(mistakes("%a = convert.rounded %f {rounding = nearest} : e8m0"),
            "2: 'convert.rounded' to e8m0 has no rounding 'nearest'; use up or zero");
  EXPECT_EQ(
      mistakes("%v = load %x, %n : vec<f32, 4>\n%a = e2m1.pack %v : e2m1x2"),
      "3: 'e2m1.pack' is between 2n f32 and n e2m1x2, both in a vector or both in a fragment, "
      "not between vec<f32, 4> and e2m1x2; give it vectors of f32 and half as many e2m1x2");
  EXPECT_THAT(mistakes("%a = const 0x12 : e2m1x2\n%b = add %a, %a : e2m1x2"),
              HasSubstr("is e2m1x2, but must be a number"));
}

}  // namespace
}  // namespace heddle::ir::interp
