// Rules of fold for sums, products, quotients and their like.
#include <algorithm>
#include <bit>
#include <cmath>

#include "heddle/ir/passes/folder.h"

namespace heddle::ir {
namespace {

constexpr ValueId kNoChange = ValueId::kNone;

// Modulo 2^64; constant_number cuts to the type.
int64_t wrapped_sum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
int64_t wrapped_product(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
int64_t wrapped_negation(int64_t a) { return wrapped_product(a, -1); }

ValueId add_integers(Folder& f, const Node& n) {
  const auto c = f.number(n.b());
  if (c == 0) return n.a();
  if (c) {
    if (const auto sum = f.match(n.a(), Opcode::kAdd)) {
      if (const auto inner = f.number(sum->b())) {
        const ValueId total = f.constant_number(n.type, wrapped_sum(*inner, *c));
        return f.make(Opcode::kAdd, {sum->a(), total});
      }
    }
    if (const auto difference = f.match(n.a(), Opcode::kSub)) {
      if (const auto inner = f.number(difference->a())) {
        const ValueId total = f.constant_number(n.type, wrapped_sum(*inner, *c));
        return f.make(Opcode::kSub, {total, difference->b()});
      }
    }
  }
  // (x - y) + y
  if (const auto d = f.match(n.a(), Opcode::kSub); d && d->b() == n.b()) return d->a();
  if (const auto d = f.match(n.b(), Opcode::kSub); d && d->b() == n.a()) return d->a();
  return kNoChange;
}

ValueId sub_integers(Folder& f, const Node& n) {
  if (n.a() == n.b()) return f.constant(n.type, 0);
  if (const auto c = f.number(n.b())) {
    return f.make(Opcode::kAdd, {n.a(), f.constant_number(n.type, wrapped_negation(*c))});
  }
  if (const auto c = f.number(n.a())) {
    if (c == 0) return f.make(Opcode::kNeg, {n.b()});
    if (const auto sum = f.match(n.b(), Opcode::kAdd)) {
      if (const auto inner = f.number(sum->b())) {
        const int64_t rest = wrapped_sum(*c, wrapped_negation(*inner));
        return f.make(Opcode::kSub, {f.constant_number(n.type, rest), sum->a()});
      }
    }
  }
  // (x + y) - y, (x + y) - x
  if (const auto sum = f.match(n.a(), Opcode::kAdd)) {
    if (sum->b() == n.b()) return sum->a();
    if (sum->a() == n.b()) return sum->b();
  }
  return kNoChange;
}

ValueId mul_integers(Folder& f, const Node& n) {
  const auto c = f.number(n.b());
  if (!c) return kNoChange;
  if (c == 0) return n.b();
  if (c == 1) return n.a();
  if (*c == -1 && is_signed(n.type.scalar)) return f.make(Opcode::kNeg, {n.a()});
  if (const auto product = f.match(n.a(), Opcode::kMul)) {
    if (const auto inner = f.number(product->b())) {
      const ValueId total = f.constant_number(n.type, wrapped_product(*inner, *c));
      return f.make(Opcode::kMul, {product->a(), total});
    }
  }
  // A 32-bit product is as cheap as a shift and takes a sum along; a 64-bit one is three products.
  const auto exponent = exponent_of_two(f, n.b());
  if (exponent && element_bits(n.type) == 64) {
    return f.make(Opcode::kShl, {n.a(), f.constant(kU32Type, static_cast<uint64_t>(*exponent))});
  }
  return kNoChange;
}

ValueId mul_floats(Folder& f, const Node& n) {
  if (f.is_real(n.b(), 1)) return n.a();
  if (f.is_real(n.b(), -1)) return f.make(Opcode::kNeg, {n.a()});
  const auto a = f.match(n.a(), Opcode::kNeg);
  if (!a) return kNoChange;
  if (const auto b = f.match(n.b(), Opcode::kNeg)) return f.make(Opcode::kMul, {a->a(), b->a()});
  if (const auto c = f.real(n.b()); c && !std::isnan(*c)) {
    return f.make(Opcode::kMul, {a->a(), f.constant_real(n.type, -*c)});
  }
  return kNoChange;
}

ValueId div_integers(Folder& f, const Node& n) {
  const auto c = f.number(n.b());
  if (!c) return kNoChange;
  if (c == 1) return n.a();
  if (*c == -1 && is_signed(n.type.scalar)) return f.make(Opcode::kNeg, {n.a()});
  if (*c <= 0) return kNoChange;
  if (const auto product = f.match(n.a(), Opcode::kMul)) {
    if (f.number(product->b()) == c && product_fits(f, product->a(), *c)) return product->a();
  }
  if (const auto quotient = f.match(n.a(), Opcode::kDiv)) {
    const auto inner = f.number(quotient->b());
    int64_t total = 0;
    if (inner && *inner > 0 && !__builtin_mul_overflow(*inner, *c, &total) &&
        type_range(n.type.scalar).contains(total)) {
      return f.make(Opcode::kDiv, {quotient->a(), f.constant_number(n.type, total)});
    }
  }
  const auto exponent = exponent_of_two(f, n.b());
  if (exponent && never_negative(f, n.a())) {
    return f.make(Opcode::kShr, {n.a(), f.constant(kU32Type, static_cast<uint64_t>(*exponent))});
  }
  return kNoChange;
}

// x / 2^k and x * 2^-k are the same number, rounded the same way, where 2^-k is a normal number.
ValueId div_floats(Folder& f, const Node& n) {
  // The same bits by fewer instructions: both are rounded correctly.
  if (f.is_real(n.a(), 1)) return f.make(Opcode::kRcp, {n.b()});
  const auto c = f.real(n.b());
  if (!c || *c == 0 || !std::isfinite(*c)) return kNoChange;
  if (*c == 1) return n.a();
  if (!f.target_has(Opcode::kMul, n.type)) return kNoChange;
  int exponent = 0;
  if (std::fabs(std::frexp(*c, &exponent)) != 0.5) return kNoChange;
  constexpr int kSmallestNormal[] = {-14, -126, -1022};
  const int smallest = kSmallestNormal[n.type.scalar == Scalar::kF16   ? 0
                                       : n.type.scalar == Scalar::kF64 ? 2
                                                                       : 1];
  const int reciprocal = 1 - exponent;  // c is 2^(exponent - 1)
  if (reciprocal < smallest || reciprocal > -smallest + 1) return kNoChange;
  return f.make(Opcode::kMul, {n.a(), f.constant_real(n.type, 1 / *c)});
}

// Integers, and floats whose constants are numbers: min is associative then.
template <Opcode opcode>
ValueId fold_extremum(Folder& f, const Node& n) {
  if (n.a() == n.b()) return n.a();
  const bool is_nan = is_float(n.type.scalar) && std::isnan(f.real(n.b()).value_or(0));
  if (f.bits(n.b()) && !is_nan) {
    const auto inner = f.match(n.a(), opcode);
    if (inner && f.bits(inner->b()) &&
        !(is_float(n.type.scalar) && std::isnan(*f.real(inner->b())))) {
      return f.make(opcode, {inner->a(), f.make(opcode, {inner->b(), n.b()})});
    }
  }
  if (is_float(n.type.scalar)) return kNoChange;
  const IntRange a = f.ints().range(n.a());
  const IntRange b = f.ints().range(n.b());
  // The order of u64 is not that of its twins.
  if (n.type.scalar == Scalar::kU64 && (a.min < 0 || b.min < 0)) return kNoChange;
  const bool smaller = opcode == Opcode::kMin;
  if (a.max <= b.min) return smaller ? n.a() : n.b();
  if (b.max <= a.min) return smaller ? n.b() : n.a();
  return kNoChange;
}

}  // namespace

std::optional<int> exponent_of_two(const Folder& f, ValueId value) {
  const auto bits = f.bits(value);
  if (!bits || !std::has_single_bit(*bits)) return std::nullopt;
  const int exponent = std::countr_zero(*bits);
  const bool sign = is_signed(f.type(value).scalar) && exponent == element_bits(f.type(value)) - 1;
  return sign ? std::nullopt : std::optional<int>(exponent);
}

bool product_fits(Folder& f, ValueId value, int64_t factor) {
  const IntRange range = f.ints().range(value);
  const Scalar scalar = f.type(value).scalar;
  if (scalar == Scalar::kU64 && range.min < 0) return false;
  IntRange product;
  if (__builtin_mul_overflow(range.min, factor, &product.min) ||
      __builtin_mul_overflow(range.max, factor, &product.max)) {
    return false;
  }
  return factor > 0 && type_range(scalar).contains(product);
}

bool never_negative(Folder& f, ValueId value) {
  return !is_signed(f.type(value).scalar) || f.ints().range(value).min >= 0;
}

ValueId fold_add(Folder& f, const Node& n) {
  const bool floats = is_float(n.type.scalar);
  if (floats && f.is_real(n.b(), -0.0)) return n.a();
  if (!floats) {
    const ValueId simpler = add_integers(f, n);
    if (valid(simpler)) return simpler;
  }
  if (const auto b = f.match(n.b(), Opcode::kNeg)) return f.make(Opcode::kSub, {n.a(), b->a()});
  if (const auto a = f.match(n.a(), Opcode::kNeg)) return f.make(Opcode::kSub, {n.b(), a->a()});
  return kNoChange;
}

ValueId fold_sub(Folder& f, const Node& n) {
  if (is_float(n.type.scalar)) {
    if (f.is_real(n.b(), 0.0)) return n.a();
    if (f.is_real(n.a(), -0.0)) return f.make(Opcode::kNeg, {n.b()});
  } else {
    const ValueId simpler = sub_integers(f, n);
    if (valid(simpler)) return simpler;
  }
  if (const auto b = f.match(n.b(), Opcode::kNeg)) return f.make(Opcode::kAdd, {n.a(), b->a()});
  return kNoChange;
}

ValueId fold_mul(Folder& f, const Node& n) {
  return is_float(n.type.scalar) ? mul_floats(f, n) : mul_integers(f, n);
}

ValueId fold_div(Folder& f, const Node& n) {
  return is_float(n.type.scalar) ? div_floats(f, n) : div_integers(f, n);
}

ValueId fold_rem(Folder& f, const Node& n) {
  const auto c = f.number(n.b());
  if (!c || *c <= 0) return kNoChange;
  if (c == 1) return f.constant(n.type, 0);
  const IntRange a = f.ints().range(n.a());
  if (a.min >= 0 && a.max < *c) return n.a();
  if (f.ints().divisible(n.a(), *c)) return f.constant(n.type, 0);
  if (exponent_of_two(f, n.b()) && never_negative(f, n.a())) {
    return f.make(Opcode::kAnd, {n.a(), f.constant_number(n.type, *c - 1)});
  }
  return kNoChange;
}

ValueId fold_min(Folder& f, const Node& n) { return fold_extremum<Opcode::kMin>(f, n); }
ValueId fold_max(Folder& f, const Node& n) { return fold_extremum<Opcode::kMax>(f, n); }

ValueId fold_neg(Folder& f, const Node& n) {
  if (const auto inner = f.match(n.a(), Opcode::kNeg)) return inner->a();
  if (is_float(n.type.scalar)) return kNoChange;  // -(a - b) and b - a differ in the sign of a zero
  if (const auto d = f.match(n.a(), Opcode::kSub)) return f.make(Opcode::kSub, {d->b(), d->a()});
  return kNoChange;
}

ValueId fold_abs(Folder& f, const Node& n) {
  if (f.match(n.a(), Opcode::kAbs)) return n.a();
  // An unsigned neg is no change of sign.
  if (!is_float(n.type.scalar) && never_negative(f, n.a())) return n.a();
  if (const auto inner = f.match(n.a(), Opcode::kNeg)) return f.make(Opcode::kAbs, {inner->a()});
  return kNoChange;
}

ValueId fold_fma(Folder& f, const Node& n) {
  if (f.bits(n.a()) && !f.bits(n.b())) return f.make(Opcode::kFma, {n.b(), n.a(), n.c()});
  if (is_float(n.type.scalar)) {
    // One of the two roundings has nothing to round.
    const auto simpler = [&](Opcode opcode, ValueId a, ValueId b) {
      return f.target_has(opcode, n.type) ? f.make(opcode, {a, b}) : kNoChange;
    };
    if (f.is_real(n.b(), 1)) return simpler(Opcode::kAdd, n.a(), n.c());
    if (f.is_real(n.b(), -1)) return simpler(Opcode::kSub, n.c(), n.a());
    if (f.is_real(n.c(), -0.0)) return simpler(Opcode::kMul, n.a(), n.b());
    return kNoChange;
  }
  const bool product_known = f.bits(n.a()) && f.bits(n.b());
  if (product_known || f.number(n.b()) == 0 || f.number(n.b()) == 1) {
    return f.make(Opcode::kAdd, {f.make(Opcode::kMul, {n.a(), n.b()}), n.c()});
  }
  return f.number(n.c()) == 0 ? f.make(Opcode::kMul, {n.a(), n.b()}) : kNoChange;
}

}  // namespace heddle::ir
