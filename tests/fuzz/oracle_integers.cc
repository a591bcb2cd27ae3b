// Integers and bools, in 128 bits.
#include <algorithm>
#include <utility>

#include "fuzz/oracle_scalar.h"

namespace heddle::fuzz::oracle {
namespace {

using ir::Opcode;

using Result = std::optional<uint64_t>;

// A rule from what it makes of two numbers.
template <auto kFunction>
Result of_numbers(const ScalarOp& op, const uint64_t* operands) {
  return wrap(op.to, kFunction(integer(op.from, operands[0]), integer(op.from, operands[1])));
}
// From what it makes of bits.
template <auto kFunction>
Result of_bits(const ScalarOp& op, const uint64_t* operands) {
  return wrap(op.to, static_cast<Int128>(kFunction(operands[0], operands[1])));
}
template <auto kFunction>
Result compare(const ScalarOp& op, const uint64_t* operands) {
  return kFunction(integer(op.from, operands[0]), integer(op.from, operands[1])) ? 1 : 0;
}

// The product of numbers of up to 64 bits: its lowest 128 bits.
Uint128 product(Int128 a, Int128 b) { return static_cast<Uint128>(a) * static_cast<Uint128>(b); }

Result multiply(const ScalarOp& op, const uint64_t* operands) {
  const Int128 a = integer(op.from, operands[0]);
  return wrap(op.to, static_cast<Int128>(product(a, integer(op.from, operands[1]))));
}
Result multiply_add(const ScalarOp& op, const uint64_t* operands) {
  const Int128 a = integer(op.from, operands[0]);
  return wrap(op.to, static_cast<Int128>(product(a, integer(op.from, operands[1])) + operands[2]));
}
Result multiply_high(const ScalarOp& op, const uint64_t* operands) {
  const Int128 a = integer(op.from, operands[0]);
  // The bits above the product's 128 do not count, signed or not.
  const Uint128 whole = product(a, integer(op.from, operands[1]));
  return wrap(op.to, static_cast<Int128>(whole >> width_of(op.from)));
}

// Truncates toward zero.
template <bool kRemainder>
Result divide(const ScalarOp& op, const uint64_t* operands) {
  const Int128 a = integer(op.from, operands[0]);
  const Int128 b = integer(op.from, operands[1]);
  if (b == 0) return std::nullopt;
  const Int128 quotient = a / b;
  if (integer(op.to, wrap(op.to, quotient)) != quotient) return std::nullopt;  // INT_MIN / -1
  return wrap(op.to, kRemainder ? a - quotient * b : quotient);
}

Result absolute(const ScalarOp& op, const uint64_t* operands) {
  const Int128 a = integer(op.from, operands[0]);
  return wrap(op.to, a < 0 ? -a : a);
}

Result shift_left(const ScalarOp& op, const uint64_t* operands) {
  const int width = width_of(op.from);
  if (operands[1] >= static_cast<uint64_t>(width)) return 0;
  return wrap(op.to, static_cast<Int128>(operands[0]) << operands[1]);
}
// Of the number: a negative one has sign bits without end.
Result shift_right(const ScalarOp& op, const uint64_t* operands) {
  const uint64_t count = std::min<uint64_t>(operands[1], 64);
  return wrap(op.to, integer(op.from, operands[0]) >> count);
}

Result count_ones(const ScalarOp& op, const uint64_t* operands) {
  int count = 0;
  for (int i = 0; i < width_of(op.from); ++i) count += static_cast<int>(operands[0] >> i & 1);
  return static_cast<uint64_t>(count);
}
Result leading_zeros(const ScalarOp& op, const uint64_t* operands) {
  int count = 0;
  while (count < width_of(op.from) && (operands[0] >> (width_of(op.from) - 1 - count) & 1) == 0) {
    ++count;
  }
  return static_cast<uint64_t>(count);
}
Result reverse(const ScalarOp& op, const uint64_t* operands) {
  uint64_t result = 0;
  for (int i = 0; i < width_of(op.from); ++i) result = result << 1 | (operands[0] >> i & 1);
  return result;
}

template <bool kLeft, bool kClamps>
Result funnel(const ScalarOp&, const uint64_t* operands) {
  const Uint128 both = static_cast<Uint128>(operands[1]) << 32 | operands[0];
  const uint64_t count = kClamps ? std::min<uint64_t>(operands[2], 32) : operands[2] % 32;
  return static_cast<uint64_t>(kLeft ? both << count >> 32 : both >> count) & 0xFFFF'FFFF;
}

Result permute(const ScalarOp&, const uint64_t* operands) {
  const uint64_t bytes = operands[1] << 32 | operands[0];
  uint64_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t nibble = operands[2] >> (4 * i) & 15;
    const uint64_t byte = bytes >> (8 * (nibble & 7)) & 255;
    const uint64_t sign = byte >= 128 ? 255 : 0;
    result |= (nibble >= 8 ? sign : byte) << (8 * i);
  }
  return result;
}

// Part `index`, of so many bits, as a number of the op's sign.
Int128 part(const ScalarOp& op, uint64_t bits, int width, int index) {
  const uint64_t value = bits >> (width * index) & ((uint64_t{1} << width) - 1);
  const bool negative = ir::is_signed(op.from) && (value >> (width - 1)) != 0;
  return static_cast<Int128>(value) - (negative ? Int128{1} << width : 0);
}

Result dot_bytes(const ScalarOp& op, const uint64_t* operands) {
  Int128 sum = static_cast<Int128>(operands[2]);
  for (int i = 0; i < 4; ++i) sum += part(op, operands[0], 8, i) * part(op, operands[1], 8, i);
  return wrap(op.to, sum);
}
template <int kFirstByte>
Result dot_halves(const ScalarOp& op, const uint64_t* operands) {
  Int128 sum = static_cast<Int128>(operands[2]);
  for (int i = 0; i < 2; ++i) {
    sum += part(op, operands[0], 16, i) * part(op, operands[1], 8, kFirstByte + i);
  }
  return wrap(op.to, sum);
}
Result byte_differences(const ScalarOp& op, const uint64_t* operands) {
  uint64_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const Int128 difference = part(op, operands[0], 8, i) - part(op, operands[1], 8, i);
    result |= static_cast<uint64_t>(difference < 0 ? -difference : difference) << (8 * i);
  }
  return result;
}

