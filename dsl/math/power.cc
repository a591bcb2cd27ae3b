// x^y = e^(y log x), with the logarithm and the product as sums of two.
#include "heddle/dsl/math/formulas_internal.h"

namespace heddle::detail::math {
namespace {

template <class T>
struct Constants;
template <>
struct Constants<float> {
  static constexpr double kLn2 = 0x1.62e8p-1, kLn2Low = -0x1.e8082ep-16;
  static constexpr double kThird = 0x1.555556p-2, kThirdLow = -0x1.555556p-27;
};
template <>
struct Constants<double> {
  static constexpr double kLn2 = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;
  static constexpr double kThird = 0x1.5555555555555p-2, kThirdLow = 0x1.5555555555555p-56;
};

// (atanh(u) / u - 1 - z / 3) / z^2, of z = u^2.
Float atanh_tail(const Float& z) {
  return horner(z, {9.4465829432010650634765625e-2, 0.111084043979644775390625,
                    0.1428567469120025634765625, 0.20000000298023223876953125});
}
Double atanh_tail(const Double& z) {
  return horner(z, {5.8065666853096893629260222269294899888336658477783203125e-2,
                    5.859392830758973491622754181662457995116710662841796875e-2,
                    6.667116274777951101526696220389567315578460693359375e-2,
                    7.692304120228617148047334239890915341675281524658203125e-2,
                    9.090909085217104002030197307249181903898715972900390625e-2,
                    0.11111111111353784430821889372964506037533283233642578125,
                    0.1428571428571320522937782016015262342989444732666015625,
                    0.200000000000000011102230246251565404236316680908203125});
}

// 1 / d within a few ulps.
Float near_rcp(const Float& d) { return flushed_rcp(d); }
Double near_rcp(const Double& d) { return rcp(d); }

// x = 2^n m, log(m) = 2 atanh(u) with u = (m - 1) / (m + 1).
template <class T>
struct Argument {
  Value<T> n;
  Pair<T> u;
};
template <class T>
Argument<T> atanh_argument(const Value<T>& x) {
  const Reduced<T> reduced = reduce_log(x, 0.70710678118654752);
  const Value<T>& f = reduced.f;
  const Value<T> d = f + T{2};
  const Value<T> inverse = near_rcp(d);
  const Value<T> hi = f * inverse;
  const Value<T> left = fma(-hi, f - (d - T{2}), fma(-hi, d, f));
  return {reduced.n, {hi, left * inverse}};
}

// n log(2) + m.hi + m.lo
template <class T>
Pair<T> with_exponent(const Value<T>& n, const Pair<T>& m) {
  using C = Constants<T>;
  const Pair<T> whole = sum(n * static_cast<T>(C::kLn2), m.hi);
  return sum(whole.hi, m.lo + fma(n, static_cast<T>(C::kLn2Low), whole.lo));
}

}  // namespace

template <class T>
Pair<T> log_pair(const Value<T>& x) {
  using C = Constants<T>;
  const auto [n, u] = atanh_argument(x);
  const Pair<T> z = product(u, u);
  const Pair<T> series = sum(Value<T>(static_cast<T>(C::kThird)),
                             fma(z.hi, atanh_tail(z.hi), static_cast<T>(C::kThirdLow)));
  const Pair<T> twice = {u.hi + u.hi, u.lo + u.lo};
  const Pair<T> more = product(twice, product(z, series));
  const Pair<T> log_m = sum(twice.hi, more.hi);
  return with_exponent<T>(n, {log_m.hi, log_m.lo + (more.lo + twice.lo)});
}
template Pair<float> log_pair(const Float&);
template Pair<double> log_pair(const Double&);

namespace {

// The logarithm as powers need it. Of f32 within 2^-30: what the series adds is a hundredth, and a float enough for it.
Pair<double> log_for_power(const Double& x) { return log_pair(x); }
Pair<float> log_for_power(const Float& x) {
  const auto [n, u] = atanh_argument(x);
  const Float twice = u.hi + u.hi;
  const Float z = fma(u.hi, u.hi, twice * u.lo);
  const Float series = z * fma(z, atanh_tail(z), static_cast<float>(Constants<float>::kThird));
  return with_exponent<float>(n, sum(twice, fma(twice, series, u.lo + u.lo)));
}

}  // namespace

template <class T>
Value<T> pow(const Value<T>& x, const Value<T>& y) {
  const Value<T> inf = kInfinity<T>, one = T{1}, zero = T{0};
  const Value<T> a = abs(x);
  const Pair<T> log_a = log_for_power(a);
  const Pair<T> p = product(y, log_a.hi);
  const Value<T> rest = fma(y, log_a.lo, p.lo);
  const Value<T> finite = near_exp_sum(p.hi, select(abs(p.hi) < static_cast<T>(2048), rest, zero));
  // Zero and infinity, by which way y turns them; then what is 1 or NaN whatever the other is.
  const Value<T> extreme = select((a == 0) == (y < 0), inf, zero);
  const Value<T> magnitude = select((a == 0) | (a == inf), extreme, finite);
  const Value<T> half = y * T{0.5};
  const Bool integer = trunc(y) == y, odd = integer & (trunc(half) != half);
  const Bool negative = bits(x) < 0;
  const Value<T> signed_ = select(negative & odd, -magnitude, magnitude);
  const Bool no_root = (x < 0) & !integer & (a < inf);
  const Value<T> number = select(no_root | (x != x) | (y != y), Value<T>(kNan<T>), signed_);
  const Bool minus_one_to_infinity = (x == T{-1}) & (abs(y) == inf);
  return select((x == 1) | (y == 0) | minus_one_to_infinity, one, number);
}
template Float pow(const Float&, const Float&);
template Double pow(const Double&, const Double&);

}  // namespace heddle::detail::math
