// Floating-point operations on boundary and random values, against exact arithmetic.
#include <cmath>

#include "heddle/ir/interp/scalar/elementwise.h"
#include "heddle/ir/interp/scalar/half.h"
#include "ir/interp/harness.h"
#include "ir/interp/oracle.h"

namespace heddle::ir::interp {
namespace {

constexpr Scalar kFloats[] = {Scalar::kF16, Scalar::kBF16, Scalar::kF32, Scalar::kF64};

class InterpFloat : public ::testing::TestWithParam<Scalar> {
 protected:
  // Compares an op with the exact result rounded once.
  void expect_rounded(Opcode opcode, const Columns& columns,
                      Exact (*meaning)(const std::vector<Exact>&)) {
    const Scalar s = GetParam();
    const std::vector<Scalar> types(columns.size(), s);
    const std::vector<uint64_t> got = evaluate(opcode, types, s, columns);
    int failures = 0;
    for (size_t i = 0; i < got.size() && failures < 10; ++i) {
      std::vector<Exact> operands;
      std::string text;
      for (const std::vector<uint64_t>& column : columns) {
        operands.push_back(value_of(s, column[i]));
        text += text_of(s, column[i]) + " ";
      }
      const bool right = is_value(s, got[i], round_to(s, meaning(operands)));
      EXPECT_TRUE(right) << info(opcode).mnemonic << " of " << text << "gives "
                         << text_of(s, got[i]);
      failures += right ? 0 : 1;
    }
  }
};

TEST_P(InterpFloat, ArithmeticIsCorrectlyRounded) {
  const Columns columns = pairs(interesting_floats(GetParam(), 40, 14));
  expect_rounded(Opcode::kAdd, columns, [](const std::vector<Exact>& x) { return x[0] + x[1]; });
  expect_rounded(Opcode::kSub, columns, [](const std::vector<Exact>& x) { return x[0] - x[1]; });
  expect_rounded(Opcode::kMul, columns, [](const std::vector<Exact>& x) { return x[0] * x[1]; });
  expect_rounded(Opcode::kDiv, columns, [](const std::vector<Exact>& x) { return x[0] / x[1]; });
}

TEST_P(InterpFloat, RcpIsCorrectlyRounded) {
  expect_rounded(Opcode::kRcp, {interesting_floats(GetParam(), 500, 14)},
                 [](const std::vector<Exact>& x) { return 1 / x[0]; });
}

// Zeros have the sign that IEEE 754 gives them; exact sums near each other's size do not overflow
// the oracle's 113 bits because exponents stay within 14 of one's, but for the specials of f16.
TEST_P(InterpFloat, FmaRoundsOnce) {
  const std::vector<uint64_t> all = interesting_floats(GetParam(), 12, 12);
  std::vector<uint64_t> values;
  for (const uint64_t bits : all) {
    const Exact value = value_of(GetParam(), bits);
    const Exact magnitude = value < 0 ? -value : value;
    // A sum of numbers too far apart is not exact in the oracle.
    const bool finite = value - value == 0;
    if (!finite || value == 0 || (magnitude > power_of_two(-25) && magnitude < power_of_two(25))) {
      values.push_back(bits);
    }
  }
  expect_rounded(Opcode::kFma, triples(values),
                 [](const std::vector<Exact>& x) { return x[0] * x[1] + x[2]; });
}

// Products that lie half-way between two results, and a term too small to see but for the tie.
TEST_P(InterpFloat, FmaBreaksTiesByTheSmallestTerm) {
  const Scalar s = GetParam();
  const int fraction_bits = s == Scalar::kF16    ? 10
                            : s == Scalar::kBF16 ? 7
                            : s == Scalar::kF32  ? 23
                                                 : 52;
  const uint64_t one = uint64_t{1} << fraction_bits;
  const auto encode = [&](uint64_t significand) {
    const uint64_t bias = (uint64_t{1} << (info(s).bits - fraction_bits - 2)) - 1;
    return (bias << fraction_bits) + (significand - one);
  };
  const uint64_t sign = uint64_t{1} << (info(s).bits - 1);
  Columns columns(3);
  for (uint64_t k = 0; k < one / 4 && columns[0].size() < 600; ++k) {
    const uint64_t a = one + one / 2;
    const uint64_t b = one + 2 * k + 1;  // a * b ends in a half, below 2 while k is small
    for (const uint64_t tiny : {uint64_t{1}, uint64_t{1} | sign, uint64_t{3}}) {
      columns[0].push_back(encode(a));
      columns[1].push_back(encode(b));
      // The smallest subnormal of f16; 2^-100 or so elsewhere, which the oracle still sees.
      const uint64_t small = s == Scalar::kF16 ? 0
                             : s == Scalar::kBF16 || s == Scalar::kF32
                                 ? uint64_t{27} << fraction_bits
                                 : uint64_t{1023 - 100} << fraction_bits;
      columns[2].push_back(tiny + small);
    }
  }
  expect_rounded(Opcode::kFma, columns,
                 [](const std::vector<Exact>& x) { return x[0] * x[1] + x[2]; });
}

TEST_P(InterpFloat, MinAndMaxPreferNumbersAndOrderZeros) {
  const Scalar s = GetParam();
  const Columns columns = pairs(interesting_floats(s, 10, 10));
  const std::vector<uint64_t> low = evaluate(Opcode::kMin, {s, s}, s, columns);
  const std::vector<uint64_t> high = evaluate(Opcode::kMax, {s, s}, s, columns);
  const uint64_t sign = uint64_t{1} << (info(s).bits - 1);
  for (size_t i = 0; i < low.size(); ++i) {
    const uint64_t a = columns[0][i];
    const uint64_t b = columns[1][i];
    const Exact x = value_of(s, a);
    const Exact y = value_of(s, b);
    if (is_nan(x) && is_nan(y)) {
      EXPECT_TRUE(is_nan(s, low[i]) && is_nan(s, high[i]));
      continue;
    }
    const bool a_is_low = is_nan(y) || x < y || (x == y && (a & sign) != 0);
    const bool a_is_high = is_nan(y) || x > y || (x == y && (a & sign) == 0);
    EXPECT_EQ(low[i], a_is_low && !is_nan(x) ? a : b) << text_of(s, a) << " " << text_of(s, b);
    EXPECT_EQ(high[i], a_is_high && !is_nan(x) ? a : b) << text_of(s, a) << " " << text_of(s, b);
  }
}

TEST_P(InterpFloat, NegAndAbsTouchTheSignAlone) {
  const Scalar s = GetParam();
  const std::vector<uint64_t> values = interesting_floats(s, 20, 10);
  const std::vector<uint64_t> neg = evaluate(Opcode::kNeg, {s}, s, {values});
  const std::vector<uint64_t> abs = evaluate(Opcode::kAbs, {s}, s, {values});
  const uint64_t sign = uint64_t{1} << (info(s).bits - 1);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(neg[i], values[i] ^ sign);
    EXPECT_EQ(abs[i], values[i] & ~sign);
  }
}

TEST_P(InterpFloat, ComparisonsWithNanAreFalseButNe) {
  const Scalar s = GetParam();
  const Columns columns = pairs(interesting_floats(s, 10, 10));
  const struct {
    Opcode opcode;
    bool (*meaning)(Exact, Exact);
  } cases[] = {
      {Opcode::kEq, [](Exact a, Exact b) { return a == b; }},
      {Opcode::kNe, [](Exact a, Exact b) { return !(a == b); }},
      {Opcode::kLt, [](Exact a, Exact b) { return a < b; }},
      {Opcode::kLe, [](Exact a, Exact b) { return a <= b; }},
      {Opcode::kGt, [](Exact a, Exact b) { return a > b; }},
      {Opcode::kGe, [](Exact a, Exact b) { return a >= b; }},
  };
  for (const auto& c : cases) {
    const std::vector<uint64_t> got = evaluate(c.opcode, {s, s}, Scalar::kBool, columns);
    for (size_t i = 0; i < got.size(); ++i) {
      const Exact a = value_of(s, columns[0][i]);
      const Exact b = value_of(s, columns[1][i]);
      EXPECT_EQ(got[i] != 0, c.meaning(a, b)) << info(c.opcode).mnemonic;
      EXPECT_LE(got[i], 1u);
    }
  }
}

// sqrt: no neighbour of the result has a square nearer to the operand's value.
TEST_P(InterpFloat, SqrtIsCorrectlyRounded) {
  const Scalar s = GetParam();
  const std::vector<uint64_t> values = interesting_floats(s, 500, 14);
  const std::vector<uint64_t> got = evaluate(Opcode::kSqrt, {s}, s, {values});
  const uint64_t sign = uint64_t{1} << (info(s).bits - 1);
  for (size_t i = 0; i < values.size(); ++i) {
    const Exact x = value_of(s, values[i]);
    if (is_nan(x) || x < 0) {
      EXPECT_TRUE(is_nan(s, got[i])) << text_of(s, values[i]);
    } else if (x == 0 || x - x != 0) {
      EXPECT_EQ(got[i], values[i]);
    } else {
      // Half a unit to either side: (r - u/2)^2 <= x <= (r + u/2)^2, exact in 113 bits.
      EXPECT_EQ(got[i] & sign, 0u);
      const Exact r = value_of(s, got[i]);
      const Exact below = (r + value_of(s, got[i] - 1)) / 2;
      const Exact above = (r + value_of(s, got[i] + 1)) / 2;
      EXPECT_LE(below * below, x) << text_of(s, values[i]);
      EXPECT_GE(above * above, x) << text_of(s, values[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, InterpFloat, ::testing::ValuesIn(kFloats), [](const auto& param) {
  return std::string(heddle::ir::info(param.param).name);
});

TEST(InterpExp2, StaysWithinItsBound) {
  std::vector<uint64_t> values = interesting_floats(Scalar::kF32, 400, 6);
  for (float x = -151; x < 129; x += 0.4375f) values.push_back(bits_of_f32(x));
  const std::vector<uint64_t> got = evaluate(Opcode::kExp2, {Scalar::kF32}, Scalar::kF32, {values});
  for (size_t i = 0; i < values.size(); ++i) {
    const double expected = std::exp2(double{f32_of_bits(values[i])});
    const float result = f32_of_bits(got[i]);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(result));
    } else if (expected > FLT_MAX) {
      EXPECT_EQ(result, INFINITY);
    } else {
      // Subnormals are kept: their unit is 2^-149.
      const double unit = std::max(std::ldexp(1.0, std::ilogb(std::max(expected, 1e-300)) - 23),
                                   std::ldexp(1.0, -149));
      EXPECT_LE(std::fabs(result - expected), 2 * unit) << f32_of_bits(values[i]);
    }
  }
  EXPECT_EQ(
      f32_of_bits(evaluate(Opcode::kExp2, {Scalar::kF32}, Scalar::kF32, {{bits_of_f32(-130)}})[0]),
      0x1p-130f);
}

// f16 and bf16 go through f32, so all their exponentials can be compared with a rounded f64.
TEST(InterpExp2, HalvesAreNearlyCorrectlyRounded) {
  for (const Scalar s : {Scalar::kF16, Scalar::kBF16}) {
    std::vector<uint64_t> values(65536);
    for (size_t i = 0; i < values.size(); ++i) values[i] = i;
    const std::vector<uint64_t> got = evaluate(Opcode::kExp2, {s}, s, {values});
    int off_by_one = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double x = static_cast<double>(value_of(s, values[i]));
      const Exact expected = std::isnan(x) ? Exact(NAN) : round_to(s, Exact(std::exp2(x)));
      if (is_value(s, got[i], expected)) continue;
      ++off_by_one;
      EXPECT_TRUE(is_value(s, got[i] + 1, expected) || is_value(s, got[i] - 1, expected))
          << text_of(s, values[i]) << " " << text_of(s, got[i]);
    }
    EXPECT_LT(off_by_one, 20);
  }
}

// The processor's fma and the portable one give the same bits, and NaNs in the same places.
TEST(InterpFma, PortableAndNativeAgree) {
  for (const Scalar s : {Scalar::kF32, Scalar::kF64}) {
    Columns columns = triples(interesting_floats(s, 6, 100));
    // Half-way products with a tiny term: 1.5 * (1 + 3 units) +- 2^-100.
    const int fraction_bits = s == Scalar::kF32 ? 23 : 52;
    const uint64_t bias = s == Scalar::kF32 ? 127 : 1023;
    const uint64_t sign = uint64_t{1} << (info(s).bits - 1);
    for (uint64_t k = 0; k < 64; ++k) {
      columns[0].push_back((bias << fraction_bits) + (uint64_t{1} << (fraction_bits - 1)));
      columns[1].push_back((bias << fraction_bits) + k);
      columns[2].push_back((bias - 100) << fraction_bits | (k % 4 < 2 ? sign : 0));
    }
    const size_t bytes = s == Scalar::kF32 ? 4 : 8;
    alignas(64) std::byte arena[4 * 8 * kLanes];
    Warp warp;
    warp.registers = arena;
    Instr instr;
    instr.a = 0;
    instr.b = 8 * kLanes;
    instr.c = 16 * kLanes;
    instr.dst = 24 * kLanes;
    for (size_t base = 0; base + kLanes <= columns[0].size(); base += kLanes) {
      for (size_t k = 0; k < 3; ++k) {
        for (int lane = 0; lane < kLanes; ++lane) {
          std::memcpy(arena + k * 8 * kLanes + lane * bytes, &columns[k][base + lane], bytes);
        }
      }
      std::vector<uint64_t> results[2];
      for (const bool native : {false, true}) {
        (native ? fma_handler(s) : portable_fma_handler(s))(&instr, warp);
        for (int lane = 0; lane < kLanes; ++lane) {
          uint64_t bits = 0;
          std::memcpy(&bits, arena + instr.dst + lane * bytes, bytes);
          results[native ? 1 : 0].push_back(is_nan(s, bits) ? ~uint64_t{0} : bits);
        }
      }
      ASSERT_EQ(results[0], results[1]);
    }
  }
}

TEST(InterpElementwise, VectorsAndFragmentsAreComputedByElement) {
  KernelTest t;
  const Type tile = Type::fragment(Scalar::kF32, 6);
  const Type quad = Type::vector(Scalar::kI32, 4);
  const ValueId out = t.tensor("out", Scalar::kF32, {32, 6});
  const ValueId shifted = t.tensor("shifted", Scalar::kI32, {32, 4});
  const ValueId i = t.thread();
  const ValueId x = t.op(Opcode::kConvert, {i}, kF32Type);
  const ValueId a = t.op(Opcode::kPack, {x, t.f32(1), t.f32(2), x, t.f32(4), t.f32(5)}, tile);
  const ValueId sum = t.op(Opcode::kAdd, {a, t.op(Opcode::kSplat, {x}, tile)});
  const ValueId half =
      t.op(Opcode::kSlice, {sum}, Type::vector(Scalar::kF32, 2), {{AttrKey::kIndex, 4}});
  const ValueId row = t.op(Opcode::kMul, {i, t.i32(6)});
  for (int k = 0; k < 4; ++k) {
    t.store(out, t.op(Opcode::kAdd, {row, t.i32(k)}),
            t.op(Opcode::kExtract, {sum}, kF32Type, {{AttrKey::kIndex, k}}));
  }
  t.store(out, t.op(Opcode::kAdd, {row, t.i32(4)}), half);
  // One count shifts all elements.
  const ValueId counts = t.op(Opcode::kPack, {i, t.i32(1), t.i32(-1), t.i32(7)}, quad);
  t.store(shifted, t.op(Opcode::kMul, {i, t.i32(4)}),
          t.op(Opcode::kShl, {counts, t.op(Opcode::kConvert, {i}, kU32Type)}));
  ASSERT_OK(t.run({}));
  const std::vector<float> got = t.read<float>(0);
  const std::vector<uint32_t> bits = t.read<uint32_t>(1);
  for (int lane = 0; lane < 32; ++lane) {
    const float l = static_cast<float>(lane);
    const float expected[] = {l + l, l + 1, l + 2, l + l, l + 4, l + 5};
    for (int k = 0; k < 6; ++k) EXPECT_EQ(got[lane * 6 + k], expected[k]);
    const uint32_t unshifted[] = {static_cast<uint32_t>(lane), 1, ~0u, 7};
    for (int k = 0; k < 4; ++k) EXPECT_EQ(bits[lane * 4 + k], unshifted[k] << lane);
  }
}

}  // namespace
}  // namespace heddle::ir::interp
