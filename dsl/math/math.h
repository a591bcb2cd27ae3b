// Mathematical functions with stated error bounds.
//
//   Float y = exp(x);                          // within 2 ulps, for every x
//   Vec<float, 4> w = log(x.vec<4>(i));        // element by element; Fragments too
//   Half h = tanh(cast<half>(y));              // through f32
//   auto [s, c] = sincos(y);                   // one reduction of the argument for both
//   Float z = pow(x, 1.5f);                    // host numbers beside a value
//   Float rough = fast::exp(x);                // the special function unit's (fast_math.h)
//
// math.def lists the functions with their bounds, which tools/bench/math_ulp measures. Infinities,
// NaN, signed zeros and subnormals are treated as C's Annex F says. Those of f64, and most of f32, are
// made of exactly defined arithmetic alone: every device gives the same bits. exp, exp2, exp10, tanh, erf and pow of
// f32 use the special function unit, and may differ in the last bits between
// devices; the bounds hold on all.
#pragma once

#include <initializer_list>

#include "heddle/dsl/together.h"

namespace heddle {
namespace detail {

enum class MathFunction : uint8_t {
#define HEDDLE_MATH_1(name, ...) name,
#define HEDDLE_MATH_2(name, ...) name,
#define HEDDLE_MATH_3(name, ...) name,
#define HEDDLE_MATH_4(name, ...) name,
#include "heddle/dsl/math/math.def"
};

// A bound that says: no such function of this type.
inline constexpr double kNoFunction = -1;

// Operands of a function whose bound for f64 is given.
template <class S, class... X>
constexpr bool has_math(double f64_bound) {
  if constexpr (Elementwise<S, X...>) {
    using T = typename ShapeElement<S>::type;
    return is_floating<T> && (f64_bound != kNoFunction || !std::is_same_v<T, double>);
  } else {
    return false;
  }
}
template <class S, class... X>
concept Math = has_math<S, X...>(0);

template <class S, class X>
Node math_node(const X& x, SourceLoc loc) {
  return typename Shape<S>::Operand(x, loc).node;
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

#define HEDDLE_MATH_1(name, f32, f64, ...)                                                         \
  template <class X, class S = detail::Together<X>>                                                \
  requires(detail::has_math<S, X>(f64)) S name(const X& x, SourceLoc loc = SourceLoc::current()) { \
    return S(detail::emit_math(detail::MathFunction::name, {detail::math_node<S>(x, loc)}, loc));  \
  }
#define HEDDLE_MATH_2(name, f32, f64, ...)                                                   \
  template <class X, class Y, class S = detail::Together<X, Y>>                              \
  requires(detail::has_math<S, X, Y>(f64)) S name(const X& x, const Y& y,                    \
                                                  SourceLoc loc = SourceLoc::current()) {    \
    return S(detail::emit_math(detail::MathFunction::name,                                   \
                               {detail::math_node<S>(x, loc), detail::math_node<S>(y, loc)}, \
                               loc));                                                        \
  }
#define HEDDLE_MATH_3(name, f32, f64, ...)                                                   \
  template <class X, class Y, class Z, class S = detail::Together<X, Y, Z>>                  \
  requires(detail::has_math<S, X, Y, Z>(f64)) S name(const X& x, const Y& y, const Z& z,     \
                                                     SourceLoc loc = SourceLoc::current()) { \
    return S(detail::emit_math(detail::MathFunction::name,                                   \
                               {detail::math_node<S>(x, loc), detail::math_node<S>(y, loc),  \
                                detail::math_node<S>(z, loc)},                               \
                               loc));                                                        \
  }
#define HEDDLE_MATH_4(name, f32, f64, ...)                                                    \
  template <class X, class Y, class Z, class W, class S = detail::Together<X, Y, Z, W>>       \
  requires(detail::has_math<S, X, Y, Z, W>(f64)) S name(                                      \
      const X& x, const Y& y, const Z& z, const W& w, SourceLoc loc = SourceLoc::current()) { \
    return S(detail::emit_math(detail::MathFunction::name,                                    \
                               {detail::math_node<S>(x, loc), detail::math_node<S>(y, loc),   \
                                detail::math_node<S>(z, loc), detail::math_node<S>(w, loc)},  \
                               loc));                                                         \
  }
#include "heddle/dsl/math/math.def"

// Sine and cosine of one angle in radians. The error bounds are those of sin and cos.
template <class X>
struct SinCos {
  X sin, cos;  // of the same angle
};
template <class X, class S = detail::Together<X>>
requires detail::Math<S, X> SinCos<S> sincos(const X& x, SourceLoc loc = SourceLoc::current()) {
  detail::Node sin, cos;
  detail::emit_sincos(detail::math_node<S>(x, loc), &sin, &cos, loc);
  return {S(sin), S(cos)};
}
// Sine and cosine of pi x. The error bounds are those of sinpi and cospi.
template <class X, class S = detail::Together<X>>
requires detail::Math<S, X> SinCos<S> sincospi(const X& x, SourceLoc loc = SourceLoc::current()) {
  detail::Node sin, cos;
  detail::emit_sincospi(detail::math_node<S>(x, loc), &sin, &cos, loc);
  return {S(sin), S(cos)};
}

// x * 2^n, rounded once. n is one number for all elements of x.
template <class X, class S = detail::Together<X>>
requires detail::Math<S, X> S ldexp(const X& x, const detail::Arg<int32_t>& n) {
  return S(detail::emit_ldexp(detail::math_node<S>(x, n.loc), n.node, n.loc));
}
// A float in two parts: x = fraction * 2^exponent with 1/2 <= |fraction| < 1. 0, infinity and NaN
// are their own fraction, with exponent 0.
template <class S>
struct Frexp {
  S fraction;                                                  // in [1/2, 1), with x's sign
  typename detail::Shape<S>::template With<int32_t> exponent;  // an Int
};
template <class X, class S = detail::Together<X>>
requires detail::Math<S, X> Frexp<S> frexp(const X& x, SourceLoc loc = SourceLoc::current()) {
  using Ints = typename detail::Shape<S>::template With<int32_t>;
  detail::Node fraction, exponent;
  detail::emit_frexp(detail::math_node<S>(x, loc), &fraction, &exponent, loc);
  return {S(fraction), Ints(exponent)};
}

// Classification of a float, as C's macros of these names; gives a Bool, of vectors and fragments
// one for each element.
#define HEDDLE_CLASS(name, node)                                  \
  template <class X, class S = detail::Together<X>>               \
  requires detail::Math<S, X>                                     \
  auto name(const X& x, SourceLoc loc = SourceLoc::current()) {   \
    using Bools = typename detail::Shape<S>::template With<bool>; \
    return Bools(node);                                           \
  }
HEDDLE_CLASS(isnan, detail::emit_class(detail::math_node<S>(x, loc), detail::op::kGt, loc))
HEDDLE_CLASS(isinf, detail::emit_class(detail::math_node<S>(x, loc), detail::op::kEq, loc))
HEDDLE_CLASS(isfinite, detail::emit_class(detail::math_node<S>(x, loc), detail::op::kLt, loc))
// Whether the sign bit is set, also that of -0 and of a NaN.
HEDDLE_CLASS(signbit, detail::emit_signbit(detail::math_node<S>(x, loc), loc))
#undef HEDDLE_CLASS

}  // namespace heddle
