// The constant folder against independent accounts of the same semantics: integers through
// __int128, floats by searching for the nearest value of exact long sums.
#include "heddle/ir/analysis/fold_scalar.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "gtest/gtest.h"
#include "heddle/ir/float16.h"
#include "ir/interp/wide_integer.h"

namespace heddle::ir {
namespace {

using Bits = std::optional<uint64_t>;

Bits fold(Opcode opcode, Scalar operand, Scalar result, std::initializer_list<uint64_t> bits) {
  return fold_scalar(opcode, operand, result,
                     absl::Span<const uint64_t>(bits.begin(), bits.size()));
}
Bits fold(Opcode opcode, Scalar scalar, std::initializer_list<uint64_t> bits) {
  return fold(opcode, scalar, scalar, bits);
}

// --- Integers ---

constexpr Scalar kIntegers[] = {Scalar::kI32, Scalar::kU32, Scalar::kI64, Scalar::kU64};

Wide number(Scalar scalar, uint64_t bits) {
  switch (scalar) {
    case Scalar::kI32:
      return static_cast<int32_t>(bits);
    case Scalar::kI64:
      return static_cast<int64_t>(bits);
    default:
      return bits;
  }
}
uint64_t bits_of(Scalar scalar, Wide value) {
  const auto low = static_cast<uint64_t>(value);
  return info(scalar).bits == 32 ? low & 0xFFFFFFFF : low;
}
Wide smallest(Scalar scalar) {
  return is_signed(scalar) ? -(Wide{1} << (info(scalar).bits - 1)) : 0;
}

// What ops.def says of integers, in numbers; nullopt where it says "unspecified".
std::optional<Wide> integer_result(Opcode opcode, Scalar scalar, Wide a, Wide b, Wide c) {
  switch (opcode) {
    case Opcode::kAdd:
      return a + b;
    case Opcode::kSub:
      return a - b;
    case Opcode::kMul:
      return multiply_add(a, b, 0);
    case Opcode::kFma:
      return multiply_add(a, b, c);
    case Opcode::kNeg:
      return -a;
    case Opcode::kAbs:
      return a < 0 ? -a : a;
    case Opcode::kMin:
      return a < b ? a : b;
    case Opcode::kMax:
      return a < b ? b : a;
    case Opcode::kDiv:
    case Opcode::kRem:
      if (b == 0 || (is_signed(scalar) && b == -1 && a == smallest(scalar))) return std::nullopt;
      return opcode == Opcode::kDiv ? a / b : a % b;
    case Opcode::kAnd:
      return a & b;
    case Opcode::kOr:
      return a | b;
    case Opcode::kXor:
      return a ^ b;
    case Opcode::kNot:
      return ~a;
    default:
      ADD_FAILURE() << "no account of " << info(opcode).mnemonic;
      return std::nullopt;
  }
}

class Numbers {
 public:
  explicit Numbers(uint64_t seed) : random_(seed) {}
  // Numbers near the edges of types, small ones, and any.
  uint64_t integer(Scalar scalar) {
    static constexpr int64_t kEdges[] = {0, 1, -1, 2, -2, 3, 7, 31, 32, 33, 63, 64, 255, 65536};
    const uint64_t any = random_();
    uint64_t value = any;
    switch (random_() % 4) {
      case 0:
        value = static_cast<uint64_t>(kEdges[any % std::size(kEdges)]);
        break;
      case 1:
        value = (uint64_t{1} << (any % 64)) + (any >> 60) - 8;
        break;
      case 2:
        value = any % 100;
        break;
      default:
        break;
    }
    return bits_of(scalar, value);
  }
  uint64_t any() { return random_(); }

