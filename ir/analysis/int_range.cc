#include "heddle/ir/analysis/int_range.h"

#include <algorithm>
#include <array>
#include <optional>

#include "heddle/ir/op_table_internal.h"

namespace heddle::ir {
namespace {

__extension__ typedef __int128 Wide;  // exact results of 64-bit operands

struct WideRange {
  Wide min;
  Wide max;
};

constexpr Wide kTwoTo64 = Wide{1} << 64;

WideRange wide(IntRange r) { return {r.min, r.max}; }

// The numbers themselves: a u64's negative twins become what they stand for. Ops that depend on the
// order of numbers need these; arithmetic modulo 2^n does not care.
WideRange true_numbers(Scalar scalar, IntRange r) {
  if (scalar != Scalar::kU64 || r.min >= 0) return wide(r);
  if (r.max < 0) return {r.min + kTwoTo64, r.max + kTwoTo64};
  return {0, kTwoTo64 - 1};
}

bool fits(Scalar scalar, WideRange r) {
  const IntRange all = type_range(scalar);
  return r.min >= all.min && r.max <= all.max;
}

// Exact results brought into the type.
IntRange narrow(Scalar scalar, WideRange r) {
  if (scalar == Scalar::kU64 && r.min > std::numeric_limits<int64_t>::max() && r.max < kTwoTo64) {
    r = {r.min - kTwoTo64, r.max - kTwoTo64};
  }
  if (!fits(scalar, r)) return type_range(scalar);
  return {static_cast<int64_t>(r.min), static_cast<int64_t>(r.max)};
}

template <class Function>
WideRange over_corners(WideRange a, WideRange b, Function function) {
  const Wide corners[] = {function(a.min, b.min), function(a.min, b.max), function(a.max, b.min),
                          function(a.max, b.max)};
  return {*std::min_element(std::begin(corners), std::end(corners)),
          *std::max_element(std::begin(corners), std::end(corners))};
}

WideRange multiply(WideRange a, WideRange b) {
  return over_corners(a, b, [](Wide x, Wide y) { return x * y; });
}

// Results that nothing is known of: of operands for which the op is unspecified and no others.
constexpr WideRange kAnything{-kTwoTo64, kTwoTo64};

// Unspecified quotients (by zero, INT_MIN / -1) are left out: no program relies on them.
WideRange divide(WideRange a, WideRange b) {
  WideRange result{0, 0};
  bool first = true;
  const auto add = [&](WideRange side) {
    if (side.min > side.max) return;
    const WideRange q = over_corners(a, side, [](Wide x, Wide y) { return x / y; });
    result = first ? q : WideRange{std::min(result.min, q.min), std::max(result.max, q.max)};
    first = false;
  };
  // Truncating division is monotone in each operand as long as the divisor keeps its sign.
  add({b.min, std::min<Wide>(b.max, -1)});
  add({std::max<Wide>(b.min, 1), b.max});
  return first ? kAnything : result;
}

WideRange remainder(WideRange a, WideRange b) {
  const Wide most = std::max(b.max, -b.min) - 1;  // of |a % b|
  const Wide least_divisor = b.min > 0 ? b.min : b.max < 0 ? -b.max : 0;
  if (a.min >= 0 && a.max < least_divisor) return a;
  if (b.min >= -1 && b.max <= 0) return kAnything;
  return {a.min < 0 ? std::max(-most, a.min) : 0, a.max > 0 ? std::min(most, a.max) : 0};
}

// The smallest 2^n - 1 that is at least v.
Wide all_ones_above(Wide v) {
  Wide ones = 0;
  while (ones < v) ones = ones * 2 + 1;
  return ones;
}

using Operands = absl::Span<const IntRange>;

// --- Results that wrap: the exact one, before it is brought into the type ---

// nullopt where no bound is worth stating.
using ExactRule = std::optional<WideRange> (*)(Scalar, Operands);

std::optional<WideRange> exact_fma(Scalar, Operands o) {
  const WideRange product = multiply(wide(o[0]), wide(o[1]));
  return WideRange{product.min + o[2].min, product.max + o[2].max};
}

std::optional<WideRange> exact_abs(Scalar scalar, Operands o) {
  const WideRange a = wide(o[0]);
  if (a.min >= 0 || !is_signed(scalar)) return a;
  return WideRange{a.max < 0 ? -a.max : 0, std::max(-a.min, a.max)};
}

std::optional<WideRange> exact_shl(Scalar scalar, Operands o) {
  if (o[1].max >= info(scalar).bits) return std::nullopt;  // may shift everything out
  return multiply(wide(o[0]), {Wide{1} << o[1].min, Wide{1} << o[1].max});
}

std::optional<WideRange> exact_add(Scalar, Operands o) {
  return WideRange{Wide{o[0].min} + o[1].min, Wide{o[0].max} + o[1].max};
}

std::optional<WideRange> exact_sub(Scalar, Operands o) {
  return WideRange{Wide{o[0].min} - o[1].max, Wide{o[0].max} - o[1].min};
}

std::optional<WideRange> exact_mul(Scalar, Operands o) { return multiply(wide(o[0]), wide(o[1])); }

std::optional<WideRange> exact_neg(Scalar, Operands o) {
  return WideRange{-Wide{o[0].max}, -Wide{o[0].min}};
}

// --- Results that depend on the order or the bits of numbers ---

using DirectRule = IntRange (*)(Scalar, Operands);

IntRange range_of_and(Scalar scalar, Operands o) {
  const WideRange a = true_numbers(scalar, o[0]);
  const WideRange b = true_numbers(scalar, o[1]);
  // A number without its sign bit clears the sign of whatever it meets.
  if (a.min >= 0 && b.min >= 0) return narrow(scalar, {0, std::min(a.max, b.max)});
  if (a.min >= 0) return narrow(scalar, {0, a.max});
  if (b.min >= 0) return narrow(scalar, {0, b.max});
  return type_range(scalar);
}

template <bool is_or>
IntRange range_of_or(Scalar scalar, Operands o) {
  const WideRange a = true_numbers(scalar, o[0]);
  const WideRange b = true_numbers(scalar, o[1]);
  if (a.min < 0 || b.min < 0) return type_range(scalar);
  const Wide least = is_or ? std::max(a.min, b.min) : 0;
  return narrow(scalar, {least, all_ones_above(std::max(a.max, b.max))});
}

IntRange range_of_not(Scalar scalar, Operands o) {
  if (scalar == Scalar::kBool) return {1 - o[0].max, 1 - o[0].min};
  const Wide ones = scalar == Scalar::kU32 ? type_range(scalar).max : -1;
  return narrow(scalar, {ones - o[0].max, ones - o[0].min});
}

IntRange range_of_shr(Scalar scalar, Operands o) {
  // The width or more shifts everything out, as 64 does.
  const WideRange counts{std::min<int64_t>(o[1].min, 64), std::min<int64_t>(o[1].max, 64)};
  return narrow(scalar, over_corners(true_numbers(scalar, o[0]), counts,
                                     [](Wide x, Wide n) { return x >> static_cast<int>(n); }));
}

IntRange range_of_select(Scalar, Operands o) {
  if (o[0].is_constant()) return o[0].min != 0 ? o[1] : o[2];
  return join(o[1], o[2]);
}

// A rule over both operands' true numbers.
template <WideRange (*function)(WideRange, WideRange)>
IntRange ordered(Scalar scalar, Operands o) {
  return narrow(scalar, function(true_numbers(scalar, o[0]), true_numbers(scalar, o[1])));
}

// A comparison: whether it always holds, and whether it never does.
template <bool (*always)(WideRange, WideRange), bool (*never)(WideRange, WideRange)>
IntRange truth(Scalar scalar, Operands o) {
  const WideRange a = true_numbers(scalar, o[0]);
  const WideRange b = true_numbers(scalar, o[1]);
  return {always(a, b) ? 1 : 0, never(a, b) ? 0 : 1};
}

bool all_less(WideRange a, WideRange b) { return a.max < b.min; }
bool all_less_equal(WideRange a, WideRange b) { return a.max <= b.min; }
bool all_greater(WideRange a, WideRange b) { return a.min > b.max; }
bool all_greater_equal(WideRange a, WideRange b) { return a.min >= b.max; }
bool same_number(WideRange a, WideRange b) {
  return a.min == a.max && b.min == b.max && a.min == b.min;
}
bool apart(WideRange a, WideRange b) { return all_less(a, b) || all_greater(a, b); }

WideRange least(WideRange a, WideRange b) {
  return {std::min(a.min, b.min), std::min(a.max, b.max)};
}
WideRange greatest(WideRange a, WideRange b) {
  return {std::max(a.min, b.min), std::max(a.max, b.max)};
}

// The one or the other.
struct Rule {
  ExactRule exact = nullptr;
  DirectRule direct = nullptr;
};
constexpr OpTable<Rule> kRules =
    op_table<Rule>(algebraic_on_integers,
                   {
                       {Opcode::kAdd, {.exact = exact_add}},
                       {Opcode::kSub, {.exact = exact_sub}},
                       {Opcode::kMul, {.exact = exact_mul}},
                       {Opcode::kNeg, {.exact = exact_neg}},
                       {Opcode::kFma, {.exact = exact_fma}},
                       {Opcode::kAbs, {.exact = exact_abs}},
                       {Opcode::kShl, {.exact = exact_shl}},
                       {Opcode::kDiv, {.direct = ordered<divide>}},
                       {Opcode::kRem, {.direct = ordered<remainder>}},
                       {Opcode::kMin, {.direct = ordered<least>}},
                       {Opcode::kMax, {.direct = ordered<greatest>}},
                       {Opcode::kAnd, {.direct = range_of_and}},
                       {Opcode::kOr, {.direct = range_of_or<true>}},
                       {Opcode::kXor, {.direct = range_of_or<false>}},
                       {Opcode::kNot, {.direct = range_of_not}},
                       {Opcode::kShr, {.direct = range_of_shr}},
                       {Opcode::kEq, {.direct = truth<same_number, apart>}},
                       {Opcode::kNe, {.direct = truth<apart, same_number>}},
                       {Opcode::kLt, {.direct = truth<all_less, all_greater_equal>}},
                       {Opcode::kLe, {.direct = truth<all_less_equal, all_greater>}},
                       {Opcode::kGt, {.direct = truth<all_greater, all_less_equal>}},
                       {Opcode::kGe, {.direct = truth<all_greater_equal, all_less>}},
                       {Opcode::kSelect, {.direct = range_of_select}},
                   },
                   {Opcode::kConvert});

}  // namespace

IntRange type_range(Scalar scalar) {
  switch (scalar) {
    case Scalar::kBool:
      return {0, 1};
    case Scalar::kI8:
      return {std::numeric_limits<int8_t>::min(), std::numeric_limits<int8_t>::max()};
    case Scalar::kU8:
      return {0, std::numeric_limits<uint8_t>::max()};
    case Scalar::kI16:
      return {std::numeric_limits<int16_t>::min(), std::numeric_limits<int16_t>::max()};
    case Scalar::kU16:
      return {0, std::numeric_limits<uint16_t>::max()};
    case Scalar::kI32:
      return {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};
    case Scalar::kU32:
      return {0, std::numeric_limits<uint32_t>::max()};
    case Scalar::kI64:
    case Scalar::kU64:
    case Scalar::kNone:
    case Scalar::kE4M3:
    case Scalar::kE5M2:
    case Scalar::kE8M0:
    case Scalar::kE2M1X2:
    case Scalar::kF16:
    case Scalar::kBF16:
    case Scalar::kTF32:
    case Scalar::kF32:
    case Scalar::kF64:
      return {};
  }
  return {};
}

Opcode mirrored(Opcode comparison) {
  if (comparison == Opcode::kLt) return Opcode::kGt;
  if (comparison == Opcode::kGt) return Opcode::kLt;
  if (comparison == Opcode::kLe) return Opcode::kGe;
  if (comparison == Opcode::kGe) return Opcode::kLe;
  return comparison;
}

IntRange join(IntRange a, IntRange b) { return {std::min(a.min, b.min), std::max(a.max, b.max)}; }

bool may_wrap(Opcode opcode, Scalar scalar, absl::Span<const IntRange> operands) {
  const ExactRule rule = at(kRules, opcode).exact;
  if (rule == nullptr) return false;
  const std::optional<WideRange> result = rule(scalar, operands);
  return !result || !fits(scalar, *result);
}

std::optional<IntRange> range_of(Opcode opcode, Scalar scalar,
                                 absl::Span<const IntRange> operands) {
  const Rule& rule = at(kRules, opcode);
  if (rule.exact != nullptr) {
    const std::optional<WideRange> result = rule.exact(scalar, operands);
    return result ? narrow(scalar, *result) : type_range(scalar);
  }
  return rule.direct != nullptr ? std::optional(rule.direct(scalar, operands)) : std::nullopt;
}

IntRange converted_range(Scalar from, Scalar to, IntRange operand) {
  if (is_float(from) || is_float(to)) return type_range(to);
  if (to == Scalar::kBool) {
    if (!operand.contains(0)) return {1, 1};
    return {0, operand == IntRange{0, 0} ? 0 : 1};
  }
  // Modulo 2^n: a number that the destination has stays what it is. The twins of u64 are right as
  // they are, for they have the same bits.
  return type_range(to).contains(operand) ? operand : type_range(to);
}

}  // namespace heddle::ir
