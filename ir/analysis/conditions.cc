#include "heddle/ir/analysis/conditions.h"

#include <algorithm>
#include <optional>

namespace heddle::ir {
namespace {

constexpr int kMaxDepth = 8;  // of ands and ors in a condition

bool is_comparison(Opcode opcode) {
  return opcode == Opcode::kEq || opcode == Opcode::kNe || mirrored(opcode) != opcode;
}

Opcode negated(Opcode comparison) {
  switch (comparison) {
    case Opcode::kLt:
      return Opcode::kGe;
    case Opcode::kGe:
      return Opcode::kLt;
    case Opcode::kLe:
      return Opcode::kGt;
    case Opcode::kGt:
      return Opcode::kLe;
    case Opcode::kEq:
      return Opcode::kNe;
    default:
      return Opcode::kEq;
  }
}

// The numbers for which a comparison with a constant holds. nullopt: none, or no range of them. Of
// u64 those beyond 2^63 - 1 are no range that starts at 0.
std::optional<IntRange> numbers_where(Opcode comparison, Scalar scalar, int64_t c) {
  IntRange all = type_range(scalar);
  if (scalar == Scalar::kU64) all.min = 0;
  const bool above = comparison == Opcode::kGt || comparison == Opcode::kGe;
  if (scalar == Scalar::kU64 && (above || c < 0)) return std::nullopt;
  switch (comparison) {
    case Opcode::kLt:
      return c > all.min ? std::optional(IntRange{all.min, c - 1}) : std::nullopt;
    case Opcode::kLe:
      return IntRange{all.min, c};
    case Opcode::kGt:
      return c < all.max ? std::optional(IntRange{c + 1, all.max}) : std::nullopt;
    case Opcode::kGe:
      return IntRange{c, all.max};
    default:
      return IntRange{c, c};
  }
}

// The range of x + by, modulo 2^n, where it is one range of the type's numbers.
std::optional<IntRange> shifted(Scalar scalar, IntRange range, int64_t by) {
  IntRange sum;
  if (__builtin_add_overflow(range.min, by, &sum.min) ||
      __builtin_add_overflow(range.max, by, &sum.max)) {
    return std::nullopt;
  }
  const IntRange all = type_range(scalar);
  if (info(scalar).bits < 64) {
    const int64_t period = int64_t{1} << info(scalar).bits;
    const int64_t turns = sum.min < all.min   ? (all.min - sum.min + period - 1) / period
                          : sum.min > all.max ? -((sum.min - all.max + period - 1) / period)
                                              : 0;
    sum.min += turns * period;
    sum.max += turns * period;
  }
  return all.contains(sum) ? std::optional(sum) : std::nullopt;
}

}  // namespace

Conditions::Sum Conditions::sum_of(ValueId value) const {
  Sum sum{value, 0};
  while (const Op* const op = kernel_.def(sum.root)) {
    if (op->opcode != Opcode::kAdd && op->opcode != Opcode::kSub) break;
    const auto constant = kernel_.constant_int(op->b());
    int64_t next = 0;
    if (!constant) break;
    const bool far = op->opcode == Opcode::kAdd
                         ? __builtin_add_overflow(sum.addend, *constant, &next)
                         : __builtin_sub_overflow(sum.addend, *constant, &next);
    if (far) break;
    sum = {op->a(), next};
  }
  return sum;
}

void Conditions::collect(ValueId condition, bool holds, int depth, Facts& facts) const {
  const Op* const op = kernel_.def(condition);
  if (op == nullptr || depth == 0) return;
  const Type type = kernel_.type(condition);
  if (!type.is_scalar() || type.scalar != Scalar::kBool) return;
  if (has(info(*op), kForwards)) return collect(op->a(), holds, depth - 1, facts);
  if (op->opcode == Opcode::kNot) return collect(op->a(), !holds, depth - 1, facts);
  if (op->opcode == (holds ? Opcode::kAnd : Opcode::kOr)) {
    collect(op->a(), holds, depth - 1, facts);
    return collect(op->b(), holds, depth - 1, facts);
  }
  const std::optional<Comparison> compared = comparison_of(*op);
  if (!compared) return;
  const Opcode comparison = holds ? compared->opcode : negated(compared->opcode);
  const Scalar scalar = kernel_.type(compared->sum.root).scalar;
  const auto numbers = numbers_where(comparison, scalar, compared->constant);
  if (numbers) facts.push_back({compared->sum, *numbers, comparison == Opcode::kNe});
}

std::optional<Conditions::Comparison> Conditions::comparison_of(const Op& op) const {
  if (!is_comparison(op.opcode)) return std::nullopt;
  const Type type = kernel_.type(op.a());
  if (!type.is_scalar() || !is_integer(type.scalar)) return std::nullopt;
  const auto left = kernel_.constant_int(op.a());
  const auto right = kernel_.constant_int(op.b());
  if (left.has_value() == right.has_value()) return std::nullopt;
  if (left) return Comparison{mirrored(op.opcode), sum_of(op.b()), *left};
  return Comparison{op.opcode, sum_of(op.a()), *right};
}

const Conditions::Numbers& Conditions::compared_with(ValueId value) {
  static const Numbers kNone;
  if (!compared_) {
    compared_.emplace();
    kernel_.walk([&](OpId id) {
      const std::optional<Comparison> compared = comparison_of(kernel_.op(id));
      int64_t number = 0;
      if (!compared || __builtin_sub_overflow(compared->constant, compared->sum.addend, &number)) {
        return;
      }
      (*compared_)[compared->sum.root].push_back(number);
    });
  }
  const auto known = compared_->find(value);
  return known == compared_->end() ? kNone : known->second;
}

int64_t Conditions::bound_above(ValueId value, int64_t from, int64_t otherwise) {
  int64_t bound = otherwise;
  for (const int64_t number : compared_with(value)) {
    if (number >= from) bound = std::min(bound, number == from ? from : number - 1);
  }
  return bound;
}

int64_t Conditions::bound_below(ValueId value, int64_t from, int64_t otherwise) {
  int64_t bound = otherwise;
  for (const int64_t number : compared_with(value)) {
    if (number <= from) bound = std::max(bound, number == from ? from : number + 1);
  }
  return bound;
}

const Conditions::Facts& Conditions::facts_of(RegionId region) {
  static const Facts kNone;
  const OpId owner = kernel_.region(region).parent;
  if (!valid(owner)) return kNone;
  if (const auto known = facts_.find(region); known != facts_.end()) return known->second;
  const Op& op = kernel_.op(owner);
  Facts facts = facts_of(op.parent);
  if (op.opcode == Opcode::kIf) {
    collect(op.condition(), region == op.regions[0], kMaxDepth, facts);
  }
  return facts_[region] = std::move(facts);
}

IntRange Conditions::narrowed(const Facts& facts, ValueId value, IntRange range) const {
  if (facts.empty() || !kernel_.type(value).is_scalar()) return range;
  const Sum sum = sum_of(value);
  const Scalar scalar = kernel_.type(value).scalar;
  for (const Fact& fact : facts) {
    int64_t distance = 0;
    if (fact.sum.root != sum.root ||
        __builtin_sub_overflow(sum.addend, fact.sum.addend, &distance)) {
      continue;
    }
    const auto of_value = shifted(scalar, fact.range, distance);
    if (!of_value) continue;
    if (fact.excluded) {
      if (range.is_constant()) continue;
      if (range.min == of_value->min) ++range.min;
      if (range.max == of_value->max) --range.max;
      continue;
    }
    const IntRange both{std::max(range.min, of_value->min), std::min(range.max, of_value->max)};
    // Where they exclude each other, nothing runs here.
    if (both.min <= both.max) range = both;
  }
  return range;
}

IntRange Conditions::inside(RegionId region, ValueId value, IntRange range) {
  return narrowed(facts_of(region), value, range);
}

IntRange Conditions::where(ValueId condition, bool holds, ValueId value, IntRange range) const {
  Facts facts;
  collect(condition, holds, kMaxDepth, facts);
  return narrowed(facts, value, range);
}

}  // namespace heddle::ir