 private:
  std::mt19937_64 random_;
};

TEST(FoldScalar, IntegersByExactArithmetic) {
  Numbers numbers(1);
  constexpr Opcode kOps[] = {Opcode::kAdd, Opcode::kSub, Opcode::kMul, Opcode::kFma, Opcode::kNeg,
                             Opcode::kAbs, Opcode::kMin, Opcode::kMax, Opcode::kDiv, Opcode::kRem,
                             Opcode::kAnd, Opcode::kOr,  Opcode::kXor, Opcode::kNot};
  for (const Scalar scalar : kIntegers) {
    for (const Opcode opcode : kOps) {
      for (int i = 0; i < 3000; ++i) {
        const uint64_t a = numbers.integer(scalar);
        const uint64_t b = numbers.integer(scalar);
        const uint64_t c = numbers.integer(scalar);
        const auto expected =
            integer_result(opcode, scalar, number(scalar, a), number(scalar, b), number(scalar, c));
        const Bits actual = fold(opcode, scalar, {a, b, c});
        ASSERT_EQ(actual.has_value(), expected.has_value())
            << info(opcode).mnemonic << " " << a << " " << b;
        if (expected) {
          ASSERT_EQ(*actual, bits_of(scalar, *expected))
              << info(opcode).mnemonic << " " << info(scalar).name << " " << a << " " << b;
        }
      }
    }
  }
}

TEST(FoldScalar, ShiftsClamp) {
  Numbers numbers(2);
  for (const Scalar scalar : kIntegers) {
    for (int i = 0; i < 5000; ++i) {
      const uint64_t a = numbers.integer(scalar);
      const uint64_t n = i % 3 == 0 ? numbers.any() & 0xFFFFFFFF : numbers.any() % 70;
      const int width = info(scalar).bits;
      const bool out = n >= static_cast<uint64_t>(width);
      const Wide value = number(scalar, a);
      const Wide left = out ? 0 : value << n;
      const Wide right = out ? (value < 0 ? -1 : 0) : value >> n;
      ASSERT_EQ(fold(Opcode::kShl, scalar, {a, n}), bits_of(scalar, left)) << a << " " << n;
      ASSERT_EQ(fold(Opcode::kShr, scalar, {a, n}), bits_of(scalar, right)) << a << " " << n;
    }
  }
}

TEST(FoldScalar, IntegerComparisonsAndConversions) {
  Numbers numbers(3);
  for (const Scalar scalar : kIntegers) {
    for (int i = 0; i < 5000; ++i) {
      const uint64_t a = numbers.integer(scalar);
      const uint64_t b = i % 4 == 0 ? a : numbers.integer(scalar);
      const Wide x = number(scalar, a);
      const Wide y = number(scalar, b);
      const auto compare = [&](Opcode opcode) {
        return fold(opcode, scalar, Scalar::kBool, {a, b}).value() == 1;
      };
      ASSERT_EQ(compare(Opcode::kEq), x == y);
      ASSERT_EQ(compare(Opcode::kNe), x != y);
      ASSERT_EQ(compare(Opcode::kLt), x < y);
      ASSERT_EQ(compare(Opcode::kLe), x <= y);
      ASSERT_EQ(compare(Opcode::kGt), x > y);
      ASSERT_EQ(compare(Opcode::kGe), x >= y);
      for (const Scalar to : kIntegers) {
        ASSERT_EQ(fold(Opcode::kConvert, scalar, to, {a}), bits_of(to, x));
      }
      ASSERT_EQ(fold(Opcode::kConvert, scalar, Scalar::kBool, {a}), x != 0);
    }
  }
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kBool, Scalar::kI64, {1}), 1u);
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kBool, Scalar::kF16, {1}), 0x3C00u);
  EXPECT_EQ(fold(Opcode::kNot, Scalar::kBool, {1}), 0u);
  EXPECT_EQ(fold(Opcode::kXor, Scalar::kBool, {1, 1}), 0u);
}

// --- Floats ---

uint64_t f32(float v) { return std::bit_cast<uint32_t>(v); }
uint64_t f64(double v) { return std::bit_cast<uint64_t>(v); }
constexpr float kInf = std::numeric_limits<float>::infinity();

double real(Scalar scalar, uint64_t bits) {
  if (scalar == Scalar::kF16) return f16_to_float(static_cast<uint16_t>(bits));
  if (scalar == Scalar::kBF16) return bf16_to_float(static_cast<uint16_t>(bits));
  return std::bit_cast<float>(static_cast<uint32_t>(bits));
}

