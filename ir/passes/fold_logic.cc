// Rules of fold for bits, comparisons and choices.
#include <algorithm>
#include <bit>

#include "heddle/ir/passes/folder.h"

namespace heddle::ir {
namespace {

constexpr ValueId kNoChange = ValueId::kNone;

// (x op c1) op c2 is x op (c1 op c2), for and, or, xor.
ValueId collect_constants(Folder& f, const Node& n) {
  if (!f.bits(n.b())) return kNoChange;
  const auto inner = f.match(n.a(), n.opcode);
  if (!inner || !f.bits(inner->b())) return kNoChange;
  return f.make(n.opcode, {inner->a(), f.make(n.opcode, {inner->b(), n.b()})});
}

// x + m, where m is a multiple of 2^width, has the low bits of x: the two terms.
struct HighSum {
  ValueId low;   // x
  ValueId high;  // m
};
std::optional<HighSum> sum_above(Folder& f, ValueId value, int width) {
  const auto sum = f.match(value, Opcode::kAdd);
  if (!sum || width >= std::min(element_bits(f.type(value)), 62)) return std::nullopt;
  for (const HighSum& terms : {HighSum{sum->a(), sum->b()}, HighSum{sum->b(), sum->a()}}) {
    if (f.ints().divisible(terms.high, int64_t{1} << width)) return terms;
  }
  return std::nullopt;
}

// A sum of two numbers that have no bit in common: a multiple of 2^width, and one below it.
std::optional<HighSum> sum_of_parts(Folder& f, ValueId value, int width) {
  const auto sum = sum_above(f, value, width);
  if (!sum) return std::nullopt;  // so that the width is below 62
  const IntRange below{0, (int64_t{1} << width) - 1};
  return below.contains(f.ints().range(sum->low)) ? sum : std::nullopt;
}

// A sum that is its terms' exclusive or, of which one is a constant: l + c, or m + (l + c) where m is a multiple of
// more.
struct ExclusiveSum {
  ValueId rest;      // l, or m + l
  ValueId constant;  // c
};
std::optional<ExclusiveSum> exclusive_sum(Folder& f, ValueId value) {
  const auto is_above = [&](ValueId constant, ValueId rest) {
    const auto c = f.number(constant);
    if (!c || *c <= 0) return false;
    return IntRange{0, (*c & -*c) - 1}.contains(f.ints().range(rest));
  };
  const auto sum = f.match(value, Opcode::kAdd);
  if (!sum) return std::nullopt;
  if (is_above(sum->b(), sum->a())) return ExclusiveSum{sum->a(), sum->b()};
  for (const bool swapped : {false, true}) {
    const ValueId high = swapped ? sum->b() : sum->a();
    const auto low = f.match(swapped ? sum->a() : sum->b(), Opcode::kAdd);
    if (!low || !is_above(low->b(), low->a())) continue;
    const int width = std::bit_width(static_cast<uint64_t>(*f.number(low->b())));
    if (width >= 62 || !f.ints().divisible(high, int64_t{1} << width)) continue;
    return ExclusiveSum{f.make(Opcode::kAdd, {high, low->a()}), low->b()};
  }
  return std::nullopt;
}

ValueId make_shift(Folder& f, Opcode opcode, ValueId value, int64_t count) {
  return f.make(opcode, {value, f.constant_number(kU32Type, count)});
}

// The low bits of a sum, or some above those that are shifted out, without a term that has none of them.
ValueId mask_of_sum(Folder& f, const Node& n, int width) {
  if (const auto sum = sum_above(f, n.a(), width)) return f.make(Opcode::kAnd, {sum->low, n.b()});
  const auto shift = f.match(n.a(), Opcode::kShr);
  const auto count = shift ? f.number(shift->count()) : std::nullopt;
  if (!count || *count >= 62) return kNoChange;
  const auto sum = sum_above(f, shift->a(), width + static_cast<int>(*count));
  if (!sum) return kNoChange;
  return f.make(Opcode::kAnd, {make_shift(f, Opcode::kShr, sum->low, *count), n.b()});
}

struct Opposite {
  Opcode of;
  Opcode is;
  bool floats_too;  // ordered comparisons of floats have no ordered opposite
};
constexpr Opposite kOpposites[] = {
    {Opcode::kEq, Opcode::kNe, true},  {Opcode::kNe, Opcode::kEq, true},
    {Opcode::kLt, Opcode::kGe, false}, {Opcode::kGe, Opcode::kLt, false},
    {Opcode::kLe, Opcode::kGt, false}, {Opcode::kGt, Opcode::kLe, false},
};

// A value compared with itself.
ValueId compare_same(Folder& f, const Node& n, bool floats) {
  const bool strict = n.opcode == Opcode::kLt || n.opcode == Opcode::kGt || n.opcode == Opcode::kNe;
  // A NaN is neither less nor greater than itself, but is not equal to itself either.
  if (floats && (!strict || n.opcode == Opcode::kNe)) return kNoChange;
  return f.boolean(n.type, !strict);
}

// eq and ne of integers and bools with a constant.
ValueId compare_equal(Folder& f, const Node& n, int64_t c) {
  const bool equal = n.opcode == Opcode::kEq;
  if (f.type(n.a()).scalar == Scalar::kBool) {
    return equal == (c != 0) ? n.a() : f.make(Opcode::kNot, {n.a()});
  }
  // Modulo 2^n: x + c1 = c2 where x = c2 - c1, and x - y = 0 where x = y.
  if (const auto sum = f.match(n.a(), Opcode::kAdd)) {
    if (const auto inner = f.number(sum->b())) {
      const auto rest = static_cast<uint64_t>(c) - static_cast<uint64_t>(*inner);
      const ValueId bound = f.constant_number(f.type(n.a()), static_cast<int64_t>(rest));
      return f.make(n.opcode, {sum->a(), bound});
    }
  }
  if (const auto difference = f.match(n.a(), Opcode::kSub); difference && c == 0) {
    return f.make(n.opcode, {difference->a(), difference->b()});
  }
  if (const auto number = f.match(n.a(), Opcode::kConvert); number && c == 0) {
    if (f.type(number->a()).scalar != Scalar::kBool) return kNoChange;
    return equal ? f.make(Opcode::kNot, {number->a()}) : number->a();
  }
  return kNoChange;
}

}  // namespace

ValueId fold_and(Folder& f, const Node& n) {
  if (n.a() == n.b()) return n.a();
  const auto mask = f.bits(n.b());
  if (mask == 0) return n.b();
  if (mask == all_ones(n.type)) return n.a();
  if (mask && std::has_single_bit(*mask + 1) &&
      IntRange{0, static_cast<int64_t>(*mask)}.contains(f.ints().range(n.a()))) {
    return n.a();  // the mask takes nothing away
  }
  for (const bool swapped : {false, true}) {
    const auto inverse = f.match(swapped ? n.a() : n.b(), Opcode::kNot);
    if (inverse && inverse->a() == (swapped ? n.b() : n.a())) return f.constant(n.type, 0);
  }
  if (mask) {
    const int width = std::bit_width(*mask);
    if (width < 62 && f.ints().divisible(n.a(), int64_t{1} << width)) return f.constant(n.type, 0);
    const ValueId simpler = mask_of_sum(f, n, width);
    if (valid(simpler)) return simpler;
    const auto parts = sum_of_parts(f, n.a(), std::countr_zero(*mask));
    if (parts) return f.make(Opcode::kAnd, {parts->high, n.b()});
  }
  return collect_constants(f, n);
}

ValueId fold_or(Folder& f, const Node& n) {
  if (n.a() == n.b()) return n.a();
  const auto mask = f.bits(n.b());
  if (mask == 0) return n.a();
  if (mask == all_ones(n.type)) return n.b();
  for (const bool swapped : {false, true}) {
    const auto inverse = f.match(swapped ? n.a() : n.b(), Opcode::kNot);
    if (inverse && inverse->a() == (swapped ? n.b() : n.a())) {
      return f.constant(n.type, all_ones(n.type));
    }
  }
  return collect_constants(f, n);
}

ValueId fold_xor(Folder& f, const Node& n) {
  if (n.a() == n.b()) return f.constant(n.type, 0);
  const auto mask = f.bits(n.b());
  if (mask == 0) return n.a();
  if (mask == all_ones(n.type)) return f.make(Opcode::kNot, {n.a()});
  for (const bool swapped : {false, true}) {
    const ValueId by = swapped ? n.a() : n.b();
    const IntRange range = f.ints().range(by);
    if (range.min < 0) continue;
    const int width = std::bit_width(static_cast<uint64_t>(range.max));
    // A constant goes on to the instruction's address; another term is better added once, before.
    const auto sum = sum_above(f, swapped ? n.b() : n.a(), width);
    if (sum && f.number(sum->high)) {
      return f.make(Opcode::kAdd, {f.make(Opcode::kXor, {sum->low, by}), sum->high});
    }
  }
  // Steps within a swizzle's bits share the exclusive or that is not constant.
  if (!mask) {
    for (const bool swapped : {false, true}) {
      const auto sum = exclusive_sum(f, swapped ? n.b() : n.a());
      if (!sum) continue;
      const ValueId by = swapped ? n.a() : n.b();
      return f.make(Opcode::kXor, {f.make(Opcode::kXor, {sum->rest, by}), sum->constant});
    }
  }
  return collect_constants(f, n);
}

ValueId fold_not(Folder& f, const Node& n) {
  if (const auto inner = f.match(n.a(), Opcode::kNot)) return inner->a();
  for (const Opposite& opposite : kOpposites) {
    const auto comparison = f.match(n.a(), opposite.of);
    if (!comparison) continue;
    if (is_float(f.type(comparison->a()).scalar) && !opposite.floats_too) return kNoChange;
    return f.make(opposite.is, {comparison->a(), comparison->b()});
  }
  return kNoChange;
}

ValueId fold_shl(Folder& f, const Node& n) {
  const auto count = f.number(n.count());
  if (!count) return kNoChange;
  const int width = element_bits(n.type);
  if (*count == 0) return n.a();
  if (*count >= width) return f.constant(n.type, 0);
  if (const auto inner = f.match(n.a(), Opcode::kShl)) {
    if (const auto before = f.number(inner->count())) {
      return make_shift(f, Opcode::kShl, inner->a(), std::min<int64_t>(*before + *count, width));
    }
  }
  return kNoChange;
}

ValueId fold_shr(Folder& f, const Node& n) {
  const auto count = f.number(n.count());
  if (!count) return kNoChange;
  const int width = element_bits(n.type);
  // Where everything is shifted out, a signed number leaves its sign.
  const int64_t most = is_signed(n.type.scalar) ? width - 1 : width;
  if (*count == 0) return n.a();
  if (*count > most) return make_shift(f, Opcode::kShr, n.a(), most);
  if (*count == width) return f.constant(n.type, 0);
  if (const auto inner = f.match(n.a(), Opcode::kShr)) {
    if (const auto before = f.number(inner->count())) {
      return make_shift(f, Opcode::kShr, inner->a(), std::min(*before + *count, most));
    }
  }
  if (const auto inner = f.match(n.a(), Opcode::kShl)) {
    if (f.number(inner->count()) == count && *count < 63 &&
        product_fits(f, inner->a(), int64_t{1} << *count)) {
      return inner->a();
    }
  }
  return kNoChange;
}

ValueId fold_comparison(Folder& f, const Node& n) {
  const bool floats = is_float(f.type(n.a()).scalar);
  if (n.a() == n.b()) return compare_same(f, n, floats);
  if (f.bits(n.a()) && !f.bits(n.b())) return f.make(mirrored(n.opcode), {n.b(), n.a()});
  const auto c = f.number(n.b());
  if (c && (n.opcode == Opcode::kEq || n.opcode == Opcode::kNe)) return compare_equal(f, n, *c);
  return kNoChange;
}

ValueId fold_select(Folder& f, const Node& n) {
  if (n.a() == n.b()) return n.a();
  if (const auto condition = f.bits(n.condition())) return *condition != 0 ? n.a() : n.b();
  if (const auto inverse = f.match(n.condition(), Opcode::kNot)) {
    return f.make(Opcode::kSelect, {inverse->a(), n.b(), n.a()});
  }
  if (!n.type.is_bool()) return kNoChange;
  if (f.bits(n.a()) == 1 && f.bits(n.b()) == 0) return n.condition();
  if (f.bits(n.a()) == 0 && f.bits(n.b()) == 1) return f.make(Opcode::kNot, {n.condition()});
  if (f.bits(n.b()) == 0) return f.make(Opcode::kAnd, {n.condition(), n.a()});
  if (f.bits(n.a()) == 1) return f.make(Opcode::kOr, {n.condition(), n.b()});
  return kNoChange;
}

}  // namespace heddle::ir
