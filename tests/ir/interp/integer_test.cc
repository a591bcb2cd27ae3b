// Integer and bit operations on boundary values, against 128-bit arithmetic.
#include "absl/numeric/int128.h"
#include "ir/interp/harness.h"
#include "ir/interp/oracle.h"

namespace heddle::ir::interp {
namespace {

constexpr Scalar kIntegers[] = {Scalar::kI32, Scalar::kU32, Scalar::kI64, Scalar::kU64};

absl::int128 extended(Scalar scalar, uint64_t bits) {
  if (info(scalar).bits == 64) {
    return is_signed(scalar) ? absl::int128(static_cast<int64_t>(bits)) : absl::int128(bits);
  }
  const uint32_t narrow = static_cast<uint32_t>(bits);
  return is_signed(scalar) ? absl::int128(static_cast<int32_t>(narrow)) : absl::int128(narrow);
}

uint64_t wrapped(Scalar scalar, absl::int128 value) {
  const uint64_t low = absl::Int128Low64(value);
  return info(scalar).bits == 64 ? low : low & 0xFFFFFFFFu;
}

using Binary = absl::int128 (*)(absl::int128 a, absl::int128 b);

class InterpInteger : public ::testing::TestWithParam<Scalar> {
 protected:
  // Compares an op with its meaning over all pairs that `allowed` admits.
  void expect_binary(Opcode opcode, Scalar result, Binary meaning,
                     bool (*allowed)(absl::int128, absl::int128) = nullptr) {
    const Scalar scalar = GetParam();
    const Columns columns = pairs(interesting_integers(scalar));
    const std::vector<uint64_t> got = evaluate(opcode, {scalar, scalar}, result, columns);
    for (size_t i = 0; i < got.size(); ++i) {
      const absl::int128 a = extended(scalar, columns[0][i]);
      const absl::int128 b = extended(scalar, columns[1][i]);
      if (allowed != nullptr && !allowed(a, b)) continue;
      EXPECT_EQ(got[i], result == Scalar::kBool ? absl::Int128Low64(meaning(a, b))
                                                : wrapped(result, meaning(a, b)))
          << info(opcode).mnemonic << " of " << columns[0][i] << " and " << columns[1][i];
    }
  }
};

TEST_P(InterpInteger, ArithmeticWraps) {
  const Scalar s = GetParam();
  expect_binary(Opcode::kAdd, s, [](absl::int128 a, absl::int128 b) { return a + b; });
  expect_binary(Opcode::kSub, s, [](absl::int128 a, absl::int128 b) { return a - b; });
  expect_binary(Opcode::kMul, s, [](absl::int128 a, absl::int128 b) {
    return static_cast<absl::int128>(static_cast<absl::uint128>(a) * static_cast<absl::uint128>(b));
  });
  expect_binary(Opcode::kMin, s, [](absl::int128 a, absl::int128 b) { return a < b ? a : b; });
  expect_binary(Opcode::kMax, s, [](absl::int128 a, absl::int128 b) { return a > b ? a : b; });
}

TEST_P(InterpInteger, DivisionTruncates) {
  // Division by zero and the one overflow are unspecified, and must not stop the host.
  const auto defined = [](absl::int128 a, absl::int128 b) {
    return b != 0 && !(b == -1 && (a == absl::int128(INT64_MIN) || a == absl::int128(INT32_MIN)));
  };
  expect_binary(
      Opcode::kDiv, GetParam(), [](absl::int128 a, absl::int128 b) { return a / b; }, defined);
  expect_binary(
      Opcode::kRem, GetParam(), [](absl::int128 a, absl::int128 b) { return a % b; }, defined);
}

TEST_P(InterpInteger, Comparisons) {
  const Scalar s = Scalar::kBool;
  expect_binary(Opcode::kEq, s,
                [](absl::int128 a, absl::int128 b) { return absl::int128(a == b); });
  expect_binary(Opcode::kNe, s,
                [](absl::int128 a, absl::int128 b) { return absl::int128(a != b); });
  expect_binary(Opcode::kLt, s, [](absl::int128 a, absl::int128 b) { return absl::int128(a < b); });
  expect_binary(Opcode::kLe, s,
                [](absl::int128 a, absl::int128 b) { return absl::int128(a <= b); });
  expect_binary(Opcode::kGt, s, [](absl::int128 a, absl::int128 b) { return absl::int128(a > b); });
  expect_binary(Opcode::kGe, s,
                [](absl::int128 a, absl::int128 b) { return absl::int128(a >= b); });
}

TEST_P(InterpInteger, FmaWraps) {
  const Scalar s = GetParam();
  std::vector<uint64_t> values = interesting_integers(s);
  values.resize(12);
  const Columns columns = triples(values);
  const std::vector<uint64_t> got = evaluate(Opcode::kFma, {s, s, s}, s, columns);
  for (size_t i = 0; i < got.size(); ++i) {
    const absl::uint128 a(extended(s, columns[0][i]));
    const absl::uint128 b(extended(s, columns[1][i]));
    const absl::uint128 c(extended(s, columns[2][i]));
    EXPECT_EQ(got[i], wrapped(s, absl::int128(a * b + c)));
  }
}

TEST_P(InterpInteger, NegAbsNot) {
  const Scalar s = GetParam();
  const std::vector<uint64_t> values = interesting_integers(s);
  const std::vector<uint64_t> neg = evaluate(Opcode::kNeg, {s}, s, {values});
  const std::vector<uint64_t> abs = evaluate(Opcode::kAbs, {s}, s, {values});
  const std::vector<uint64_t> inverted = evaluate(Opcode::kNot, {s}, s, {values});
  for (size_t i = 0; i < values.size(); ++i) {
    const absl::int128 a = extended(s, values[i]);
    EXPECT_EQ(neg[i], wrapped(s, -a));
    EXPECT_EQ(abs[i], wrapped(s, a < 0 ? -a : a));
    EXPECT_EQ(inverted[i], wrapped(s, -a - 1));
  }
}

TEST_P(InterpInteger, ShiftsClampTheirCount) {
  const Scalar s = GetParam();
  const int width = info(s).bits;
  Columns columns(2);
  for (const uint64_t value : interesting_integers(s)) {
    for (const uint64_t count :
         {0u, 1u, 7u, 31u, 32u, 33u, 63u, 64u, 65u, 256u, 0x80000000u, 0xFFFFFFFFu}) {
      columns[0].push_back(value);
      columns[1].push_back(count);
    }
  }
  const std::vector<uint64_t> shl = evaluate(Opcode::kShl, {s, Scalar::kU32}, s, columns);
  const std::vector<uint64_t> shr = evaluate(Opcode::kShr, {s, Scalar::kU32}, s, columns);
  for (size_t i = 0; i < shl.size(); ++i) {
    const uint64_t count = columns[1][i];
    const absl::int128 a = extended(s, columns[0][i]);
    const int clamped = static_cast<int>(count < 64 ? count : 64);
    EXPECT_EQ(shl[i], static_cast<int>(count) < width && count < 64
                          ? wrapped(s, absl::int128(absl::uint128(a) << clamped))
                          : 0)
        << columns[0][i] << " << " << count;
    // Rounding down is what an arithmetic shift does.
    const absl::int128 divisor = absl::int128(1) << clamped;
    const absl::int128 floor = a >= 0 ? a / divisor : -((-a + divisor - 1) / divisor);
    EXPECT_EQ(shr[i], wrapped(s, floor)) << columns[0][i] << " >> " << count;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, InterpInteger, ::testing::ValuesIn(kIntegers),
                         [](const auto& param) {
                           return std::string(heddle::ir::info(param.param).name);
                         });

TEST(InterpBits, LogicOnEveryType) {
  for (const Scalar s : {Scalar::kBool, Scalar::kI32, Scalar::kU32, Scalar::kI64, Scalar::kU64}) {
    const Columns columns = pairs(interesting_integers(s));
    const std::vector<uint64_t> got_and = evaluate(Opcode::kAnd, {s, s}, s, columns);
    const std::vector<uint64_t> got_or = evaluate(Opcode::kOr, {s, s}, s, columns);
    const std::vector<uint64_t> got_xor = evaluate(Opcode::kXor, {s, s}, s, columns);
    for (size_t i = 0; i < got_and.size(); ++i) {
      EXPECT_EQ(got_and[i], columns[0][i] & columns[1][i]);
      EXPECT_EQ(got_or[i], columns[0][i] | columns[1][i]);
      EXPECT_EQ(got_xor[i], columns[0][i] ^ columns[1][i]);
    }
  }
  EXPECT_EQ(evaluate(Opcode::kNot, {Scalar::kBool}, Scalar::kBool, {{0, 1}}),
            (std::vector<uint64_t>{1, 0}));
}

TEST(InterpBits, SelectPassesBitsThrough) {
  for (const Scalar s : {Scalar::kBool, Scalar::kI32, Scalar::kU64, Scalar::kF16, Scalar::kF32}) {
    const uint64_t mask = s == Scalar::kBool   ? 1
                          : info(s).bits == 64 ? ~uint64_t{0}
                                               : (uint64_t{1} << info(s).bits) - 1;
    // Signalling NaNs among them keep every bit.
    const uint64_t a = 0x7F8000017C017F01u & mask;
    const uint64_t b = 0xFFB0000BFF81FC01u & mask;
    EXPECT_EQ(evaluate(Opcode::kSelect, {Scalar::kBool, s, s}, s, {{1, 0}, {a, a}, {b, b}}),
              (std::vector<uint64_t>{a, b}));
  }
}

TEST(InterpBits, ABoolInMemoryIsTrueUnlessZero) {
  EXPECT_EQ(evaluate(Opcode::kConvert, {Scalar::kBool}, Scalar::kI32, {{0, 1, 2, 255}}),
            (std::vector<uint64_t>{0, 1, 1, 1}));
}

}  // namespace
}  // namespace heddle::ir::interp