// The 16-bit value nearest to an exact number, which is given as a sum of doubles; ties to even.
// Halves of neighbours' distances are compared in exact integers.
uint16_t nearest16(Scalar scalar, double product, double addend) {
  // All finite values here are multiples of 2^-300 below 2^200: 512-bit fixed point.
  struct Fixed {
    std::array<uint64_t, 9> word{};
    static Fixed of(double v) {
      Fixed f;
      int exponent = 0;
      const auto mantissa =
          static_cast<int64_t>(std::ldexp(std::frexp(std::fabs(v), &exponent), 53));
      const int shift = exponent - 53 + 300;
      if (mantissa != 0) {
        const int word_shift = shift / 64;
        const int bit_shift = shift % 64;
        f.word[static_cast<size_t>(word_shift)] = static_cast<uint64_t>(mantissa) << bit_shift;
        if (bit_shift != 0) {
          f.word[static_cast<size_t>(word_shift) + 1] =
              static_cast<uint64_t>(mantissa) >> (64 - bit_shift);
        }
      }
      if (std::signbit(v)) f = f.negated();
      return f;
    }
    Fixed plus(const Fixed& o) const {
      Fixed sum;
      uint64_t carry = 0;
      for (size_t i = 0; i < word.size(); ++i) {
        const uint64_t partial = word[i] + o.word[i];
        sum.word[i] = partial + carry;
        carry = (partial < word[i] ? 1 : 0) + (sum.word[i] < partial ? 1 : 0);
      }
      return sum;
    }
    Fixed negated() const {
      Fixed n;
      for (size_t i = 0; i < word.size(); ++i) n.word[i] = ~word[i];
      Fixed one;
      one.word[0] = 1;
      return n.plus(one);
    }
    bool negative() const { return (word.back() >> 63) != 0; }
    bool zero() const {
      for (const uint64_t w : word) {
        if (w != 0) return false;
      }
      return true;
    }
  };
  const Fixed exact = Fixed::of(product).plus(Fixed::of(addend));
  if (exact.zero()) return 0;  // the sign of zero is for the caller
  const bool negative = exact.negative();
  const Fixed magnitude = negative ? exact.negated() : exact;
  const uint16_t infinity = scalar == Scalar::kF16 ? 0x7C00 : 0x7F80;
  uint16_t low = 0;
  uint16_t high = infinity;
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    const Fixed rest = magnitude.plus(Fixed::of(real(scalar, middle)).negated());
    (rest.negative() ? high : low) = middle;
  }
  const double below = real(scalar, low);
  const double above =
      high == infinity ? below + (below - real(scalar, low - 1)) : real(scalar, high);
  // Twice the exact number against the sum of its neighbours.
  const Fixed twice = magnitude.plus(magnitude);
  const Fixed middle = Fixed::of(below).plus(Fixed::of(above));
  const Fixed rest = twice.plus(middle.negated());
  const bool up = rest.zero() ? (low & 1) != 0 : !rest.negative();
  return static_cast<uint16_t>((negative ? 0x8000 : 0) | (up ? high : low));
}

TEST(FoldScalar, SmallFloatsRoundOnce) {
  Numbers numbers(4);
  for (const Scalar scalar : {Scalar::kF16, Scalar::kBF16}) {
    const double largest = scalar == Scalar::kF16 ? 65504 : 0x1.FEp100;
    for (int i = 0; i < 30'000; ++i) {
      uint64_t operands[3];
      for (uint64_t& o : operands) {
        do {
          o = numbers.any() & 0xFFFF;
          // Exponents close to each other make for near ties and cancellation.
          if (scalar == Scalar::kBF16) o = (o & 0x8FFF) | 0x3000;
        } while (!(std::fabs(real(scalar, o)) <= largest));
      }
      const double a = real(scalar, operands[0]);
      const double b = real(scalar, operands[1]);
      const double c = real(scalar, operands[2]);
      const auto check = [&](Opcode opcode, double product, double addend) {
        const uint16_t expected = nearest16(scalar, product, addend);
        const Bits actual = fold(opcode, scalar, {operands[0], operands[1], operands[2]});
        ASSERT_TRUE(actual.has_value());
        if (expected == 0) {
          ASSERT_EQ(*actual & 0x7FFF, 0u);
        } else {
          ASSERT_EQ(*actual, expected) << info(opcode).mnemonic << " " << info(scalar).name << " "
                                       << a << " " << b << " " << c;
        }
      };
      check(Opcode::kFma, a * b, c);  // the product of 16-bit floats is exact in double
      check(Opcode::kAdd, a, b);
      check(Opcode::kSub, a, -b);
      check(Opcode::kMul, a * b, 0);
    }
  }
}

