// Mathematical functions with stated error bounds.
//
//   Float y = exp(x);                          // within 1 ulp, for every x
//   Vec<float, 4> w = log(x.vec<4>(i));        // element by element; Fragments too
//   Half h = tanh(cast<half>(y));              // through f32
//   auto [s, c] = sincos(y);                   // one reduction of the argument for both
//   Float z = pow(x, 1.5f);                    // host numbers beside a value
//   Float rough = fast::exp(x);                // the special function unit's (fast_math.h)
//
// math.def lists the functions with their bounds, which tools/bench/math_ulp measures. Infinities,
// NaN, signed zeros and subnormals are treated as C's Annex F says. The functions are made of
// exactly defined arithmetic alone: every device gives the same bits.
#pragma once

#include <initializer_list>

#include "heddle/dsl/vec.h"

namespace heddle {
namespace detail {

enum class MathFunction : uint8_t {
#define HEDDLE_MATH_1(name, ...) name,
#define HEDDLE_MATH_2(name, ...) name,
#define HEDDLE_MATH_3(name, ...) name,
#define HEDDLE_MATH_4(name, ...) name,
#include "heddle/dsl/math.def"
};

// A bound that says: no such function of this type.
inline constexpr double kNone = -1;

// What a mathematical function takes: a float Value or what reads as one, a Vec, a Fragment.
template <class X>
struct MathOperandOf {};
template <class X>
requires(Readable<X>&& is_floating<typename X::value_type>) struct MathOperandOf<X> {
  using type = Value<typename X::value_type>;
  using element = typename X::value_type;
};
template <class X>
requires(!Readable<X> && Leaf<X> && is_floating<typename X::element_type>) struct MathOperandOf<X> {
  using type = X;
  using element = typename X::element_type;
};
template <class X>
using MathResult = typename MathOperandOf<X>::type;
template <class X>
using MathElement = typename MathOperandOf<X>::element;

template <class X>
concept MathScalar = Readable<X> && is_floating<typename X::value_type>;

// An operand of a function whose bound for f64 is given.
template <class X>
constexpr bool is_math_operand(double f64_bound) {
  if constexpr (requires { typename MathOperandOf<X>::type; }) {
    return f64_bound != kNone || !std::is_same_v<MathElement<X>, double>;
  } else {
    return false;
  }
}
// What may stand beside an X: another X, or a scalar or host number for all of its elements.
template <class Y, class X>
concept MathBeside = requires {
  typename MathOperandOf<X>::type;
}
&&(std::is_same_v<Y, MathResult<X>> || std::is_convertible_v<Y, Arg<MathElement<X>>>);

template <class X, class Y = X>
Node math_node(const Y& y, SourceLoc loc) {
  if constexpr (std::is_same_v<Y, MathResult<X>>) {
    return y.node();
  } else {
    return Arg<MathElement<X>>(y, loc).node;
  }
}

// Record a function, element by element; a scalar operand spreads over the other's elements.
[[gnu::cold]] Node emit_math(MathFunction function, std::initializer_list<Node> operands,
                             SourceLoc loc);
[[gnu::cold]] void emit_sincos(const Node& x, Node* sin, Node* cos, SourceLoc loc);
[[gnu::cold]] void emit_sincospi(const Node& x, Node* sin, Node* cos, SourceLoc loc);
[[gnu::cold]] Node emit_ldexp(const Node& x, const Node& n, SourceLoc loc);
[[gnu::cold]] void emit_frexp(const Node& x, Node* fraction, Node* exponent, SourceLoc loc);
// The class of a float: whether its magnitude, as bits, compares so with infinity's; its sign.
[[gnu::cold]] Node emit_class(const Node& x, ir::Opcode comparison, SourceLoc loc);
[[gnu::cold]] Node emit_signbit(const Node& x, SourceLoc loc);

}  // namespace detail

#define HEDDLE_MATH_1(name, f32, f64, ...)                                                   \
  template <class X>                                                                         \
  requires(detail::is_math_operand<X>(f64)) detail::MathResult<X> name(                      \
      const X& x, SourceLoc loc = SourceLoc::current()) {                                    \
    return detail::MathResult<X>(                                                            \
        detail::emit_math(detail::MathFunction::name, {detail::math_node<X>(x, loc)}, loc)); \
  }
#define HEDDLE_MATH_2(name, f32, f64, ...)                                                     \
  template <class X, detail::MathBeside<X> Y>                                                  \
  requires(detail::is_math_operand<X>(f64)) detail::MathResult<X> name(                        \
      const X& x, const Y& y, SourceLoc loc = SourceLoc::current()) {                          \
    return detail::MathResult<X>(                                                              \
        detail::emit_math(detail::MathFunction::name,                                          \
                          {detail::math_node<X>(x, loc), detail::math_node<X>(y, loc)}, loc)); \
  }                                                                                            \
  template <class H, class X>                                                                  \
  requires(detail::is_math_operand<X>(f64) && detail::HostConstant<H, detail::MathElement<X>>) \
      detail::MathResult<X>                                                                    \
      name(H h, const X& x, SourceLoc loc = SourceLoc::current()) {                            \
    return detail::MathResult<X>(                                                              \
        detail::emit_math(detail::MathFunction::name,                                          \
                          {detail::math_node<X>(h, loc), detail::math_node<X>(x, loc)}, loc)); \
  }
#define HEDDLE_MATH_3(name, f32, f64, ...)                                             \
  template <class X, detail::MathBeside<X> Y, detail::MathBeside<X> Z>                 \
  requires(detail::is_math_operand<X>(f64)) detail::MathResult<X> name(                \
      const X& x, const Y& y, const Z& z, SourceLoc loc = SourceLoc::current()) {      \
    return detail::MathResult<X>(                                                      \
        detail::emit_math(detail::MathFunction::name,                                  \
                          {detail::math_node<X>(x, loc), detail::math_node<X>(y, loc), \
                           detail::math_node<X>(z, loc)},                              \
                          loc));                                                       \
  }
#define HEDDLE_MATH_4(name, f32, f64, ...)                                                      \
  template <class X, detail::MathBeside<X> Y, detail::MathBeside<X> Z, detail::MathBeside<X> W> \
  requires(detail::is_math_operand<X>(f64)) detail::MathResult<X> name(                         \
      const X& x, const Y& y, const Z& z, const W& w, SourceLoc loc = SourceLoc::current()) {   \
    return detail::MathResult<X>(                                                               \
        detail::emit_math(detail::MathFunction::name,                                           \
                          {detail::math_node<X>(x, loc), detail::math_node<X>(y, loc),          \
                           detail::math_node<X>(z, loc), detail::math_node<X>(w, loc)},         \
                          loc));                                                                \
  }
#include "heddle/dsl/math.def"

// Sine and cosine of one angle, and its bounds: see sin and cos.
template <class X>
struct SinCos {
  X sin, cos;
};
template <class X>
requires(detail::is_math_operand<X>(0)) SinCos<detail::MathResult<X>> sincos(
    const X& x, SourceLoc loc = SourceLoc::current()) {
  detail::Node sin, cos;
  detail::emit_sincos(detail::math_node<X>(detail::MathResult<X>(x), loc), &sin, &cos, loc);
  return {detail::MathResult<X>(sin), detail::MathResult<X>(cos)};
}
// Of pi x: see sinpi and cospi.
template <class X>
requires(detail::is_math_operand<X>(0)) SinCos<detail::MathResult<X>> sincospi(
    const X& x, SourceLoc loc = SourceLoc::current()) {
  detail::Node sin, cos;
  detail::emit_sincospi(detail::math_node<X>(detail::MathResult<X>(x), loc), &sin, &cos, loc);
  return {detail::MathResult<X>(sin), detail::MathResult<X>(cos)};
}

// Scalars, of f32 and f64 where the bits are taken apart.

// x * 2^n, rounded once.
template <class X>
requires(detail::MathScalar<X>) Value<typename X::value_type> ldexp(const X& x,
                                                                    const detail::Arg<int32_t>& n) {
  return Value<typename X::value_type>(detail::emit_ldexp(x.read_node(n.loc), n.node, n.loc));
}
// x = fraction * 2^exponent with 1/2 <= |fraction| < 1; 0, infinity and NaN with exponent 0.
template <class T>
struct Frexp {
  Value<T> fraction;
  Int exponent;
};
template <class X>
requires(detail::MathScalar<X>) Frexp<typename X::value_type> frexp(
    const X& x, SourceLoc loc = SourceLoc::current()) {
  detail::Node fraction, exponent;
  detail::emit_frexp(x.read_node(loc), &fraction, &exponent, loc);
  return {Value<typename X::value_type>(fraction), Int(exponent)};
}

template <class X>
requires(detail::MathScalar<X>) Bool isnan(const X& x, SourceLoc loc = SourceLoc::current()) {
  return Bool(detail::emit_class(x.read_node(loc), detail::op::kGt, loc));
}
template <class X>
requires(detail::MathScalar<X>) Bool isinf(const X& x, SourceLoc loc = SourceLoc::current()) {
  return Bool(detail::emit_class(x.read_node(loc), detail::op::kEq, loc));
}
template <class X>
requires(detail::MathScalar<X>) Bool isfinite(const X& x, SourceLoc loc = SourceLoc::current()) {
  return Bool(detail::emit_class(x.read_node(loc), detail::op::kLt, loc));
}
// Whether the sign bit is set, of -0 and NaN too.
template <class X>
requires(detail::MathScalar<X>) Bool signbit(const X& x, SourceLoc loc = SourceLoc::current()) {
  return Bool(detail::emit_signbit(x.read_node(loc), loc));
}

}  // namespace heddle
