#include "heddle/ir/analysis/fold_scalar.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "heddle/ir/float_bits.h"
#include "heddle/ir/op_table_internal.h"

namespace heddle::ir {
namespace {

using Bits = std::optional<uint64_t>;
using Operands = absl::Span<const uint64_t>;

// --- Elements and their bits ---

int width(Scalar scalar) { return scalar == Scalar::kBool ? 1 : info(scalar).bits; }
uint64_t sign_bit(Scalar scalar) { return uint64_t{1} << (width(scalar) - 1); }

// Sign-extended where the type has a sign.
int64_t to_signed(Scalar scalar, uint64_t bits) {
  if (is_signed(scalar) && (bits & sign_bit(scalar)) != 0) bits |= ~bits_mask(scalar);
  return static_cast<int64_t>(bits);
}

Bits from_int(Scalar scalar, uint64_t value) { return value & bits_mask(scalar); }

// Rounds once. A NaN here is one that the op made up.
Bits from_double(Scalar scalar, double value) {
  if (std::isnan(value)) return std::nullopt;
  return float_bits(scalar, value);
}

// --- Arithmetic ---

// f16 and bf16 compute in float, which has more than twice their digits, so that rounding its
// result once more is exact for one operation.
template <class Function>
Bits in_float(Scalar scalar, Operands bits, Function function) {
  const auto value = [&](size_t i) { return float_value(scalar, bits[i < bits.size() ? i : 0]); };
  if (scalar == Scalar::kF64) return from_double(scalar, function(value(0), value(1)));
  const auto a = static_cast<float>(value(0));
  const auto b = static_cast<float>(value(1));
  return from_double(scalar, static_cast<double>(function(a, b)));
}

Bits add(Scalar scalar, Scalar, Operands o) {
  if (!is_float(scalar)) return from_int(scalar, o[0] + o[1]);
  return in_float(scalar, o, [](auto a, auto b) { return a + b; });
}

Bits sub(Scalar scalar, Scalar, Operands o) {
  if (!is_float(scalar)) return from_int(scalar, o[0] - o[1]);
  return in_float(scalar, o, [](auto a, auto b) { return a - b; });
}

Bits mul(Scalar scalar, Scalar, Operands o) {
  if (!is_float(scalar)) return from_int(scalar, o[0] * o[1]);
  return in_float(scalar, o, [](auto a, auto b) { return a * b; });
}

__extension__ using Wide = unsigned __int128;

// Extended by its sign to the width of a product.
Wide to_wide(Scalar scalar, uint64_t bits) {
  return is_signed(scalar) ? static_cast<Wide>(to_signed(scalar, bits)) : Wide{bits};
}

Bits mulhi(Scalar scalar, Scalar, Operands o) {
  const Wide product = to_wide(scalar, o[0]) * to_wide(scalar, o[1]);
  return from_int(scalar, static_cast<uint64_t>(product >> width(scalar)));
}

Bits div(Scalar scalar, Scalar, Operands o) {
  if (is_float(scalar)) return in_float(scalar, o, [](auto a, auto b) { return a / b; });
  if (!is_signed(scalar)) return from_int(scalar, o[0] / o[1]);
  const int64_t quotient = to_signed(scalar, o[0]) / to_signed(scalar, o[1]);
  return from_int(scalar, static_cast<uint64_t>(quotient));
}

Bits rem(Scalar scalar, Scalar, Operands o) {
  if (!is_signed(scalar)) return from_int(scalar, o[0] % o[1]);
  const int64_t remainder = to_signed(scalar, o[0]) % to_signed(scalar, o[1]);
  return from_int(scalar, static_cast<uint64_t>(remainder));
}

bool less(Scalar scalar, uint64_t a, uint64_t b) {
  if (is_float(scalar)) return float_value(scalar, a) < float_value(scalar, b);
  return is_signed(scalar) ? to_signed(scalar, a) < to_signed(scalar, b) : a < b;
}

bool is_nan(Scalar scalar, uint64_t bits) {
  return is_float(scalar) && std::isnan(float_value(scalar, bits));
}

// The smaller of two numbers, or the larger: a NaN loses, and -0 < +0.
Bits pick(Scalar scalar, Operands o, bool smaller) {
  const bool nan[] = {is_nan(scalar, o[0]), is_nan(scalar, o[1])};
  if (nan[0] && nan[1]) return std::nullopt;
  if (nan[0] || nan[1]) return o[nan[0] ? 1 : 0];
  bool first_less = less(scalar, o[0], o[1]);
  const bool zeros = is_float(scalar) && !first_less && !less(scalar, o[1], o[0]);
  if (zeros) first_less = (o[0] & sign_bit(scalar)) != 0;  // equal, so only the zeros' signs differ
  return o[first_less == smaller ? 0 : 1];
}

Bits min(Scalar scalar, Scalar, Operands o) { return pick(scalar, o, true); }
Bits max(Scalar scalar, Scalar, Operands o) { return pick(scalar, o, false); }

Bits neg(Scalar scalar, Scalar, Operands o) {
  return is_float(scalar) ? o[0] ^ sign_bit(scalar) : from_int(scalar, 0 - o[0]);
}

Bits abs(Scalar scalar, Scalar, Operands o) {
  if (is_nan(scalar, o[0])) return std::nullopt;
  if (is_float(scalar)) return o[0] & ~sign_bit(scalar);
  const bool negative = is_signed(scalar) && (o[0] & sign_bit(scalar)) != 0;
  return from_int(scalar, negative ? 0 - o[0] : o[0]);
}

// a + b rounded to odd: what lies between two doubles becomes the one whose last bit is set.
// Rounding that to half the digits or fewer gives what rounding the exact sum gives.
double add_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  const auto bits = std::bit_cast<uint64_t>(sum);
  if (error == 0 || (bits & 1) != 0) return sum;
  return std::bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

Bits fma(Scalar scalar, Scalar, Operands o) {
  if (!is_float(scalar)) return from_int(scalar, o[0] * o[1] + o[2]);
  const double a = float_value(scalar, o[0]);
  const double b = float_value(scalar, o[1]);
  const double c = float_value(scalar, o[2]);
  if (scalar == Scalar::kF64) return from_double(scalar, std::fma(a, b, c));
  if (scalar == Scalar::kF32) {
    const auto f = [](double v) { return static_cast<float>(v); };
    return from_double(scalar, static_cast<double>(std::fma(f(a), f(b), f(c))));
  }
  // The product of two 16-bit floats is exact in double; the sum is rounded here and once more.
  return from_double(scalar, add_to_odd(a * b, c));
}

Bits sqrt(Scalar scalar, Scalar, Operands o) {
  return in_float(scalar, o, [](auto a, auto) { return std::sqrt(a); });
}

Bits rcp(Scalar scalar, Scalar, Operands o) {
  return in_float(scalar, o, [](auto a, auto) { return 1 / a; });
}

template <double (*kRound)(double)>
Bits round_to_integer(Scalar scalar, Scalar, Operands o) {
  return from_double(scalar, kRound(float_value(scalar, o[0])));
}

Bits saturate(Scalar scalar, Scalar, Operands o) {
  const double value = float_value(scalar, o[0]);
  return float_bits(scalar, value > 0 ? std::min(value, 1.0) : 0.0);
}

Bits min_nan(Scalar scalar, Scalar result, Operands o) {
  if (is_nan(scalar, o[0]) || is_nan(scalar, o[1])) return std::nullopt;
  return min(scalar, result, o);
}
Bits max_nan(Scalar scalar, Scalar result, Operands o) {
  if (is_nan(scalar, o[0]) || is_nan(scalar, o[1])) return std::nullopt;
  return max(scalar, result, o);
}

// --- Bits ---

Bits bit_and(Scalar, Scalar, Operands o) { return o[0] & o[1]; }
Bits bit_or(Scalar, Scalar, Operands o) { return o[0] | o[1]; }
Bits bit_xor(Scalar, Scalar, Operands o) { return o[0] ^ o[1]; }
Bits bit_not(Scalar scalar, Scalar, Operands o) { return from_int(scalar, ~o[0]); }

Bits shl(Scalar scalar, Scalar, Operands o) {
  return o[1] >= static_cast<uint64_t>(width(scalar)) ? 0 : from_int(scalar, o[0] << o[1]);
}

Bits shr(Scalar scalar, Scalar, Operands o) {
  const uint64_t last = static_cast<uint64_t>(width(scalar)) - 1;
  if (!is_signed(scalar)) return o[1] > last ? 0 : o[0] >> o[1];
  return from_int(scalar, static_cast<uint64_t>(to_signed(scalar, o[0]) >> std::min(o[1], last)));
}

Bits popc(Scalar, Scalar, Operands o) { return static_cast<uint64_t>(std::popcount(o[0])); }

Bits clz(Scalar scalar, Scalar, Operands o) {
  return static_cast<uint64_t>(std::countl_zero(o[0]) - (64 - width(scalar)));
}

Bits brev(Scalar scalar, Scalar, Operands o) {
  uint64_t reversed = 0;
  for (int i = 0; i < width(scalar); ++i) reversed |= (o[0] >> i & 1) << (width(scalar) - 1 - i);
  return reversed;
}

Bits funnel_shl(Scalar, Scalar, Operands o) { return ((o[1] << 32 | o[0]) << (o[2] % 32)) >> 32; }

Bits funnel_shr(Scalar scalar, Scalar, Operands o) {
  return from_int(scalar, (o[1] << 32 | o[0]) >> (o[2] % 32));
}

Bits funnel_shl_clamp(Scalar scalar, Scalar, Operands o) {
  return from_int(scalar, o[2] < 32 ? *funnel_shl(scalar, scalar, o) : o[0]);
}

Bits funnel_shr_clamp(Scalar scalar, Scalar, Operands o) {
  return from_int(scalar, (o[1] << 32 | o[0]) >> std::min<uint64_t>(o[2], 32));
}

Bits prmt(Scalar, Scalar, Operands o) {
  const uint64_t bytes = o[1] << 32 | o[0];
  uint64_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t nibble = o[2] >> (4 * i) & 0xF;
    const uint64_t byte = bytes >> (8 * (nibble & 7)) & 0xFF;
    const uint64_t sign = (byte & 0x80) != 0 ? 0xFF : 0;
    result |= ((nibble & 8) != 0 ? sign : byte) << (8 * i);
  }
  return result;
}

Bits dp4a(Scalar scalar, Scalar, Operands o) {
  uint64_t sum = o[2];
  for (int i = 0; i < 32; i += 8) {
    const auto byte = [&](uint64_t bits) {
      const auto b = static_cast<uint8_t>(bits >> i);
      return is_signed(scalar) ? int64_t{static_cast<int8_t>(b)} : int64_t{b};
    };
    sum += static_cast<uint64_t>(byte(o[0]) * byte(o[1]));
  }
  return from_int(scalar, sum);
}

template <int first_byte>
Bits dp2a(Scalar scalar, Scalar, Operands o) {
  // An integer of so many bits from that one on.
  const auto part = [&](uint64_t bits, int from, int count) {
    const int64_t above = static_cast<int64_t>(bits << (64 - from - count));
    return is_signed(scalar) ? above >> (64 - count)
                             : static_cast<int64_t>(static_cast<uint64_t>(above) >> (64 - count));
  };
  const int64_t low = part(o[0], 0, 16) * part(o[1], 8 * first_byte, 8);
  const int64_t high = part(o[0], 16, 16) * part(o[1], 8 * first_byte + 8, 8);
  return from_int(scalar, o[2] + static_cast<uint64_t>(low) + static_cast<uint64_t>(high));
}

Bits vabsdiff4(Scalar scalar, Scalar, Operands o) {
  // With their sign bits flipped, signed bytes are as far apart as unsigned ones, and in that order.
  const uint64_t flipped = is_signed(scalar) ? 0x80 : 0;
  uint64_t result = 0;
  for (int i = 0; i < 32; i += 8) {
    const uint64_t a = (o[0] >> i & 0xFF) ^ flipped;
    const uint64_t b = (o[1] >> i & 0xFF) ^ flipped;
    result |= (std::max(a, b) - std::min(a, b)) << i;
  }
  return result;
}

// --- Comparison and choice ---

bool equal(Scalar scalar, Operands o) {
  if (is_float(scalar)) return float_value(scalar, o[0]) == float_value(scalar, o[1]);
  return o[0] == o[1];
}

Bits eq(Scalar scalar, Scalar, Operands o) { return equal(scalar, o); }
Bits ne(Scalar scalar, Scalar, Operands o) { return !equal(scalar, o); }
Bits lt(Scalar scalar, Scalar, Operands o) { return less(scalar, o[0], o[1]); }
Bits gt(Scalar scalar, Scalar, Operands o) { return less(scalar, o[1], o[0]); }
Bits le(Scalar scalar, Scalar, Operands o) { return less(scalar, o[0], o[1]) || equal(scalar, o); }
Bits ge(Scalar scalar, Scalar, Operands o) { return less(scalar, o[1], o[0]) || equal(scalar, o); }

Bits select(Scalar, Scalar, Operands o) { return o[0] != 0 ? o[1] : o[2]; }

// --- Conversion ---

Bits float_to_int(Scalar from, Scalar to, double value) {
  if (std::isnan(value)) {
    const bool wide = width(from) == 64 || width(to) == 64;
    return wide ? sign_bit(to) : 0;
  }
  const double number = std::trunc(value);
  if (is_signed(to)) {
    const double limit = std::ldexp(1.0, width(to) - 1);
    if (number >= limit) return sign_bit(to) - 1;
    if (number < -limit) return sign_bit(to);
    return from_int(to, static_cast<uint64_t>(static_cast<int64_t>(number)));
  }
  if (number >= std::ldexp(1.0, width(to))) return bits_mask(to);
  return number <= 0 ? 0 : static_cast<uint64_t>(number);
}

// An integer as a double, rounded to odd (see add_to_odd) where it has too many digits.
double int_to_odd(bool negative, uint64_t magnitude) {
  if (magnitude >> 53 != 0) {
    const bool inexact = (magnitude & 0x7FF) != 0;
    magnitude = (magnitude & ~uint64_t{0x7FF}) | (inexact ? 0x800 : 0);
  }
  const auto value = static_cast<double>(magnitude);
  return negative ? -value : value;
}

Bits int_to_float(Scalar from, Scalar to, uint64_t bits) {
  const int64_t number = to_signed(from, bits);
  const bool negative = is_signed(from) && number < 0;
  if (to == Scalar::kF64) {
    const double value = negative ? static_cast<double>(number) : static_cast<double>(bits);
    return std::bit_cast<uint64_t>(value);
  }
  const uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(number) : bits;
  return from_double(to, int_to_odd(negative, magnitude));
}

Bits convert(Scalar from, Scalar to, Operands o) {
  if (from == to) return o[0];
  if (to == Scalar::kBool) {
    return is_float(from) ? Bits(!(float_value(from, o[0]) == 0)) : Bits(o[0] != 0);
  }
  if (is_float(from)) {
    const double value = float_value(from, o[0]);
    return is_float(to) ? from_double(to, value) : float_to_int(from, to, value);
  }
  if (is_float(to)) return int_to_float(from, to, o[0]);
  return from_int(to, static_cast<uint64_t>(to_signed(from, o[0])));
}

Bits bitcast(Scalar, Scalar, Operands o) { return o[0]; }

using ScalarRule = Bits (*)(Scalar operand, Scalar result, Operands bits);

constexpr OpTable<ScalarRule> kRules = op_table<ScalarRule>(
    elementwise,
    {
        {Opcode::kAdd, add},
        {Opcode::kSub, sub},
        {Opcode::kMul, mul},
        {Opcode::kDiv, div},
        {Opcode::kRem, rem},
        {Opcode::kMin, min},
        {Opcode::kMax, max},
        {Opcode::kNeg, neg},
        {Opcode::kAbs, abs},
        {Opcode::kFma, fma},
        {Opcode::kSqrt, sqrt},
        {Opcode::kRcp, rcp},
        {Opcode::kMulHi, mulhi},
        {Opcode::kSaturate, saturate},
        {Opcode::kMinNan, min_nan},
        {Opcode::kMaxNan, max_nan},
        {Opcode::kFloor, round_to_integer<std::floor>},
        {Opcode::kCeil, round_to_integer<std::ceil>},
        {Opcode::kTrunc, round_to_integer<std::trunc>},
        {Opcode::kRint, round_to_integer<std::nearbyint>},
        {Opcode::kPopc, popc},
        {Opcode::kClz, clz},
        {Opcode::kBrev, brev},
        {Opcode::kFunnelShl, funnel_shl},
        {Opcode::kFunnelShr, funnel_shr},
        {Opcode::kFunnelShlClamp, funnel_shl_clamp},
        {Opcode::kFunnelShrClamp, funnel_shr_clamp},
        {Opcode::kPrmt, prmt},
        {Opcode::kDp4a, dp4a},
        {Opcode::kDp2aLo, dp2a<0>},
        {Opcode::kDp2aHi, dp2a<2>},
        {Opcode::kVabsdiff4, vabsdiff4},
        {Opcode::kAnd, bit_and},
        {Opcode::kOr, bit_or},
        {Opcode::kXor, bit_xor},
        {Opcode::kNot, bit_not},
        {Opcode::kShl, shl},
        {Opcode::kShr, shr},
        {Opcode::kEq, eq},
        {Opcode::kNe, ne},
        {Opcode::kLt, lt},
        {Opcode::kLe, le},
        {Opcode::kGt, gt},
        {Opcode::kGe, ge},
        {Opcode::kSelect, select},
        {Opcode::kConvert, convert},
        {Opcode::kBitcast, bitcast},
    },
    {Opcode::kRcpApprox, Opcode::kExp2, Opcode::kRsqrt, Opcode::kLog2, Opcode::kSinApprox,
     Opcode::kCosApprox, Opcode::kTanhApprox, Opcode::kAddRounded, Opcode::kSubRounded,
     Opcode::kMulRounded, Opcode::kDivRounded, Opcode::kFmaRounded, Opcode::kSqrtRounded,
     Opcode::kRcpRounded, Opcode::kConvertRounded});

ScalarRule rule_of(Opcode opcode) {
  return has(info(opcode), kForwards) ? bitcast : at(kRules, opcode);
}

}  // namespace

bool is_specified(Opcode opcode, Scalar operand, absl::Span<const uint64_t> bits) {
  const bool divides = opcode == Opcode::kDiv || opcode == Opcode::kRem;
  if (!divides || !is_integer(operand)) return true;
  if (bits[1] == 0) return false;
  return !is_signed(operand) || bits[0] != sign_bit(operand) || bits[1] != bits_mask(operand);
}

bool can_fold_scalar(Opcode opcode) { return rule_of(opcode) != nullptr; }

size_t typed_operand(Opcode opcode) {
  const Signature& signature = info(opcode).signature;
  for (size_t i = 0; i < signature.operand_count; ++i) {
    if (signature.operands[i].role == Role::kT) return i;
  }
  return 0;
}

std::optional<uint64_t> fold_scalar(Opcode opcode, Scalar operand, Scalar result,
                                    absl::Span<const uint64_t> bits) {
  const ScalarRule rule = rule_of(opcode);
  if (rule == nullptr || !is_specified(opcode, operand, bits)) return std::nullopt;
  return rule(operand, result, bits);
}

}  // namespace heddle::ir