TEST(FoldScalar, AFusedSumThatDoubleWouldRoundTwice) {
  // 7 * 37 = 259 is a tie between the bf16 neighbours 258 and 260. What is added decides it, but is
  // lost where the sum becomes a double first.
  const auto b = [](double v) { return uint64_t{double_to_bf16(v)}; };
  EXPECT_EQ(fold(Opcode::kFma, Scalar::kBF16, {b(7), b(37), b(0)}), b(260));
  EXPECT_EQ(fold(Opcode::kFma, Scalar::kBF16, {b(7), b(37), b(0x1p-60)}), b(260));
  EXPECT_EQ(fold(Opcode::kFma, Scalar::kBF16, {b(7), b(37), b(-0x1p-60)}), b(258));
  EXPECT_EQ(fold(Opcode::kFma, Scalar::kBF16, {b(-7), b(37), b(0x1p-60)}), b(-258));
}

TEST(FoldScalar, FloatsFollowIeee) {
  EXPECT_EQ(fold(Opcode::kAdd, Scalar::kF32, {f32(0.1f), f32(0.2f)}), f32(0.1f + 0.2f));
  EXPECT_EQ(fold(Opcode::kFma, Scalar::kF32, {f32(0.1f), f32(10.0f), f32(-1.0f)}),
            f32(std::fma(0.1f, 10.0f, -1.0f)));
  EXPECT_EQ(fold(Opcode::kDiv, Scalar::kF32, {f32(1), f32(0)}), f32(kInf));
  EXPECT_EQ(fold(Opcode::kDiv, Scalar::kF32, {f32(-1), f32(0)}), f32(-kInf));
  EXPECT_EQ(fold(Opcode::kSqrt, Scalar::kF32, {f32(-0.0f)}), f32(-0.0f));
  EXPECT_EQ(fold(Opcode::kRcp, Scalar::kF64, {f64(3)}), f64(1.0 / 3));
  EXPECT_EQ(fold(Opcode::kRcp, Scalar::kF32, {f32(3)}), f32(1.0f / 3));
  EXPECT_EQ(fold(Opcode::kMul, Scalar::kF32, {f32(1e-30f), f32(1e-10f)}), f32(1e-30f * 1e-10f));
  EXPECT_EQ(fold(Opcode::kAdd, Scalar::kF64, {f64(1), f64(0x1p-53)}), f64(1));
}

