// The gamma function and its logarithm, of f32.
#include "heddle/dsl/math/formulas_internal.h"

namespace heddle::detail::math {
namespace {

// 1 / gamma(1 + f) of |f| up to 1/2.
Float inverse_gamma_near(const Float& f) {
  return horner(f, {-0x1.158d58p-10, 0x1.d16b7p-8, -0x1.3c46cap-7, -0x1.59858p-5, 0x1.5513fp-3,
                    -0x1.58182cp-5, -0x1.4fcf44p-1, 0x1.2788dp-1, 1});
}
Double inverse_gamma_near(const Double& f) {
  return horner(f, {0x1.3301632954c84p-28, -0x1.aecc4f3e31e8cp-23, 0x1.30639bcdc3b23p-20,
                    -0x1.5038d75a129b1p-20, -0x1.51cfa75ca58d3p-16, 0x1.0c8ab32b4476ep-13,
                    -0x1.c364f8d715bf9p-13, -0x1.317113a4d0ed6p-10, 0x1.d919c5241836dp-8,
                    -0x1.3b4af282dda66p-7, -0x1.59af103c2eaa7p-5, 0x1.5512320b4336bp-3,
                    -0x1.5815e8fa271bcp-5, -0x1.4fcf4026afa26p-1, 0x1.2788cfc6fb619p-1, 1});
}

// start * first (first + step) (first + 2 step) …, of so many factors, all of them exact.
template <class T>
Value<T> factors(const Value<T>& start, const Value<T>& first, const Value<T>& step,
                 const Int& count) {
  struct State {
    Pair<T> result;
    Value<T> factor;
    Int left;
  };
  const State end = While(
      State{{start, T{0}}, first, count}, [](State s) { return s.left > 0; },
      [&](State s) {
        const Pair<T> p = product(s.result.hi, s.factor);
        return State{{p.hi, fma(s.result.lo, s.factor, p.lo)}, s.factor + step, s.left - 1};
      });
  return end.result.hi + end.result.lo;
}

}  // namespace

// With x = n + f: gamma(1 + f) times (x - 1) (x - 2) … (f + 1) where n is positive, over
// x (x + 1) … f where not.
template <>
Float tgamma(const Float& x) {
  // Beyond these the result is infinite, or 0 with the sign of an even or odd floor.
  const Bool over = x > 35.5f, under = x < -42;
  const Float u = select(over | under | (x != x), Float(1), x);
  const Float whole = rint(u), f = u - whole;
  const Int n = cast<int>(whole);
  const Bool positive = n > 0;
  // So that neither the factors overflow where the result does not nor subnormals lose digits.
  const Float start = select(max(n, -n) > 20, 0x1p-64f, 0x1p40f);
  const Float product =
      factors<float>(start, select(positive, u - 1, u), select(positive, Float(-1), Float(1)),
                     select(positive, n - 1, 1 - n));
  const Float q = inverse_gamma_near(f);
  const Float inside =
      select(positive, product / q * select(n > 20, 0x1p64f, 0x1p-40f), rcp(q * product) * start);
  const Float low = floor(x), half = low * 0.5f;
  const Float nothing = select(trunc(half) == half, Float(0), Float(-0.0f));
  const Float number = select(over, kInfinity<float>, select(under, nothing, inside));
  const Bool pole = (x < 0) & (low == x);
  return select(pole | (x != x), kNan<float>, select(x == 0, rcp(x), number));
}

namespace {

// log(gamma(a)) of a >= 0. By Stirling's series from 3 on; before that by polynomials around the
// zeros at 1 and 2, and gamma(a) = gamma(1 + a) / a.
Float positive_lgamma(const Float& a) {
  const Pair<float> log_a = log_pair(a);
  const Bool first = a < 1.5f, small = a < 0.5f;
  const Float y = select(small, a, select(first, a - 1, a - 2));
  const Float one =
      horner(y, {-0x1.53a8f6p-3, 0x1.705d3p-3, -0x1.e1a34ep-5, 0x1.0b251ep-4, -0x1.ddf294p-4,
                 0x1.0c87cep-3, -0x1.26118ep-3, 0x1.5a61ccp-3, -0x1.a8c54p-3, 0x1.1516b4p-2,
                 -0x1.9a4d2ep-2, 0x1.a51a62p-1, -0x1.2788dp-1});
  const Float two =
      horner(y, {0x1.ca8454p-15, -0x1.e2a808p-13, 0x1.1bd07ap-11, -0x1.39ec06p-10, 0x1.79dc3ep-9,
                 -0x1.e3f746p-8, 0x1.5135c8p-6, -0x1.13dff4p-4, 0x1.4a34cap-2, 0x1.b0ee6p-2});
  const Float near = select(y == 0, Float(0), y * select(first, one, two));
  // (a - 1/2) (log(a) - 1) + (log(2 pi) - 1) / 2 + series / a
  const Pair<float> less = sum(log_a.hi, Float(-1));
  const Pair<float> leading = product(a - 0.5f, less.hi);
  const Float inverse = rcp(a), z = inverse * inverse;
  const Float series = horner(z, {-0x1.f39e44p-12, 0x1.9da4eap-11, -0x1.6c182p-9, 0x1.555556p-4});
  const Float rest = fma(a - 0.5f, less.lo + log_a.lo, leading.lo);
  const Float far = leading.hi + (fma(series, inverse, 0x1.acfe3ap-2f) + rest);
  const Float large = select(leading.hi < kInfinity<float>, far, kInfinity<float>);
  return select(a < 3, select(small, near - log_a.hi, near), select(a != a, a, large));
}

// Of x from -16 to 0 gamma is near 1, and its logarithm near 0, at places where f32's digits of a
// sum would all be gone.
Float lgamma_between_poles(const Float& x) {
  const Double wide = cast<double>(x);
  const Double whole = rint(wide);
  const Double product = factors<double>(1, wide, 1, 1 - cast<int>(whole));
  return cast<float>(-log(abs(inverse_gamma_near(wide - whole) * product)));
}

}  // namespace

template <>
Float lgamma(const Float& x) {
  const Float a = abs(x);
  return If((x < 0) & (a < 16), [&] { return lgamma_between_poles(x); },
            [&] {
              const Float positive = positive_lgamma(a);
              // gamma(x) gamma(-x) = -pi / (x sin(pi x))
              const Float reflected = (0x1.250d04p0f - log(a * abs(sinpi(a)))) - positive;
              // From 2^23 on every number is whole.
              const Bool pole = (a == 0) | ((a >= 0x1p23f) & (x < 0)) | (a == kInfinity<float>);
              return select(pole, kInfinity<float>, select(x < 0, reflected, positive));
            });
}

}  // namespace heddle::detail::math