constexpr std::pair<Opcode, Rule> kRules[] = {
    {Opcode::kAdd, of_numbers<[](Int128 a, Int128 b) { return a + b; }>},
    {Opcode::kSub, of_numbers<[](Int128 a, Int128 b) { return a - b; }>},
    {Opcode::kMul, multiply},
    {Opcode::kMulHi, multiply_high},
    {Opcode::kDiv, divide<false>},
    {Opcode::kRem, divide<true>},
    {Opcode::kMin, of_numbers<[](Int128 a, Int128 b) { return a < b ? a : b; }>},
    {Opcode::kMax, of_numbers<[](Int128 a, Int128 b) { return a < b ? b : a; }>},
    {Opcode::kFma, multiply_add},
    {Opcode::kAbs, absolute},
    {Opcode::kAnd, of_bits<[](uint64_t a, uint64_t b) { return a & b; }>},
    {Opcode::kOr, of_bits<[](uint64_t a, uint64_t b) { return a | b; }>},
    {Opcode::kXor, of_bits<[](uint64_t a, uint64_t b) { return a ^ b; }>},
    {Opcode::kShl, shift_left},
    {Opcode::kShr, shift_right},
    {Opcode::kPopc, count_ones},
    {Opcode::kClz, leading_zeros},
    {Opcode::kBrev, reverse},
    {Opcode::kFunnelShl, funnel<true, false>},
    {Opcode::kFunnelShr, funnel<false, false>},
    {Opcode::kFunnelShlClamp, funnel<true, true>},
    {Opcode::kFunnelShrClamp, funnel<false, true>},
    {Opcode::kPrmt, permute},
    {Opcode::kDp4a, dot_bytes},
    {Opcode::kDp2aLo, dot_halves<0>},
    {Opcode::kDp2aHi, dot_halves<2>},
    {Opcode::kVabsdiff4, byte_differences},
    {Opcode::kEq, compare<[](Int128 a, Int128 b) { return a == b; }>},
    {Opcode::kNe, compare<[](Int128 a, Int128 b) { return a != b; }>},
    {Opcode::kLt, compare<[](Int128 a, Int128 b) { return a < b; }>},
    {Opcode::kLe, compare<[](Int128 a, Int128 b) { return a <= b; }>},
    {Opcode::kGt, compare<[](Int128 a, Int128 b) { return b < a; }>},
    {Opcode::kGe, compare<[](Int128 a, Int128 b) { return a >= b; }>},
    // Of one operand.
    {Opcode::kNeg,
     [](const ScalarOp& op, const uint64_t* operands)
         -> Result { return wrap(op.to, -integer(op.from, operands[0])); }},
    {Opcode::kNot,
     [](const ScalarOp& op, const uint64_t* operands)
         -> Result { return wrap(op.to, ~static_cast<Int128>(operands[0])); }},
};

}  // namespace

Rule integer_rule(const ScalarOp& op) {
  if (!ir::is_integer(op.from) && op.from != ir::Scalar::kBool) return nullptr;
  return find_in<Rule>(kRules, op.opcode);
}

}  // namespace heddle::fuzz::oracle