TEST(FoldScalar, NansAreMadeUpByNobody) {
  const uint64_t nan = f32(std::numeric_limits<float>::quiet_NaN());
  for (const Opcode opcode : {Opcode::kAdd, Opcode::kSub, Opcode::kMul, Opcode::kDiv}) {
    EXPECT_EQ(fold(opcode, Scalar::kF32, {nan, f32(1)}), std::nullopt);
  }
  EXPECT_EQ(fold(Opcode::kSub, Scalar::kF32, {f32(kInf), f32(kInf)}), std::nullopt);
  EXPECT_EQ(fold(Opcode::kMul, Scalar::kF32, {f32(kInf), f32(0)}), std::nullopt);
  EXPECT_EQ(fold(Opcode::kDiv, Scalar::kF32, {f32(0), f32(0)}), std::nullopt);
  EXPECT_EQ(fold(Opcode::kFma, Scalar::kF16, {0x7C00, 0, 0}), std::nullopt);
  EXPECT_EQ(fold(Opcode::kSqrt, Scalar::kF32, {f32(-1)}), std::nullopt);
  EXPECT_EQ(fold(Opcode::kAbs, Scalar::kF32, {nan}), std::nullopt);
  EXPECT_EQ(fold(Opcode::kMin, Scalar::kF32, {nan, nan}), std::nullopt);
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kF32, Scalar::kF16, {nan}), std::nullopt);
  // Passed on, or looked at:
  EXPECT_EQ(fold(Opcode::kNeg, Scalar::kF32, {nan}), nan ^ 0x80000000);
  EXPECT_EQ(fold(Opcode::kMin, Scalar::kF32, {nan, f32(1)}), f32(1));
  EXPECT_EQ(fold(Opcode::kMax, Scalar::kF32, {f32(1), nan}), f32(1));
  EXPECT_EQ(fold(Opcode::kSelect, Scalar::kF32, {1, nan, f32(1)}), nan);
  EXPECT_EQ(fold(Opcode::kBitcast, Scalar::kF32, Scalar::kU32, {nan}), nan);
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kF32, Scalar::kF32, {nan}), nan);
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kE5M2, Scalar::kE5M2, {0x7C}), 0x7Cu);  // infinity
  EXPECT_EQ(fold(Opcode::kEq, Scalar::kF32, Scalar::kBool, {nan, nan}), 0u);
  EXPECT_EQ(fold(Opcode::kNe, Scalar::kF32, Scalar::kBool, {nan, nan}), 1u);
  EXPECT_EQ(fold(Opcode::kGe, Scalar::kF32, Scalar::kBool, {nan, nan}), 0u);
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kF32, Scalar::kBool, {nan}), 1u);
}

TEST(FoldScalar, ZerosHaveSigns) {
  const uint64_t pz = f32(0.0f);
  const uint64_t nz = f32(-0.0f);
  EXPECT_EQ(fold(Opcode::kMin, Scalar::kF32, {pz, nz}), nz);
  EXPECT_EQ(fold(Opcode::kMin, Scalar::kF32, {nz, pz}), nz);
  EXPECT_EQ(fold(Opcode::kMax, Scalar::kF32, {nz, pz}), pz);
  EXPECT_EQ(fold(Opcode::kMax, Scalar::kF32, {pz, nz}), pz);
  EXPECT_EQ(fold(Opcode::kAdd, Scalar::kF32, {nz, pz}), pz);
  EXPECT_EQ(fold(Opcode::kAdd, Scalar::kF32, {nz, nz}), nz);
  EXPECT_EQ(fold(Opcode::kEq, Scalar::kF32, Scalar::kBool, {nz, pz}), 1u);
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kF32, Scalar::kBool, {nz}), 0u);
  EXPECT_EQ(fold(Opcode::kFma, Scalar::kBF16, {0x8000, 0x3F80, 0x8000}), 0x8000u);
}

TEST(FoldScalar, FloatsToIntegersSaturate) {
  const auto to = [](Scalar type, float v) {
    return fold(Opcode::kConvert, Scalar::kF32, type, {f32(v)}).value();
  };
  EXPECT_EQ(to(Scalar::kI32, -1.9f), 0xFFFFFFFFu);
  EXPECT_EQ(to(Scalar::kU32, -1.5f), 0u);
  EXPECT_EQ(to(Scalar::kU32, -0.5f), 0u);
  EXPECT_EQ(to(Scalar::kI32, 3e9f), 0x7FFFFFFFu);
  EXPECT_EQ(to(Scalar::kI32, -3e9f), 0x80000000u);
  EXPECT_EQ(to(Scalar::kU32, 3e9f), 3000000000u);
  EXPECT_EQ(to(Scalar::kU32, 5e9f), 0xFFFFFFFFu);
  EXPECT_EQ(to(Scalar::kI64, 0x1p63f), 0x7FFFFFFFFFFFFFFFu);
  EXPECT_EQ(to(Scalar::kI64, -0x1p63f), 0x8000000000000000u);
  EXPECT_EQ(to(Scalar::kU64, 0x1p64f), ~uint64_t{0});
  EXPECT_EQ(to(Scalar::kU64, kInf), ~uint64_t{0});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(to(Scalar::kI32, nan), 0u);
  EXPECT_EQ(to(Scalar::kU32, nan), 0u);
  EXPECT_EQ(to(Scalar::kI64, nan), 0x8000000000000000u);
  EXPECT_EQ(to(Scalar::kU64, nan), 0x8000000000000000u);
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kF64, Scalar::kI32, {f64(std::nan(""))}), 0x80000000u);
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kF64, Scalar::kU32, {f64(std::nan(""))}), 0x80000000u);
}

