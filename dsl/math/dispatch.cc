// From a function and a shape to the formula: elements one by one, f16 and bf16 through f32.
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

// As f32, if it is narrower. Host constants come as ops, so that formulas fold them alone.
Node widened(const Node& a, SourceLoc loc) {
  const bool narrow = a.type.scalar == ir::Scalar::kF16 || a.type.scalar == ir::Scalar::kBF16;
  return narrow ? emit_as(with_scalar(a.type, ir::Scalar::kF32), op::kConvert, a, loc) : a;
}

template <class... Operand>
Node elementwise(MathFunction function, SourceLoc loc, NodeType type, const Operand&... operands) {
  const ir::Scalar computed = type.scalar == ir::Scalar::kF64 ? ir::Scalar::kF64 : ir::Scalar::kF32;
  const auto narrowed = [&](const Node& result) {
    return type.scalar == computed ? result : emit_as(type, op::kConvert, result, loc);
  };
  if (type.kind == ir::TypeKind::kScalar) {
    return narrowed(apply(function, widened(operands, loc)...));
  }
  Node elements[kMaxFragment];
  const auto element = [&](const Node& whole, int i) {
    return emit_part(scalar_type(computed), op::kExtract, whole, i, loc);
  };
  const auto all = [&](const auto&... whole) {
    for (int i = 0; i < type.count; ++i) elements[i] = apply(function, element(whole, i)...);
  };
  all(widened(spread(operands, type, loc), loc)...);
  return narrowed(emit_pack(with_scalar(type, computed), elements, type.count, loc));
}

}  // namespace

Node emit_math(MathFunction function, const Node& a, SourceLoc loc) {
  return elementwise(function, loc, a.type, a);
}

Node emit_math(MathFunction function, const Node& a, const Node& b, SourceLoc loc) {
  return elementwise(function, loc, a.type.count >= b.type.count ? a.type : b.type, a, b);
}

}  // namespace heddle::detail
