// Sine and cosine of pi x: what x is off the nearest half is exact.
#include "heddle/dsl/math/formulas_internal.h"

namespace heddle::detail::math {
namespace {

template <class T>
struct HalfTurned {
  Value<T> r;   // from -1/4 to 1/4
  Int quarter;  // of a turn, modulo 4: x = r + quarter / 2
};
template <class T>
HalfTurned<T> halves(const Value<T>& x) {
  // A number from 2^mantissa on is whole, twice that even, as 0 is.
  constexpr T kEven = static_cast<T>(int64_t{1} << (Format<T>::kMantissa + 1));
  const Value<T> near = select(abs(x) < kEven, x, x - x);
  const Value<T> doubled = near + near;
  const Value<T> nearest = rint(doubled);
  return {fma(nearest, static_cast<T>(-0.5), near), cast<int>(cast<Bits<T>>(nearest))};
}

// sin(pi r) / r - pi and (cos(pi r) - 1) / z, of z = r^2; pi as f32 or f64 and what that lacks.
Float sinpi_near(const Float& r) {
  const Float z = r * r;
  const Float tail = horner(z, {7.99617767333984375e-2, -0.599061191082000732421875,
                                2.55015659332275390625, -5.167712688446044921875});
  return fma(r, 0x1.921fb6p1f, r * fma(tail, z, -0x1.777a5cp-24f));
}
Double sinpi_near(const Double& r) {
  const Double z = r * r;
  const Double tail = horner(
      z, {-0x1.7043327a0018bp-16, 0x1.e8fd15e938b49p-12, -0x1.e3075ff648242p-8,
          0x1.50783494c4ed4p-4, -0x1.32d2cce6360b1p-1, 0x1.466bc6775ab5cp1, -0x1.4abbce625be53p2});
  return fma(r, 0x1.921fb54442d18p1, r * fma(tail, z, 0x1.1a62633145c07p-53));
}
Float cospi_near(const Float& r) {
  const Float z = r * r;
  return fma(z,
             horner(z, {0.22974522411823272705078125, -1.33483588695526123046875,
                        4.0586986541748046875, -4.93480205535888671875}),
             1);
}
Double cospi_near(const Double& r) {
  const Double z = r * r;
  return fma(z,
             horner(z, {-0x1.b14c2f694d554p-14, 0x1.f9c8430edeb61p-10, -0x1.a6d1e6b76bf1dp-6,
                        0x1.e1f5067b07613p-3, -0x1.55d3c7e3c2d84p0, 0x1.03c1f081b5a65p2,
                        -0x1.3bd3cc9be45dep2}),
             1);
}

template <class T>
struct Near {
  Value<T> sin, cos;  // of pi times what is left
};
template <class T>
Near<T> near_of(const HalfTurned<T>& h) {
  return {sinpi_near(h.r), cospi_near(h.r)};
}

template <class T>
Value<T> turned(const Near<T>& near, const Int& quarter) {
  const Value<T> y = select((quarter & 1) != 0, near.cos, near.sin);
  return select((quarter & 2) != 0, -y, y);
}
// Whole numbers give 0 with their sign; halves of odd ones a cosine of 0.
template <class T>
Value<T> sine(const Value<T>& x, const HalfTurned<T>& h, const Near<T>& near) {
  const Bool zero = (h.r == 0) & ((h.quarter & 1) == 0);
  return select(zero, with_sign(Value<T>(T{0}), x), turned(near, h.quarter));
}
template <class T>
Value<T> cosine(const HalfTurned<T>& h, const Near<T>& near) {
  const Bool zero = (h.r == 0) & ((h.quarter & 1) != 0);
  return select(zero, Value<T>(T{0}), turned(near, h.quarter + 1));
}

}  // namespace

template <class T>
Value<T> sinpi(const Value<T>& x) {
  const HalfTurned<T> h = halves(x);
  return sine(x, h, near_of(h));
}
template Float sinpi(const Float&);
template Double sinpi(const Double&);

template <class T>
Value<T> cospi(const Value<T>& x) {
  const HalfTurned<T> h = halves(x);
  return cosine(h, near_of(h));
}
template Float cospi(const Float&);
template Double cospi(const Double&);

template <class T>
Pair<T> sincospi(const Value<T>& x) {
  const HalfTurned<T> h = halves(x);
  const Near<T> near = near_of(h);
  return {sine(x, h, near), cosine(h, near)};
}
template Pair<float> sincospi(const Float&);
template Pair<double> sincospi(const Double&);

}  // namespace heddle::detail::math