TEST(FoldScalar, IntegersToFloatsRoundOnce) {
  const auto to_f32 = [](uint64_t v) {
    return fold(Opcode::kConvert, Scalar::kU64, Scalar::kF32, {v}).value();
  };
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kI32, Scalar::kF32, {16777217}), 0x4b800000u);
  // Just above the tie between 2^60 and its neighbour: through double it would become a tie.
  EXPECT_EQ(to_f32((uint64_t{1} << 60) + (uint64_t{1} << 36)), f32(0x1p60f));
  EXPECT_EQ(to_f32((uint64_t{1} << 60) + (uint64_t{1} << 36) + 1), f32(0x1.000002p60f));
  EXPECT_EQ(to_f32(~uint64_t{0}), f32(0x1p64f));
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kI64, Scalar::kF32, {0x8000000000000000}),
            f32(-0x1p63f));
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kI64, Scalar::kF64, {0x7FFFFFFFFFFFFFFF}), f64(0x1p63));
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kU64, Scalar::kF64, {0xFFFFFFFFFFFFF800}),
            f64(0x1.FFFFFFFFFFFFFp63));
  const uint64_t tie = (uint64_t{1} << 60) + (uint64_t{1} << 52);
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kI64, Scalar::kBF16, {tie}), double_to_bf16(0x1p60));
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kI64, Scalar::kBF16, {tie + 1}),
            double_to_bf16(0x1.02p60));
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kI32, Scalar::kF16, {65520}), 0x7C00u);
  EXPECT_EQ(fold(Opcode::kConvert, Scalar::kF64, Scalar::kF16, {f64(0x1.002000001p0)}), 0x3C01u);
}

TEST(FoldScalar, DivisionsAreSpecifiedButForAFew) {
  const uint64_t least = 0x80000000, minus_one = 0xFFFFFFFF;
  for (const Opcode opcode : {Opcode::kDiv, Opcode::kRem}) {
    EXPECT_FALSE(is_specified(opcode, Scalar::kI32, {5, 0}));
    EXPECT_FALSE(is_specified(opcode, Scalar::kU64, {5, 0}));
    EXPECT_FALSE(is_specified(opcode, Scalar::kI32, {least, minus_one}));
    EXPECT_TRUE(is_specified(opcode, Scalar::kU32, {least, minus_one}));
    EXPECT_TRUE(is_specified(opcode, Scalar::kI64, {least, minus_one}));
    EXPECT_TRUE(is_specified(opcode, Scalar::kI32, {least, 1}));
  }
  EXPECT_TRUE(is_specified(Opcode::kDiv, Scalar::kF32, {0, 0}));
  EXPECT_TRUE(is_specified(Opcode::kMul, Scalar::kI32, {least, minus_one}));
}

TEST(FoldScalar, EveryOtherOpIsLeftAlone) {
  EXPECT_EQ(fold(Opcode::kExp2, Scalar::kF32, {f32(1)}), std::nullopt);
  EXPECT_EQ(fold(Opcode::kLoad, Scalar::kF32, {0}), std::nullopt);
  EXPECT_EQ(fold(Opcode::kShflIdx, Scalar::kF32, {0, 0}), std::nullopt);
}

}  // namespace
}  // namespace heddle::ir
