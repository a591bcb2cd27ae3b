// Hyperbolic functions and their inverses.
#include "heddle/dsl/math/formulas_internal.h"

namespace heddle::detail::math {
namespace {

// (sinh(x) - x) / x for x^2 = z up to 1.
Float sinh_tail(const Float& z) {
  return z * horner(z, {2.789983909678994677960872650146484375e-6,
                        1.98416659259237349033355712890625e-4, 8.333315141499042510986328125e-3,
                        0.16666667163372039794921875});
}
Double sinh_tail(const Double& z) {
  return z * horner(z, {0x1.b52bf316257f8p-41, 0x1.6118e8f905e4ep-33, 0x1.ae646b345e988p-26,
                        0x1.71de3a40759c6p-19, 0x1.a01a01a03168cp-13, 0x1.1111111111041p-7,
                        0x1.5555555555556p-3});
}

// (e^a + sign e^-a) / 2 for a >= 0, from e^a / 4 lest that overflow.
Float half_sum(const Float& a, double sign) {
  const Float quarter = near_exp_sum(a, Float(0), -2);
  return fma(quarter, 2.0f, flushed_rcp(quarter) * static_cast<float>(sign / 8));
}
Double half_sum(const Double& a, double sign) {
  // Past this sinh and cosh are infinite; e^a / 4 is not.
  constexpr double kMost = 710.6;
  const Power<double> e = exp_parts(select(a > kMost, Double(kMost), a));
  const Double scale = power_of_two<double>(e.exponent - 2);
  // Below 2^-100 of the other the inverse is nothing.
  const Double inverse_scale = power_of_two<double>(-2 - min(e.exponent, 100));
  const Double inverse = rcp(e.number.hi) * sign;
  const Double low = fma(inverse, inverse_scale, e.number.lo * scale);
  const Double y = fma(e.number.hi, scale, low);
  return y + y;
}

}  // namespace

template <class T>
Value<T> sinh(const Value<T>& x) {
  const Value<T> a = abs(x);
  const Value<T> near = fma(sinh_tail(a * a), a, a);
  return with_sign(select(a < 1, near, half_sum(a, -1)), x);
}
template Float sinh(const Float&);
template Double sinh(const Double&);

template <class T>
Value<T> cosh(const Value<T>& x) {
  return half_sum(abs(x), 1);
}
template Float cosh(const Float&);
template Double cosh(const Double&);

namespace {

// 1 - 2 / (e^2a + 1) of a beyond the polynomial.
Float far_tanh(const Float& a) {
  const Float e = flushed_exp2(a * 0x1.715476p1f);
  return fma(flushed_rcp(e + 1), -2.0f, 1.0f);
}
Double far_tanh(const Double& a) { return 1.0 - 2.0 / (exp(a + a) + 1.0); }

template <class T>
Value<T> tanh_from(const Value<T>& x, const Value<T>& tail, T near_end) {
  const Value<T> a = abs(x);
  return with_sign(select(a < near_end, fma(tail, a, a), far_tanh(a)), x);
}

}  // namespace

template <>
Float tanh(const Float& x) {
  const Float z = x * x;
  return tanh_from(x,
                   z * horner(z, {-5.514836870133876800537109375e-3, 2.04690992832183837890625e-2,
                                  -5.36879189312458038330078125e-2, 0.13330829143524169921875,
                                  -0.333332598209381103515625}),
                   0.65f);
}
template <>
Double tanh(const Double& x) {
  const Double z = x * x;
  return tanh_from(
      x,
      z * horner(z, {4.800541282184394483172236445245317781882476992905139923095703e-6,
                     -2.706815917298123177125654392760623068170389160513877868652344e-5,
                     8.81256255437098495698552969024319736490724608302116394042969e-5,
                     -2.34838814933732817520628533003446136717684566974639892578125e-4,
                     5.885790782374816960953456401739458669908344745635986328125e-4,
                     -1.45549451352344088629620078023663154453970491886138916015625e-3,
                     3.59207312706334713769962263540946878492832183837890625e-3,
                     -8.8632295788931454716408353533552144654095172882080078125e-3,
                     2.18694881237949216579163902451909962110221385955810546875e-2,
                     -5.39682539514567405358747009813669135656688690185546875e-2,
                     0.1333333333329893566343571364996023476123809814453125,
                     -0.333333333333330872338962080903002060949802398681640625}),
      0.7);
}

namespace {

// log(2 a) where a is far, log(1 + near) where not; beyond 2^60 a^2 would come near the largest
// f32, and 1 is nothing beside a.
template <class T>
Value<T> log_of_growth(const Value<T>& a, const Value<T>& near) {
  const Bool far = a > static_cast<T>(0x1p60);
  const Value<T> y = log1p(select(far, a, near));
  return select(far, y + static_cast<T>(0x1.62e42fefa39efp-1), y);
}

}  // namespace

template <class T>
Value<T> asinh(const Value<T>& x) {
  const Value<T> a = abs(x), one = T{1};
  const Value<T> near = fma(a, a / (one + sqrt(fma(a, a, one))), a);
  return with_sign(log_of_growth(a, near), x);
}
template Float asinh(const Float&);
template Double asinh(const Double&);

template <class T>
Value<T> acosh(const Value<T>& x) {
  const Value<T> t = x - T{1};
  const Value<T> y = log_of_growth(x, t + sqrt(fma(t, t, t + t)));
  return select(x < 1, Value<T>(kNan<T>), y);
}
template Float acosh(const Float&);
template Double acosh(const Double&);

template <class T>
Value<T> atanh(const Value<T>& x) {
  const Value<T> a = abs(x);
  return with_sign(log1p((a + a) / (T{1} - a)) * static_cast<T>(0.5), x);
}
template Float atanh(const Float&);
template Double atanh(const Double&);

}  // namespace heddle::detail::math
