// Approximations made of the special function unit's instructions: a few instructions each, with
// the last bits different from device to device.
//
//   Float p = fast::exp(s - m);        // softmax: two multiplications and ex2
//   Float q = fast::div(a, b);
//
// Each says its error for f32, relative unless it says otherwise; f16 and bf16 go through f32. Not
// for double.
#pragma once

#include "heddle/dsl/value.h"

namespace heddle {
namespace detail {

template <class X>
concept FastOperand = Readable<X> && is_floating<typename X::value_type> &&
    !std::is_same_v<typename X::value_type, double>;

template <class X>
using FastValue = Value<typename X::value_type>;

}  // namespace detail

namespace fast {

// 2^x, log2(x), 1 / sqrt(x): 2 ulps; log2 within 2^-22 absolute between 1/2 and 2.
template <detail::FastOperand X>
detail::FastValue<X> exp2(const X& x, SourceLoc loc = SourceLoc::current()) {
  return detail::FastValue<X>(detail::emit(detail::op::kExp2, x.read_node(loc), loc));
}
template <detail::FastOperand X>
detail::FastValue<X> log2(const X& x, SourceLoc loc = SourceLoc::current()) {
  return detail::FastValue<X>(detail::emit(detail::op::kLog2, x.read_node(loc), loc));
}
template <detail::FastOperand X>
detail::FastValue<X> rsqrt(const X& x, SourceLoc loc = SourceLoc::current()) {
  return detail::FastValue<X>(detail::emit(detail::op::kRsqrt, x.read_node(loc), loc));
}

// e^x and 10^x: (2 + |x|) ulps, the product x log2(e) being rounded.
template <detail::FastOperand X>
detail::FastValue<X> exp(const X& x, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  return fast::exp2(detail::FastValue<X>(x, loc) * 1.44269504f, loc);
}
template <detail::FastOperand X>
detail::FastValue<X> exp10(const X& x, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  return fast::exp2(detail::FastValue<X>(x, loc) * 3.32192809f, loc);
}

// Natural and common logarithm: 3 ulps; within 2^-22 absolute between 1/2 and 2.
template <detail::FastOperand X>
detail::FastValue<X> log(const X& x, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  return fast::log2(x, loc) * 0.693147181f;
}
template <detail::FastOperand X>
detail::FastValue<X> log10(const X& x, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  return fast::log2(x, loc) * 0.301029996f;
}

// x^y = 2^(y log2(x)) for x > 0: 2^-22 of |y log2(x)|, which for large powers is many ulps; NaN for
// x < 0.
template <detail::FastOperand X>
detail::FastValue<X> pow(const X& x, const detail::Arg<typename X::value_type>& y) {
  const CallerLines lines(y.loc);
  return fast::exp2(fast::log2(x, y.loc) * detail::FastValue<X>(y.node), y.loc);
}

// 1 / x: 5 ulps for |x| from 2^-63 to 2^63; beyond, the square of 1 / sqrt(|x|) that it is may lose
// subnormals. 1 / 0 is infinite, 1 / infinity is 0.
template <detail::FastOperand X>
detail::FastValue<X> rcp(const X& x, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const detail::FastValue<X> value(x, loc);
  const detail::FastValue<X> root = fast::rsqrt(abs(value), loc), square = root * root;
  return select(value < 0, -square, square);
}
// a / b = a * rcp(b), one ulp more.
template <detail::FastOperand X>
detail::FastValue<X> div(const X& a, const detail::Arg<typename X::value_type>& b) {
  const CallerLines lines(b.loc);
  return detail::FastValue<X>(a, b.loc) * fast::rcp(detail::FastValue<X>(b.node), b.loc);
}

// The special function unit's: sin and cos with an absolute error of 2^-20 between -pi and pi and
// more beyond, tanh with a relative one of 2^-10.
template <detail::FastOperand X>
detail::FastValue<X> sin(const X& x, SourceLoc loc = SourceLoc::current()) {
  return detail::FastValue<X>(detail::emit(detail::op::kSinApprox, x.read_node(loc), loc));
}
template <detail::FastOperand X>
detail::FastValue<X> cos(const X& x, SourceLoc loc = SourceLoc::current()) {
  return detail::FastValue<X>(detail::emit(detail::op::kCosApprox, x.read_node(loc), loc));
}
template <detail::FastOperand X>
detail::FastValue<X> tanh(const X& x, SourceLoc loc = SourceLoc::current()) {
  return detail::FastValue<X>(detail::emit(detail::op::kTanhApprox, x.read_node(loc), loc));
}

}  // namespace fast
}  // namespace heddle
