// The formulas behind dsl/math/math.h, in the language itself: f32 and f64 scalars. Other shapes and
// types are made of these in math/dispatch.cc.
#pragma once

#include <initializer_list>
#include <limits>

#include "heddle/dsl/control.h"

namespace heddle::detail::math {

// The layout of a float type.
template <class T>
struct Format;
template <>
struct Format<float> {
  using Bits = int32_t;
  static constexpr int kMantissa = 23, kBias = 127;
};
template <>
struct Format<double> {
  using Bits = int64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
};
template <class T>
using Bits = typename Format<T>::Bits;
template <class T>
using BitsValue = Value<Bits<T>>;

template <class T>
inline constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

template <class T>
BitsValue<T> bits(const Value<T>& x) {
  return bitcast<Bits<T>>(x);
}
template <class T>
BitsValue<T> host_bits(T x) {
  return BitsValue<T>(__builtin_bit_cast(Bits<T>, x));
}
template <class T>
Value<T> from_bits(const BitsValue<T>& x) {
  return bitcast<T>(x);
}

// The sum of c[i] * x^i, from the highest i down; coefficients are listed from the highest one.
template <class T>
Value<T> horner(const Value<T>& x, std::initializer_list<double> c) {
  Value<T> sum = static_cast<T>(*c.begin());
  for (const double* next = c.begin() + 1; next != c.end(); ++next) {
    sum.node() = fma(sum, x, static_cast<T>(*next)).node();
  }
  return sum;
}

// |x| with y's sign.
template <class T>
Value<T> with_sign(const Value<T>& x, const Value<T>& y) {
  const BitsValue<T> sign = std::numeric_limits<Bits<T>>::min();
  return from_bits<T>((bits(x) & ~sign) | (bits(y) & sign));
}

// 2^n for an exponent n of normal numbers.
template <class T>
Value<T> power_of_two(const BitsValue<T>& n) {
  return from_bits<T>((n << Format<T>::kMantissa) + host_bits(T{1}));
}
// x * 2^n for |n| up to twice the exponents of normal numbers, rounded once if |x| is about 1.
template <class T>
Value<T> scale(const Value<T>& x, const BitsValue<T>& n) {
  const BitsValue<T> half = n >> 1;
  return x * power_of_two<T>(half) * power_of_two<T>(n - half);
}

// The nearest integer of a number below 2^(mantissa - 2), as float and as bits.
template <class T>
struct Rounded {
  Value<T> value;
  BitsValue<T> integer;
};
template <class T>
inline constexpr T kShifter = T{3} * static_cast<T>(int64_t{1} << (Format<T>::kMantissa - 1));
// round(x * factor): the sum's last bit is worth 1.
template <class T>
Rounded<T> round_product(const Value<T>& x, T factor) {
  const Value<T> shifted = fma(x, factor, kShifter<T>);
  return {shifted - kShifter<T>, bits(shifted) - host_bits(kShifter<T>)};
}

// A number as a sum of two, the second below an ulp of the first.
template <class T>
struct Pair {
  Value<T> hi, lo;
};
// |large| >= |small|, or large is 0.
template <class T>
Pair<T> sum(const Value<T>& large, const Value<T>& small) {
  const Value<T> hi = large + small;
  return {hi, small - (hi - large)};
}
template <class T>
Pair<T> product(const Value<T>& a, const Value<T>& b) {
  const Value<T> hi = a * b;
  return {hi, fma(a, b, -hi)};
}
template <class T>
Pair<T> product(const Pair<T>& a, const Pair<T>& b) {
  const Pair<T> p = product(a.hi, b.hi);
  return {p.hi, p.lo + fma(a.hi, b.lo, a.lo * b.hi)};
}

#define HEDDLE_MATH_1(name, ...) \
  template <class T>             \
  Value<T> name(const Value<T>& x);
#define HEDDLE_MATH_2(name, ...) \
  template <class T>             \
  Value<T> name(const Value<T>& x, const Value<T>& y);
#define HEDDLE_MATH_3(name, ...) \
  template <class T>             \
  Value<T> name(const Value<T>& x, const Value<T>& y, const Value<T>& z);
#define HEDDLE_MATH_4(name, ...) \
  template <class T>             \
  Value<T> name(const Value<T>& x, const Value<T>& y, const Value<T>& z, const Value<T>& w);
#include "heddle/dsl/math/math.def"
template <class T>
Pair<T> sincos(const Value<T>& x);
template <class T>
Pair<T> sincospi(const Value<T>& x);
template <class T>
Value<T> ldexp(const Value<T>& x, const Int& n);
template <class T>
struct Fraction {
  Value<T> fraction;
  Int exponent;
};
template <class T>
Fraction<T> frexp(const Value<T>& x);

// What formulas share.

// The special function unit's, in one instruction each, for results that need not be subnormal: such count as zeros.
Float flushed_exp2(const Float& x);
Float flushed_rcp(const Float& x);

// e^(x + lo) * 2^shift, where lo is below an ulp of x and 0 beyond the range of e^x.
template <class T>
Value<T> exp_sum(const Value<T>& x, const Value<T>& lo, int shift = 0);
// The same, of f32 by the special function unit: 1.9 ulps. e^x * 2^shift is a normal number then where shift is not 0.
template <class T>
Value<T> near_exp_sum(const Value<T>& x, const Value<T>& lo, int shift = 0);

// e^x as a number from 0.7 to 1.42 times 2^exponent, of x within the range of finite e^x / 2.
template <class T>
struct Power {
  Pair<T> number;
  BitsValue<T> exponent;
};
template <class T>
Power<T> exp_parts(const Value<T>& x);

// x / y of numbers of moderate size, the first part within two ulps.
Pair<float> near_quotient(const Float& x, const Float& y);
// The product with a number, rounded once but for what the second part's loses.
template <class T>
Value<T> times(const Value<T>& a, const Pair<T>& b) {
  return fma(a, b.hi, a * b.lo);
}

// The logarithm of a positive number, within 2^-10 ulps.
template <class T>
Pair<T> log_pair(const Value<T>& x);

// e^(x^2) erfc(x) (x + 1/2) of x >= 0.
Float erfcx_numerator(const Float& x);

// A positive number as 2^n (1 + f) with 1 + f in [least, 2 least).
template <class T>
struct Reduced {
  Value<T> n, f;
};
template <class T>
Reduced<T> reduce_log(const Value<T>& x, double least);

}  // namespace heddle::detail::math
