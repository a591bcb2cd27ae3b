// From a function and a shape to the formula: elements one by one, f16 and bf16 through f32.
#include <limits>
#include <type_traits>

#include "heddle/dsl/internal/math.h"
#include "heddle/dsl/math.h"
#include "heddle/ir/type.h"

namespace heddle::detail {
namespace {

template <class T>
using Unary = Value<T> (*)(const Value<T>&);
template <class T>
using Binary = Value<T> (*)(const Value<T>&, const Value<T>&);

// The formulas of a function; null where there is none.
struct Formulas {
  Unary<float> unary = nullptr;
  Unary<double> unary_f64 = nullptr;
  Binary<float> binary = nullptr;
  Binary<double> binary_f64 = nullptr;
};

// get(0.0), if there is an f64 formula for it to name.
template <bool kExists, class Get>
constexpr auto f64_formula(Get get) {
  if constexpr (kExists) {
    return get(double{});
  } else {
    return nullptr;
  }
}

constexpr Formulas kFormulas[] = {
#define HEDDLE_MATH_1(name, f32, f64, ...)                                                 \
  {.unary = math::name<float>, .unary_f64 = f64_formula<(f64) != kNone>([](auto zero) {    \
                                 return Unary<decltype(zero)>(math::name<decltype(zero)>); \
                               })},
#define HEDDLE_MATH_2(name, f32, f64, ...)                                                   \
  {.binary = math::name<float>, .binary_f64 = f64_formula<(f64) != kNone>([](auto zero) {    \
                                  return Binary<decltype(zero)>(math::name<decltype(zero)>); \
                                })},
#include "heddle/dsl/math.def"
};

const Formulas& formulas(MathFunction function) { return kFormulas[static_cast<size_t>(function)]; }

NodeType with_scalar(NodeType type, ir::Scalar scalar) {
  type.scalar = scalar;
  return type;
}

// The function of one element: f32 or f64.
Node apply(MathFunction function, const Node& a) {
  if (a.type.scalar == ir::Scalar::kF64) return formulas(function).unary_f64(Double(a)).node();
  return formulas(function).unary(Float(a)).node();
}
Node apply(MathFunction function, const Node& a, const Node& b) {
  if (a.type.scalar == ir::Scalar::kF64) {
    return formulas(function).binary_f64(Double(a), Double(b)).node();
  }
  return formulas(function).binary(Float(a), Float(b)).node();
}

// As f32, if it is narrower.
Node widened(const Node& a, SourceLoc loc) {
  const bool narrow = a.type.scalar == ir::Scalar::kF16 || a.type.scalar == ir::Scalar::kBF16;
  return narrow ? emit_as(with_scalar(a.type, ir::Scalar::kF32), op::kConvert, a, loc) : a;
}

// Calls one(i, element i of the operand as f32 or f64...) for each element of the shape.
template <class One, class... Operand>
void for_each_element(NodeType shape, SourceLoc loc, One&& one, const Operand&... operands) {
  const auto element = [&](const Node& whole, int i) {
    if (whole.type.kind == ir::TypeKind::kScalar) return whole;
    return emit_part(scalar_type(whole.type.scalar), op::kExtract, whole, i, loc);
  };
  const auto all = [&](const auto&... whole) {
    for (int i = 0; i < shape.count; ++i) one(i, element(whole, i)...);
  };
  all(widened(operands, loc)...);
}

// Elements that were computed, as one thing of the type wanted.
Node gathered(const Node* elements, NodeType type, SourceLoc loc) {
  const NodeType computed = with_scalar(type, elements[0].type.scalar);
  const Node whole = type.kind == ir::TypeKind::kScalar
                         ? elements[0]
                         : emit_pack(computed, elements, type.count, loc);
  return type.scalar == computed.scalar ? whole : emit_as(type, op::kConvert, whole, loc);
}

template <class... Operand>
Node elementwise(MathFunction function, SourceLoc loc, NodeType type, const Operand&... operands) {
  Node elements[kMaxFragment];
  for_each_element(
      type, loc, [&](int i, const auto&... parts) { elements[i] = apply(function, parts...); },
      operands...);
  return gathered(elements, type, loc);
}

// Calls f(x as a Value) for f32 or f64.
template <class F>
void with_value(const Node& x, F&& f) {
  if (x.type.scalar == ir::Scalar::kF64) {
    f(Double(x));
  } else {
    f(Float(x));
  }
}

// The bits of a float of any width without its sign, as an integer of that width or a wider one. By
// a mask: abs leaves the sign of a NaN open.
Node magnitude_bits(const Node& x, SourceLoc loc) {
  Node result;
  with_value(widened(x, loc), [&](const auto& value) {
    const auto bits = math::bits(value);
    using Bits = typename std::remove_cvref_t<decltype(bits)>::value_type;
    result = (bits & std::numeric_limits<Bits>::max()).node();
  });
  return result;
}

}  // namespace

Node emit_math(MathFunction function, const Node& a, SourceLoc loc) {
  return elementwise(function, loc, a.type, a);
}

Node emit_math(MathFunction function, const Node& a, const Node& b, SourceLoc loc) {
  const NodeType shape = a.type.count >= b.type.count ? a.type : b.type;
  return elementwise(function, loc, shape, spread(a, shape, loc), spread(b, shape, loc));
}

void emit_sincos(const Node& x, Node* sin, Node* cos, SourceLoc loc) {
  Node sines[kMaxFragment], cosines[kMaxFragment];
  for_each_element(
      x.type, loc,
      [&](int i, const Node& part) {
        with_value(part, [&](const auto& value) {
          const auto both = math::sincos(value);
          sines[i] = both.hi.node();
          cosines[i] = both.lo.node();
        });
      },
      x);
  *sin = gathered(sines, x.type, loc);
  *cos = gathered(cosines, x.type, loc);
}

Node emit_ldexp(const Node& x, const Node& n, SourceLoc loc) {
  Node result;
  with_value(widened(x, loc),
             [&](const auto& value) { result = math::ldexp(value, Int(n)).node(); });
  return gathered(&result, x.type, loc);
}

void emit_frexp(const Node& x, Node* fraction, Node* exponent, SourceLoc loc) {
  Node part;
  with_value(widened(x, loc), [&](const auto& value) {
    const auto parts = math::frexp(value);
    part = parts.fraction.node();
    *exponent = parts.exponent.node();
  });
  *fraction = gathered(&part, x.type, loc);
}

Node emit_class(const Node& x, ir::Opcode comparison, SourceLoc loc) {
  const Node infinity = x.type.scalar == ir::Scalar::kF64
                            ? math::host_bits(math::kInfinity<double>).node()
                            : math::host_bits(math::kInfinity<float>).node();
  return emit(comparison, magnitude_bits(x, loc), infinity, loc);
}

Node emit_signbit(const Node& x, SourceLoc loc) {
  Node result;
  with_value(widened(x, loc), [&](const auto& value) {
    const auto bits = math::bits(value);
    result = (bits < 0).node();
  });
  return result;
}

}  // namespace heddle::detail
