// From a function and a shape to the formula: elements one by one, f16 and bf16 through f32.
#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/types/span.h"
#include "heddle/dsl/math/formulas_internal.h"
#include "heddle/dsl/math/math.h"
#include "heddle/ir/type.h"

namespace heddle::detail {
namespace {

constexpr int kMostOperands = 4;

// A formula of scalars, of so many operands of a type.
using Formula = Node (*)(const Node* operands);
template <class T, int kCount, auto kFormula>
Node formula(const Node* operands) {
  return [&]<size_t... kAt>(std::index_sequence<kAt...>) {
    return kFormula(Value<T>(operands[kAt])...).node();
  }
  (std::make_index_sequence<kCount>());
}

// The formulas of a function; null where there is none.
struct Formulas {
  Formula f32, f64;
};

// get(0.0), if there is an f64 formula for it to name.
template <bool kExists, class Get>
constexpr Formula f64_formula(Get get) {
  if constexpr (kExists) {
    return get(double{});
  } else {
    return nullptr;
  }
}

constexpr Formulas kFormulas[] = {
#define HEDDLE_FORMULAS(count, name, f64)                                                      \
  {formula<float, count, math::name<float>>, f64_formula<(f64) != kNoFunction>([](auto zero) { \
     return &formula<decltype(zero), count, math::name<decltype(zero)>>;                       \
   })},
#define HEDDLE_MATH_1(name, f32, f64, ...) HEDDLE_FORMULAS(1, name, f64)
#define HEDDLE_MATH_2(name, f32, f64, ...) HEDDLE_FORMULAS(2, name, f64)
#define HEDDLE_MATH_3(name, f32, f64, ...) HEDDLE_FORMULAS(3, name, f64)
#define HEDDLE_MATH_4(name, f32, f64, ...) HEDDLE_FORMULAS(4, name, f64)
#include "heddle/dsl/math/math.def"
#undef HEDDLE_FORMULAS
};

// As f32, if it is narrower.
Node widened(const Node& a, SourceLoc loc) {
  const bool narrow = a.type.scalar == ir::Scalar::kF16 || a.type.scalar == ir::Scalar::kBF16;
  return narrow ? emit_as(with_scalar(a.type, ir::Scalar::kF32), op::kConvert, a, loc) : a;
}

// An element of what widened() gave.
Node element(const Node& whole, int i, SourceLoc loc) {
  if (whole.type.kind == ir::TypeKind::kScalar) return whole;
  return emit_part(scalar_type(whole.type.scalar), op::kExtract, whole, i, loc);
}

// Elements that were computed, as one thing of the type wanted.
Node gathered(const Node* elements, NodeType type, SourceLoc loc) {
  const NodeType computed = with_scalar(type, elements[0].type.scalar);
  const Node whole = type.kind == ir::TypeKind::kScalar
                         ? elements[0]
                         : emit_pack(computed, elements, type.count, loc);
  return type.scalar == computed.scalar ? whole : emit_as(type, op::kConvert, whole, loc);
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

// Calls f(element i as a Value, i) for each element of x, widened to f32 or f64.
template <class F>
void for_each_element(const Node& x, SourceLoc loc, F&& f) {
  const Node wide = widened(x, loc);
  for (int i = 0; i < x.type.count; ++i) {
    with_value(element(wide, i, loc), [&](const auto& value) { f(value, i); });
  }
}

// A sine and a cosine of each element, by both(x as a Value).
template <class Both>
void sine_and_cosine(const Node& x, Node* sin, Node* cos, SourceLoc loc, Both both) {
  Node sines[kMaxFragment], cosines[kMaxFragment];
  for_each_element(x, loc, [&](const auto& value, int i) {
    const auto pair = both(value);
    sines[i] = pair.hi.node();
    cosines[i] = pair.lo.node();
  });
  *sin = gathered(sines, x.type, loc);
  *cos = gathered(cosines, x.type, loc);
}

}  // namespace

Node emit_math(MathFunction function, std::initializer_list<Node> operands, SourceLoc loc) {
  Node whole[kMostOperands];
  const size_t count = operands.size();
  std::copy(operands.begin(), operands.end(), whole);
  spread_all(whole, static_cast<int>(count), loc);
  const NodeType type = whole[0].type;
  for (Node& operand : absl::MakeSpan(whole, count)) operand = widened(operand, loc);
  const Formulas& formulas = kFormulas[static_cast<size_t>(function)];
  const Formula formula = type.scalar == ir::Scalar::kF64 ? formulas.f64 : formulas.f32;
  Node results[kMaxFragment];
  for (int i = 0; i < type.count; ++i) {
    Node parts[kMostOperands];
    for (size_t at = 0; at < count; ++at) parts[at] = element(whole[at], i, loc);
    results[i] = formula(parts);
  }
  return gathered(results, type, loc);
}

void emit_sincos(const Node& x, Node* sin, Node* cos, SourceLoc loc) {
  sine_and_cosine(x, sin, cos, loc, [](const auto& value) { return math::sincos(value); });
}

void emit_sincospi(const Node& x, Node* sin, Node* cos, SourceLoc loc) {
  sine_and_cosine(x, sin, cos, loc, [](const auto& value) { return math::sincospi(value); });
}

Node emit_ldexp(const Node& x, const Node& n, SourceLoc loc) {
  Node results[kMaxFragment];
  for_each_element(
      x, loc, [&](const auto& value, int i) { results[i] = math::ldexp(value, Int(n)).node(); });
  return gathered(results, x.type, loc);
}

void emit_frexp(const Node& x, Node* fraction, Node* exponent, SourceLoc loc) {
  Node fractions[kMaxFragment], exponents[kMaxFragment];
  for_each_element(x, loc, [&](const auto& value, int i) {
    const auto parts = math::frexp(value);
    fractions[i] = parts.fraction.node();
    exponents[i] = parts.exponent.node();
  });
  *fraction = gathered(fractions, x.type, loc);
  *exponent = gathered(exponents, with_scalar(x.type, ir::Scalar::kI32), loc);
}

// By the bits without the sign: abs leaves the sign of a NaN open.
Node emit_class(const Node& x, ir::Opcode comparison, SourceLoc loc) {
  Node results[kMaxFragment];
  for_each_element(x, loc, [&](const auto& value, int i) {
    using T = typename std::remove_cvref_t<decltype(value)>::value_type;
    const auto magnitude = math::bits(value) & std::numeric_limits<math::Bits<T>>::max();
    const auto infinity = math::host_bits(math::kInfinity<T>);
    results[i] = emit(comparison, magnitude.node(), infinity.node(), loc);
  });
  return gathered(results, with_scalar(x.type, ir::Scalar::kBool), loc);
}

Node emit_signbit(const Node& x, SourceLoc loc) {
  Node results[kMaxFragment];
  for_each_element(x, loc,
                   [&](const auto& value, int i) { results[i] = (math::bits(value) < 0).node(); });
  return gathered(results, with_scalar(x.type, ir::Scalar::kBool), loc);
}

}  // namespace heddle::detail
