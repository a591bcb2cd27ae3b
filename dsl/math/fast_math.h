// Fast approximations by the special function unit: a few instructions each. The last bits may
// differ between devices.
//
//   Float p = fast::exp(s - m);        // softmax: two multiplications and ex2
//   Float q = fast::div(a, b);
//
// The errors stated are for f32, and relative unless it says absolute; f16 and bf16 are computed in
// f32. Not for double. Vectors and fragments are computed element by element.
#pragma once

#include "heddle/dsl/math/rounding.h"
#include "heddle/dsl/together.h"

namespace heddle {
namespace detail {

template <class S, class... X>
concept FastElementwise = Elementwise<S, X...> && is_floating<typename ShapeElement<S>::type> &&
    !std::is_same_v<typename ShapeElement<S>::type, double>;

}  // namespace detail

namespace fast {

#define HEDDLE_FAST_1(name)                         \
  template <class X, class S = detail::Together<X>> \
  requires detail::FastElementwise<S, X> S name(const X& a, SourceLoc loc = SourceLoc::current())
#define HEDDLE_FAST_2(name)                                                \
  template <class A, class B, class S = detail::Together<A, B>>            \
  requires detail::FastElementwise<S, A, B> S name(const A& a, const B& b, \
                                                   SourceLoc loc = SourceLoc::current())
#define HEDDLE_ONE_INSTRUCTION(name, opcode)                                                \
  HEDDLE_FAST_1(name) {                                                                     \
    return S(detail::emit(detail::op::opcode, detail::together<S>(loc, a)[0].node(), loc)); \
  }

// 1 / a (rcp): 1 ulp; of zero infinite, of infinity 0. 2^a (exp2), log2(a), 1 / sqrt(a) (rsqrt): 2 ulps;
// log2 within 2^-22 absolute between 1/2 and 2. A FlushSubnormals (rounding.h) saves instructions of each.
HEDDLE_ONE_INSTRUCTION(rcp, kRcpApprox)
HEDDLE_ONE_INSTRUCTION(exp2, kExp2)
HEDDLE_ONE_INSTRUCTION(log2, kLog2)
HEDDLE_ONE_INSTRUCTION(rsqrt, kRsqrt)

// e^a and 10^a: (2 + |a|) ulps, the product a log2(e) being rounded.
HEDDLE_FAST_1(exp) {
  const CallerLines lines(loc);
  return fast::exp2(detail::together<S>(loc, a)[0] * 1.44269504f, loc);
}
HEDDLE_FAST_1(exp10) {
  const CallerLines lines(loc);
  return fast::exp2(detail::together<S>(loc, a)[0] * 3.32192809f, loc);
}

// Natural and common logarithm: 3 ulps; within 2^-22 absolute between 1/2 and 2.
HEDDLE_FAST_1(log) {
  const CallerLines lines(loc);
  return fast::log2(a, loc) * 0.693147181f;
}
HEDDLE_FAST_1(log10) {
  const CallerLines lines(loc);
  return fast::log2(a, loc) * 0.301029996f;
}

// a^b = 2^(b log2(a)) for a > 0: 2^-22 of |b log2(a)|, which for large powers is many ulps; NaN for
// a < 0.
HEDDLE_FAST_2(pow) {
  const CallerLines lines(loc);
  const auto [x, y] = detail::together<S>(loc, a, b);
  return fast::exp2(fast::log2(x, loc) * y, loc);
}

// a / b = a * rcp(b) in two instructions: 2 ulps for |b| between 2^-126 and 2^126. Beyond, rcp(b) is 0; of smaller numbers it is
// infinite, and a NaN comes of a = 0.
HEDDLE_FAST_2(div) {
  const CallerLines lines(loc);
  const auto [x, y] = detail::together<S>(loc, a, b);
  const auto inverse = [&, &y = y] {
    const FlushSubnormals flush;
    return fast::rcp(y, loc);
  }();
  return x * inverse;
}

// The cumulative distribution function of the standard normal distribution: within 2^-12 for a >= -4, and
// 2^-27 absolute below. That is enough for results of 16 bits: gelu(a) is a * normcdf(a). Subnormals count as zeros.
HEDDLE_FAST_1(normcdf) {
  const CallerLines lines(loc);
  const FlushSubnormals flush;
  const auto x = cast<float>(detail::together<S>(loc, a)[0]), square = x * x;
  // As 1 / (1 + 2^-t): t is x times a polynomial, the best one of its degree for a relative error.
  const auto high = (square * 0x1.81f63ep-30f - 0x1.3319cap-23f) * square + 0x1.77648ep-18f;
  const auto middle = (high * square - 0x1.80dd80p-14f) * square - 0x1.f0b7c2p-12f;
  const auto t = x * ((middle * square + 0x1.b11edep-4f) * square + 0x1.269a8ap+1f);
  return cast<typename detail::ShapeElement<S>::type>(fast::rcp(fast::exp2(-t, loc) + 1.0f, loc));
}

// The special function unit's: sin and cos with an absolute error of 2^-20 between -pi and pi and
// more beyond, tanh with a relative one of 2^-10.
HEDDLE_ONE_INSTRUCTION(sin, kSinApprox)
HEDDLE_ONE_INSTRUCTION(cos, kCosApprox)
HEDDLE_ONE_INSTRUCTION(tanh, kTanhApprox)

#undef HEDDLE_ONE_INSTRUCTION
#undef HEDDLE_FAST_1
#undef HEDDLE_FAST_2

}  // namespace fast
}  // namespace heddle
