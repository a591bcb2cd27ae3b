// Bit operations and roundings: the folder and the interpreter against accounts of their own, made
// bit by bit.
#include <cmath>

#include "gtest/gtest.h"
#include "heddle/ir/analysis/fold_scalar.h"
#include "ir/interp/harness.h"
#include "ir/interp/oracle.h"

namespace heddle::ir::interp {
namespace {

int width(Scalar s) { return info(s).bits; }
uint64_t bit(uint64_t bits, int i) { return bits >> i & 1; }
uint64_t byte_of(uint64_t bits, int i) { return bits >> (8 * i) & 0xFF; }

using Reference = uint64_t (*)(Scalar, const std::vector<uint64_t>&);

// Both give what the reference gives, for every row of the columns.
void expect_all(Opcode opcode, std::vector<Scalar> types, const Columns& columns,
                Reference reference) {
  const Scalar s = types[0];
  const std::vector<uint64_t> got = evaluate(opcode, types, s, columns);
  for (size_t row = 0; row < got.size(); ++row) {
    std::vector<uint64_t> operands;
    for (const auto& column : columns) operands.push_back(column[row]);
    const uint64_t expected = reference(s, operands);
    const std::string what =
        absl::StrCat(info(opcode).mnemonic, " of ", info(s).name, " ", absl::Hex(operands[0]));
    ASSERT_EQ(got[row], expected) << what;
    ASSERT_EQ(fold_scalar(opcode, s, s, operands), expected) << what;
  }
}

// Integers, and shift counts or selectors beside each pair of them.
Columns with_words(const Columns& of_pairs) {
  Columns columns = of_pairs;
  columns.emplace_back();
  uint64_t word = 0x9E3779B9;
  for (size_t i = 0; i < of_pairs[0].size(); ++i) {
    columns.back().push_back(i < 70 ? i : word);
    word = (word * 1664525 + 1013904223) & 0xFFFFFFFF;
  }
  return columns;
}

constexpr Scalar kIntegers[] = {Scalar::kI32, Scalar::kU32, Scalar::kI64, Scalar::kU64};

TEST(BitOps, CountsAndReversal) {
  for (const Scalar s : kIntegers) {
    const Columns values = {interesting_integers(s)};
    expect_all(Opcode::kPopc, {s}, values, [](Scalar t, const std::vector<uint64_t>& o) {
      uint64_t count = 0;
      for (int i = 0; i < width(t); ++i) count += bit(o[0], i);
      return count;
    });
    expect_all(Opcode::kClz, {s}, values, [](Scalar t, const std::vector<uint64_t>& o) {
      uint64_t count = 0;
      while (count < static_cast<uint64_t>(width(t)) &&
             bit(o[0], width(t) - 1 - static_cast<int>(count)) == 0) {
        ++count;
      }
      return count;
    });
    expect_all(Opcode::kBrev, {s}, values, [](Scalar t, const std::vector<uint64_t>& o) {
      uint64_t reversed = 0;
      for (int i = 0; i < width(t); ++i) reversed |= bit(o[0], i) << (width(t) - 1 - i);
      return reversed;
    });
  }
}

// Schoolbook multiplication in halves.
uint64_t upper_half(uint64_t a, uint64_t b) {
  const uint64_t low = (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF);
  const uint64_t mid = (a >> 32) * (b & 0xFFFFFFFF) + (low >> 32);
  const uint64_t mid2 = (a & 0xFFFFFFFF) * (b >> 32) + (mid & 0xFFFFFFFF);
  return (a >> 32) * (b >> 32) + (mid >> 32) + (mid2 >> 32);
}

TEST(BitOps, UpperHalvesOfProducts) {
  for (const Scalar s : kIntegers) {
    expect_all(Opcode::kMulHi, {s, s}, pairs(interesting_integers(s)),
               [](Scalar t, const std::vector<uint64_t>& o) {
                 if (width(t) == 32) {
                   const int64_t product = is_signed(t) ? int64_t{static_cast<int32_t>(o[0])} *
                                                              static_cast<int32_t>(o[1])
                                                        : static_cast<int64_t>(o[0] * o[1]);
                   return static_cast<uint64_t>(product) >> 32;
                 }
                 uint64_t high = upper_half(o[0], o[1]);
                 // A negative factor a is a - 2^64 as an unsigned one.
                 if (is_signed(t) && bit(o[0], 63) != 0) high -= o[1];
                 if (is_signed(t) && bit(o[1], 63) != 0) high -= o[0];
                 return high;
               });
  }
}

TEST(BitOps, FunnelShifts) {
  for (const Scalar s : {Scalar::kI32, Scalar::kU32}) {
    const Columns columns = with_words(pairs(interesting_integers(s)));
    expect_all(Opcode::kFunnelShl, {s, s, Scalar::kU32}, columns,
               [](Scalar, const std::vector<uint64_t>& o) {
                 uint64_t result = 0;
                 for (int i = 0; i < 32; ++i) {
                   const int from = 32 + i - static_cast<int>(o[2] % 32);
                   result |= (from < 32 ? bit(o[0], from) : bit(o[1], from - 32)) << i;
                 }
                 return result;
               });
    expect_all(Opcode::kFunnelShr, {s, s, Scalar::kU32}, columns,
               [](Scalar, const std::vector<uint64_t>& o) {
                 uint64_t result = 0;
                 for (int i = 0; i < 32; ++i) {
                   const int from = i + static_cast<int>(o[2] % 32);
                   result |= (from < 32 ? bit(o[0], from) : bit(o[1], from - 32)) << i;
                 }
                 return result;
               });
  }
}

// A shift bit by bit, 32 times at most.
TEST(BitOps, ClampedFunnelShifts) {
  for (const Scalar s : {Scalar::kI32, Scalar::kU32}) {
    const Columns columns = with_words(pairs(interesting_integers(s)));
    expect_all(Opcode::kFunnelShlClamp, {s, s, Scalar::kU32}, columns,
               [](Scalar, const std::vector<uint64_t>& o) {
                 uint64_t both = o[1] << 32 | o[0];
                 for (uint64_t i = 0; i < o[2] && i < 32; ++i) both <<= 1;
                 return both >> 32;
               });
    expect_all(Opcode::kFunnelShrClamp, {s, s, Scalar::kU32}, columns,
               [](Scalar, const std::vector<uint64_t>& o) {
                 uint64_t both = o[1] << 32 | o[0];
                 for (uint64_t i = 0; i < o[2] && i < 32; ++i) both >>= 1;
                 return both & 0xFFFFFFFF;
               });
  }
}

TEST(BitOps, BytePermutations) {
  const Scalar s = Scalar::kU32;
  expect_all(Opcode::kPrmt, {s, s, s}, with_words(pairs(interesting_integers(s))),
             [](Scalar, const std::vector<uint64_t>& o) {
               uint64_t result = 0;
               for (int i = 0; i < 4; ++i) {
                 const int nibble = static_cast<int>(o[2] >> (4 * i) & 0xF);
                 uint64_t byte = byte_of(nibble % 8 < 4 ? o[0] : o[1], nibble % 4);
                 if (nibble >= 8) byte = byte >= 128 ? 255 : 0;
                 result += byte << (8 * i);
               }
               return result;
             });
}

TEST(BitOps, DotProductsOfBytes) {
  for (const Scalar s : {Scalar::kI32, Scalar::kU32}) {
    expect_all(Opcode::kDp4a, {s, s, s}, with_words(pairs(interesting_integers(s))),
               [](Scalar t, const std::vector<uint64_t>& o) {
                 int64_t sum = static_cast<int64_t>(o[2]);
                 for (int i = 0; i < 4; ++i) {
                   int64_t a = static_cast<int64_t>(byte_of(o[0], i));
                   int64_t b = static_cast<int64_t>(byte_of(o[1], i));
                   if (is_signed(t) && a >= 128) a -= 256;
                   if (is_signed(t) && b >= 128) b -= 256;
                   sum += a * b;
                 }
                 return static_cast<uint64_t>(sum) & 0xFFFFFFFF;
               });
  }
}

// A sum of a half's bits' products with a byte.
uint64_t dot_of_halves(Scalar t, const std::vector<uint64_t>& o, int first_byte) {
  uint64_t sum = o[2];
  for (int i = 0; i < 2; ++i) {
    uint64_t factor = byte_of(o[1], first_byte + i);
    if (is_signed(t) && factor >= 128) factor -= 256;
    for (int n = 0; n < 16; ++n) {
      const bool counts_down = is_signed(t) && n == 15;
      if (bit(o[0], 16 * i + n) != 0) sum += counts_down ? 0 - (factor << n) : factor << n;
    }
  }
  return sum & 0xFFFFFFFF;
}

TEST(BitOps, DotProductsOfHalves) {
  for (const Scalar s : {Scalar::kI32, Scalar::kU32}) {
    const Columns columns = with_words(pairs(interesting_integers(s)));
    expect_all(Opcode::kDp2aLo, {s, s, s}, columns,
               [](Scalar t, const std::vector<uint64_t>& o) { return dot_of_halves(t, o, 0); });
    expect_all(Opcode::kDp2aHi, {s, s, s}, columns,
               [](Scalar t, const std::vector<uint64_t>& o) { return dot_of_halves(t, o, 2); });
  }
}

// The neighbours of a number among the integers, found by the host's 64-bit integers where they
// reach; floats beyond 2^62 are integers.
TEST(BitOps, Roundings) {
  struct Case {
    Opcode opcode;
    double (*pick)(double below, double above, double value);
  };
  const Case cases[] = {
      {Opcode::kFloor, [](double below, double, double) { return below; }},
      {Opcode::kCeil, [](double, double above, double) { return above; }},
      {Opcode::kTrunc, [](double below, double above, double v) { return v < 0 ? above : below; }},
      {Opcode::kRint,
       [](double below, double above, double v) {
         const double down = v - below, up = above - v;
         if (down != up) return down < up ? below : above;
         return static_cast<int64_t>(below) % 2 == 0 ? below : above;
       }},
  };
  for (const Scalar s : {Scalar::kF16, Scalar::kBF16, Scalar::kF32, Scalar::kF64}) {
    const std::vector<uint64_t> values = interesting_floats(s, 2000, 30);
    for (const Case& c : cases) {
      const std::vector<uint64_t> got = evaluate(c.opcode, {s}, s, {values});
      for (size_t i = 0; i < values.size(); ++i) {
        const auto value = static_cast<double>(value_of(s, values[i]));
        const std::string what =
            absl::StrCat(info(c.opcode).mnemonic, " of ", text_of(s, values[i]));
        if (std::isnan(value)) {
          EXPECT_TRUE(is_nan(s, got[i])) << what;
          EXPECT_EQ(fold_scalar(c.opcode, s, s, {values[i]}), std::nullopt) << what;
          continue;
        }
        double expected = value;
        if (std::abs(value) < 0x1p62) {
          const auto truncated = static_cast<double>(static_cast<int64_t>(value));
          const double below = truncated > value ? truncated - 1 : truncated;
          const double above = truncated < value ? truncated + 1 : truncated;
          expected = std::copysign(below == above ? value : c.pick(below, above, value), value);
        }
        EXPECT_TRUE(is_value(s, got[i], expected)) << what;
        EXPECT_EQ(fold_scalar(c.opcode, s, s, {values[i]}), got[i]) << what;
      }
    }
  }
}

// Within the bounds that ops.def states, from where the host is far more precise.
TEST(BitOps, ApproximateFunctions) {
  struct Case {
    Opcode opcode;
    double (*exact)(double);
    double low, high;
    double relative, absolute;  // either will do
  };
  const Case cases[] = {
      {Opcode::kRcpApprox, [](double x) { return 1 / x; }, 1e-30, 1e30, 0x1p-23, 0},
      {Opcode::kRsqrt, [](double x) { return 1 / std::sqrt(x); }, 1e-30, 1e30, 0x1p-22, 0},
      {Opcode::kLog2, [](double x) { return std::log2(x); }, 1e-30, 1e30, 0x1p-22, 0x1p-22},
      {Opcode::kSinApprox, [](double x) { return std::sin(x); }, -3.14, 3.14, 0, 0x1p-20},
      {Opcode::kCosApprox, [](double x) { return std::cos(x); }, -3.14, 3.14, 0, 0x1p-20},
      {Opcode::kTanhApprox, [](double x) { return std::tanh(x); }, -20, 20, 0x1p-10, 0},
  };
  for (const Case& c : cases) {
    std::vector<uint64_t> values;
    for (int i = 0; i < 1000; ++i) {
      const double t = i / 999.0;
      const bool spread = c.low > 0;
      const double x = spread ? c.low * std::pow(c.high / c.low, t) : c.low + (c.high - c.low) * t;
      values.push_back(bits_of_f32(static_cast<float>(x)));
    }
    const std::vector<uint64_t> got = evaluate(c.opcode, {Scalar::kF32}, Scalar::kF32, {values});
    for (size_t i = 0; i < values.size(); ++i) {
      const double exact = c.exact(static_cast<double>(value_of(Scalar::kF32, values[i])));
      const double error = std::abs(double{f32_of_bits(got[i])} - exact);
      EXPECT_LE(error, std::max(c.relative * std::abs(exact), c.absolute))
          << info(c.opcode).mnemonic << " at " << i;
    }
    EXPECT_EQ(fold_scalar(c.opcode, Scalar::kF32, Scalar::kF32, {values[0]}), std::nullopt);
  }
}

}  // namespace
}  // namespace heddle::ir::interp
