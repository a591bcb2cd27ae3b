#include "heddle/ir/analysis/linear.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/ir/analysis/int_range.h"

namespace heddle::ir {
namespace {

// How far a sum is followed, and how many terms it may have.
constexpr int kMostDepth = 24;
constexpr size_t kMostTerms = 8;

LinearSum just(ValueId value) {
  LinearSum sum;
  sum.terms.push_back({value, 1});
  return sum;
}

// Modulo 2^64.
int64_t times(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t plus(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
// Modulo the width of a type, extended by the sign.
int64_t wrapped(Scalar scalar, int64_t number) {
  const int bits = 64 - 8 * bytes_of(scalar);
  return static_cast<int64_t>(static_cast<uint64_t>(number) << bits) >> bits;
}

// What at_launch computes its value from is not part of the kernel; what assume_uniform says of its result must
// not be lost where an offset is computed anew from the terms.
bool forwards_inside(const Op& op) {
  return has(info(op), kForwards) && op.opcode != Opcode::kAtLaunch &&
         op.opcode != Opcode::kAssumeUniform;
}

}  // namespace

int64_t LinearSum::factor_of(ValueId value) const {
  for (const Term& term : terms) {
    if (term.value == value) return term.factor;
  }
  return 0;
}

LinearSum LinearSums::sum_of(ValueId value, int depth) {
  if (at_[value] >= 0) return sums_[static_cast<size_t>(at_[value])];
  LinearSum sum = depth < kMostDepth ? take_apart(value, depth + 1) : just(value);
  if (sum.terms.size() > kMostTerms) sum = just(value);
  sum.bits = 8 * bytes_of(kernel_.type(value).scalar);
  at_.at(value) = static_cast<int32_t>(sums_.size());
  sums_.push_back(sum);
  return sum;
}

LinearSum LinearSums::take_apart(ValueId value, int depth) {
  const Type type = kernel_.type(value);
  const Op* const op = kernel_.def(value);
  if (op == nullptr || type.count != 1 || !is_integer(type.scalar)) return just(value);
  const auto sum = [&](ValueId operand) { return sum_of(operand, depth); };
  const LinearSum one{.terms = {}, .constant = 1};
  switch (op->opcode) {
    case Opcode::kConst:
      return {.terms = {}, .constant = wrapped(type.scalar, *kernel_.constant_int(value))};
    case Opcode::kAdd:
      return combined(sum(op->a()), 1, sum(op->b()), 1, value);
    case Opcode::kSub:
      return combined(sum(op->a()), 1, sum(op->b()), -1, value);
    case Opcode::kNeg:
      return combined(sum(op->a()), -1, one, 0, value);
    case Opcode::kMul:
    case Opcode::kFma: {
      const ValueId a = op->a(), b = op->b();
      const auto factor_a = kernel_.constant_int(a), factor_b = kernel_.constant_int(b);
      if (!factor_a && !factor_b) return just(value);
      const LinearSum product = factor_b ? combined(sum(a), *factor_b, one, 0, value)
                                         : combined(sum(b), *factor_a, one, 0, value);
      if (op->opcode == Opcode::kMul) return product;
      return combined(product, 1, sum(op->c()), 1, value);
    }
    case Opcode::kShl: {
      const auto count = kernel_.constant_int(op->count());
      if (!count || *count < 0 || *count >= 8 * bytes_of(type.scalar)) return just(value);
      return combined(sum(op->a()), int64_t{1} << *count, one, 0, value);
    }
    case Opcode::kBitcast:
      return is_integer(kernel_.type(op->a()).scalar) ? sum(op->a()) : just(value);
    case Opcode::kConvert: {
      const bool extends =
          type.scalar == Scalar::kI64 && kernel_.type(op->a()).scalar == Scalar::kI32;
      return extends ? extended(op->a(), depth) : just(value);
    }
    default:
      return forwards_inside(*op) ? sum(op->a()) : just(value);
  }
}

LinearSum LinearSums::extended(ValueId value, int depth) {
  const Op* const op = kernel_.def(value);
  if (op == nullptr || depth >= kMostDepth) return just(value);
  if (forwards_inside(*op)) return extended(op->a(), depth + 1);
  if (op->opcode != Opcode::kAdd) return just(value);
  // A constant that is added to a value whose range and divisor leave room for it.
  const auto constant_a = kernel_.constant_int(op->a());
  const auto constant = constant_a ? constant_a : kernel_.constant_int(op->b());
  if (!constant) return just(value);
  const ValueId rest = constant_a ? op->b() : op->a();
  IntRange range = ints_.range(rest);
  const int64_t divisor = std::max<int64_t>(ints_.divisor(rest), 1);
  range.max -= std::max<int64_t>(range.max, 0) % divisor;
  range.min -= std::min<int64_t>(range.min, 0) % divisor;
  if (!type_range(Scalar::kI32).contains({range.min + *constant, range.max + *constant})) {
    return just(value);
  }
  LinearSum result = extended(rest, depth + 1);
  result.constant = plus(result.constant, *constant);
  return result;
}

LinearSum LinearSums::combined(const LinearSum& a, int64_t factor_a, const LinearSum& b,
                               int64_t factor_b, ValueId value) const {
  const Scalar scalar = kernel_.type(value).scalar;
  LinearSum sum;
  size_t i = 0, j = 0;
  while (i < a.terms.size() || j < b.terms.size()) {
    const bool has_a = i < a.terms.size(), has_b = j < b.terms.size();
    const bool take_a = has_a && (!has_b || a.terms[i].value <= b.terms[j].value);
    const bool take_b = has_b && (!has_a || b.terms[j].value <= a.terms[i].value);
    const ValueId term = take_a ? a.terms[i].value : b.terms[j].value;
    int64_t factor = 0;
    if (take_a) factor = plus(factor, times(factor_a, a.terms[i++].factor));
    if (take_b) factor = plus(factor, times(factor_b, b.terms[j++].factor));
    factor = wrapped(scalar, factor);
    if (factor != 0) sum.terms.push_back({term, factor});
  }
  sum.constant = wrapped(scalar, plus(times(factor_a, a.constant), times(factor_b, b.constant)));
  return sum;
}

std::string LinearSums::disagreement(const LinearSums&) const {
  for (const LinearSum& sum : sums_) {
    for (const LinearSum::Term& term : sum.terms) {
      const OpId def = kernel_.value(term.value).def;
      if (valid(def) && !kernel_.linked(def)) {
        return absl::StrCat("value ", index_of(term.value), ", which is gone, is part of a sum");
      }
    }
  }
  return "";
}

}  // namespace heddle::ir
