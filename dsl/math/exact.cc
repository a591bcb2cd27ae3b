// Functions whose results are exact, or rounded once: signs, neighbours, remainders.
#include "heddle/dsl/math/formulas_internal.h"

namespace heddle::detail::math {

template <class T>
Value<T> round(const Value<T>& x) {
  // A half less its last bit: a sum that rounds up would else carry what is just below a half.
  const T below_half = static_cast<T>(0.5) - std::numeric_limits<T>::epsilon() / 4;
  return trunc(x + with_sign(Value<T>(below_half), x));
}
template Float round(const Float&);
template Double round(const Double&);

template <class T>
Value<T> copysign(const Value<T>& x, const Value<T>& y) {
  return with_sign(x, y);
}
template Float copysign(const Float&, const Float&);
template Double copysign(const Double&, const Double&);

template <class T>
Value<T> fdim(const Value<T>& x, const Value<T>& y) {
  return select(x <= y, Value<T>(T{0}), x - y);
}
template Float fdim(const Float&, const Float&);
template Double fdim(const Double&, const Double&);

template <class T>
Value<T> nextafter(const Value<T>& x, const Value<T>& y) {
  // Numbers of one sign are ordered as their bits are.
  const BitsValue<T> b = bits(x), one = 1;
  const BitsValue<T> next = select((x < y) == (x > 0), b + one, b - one);
  const Value<T> from_zero = with_sign(from_bits<T>(one), y);
  const Value<T> moved = select(x == 0, from_zero, from_bits<T>(next));
  return select((x != x) | (y != y), x + y, select(x == y, y, moved));
}
template Float nextafter(const Float&, const Float&);
template Double nextafter(const Double&, const Double&);

// By three factors, so that the last product alone may round.
template <class T>
Value<T> ldexp(const Value<T>& x, const Int& n) {
  // Past these nothing is left of the largest and the smallest number.
  constexpr int kMost = 2 * (Format<T>::kBias + Format<T>::kMantissa);
  const auto clipped = cast<Bits<T>>(max(min(n, kMost), -kMost));
  const BitsValue<T> third = clipped >> 2;
  const Value<T> factor = power_of_two<T>(third);
  return x * factor * factor * factor * power_of_two<T>(clipped - third - third - third);
}
template Float ldexp(const Float&, const Int&);
template Double ldexp(const Double&, const Int&);

template <class T>
Fraction<T> frexp(const Value<T>& x) {
  constexpr int kMantissa = Format<T>::kMantissa;
  const Value<T> a = abs(x);
  const Bool ordinary = (a > 0) & (a < kInfinity<T>), small = a < std::numeric_limits<T>::min();
  const BitsValue<T> b = bits(select(small, a * static_cast<T>(int64_t{1} << kMantissa), a));
  const Int exponent = cast<int>(b >> kMantissa) - select(small, kMantissa, 0);
  const BitsValue<T> below = (Bits<T>{1} << kMantissa) - 1;
  const Value<T> half = static_cast<T>(0.5);
  const Value<T> fraction = with_sign(from_bits<T>((b & below) | bits(half)), x);
  return {select(ordinary, fraction, x), select(ordinary, exponent - (Format<T>::kBias - 1), 0)};
}
template Fraction<float> frexp(const Float&);
template Fraction<double> frexp(const Double&);

namespace {

template <class T>
using Unsigned = std::make_unsigned_t<Bits<T>>;

// A positive number as significand * 2^exponent, the significand whole and its top bit set, for
// subnormal numbers too.
template <class T>
struct Whole {
  Value<Unsigned<T>> significand;
  Int exponent;
};
template <class T>
Whole<T> whole(const Value<T>& a) {
  constexpr int kMantissa = Format<T>::kMantissa;
  const auto b = bitcast<Unsigned<T>>(a);
  const auto hidden = Unsigned<T>{1} << kMantissa;
  const Int biased = cast<int>(b >> kMantissa);
  const auto m = (b & (hidden - 1)) | select(biased > 0, Value<Unsigned<T>>(hidden), 0);
  const Int lift = clz(m) - (8 * static_cast<int>(sizeof(T)) - 1 - kMantissa);
  return {m << bitcast<uint32_t>(lift), max(biased, 1) - lift};
}

// significand * 2^exponent as a number; the exponent is that of a number that was taken apart.
template <class T>
Value<T> joined(const Value<Unsigned<T>>& significand, const Int& exponent) {
  constexpr int kMantissa = Format<T>::kMantissa;
  const Int lift =
      min(clz(significand) - (8 * static_cast<int>(sizeof(T)) - 1 - kMantissa), exponent - 1);
  const auto m = significand << bitcast<uint32_t>(max(lift, 0));
  const auto lowered = m >> bitcast<uint32_t>(max(-lift, 0));
  const auto hidden = Unsigned<T>{1} << kMantissa;
  const Int biased = select((lowered & hidden) != 0, exponent - lift, 0);
  return bitcast<T>((lowered & (hidden - 1)) | (cast<Unsigned<T>>(biased) << kMantissa));
}

// The remainder of two positive finite numbers, a few bits of the quotient a trip.
template <class T>
Value<T> positive_fmod(const Value<T>& a, const Value<T>& b) {
  constexpr int kSpare = 8 * sizeof(T) - 1 - Format<T>::kMantissa;
  using U = Value<Unsigned<T>>;
  const Whole<T> x = whole(a), y = whole(b);
  struct State {
    U rest;
    Int more;
  };
  const State end = While(
      State{x.significand % y.significand, x.exponent - y.exponent},
      [](State s) { return s.more > 0; },
      [&](State s) {
        const Int step = min(s.more, kSpare);
        return State{(s.rest << bitcast<uint32_t>(step)) % y.significand, s.more - step};
      });
  return joined<T>(end.rest, y.exponent);
}

template <class T>
Bool no_remainder(const Value<T>& x, const Value<T>& y) {
  return (x - x != 0) | (y != y) | (y == 0);
}

// |x| modulo |y|, where the two have a remainder.
template <class T>
Value<T> magnitude_fmod(const Value<T>& a, const Value<T>& b) {
  return If((a >= b) & (b > 0) & (a < kInfinity<T>), [&] { return positive_fmod(a, b); },
            [&] { return a; });
}

}  // namespace

template <class T>
Value<T> fmod(const Value<T>& x, const Value<T>& y) {
  const Value<T> r = with_sign(magnitude_fmod(abs(x), abs(y)), x);
  return select(no_remainder(x, y), Value<T>(kNan<T>), r);
}
template Float fmod(const Float&, const Float&);
template Double fmod(const Double&, const Double&);

template <class T>
Value<T> remainder(const Value<T>& x, const Value<T>& y) {
  const Value<T> b = abs(y), twice = b + b;
  // Modulo 2 |y|, so that the quotient's last bit decides ties; |x| itself where that overflows.
  const Value<T> a = magnitude_fmod(abs(x), twice);
  // a > b / 2 without halving b, which may be the smallest number.
  const auto beyond_half = [&](const Value<T>& r) { return r > b - r; };
  const Value<T> once = select(beyond_half(a), a - b, a);
  const Bool again = (once >= b - once) & (a > once);
  const Value<T> r = select(again, once - b, once);
  const Value<T> signed_ = select(bits(x) < 0, -r, r);
  return select(no_remainder(x, y), Value<T>(kNan<T>), signed_);
}
template Float remainder(const Float&, const Float&);
template Double remainder(const Double&, const Double&);

}  // namespace heddle::detail::math
