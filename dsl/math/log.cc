// Logarithms: x = 2^n (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), log(1 + f) = f + tail(f). Then
// n's part is at least twice the other, and their sum loses little.
#include "heddle/dsl/math/formulas_internal.h"

namespace heddle::detail::math {

template <class T>
Reduced<T> reduce_log(const Value<T>& x, double least) {
  constexpr int kMantissa = Format<T>::kMantissa;
  // Subnormals are made normal.
  const Bool small = x < std::numeric_limits<T>::min();
  const BitsValue<T> b = bits(select(small, x * static_cast<T>(int64_t{1} << kMantissa), x));
  const BitsValue<T> exponent = (b - host_bits(static_cast<T>(least))) >> kMantissa;
  const Value<T> m = from_bits<T>(b - (exponent << kMantissa));
  const Int lifted = select(small, -kMantissa, 0);
  return {cast<T>(cast<int>(exponent) + lifted), m - 1};
}
template Reduced<float> reduce_log(const Float&, double);
template Reduced<double> reduce_log(const Double&, double);

namespace {

template <class T>
Reduced<T> reduce(const Value<T>& x) {
  return reduce_log(x, 0.70710678118654752);
}

// (log(1 + f) - f) / f^2
Float tail_quotient(const Float& f) {
  return horner(
      f, {-7.6243341620452880859375e-2, 0.12909315526485443115234375, -0.13244615495204925537109375,
          0.141811192035675048828125, -0.16608761250972747802734375, 0.20002003014087677001953125,
          -0.2500160038471221923828125, 0.3333332538604736328125, -0.49999988079071044921875});
}
// log(1 + f) - f
Float tail(const Float& f) { return f * f * tail_quotient(f); }
// With s = f / (2 + f): log(1 + f) = 2 s + s^3 (…), and 2 s = f - s f.
Double tail(const Double& f) {
  const Double s = f / (f + 2.0);
  const Double z = s * s;
  const Double q = z * horner(z, {0.1393477599715721992890138380971620790660381317138671875,
                                  0.1315829473336821626132774554207571782171726226806640625,
                                  0.153921558163020721909930443871417082846164703369140625,
                                  0.181816285063240601349576763823279182629663726806640625,
                                  0.22222225044885435263353201662539504468441009521484375,
                                  0.285714285475973384098580254430999048054218292236328125,
                                  0.4000000000010144329820604980341158807277679443359375,
                                  0.66666666666666507534699803727562539279460906982421875});
  const Double half_square = 0.5 * f * f;
  return fma(s, half_square + q, -half_square);
}

// The result for 0, infinity, NaN and what has no logarithm.
template <class T>
Value<T> finish(const Value<T>& x, const Value<T>& y) {
  const Value<T> inf = kInfinity<T>;
  const Value<T> special = select(x == 0, -inf, fma(x, inf, inf));
  return select((x > 0) & (x < inf), y, special);
}

// log(2) as a sum; its products with n are exact but for the second's last bits.
Float ln2_high(const Float&) { return 0x1.62e43p-1f; }
Float ln2_low(const Float&) { return -0x1.05c61p-29f; }
Double ln2_high(const Double&) { return 0x1.62e42fefa38p-1; }
Double ln2_low(const Double&) { return 0x1.ef35793c7673p-45; }

// (n + log2(1 + f)) / log2(base): 1 / log2(base) and 1 / log(base), each as a sum. Where n is not 0, what it gives is the
// greater part, so that the other's last rounding counts half an ulp at most.
template <class T>
Value<T> log_to_base(const Value<T>& x, T n_hi, T n_lo, T hi, T lo) {
  const Reduced<T> r = reduce(x);
  const Value<T> low = fma(r.f, lo, tail(r.f) * hi);
  const Value<T> of_f = fma(r.f, hi, n_lo == 0 ? low : fma(r.n, n_lo, low));
  return finish(x, n_hi == 1 ? r.n + of_f : fma(r.n, n_hi, of_f));
}

}  // namespace

template <class T>
Value<T> log(const Value<T>& x) {
  const Reduced<T> r = reduce(x);
  return finish(x, fma(r.n, ln2_high(x), r.f + fma(r.n, ln2_low(x), tail(r.f))));
}
template Float log(const Float&);
template Double log(const Double&);

template <>
Float log2(const Float& x) {
  return log_to_base<float>(x, 1, 0, 0x1.715476p0f, 0x1.4ae0cp-26f);
}
template <>
Double log2(const Double& x) {
  return log_to_base<double>(x, 1, 0, 0x1.71547652b82fep0, 0x1.777d0ffda0d24p-56);
}
template <>
Float log10(const Float& x) {
  return log_to_base<float>(x, 0x1.344p-2f, 0x1.3509f8p-18f, 0x1.bcb7b2p-2f, -0x1.5b235ep-27f);
}
template <>
Double log10(const Double& x) {
  return log_to_base<double>(x, 0x1.34413509f78p-2, 0x1.fef311f12b358p-46, 0x1.bcb7b1526e50ep-2,
                             0x1.95355baaafad3p-57);
}

namespace {

// The result for infinity, NaN, -1 and below, and for x so near 0 that it is its own.
template <class T>
Value<T> finish_log1p(const Value<T>& x, const Value<T>& y) {
  const Value<T> inf = kInfinity<T>;
  const Value<T> special = select(x == T{-1}, -inf, fma(x, inf, inf));
  const Bool tiny = abs(x) < std::numeric_limits<T>::epsilon() / 4;
  return select(tiny, x, select((x > T{-1}) & (x < inf), y, special));
}

}  // namespace

// 1 + x = 2^n (1 + f), of n by the rounded sum: f = x 2^-n + (2^-n - 1) is rounded once.
template <>
Float log1p(const Float& x) {
  const Int exponent = (bits(x + 1) - host_bits(0.70710678f)) & -(1 << Format<float>::kMantissa);
  const Float scale = from_bits<float>(host_bits(4.0f) - exponent);  // 2^(2 - n) is no subnormal
  const Float f = fma(x * 0.25f, scale, fma(scale, 0.25f, -1));
  const Float n = cast<float>(exponent) * (1.0f / (1 << Format<float>::kMantissa));
  return finish_log1p(x, fma(n, 0x1.62e43p-1f, fma(f * f, tail_quotient(f), f)));
}
// log(1 + x) = log(u) + (1 + x - u) / u, of u = 1 + x as rounded.
template <>
Double log1p(const Double& x) {
  const Double u = 1 + x, large = max(x, 1), small = min(x, 1);
  const Double lost = small - (u - large);
  const Reduced<double> r = reduce(u);
  const Int64 n = bits(r.n + kShifter<double>) - host_bits(kShifter<double>);
  const Double rest = lost * power_of_two<double>(-min(n, Format<double>::kBias - 1));
  const Double low = tail(r.f) + fma(-rest, r.f, rest);
  return finish_log1p(x, fma(r.n, ln2_high(x), r.f + fma(r.n, ln2_low(x), low)));
}

}  // namespace heddle::detail::math
