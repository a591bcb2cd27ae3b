// What the functions of dsl/math/math.def are measured against: the C library in a wider type, and how
// far a result is from it. For the measuring tool and the tests.
//
//   exact_of<float>::type                                double; for double, long double
//   reference::rcbrt(exact)                              each function of math.def, in a wide type
//   Deviation d = deviation(result, exact);              ulps, or a wrong special value
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace heddle::tools {

template <class T>
struct Exact;
template <>
struct Exact<float> {
  using type = double;
};
template <>
struct Exact<double> {
  using type = long double;
};
template <class T>
using exact_t = typename Exact<T>::type;

namespace reference {

using std::acos;
using std::acosh;
using std::asin;
using std::asinh;
using std::atan;
using std::atan2;
using std::atanh;
using std::cbrt;
using std::copysign;
using std::cos;
using std::cosh;
using std::erf;
using std::erfc;
using std::exp;
using std::exp2;
using std::expm1;
using std::fdim;
using std::fmod;
using std::hypot;
using std::log;
using std::log10;
using std::log1p;
using std::log2;
using std::pow;
using std::remainder;
using std::round;
using std::sin;
using std::sinh;
using std::tan;
using std::tanh;
using std::tgamma;

template <class R>
inline constexpr R kPi = 3.14159265358979323846264338327950288L;

inline double exp10(double x) { return ::exp10(x); }
inline long double exp10(long double x) { return ::exp10l(x); }
// The neighbour in the narrow type.
inline double nextafter(double x, double y) {
  return std::nextafter(static_cast<float>(x), static_cast<float>(y));
}
inline long double nextafter(long double x, long double y) {
  return std::nextafter(static_cast<double>(x), static_cast<double>(y));
}
template <class R>
R rcbrt(R x) {
  return 1 / std::cbrt(x);
}
template <class R>
R rhypot(R x, R y) {
  return 1 / std::hypot(x, y);
}
inline double lgamma(double x) {
  int sign = 0;
  return ::lgamma_r(x, &sign);  // std::lgamma writes a global
}
// e^(x^2) erfc(x); past 10 by its asymptotic series.
inline double erfcx(double x) {
  if (x < 10) return std::exp(x * x) * std::erfc(x);
  const double z = 0.5 / (x * x);
  double sum = 0;
  for (int k = 9; k > 0; --k) sum = -(2 * k - 1) * z * (1 + sum);
  return (1 + sum) / (x * std::sqrt(kPi<double>));
}
// The number whose erfc is c or whose erf is a, from a rough one for a = 1 - c: near 0 by Halley's
// steps for erf, beyond that by Newton's for the logarithm of erfc.
inline double rough_erfinv(double c) {
  const double w = -std::log(c * (2 - c)), k = 4.33 - 0.5 * w;
  return std::sqrt(std::sqrt(k * k + w * 6.803) - k);
}
inline double near_erfinv(double a) {
  double y = a * (0.5 * std::sqrt(kPi<double>));
  for (int step = 0; step < 3; ++step) {
    const double u = (std::erf(y) - a) * std::exp(y * y) * (0.5 * std::sqrt(kPi<double>));
    y -= u / (1 + y * u);
  }
  return y;
}
inline double far_erfcinv(double c) {
  if (c == 0) return std::numeric_limits<double>::infinity();
  double y = rough_erfinv(c);
  for (int step = 0; step < 4; ++step) {
    const double e = std::erfc(y);
    y += std::log(e / c) * e * std::exp(y * y) * (0.5 * std::sqrt(kPi<double>));
  }
  return y;
}
inline double erfcinv(double c) {
  if (!(c >= 0 && c <= 2)) return std::numeric_limits<double>::quiet_NaN();
  if (std::abs(1 - c) < 0.25) return near_erfinv(1 - c);
  return c > 1 ? -far_erfcinv(2 - c) : far_erfcinv(c);
}
inline double erfinv(double x) {
  const double a = std::abs(x);
  if (a > 1) return std::numeric_limits<double>::quiet_NaN();
  return std::copysign(a < 0.25 ? near_erfinv(a) : far_erfcinv(1 - a), x);
}
inline double normcdf(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }
inline double normcdfinv(double p) { return p == 0.5 ? 0 : -std::sqrt(2.0) * erfcinv(2 * p); }
// Of numbers whose squares a wider type holds.
template <class R>
R norm3d(R x, R y, R z) {
  return std::hypot(std::hypot(x, y), z);
}
template <class R>
R norm4d(R x, R y, R z, R w) {
  return std::hypot(std::hypot(x, y), std::hypot(z, w));
}
template <class R>
R rnorm3d(R x, R y, R z) {
  return 1 / norm3d(x, y, z);
}
template <class R>
R rnorm4d(R x, R y, R z, R w) {
  return 1 / norm4d(x, y, z, w);
}
// Of pi times what x is off the nearest half.
template <class R>
R sinpi(R x) {
  if (!std::isfinite(x)) return std::numeric_limits<R>::quiet_NaN();
  const R r = std::remainder(x, R{2});  // exact, from -1 to 1
  if (r == std::trunc(r)) return std::copysign(R{0}, x);
  if (std::abs(r) <= R{0.25}) return std::sin(kPi<R> * r);
  if (std::abs(r) >= R{0.75}) return std::sin(kPi<R> * (std::copysign(R{1}, r) - r));
  return std::copysign(std::cos(kPi<R> * (R{0.5} - std::abs(r))), r);
}
template <class R>
R cospi(R x) {
  if (!std::isfinite(x)) return std::numeric_limits<R>::quiet_NaN();
  const R r = std::abs(std::remainder(x, R{2}));
  if (r == R{0.5}) return 0;
  if (r <= R{0.25}) return std::cos(kPi<R> * r);
  if (r >= R{0.75}) return -std::cos(kPi<R> * (1 - r));
  return std::sin(kPi<R> * (R{0.5} - r));
}

}  // namespace reference

// How far a result is off.
struct Deviation {
  double ulps = 0;
  bool wrong_special = false;  // not the NaN, infinity or signed zero that it must be
};

// Of a positive number: 1 over the distance of T's numbers around it.
template <class T>
exact_t<T> inverse_ulp(exact_t<T> e) {
  using Limits = std::numeric_limits<T>;
  const auto clamped = [](int exponent) {
    return std::clamp(exponent, Limits::min_exponent - 1, Limits::max_exponent - 1);
  };
  if constexpr (sizeof(T) == 4) {  // billions of them: without the library
    const int exponent = clamped(static_cast<int>(std::bit_cast<uint64_t>(e) >> 52) - 1023);
    return std::bit_cast<double>(static_cast<uint64_t>(1023 + 23 - exponent) << 52);
  } else {
    return std::ldexp(exact_t<T>{1}, Limits::digits - 1 - clamped(std::ilogb(e)));
  }
}

// The exact value is rounded to nowhere; an ulp is the distance of T's numbers in its binade. Past
// the largest number the next power of two stands for infinity.
template <class T>
Deviation deviation(T result, exact_t<T> exact) {
  using R = exact_t<T>;
  using Limits = std::numeric_limits<T>;
  if (std::isnan(exact) || std::isnan(result)) {
    return {.wrong_special = std::isnan(exact) != std::isnan(result)};
  }
  const bool same_sign = std::signbit(exact) == std::signbit(result);
  if (std::isinf(exact) || exact == 0) {
    return {.wrong_special = static_cast<R>(result) != exact || !same_sign};
  }
  if (!same_sign) return {.wrong_special = true};
  const R top = std::ldexp(R{1}, Limits::max_exponent);
  const R e = std::min(std::abs(exact), top);
  const R r = std::isinf(result) ? top : static_cast<R>(std::abs(result));
  return {.ulps = static_cast<double>(std::abs(r - e) * inverse_ulp<T>(e))};
}

}  // namespace heddle::tools
