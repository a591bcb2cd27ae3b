// Arc functions.
#include "heddle/dsl/math/formulas_internal.h"

namespace heddle::detail::math {
namespace {

// pi as a sum; its half is exact.
template <class T>
struct Pi;
template <>
struct Pi<float> {
  static constexpr float kHigh = 0x1.921fb6p1f, kLow = -0x1.777a5cp-24f;
};
template <>
struct Pi<double> {
  static constexpr double kHigh = 0x1.921fb54442d18p1, kLow = 0x1.1a62633145c07p-53;
};

// pi - x and pi / 2 - x.
template <class T>
Value<T> pi_less(const Value<T>& x) {
  return Pi<T>::kHigh - (x - Pi<T>::kLow);
}
template <class T>
Value<T> half_pi_less(const Value<T>& x) {
  return Pi<T>::kHigh / 2 - (x - Pi<T>::kLow / 2);
}

// (asin(a) - a) / a for a^2 = z up to 0.545^2.
Float asin_tail(const Float& z) {
  return z * horner(z, {4.42039668560028076171875e-2, 9.47565026581287384033203125e-3,
                        3.31694148480892181396484375e-2, 4.434879124164581298828125e-2,
                        7.501399517059326171875e-2, 0.166666448116302490234375});
}
Double asin_tail(const Double& z) {
  return z * horner(z, {0x1.86a53cfbdf113p-5, -0x1.802a5531b4051p-5, 0x1.5346612e9e804p-5,
                        -0x1.4979f3e0d568dp-8, 0x1.b304cd987a12fp-7, 0x1.65c3d0a2396f4p-7,
                        0x1.cc3404233dccap-7, 0x1.1c31f65aaaa7bp-6, 0x1.6e8d4f61d78ebp-6,
                        0x1.f1c70c80f5686p-6, 0x1.6db6db9a61c5dp-5, 0x1.33333332f441bp-4,
                        0x1.5555555555745p-3});
}

// Beyond 0.54, where the second is below 1/2: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
template <class T>
struct Half {
  Bool far;
  Value<T> asin;  // of a, or of the root
};
template <class T>
Half<T> half_asin(const Value<T>& a) {
  constexpr T kHalf = T{1} / 2;
  const Bool far = a > static_cast<T>(0.542);
  const Value<T> z = select(far, fma(a, -kHalf, kHalf), a * a);
  const Value<T> s = select(far, sqrt(z), a);
  return {far, fma(asin_tail(z), s, s)};
}

// (atan(a) - a) / a for a^2 = z up to 1.
Float atan_tail(const Float& z) {
  return z * horner(z, {2.9202033765614032745361328125e-3, -1.636600308120250701904296875e-2,
                        4.32087592780590057373046875e-2, -7.551951706409454345703125e-2,
                        0.10665880143642425537109375, -0.14211022853851318359375,
                        0.19993768632411956787109375, -0.333331525325775146484375});
}
Double atan_tail(const Double& z) {
  return z * horner(z, {0x1.c4a44b27ac691p-17, -0x1.44a4add8ff527p-13, 0x1.ba3da1bd88a38p-11,
                        -0x1.7ea706657f874p-9, 0x1.dc050e5c43097p-8,   -0x1.ca98037abeadfp-7,
                        0x1.69d8b3f204da8p-6,  -0x1.eb4959aa0a774p-6,  0x1.2c9828903adcdp-5,
                        -0x1.59d7f9275c62fp-5, 0x1.82eeb2110168fp-5,   -0x1.ae644e2e746dfp-5,
                        0x1.e1bcf7f235e27p-5,  -0x1.110e6d9887d01p-4,  0x1.3b136a180a6dcp-4,
                        -0x1.745d11fb3da79p-4, 0x1.c71c7184288ffp-4,   -0x1.24924923923f7p-3,
                        0x1.9999999995aebp-3,  -0x1.555555555552ap-2});
}
template <class T>
Value<T> atan_near(const Value<T>& a) {
  return fma(atan_tail(a * a), a, a);
}

// 1 / a of a beyond 1.
Float inverse(const Float& a) { return flushed_rcp(a); }
Double inverse(const Double& a) { return rcp(a); }

}  // namespace

template <class T>
Value<T> asin(const Value<T>& x) {
  const Half<T> h = half_asin(abs(x));
  const Value<T> far = Pi<T>::kHigh / 2 - fma(h.asin, T{2}, -Pi<T>::kLow / 2);
  return with_sign(select(h.far, far, h.asin), x);
}
template Float asin(const Float&);
template Double asin(const Double&);

template <class T>
Value<T> acos(const Value<T>& x) {
  const Half<T> h = half_asin(abs(x));
  const Value<T> twice = h.asin + h.asin;
  return select(h.far, select(x < 0, pi_less(twice), twice), half_pi_less(with_sign(h.asin, x)));
}
template Float acos(const Float&);
template Double acos(const Double&);

template <class T>
Value<T> atan(const Value<T>& x) {
  const Value<T> a = abs(x);
  const Bool far = a > 1;
  const Value<T> near = atan_near(select(far, inverse(a), a));
  return with_sign(select(far, half_pi_less(near), near), x);
}
template Float atan(const Float&);
template Double atan(const Double&);

template <class T>
Value<T> atan2(const Value<T>& y, const Value<T>& x) {
  const Value<T> ax = abs(x), ay = abs(y), zero = T{0}, one = T{1};
  const Bool steep = ay > ax;
  const Value<T> large = max(ax, ay), small = min(ax, ay);
  // 0 / 0 is no angle but 0, and infinity / infinity is 1.
  const Value<T> ratio =
      select(large == 0, zero, select(small == kInfinity<T>, one, small / large));
  const Value<T> near = atan_near(ratio);
  const Value<T> first = select(steep, half_pi_less(near), near);
  const Value<T> angle = select(bits(x) < 0, pi_less(first), first);
  return select((x != x) | (y != y), Value<T>(kNan<T>), with_sign(angle, y));
}
template Float atan2(const Float&, const Float&);
template Double atan2(const Double&, const Double&);

}  // namespace heddle::detail::math
