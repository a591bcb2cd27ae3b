// Arc functions.
#include "heddle/dsl/internal/math.h"

namespace heddle::detail::math {
namespace {

constexpr float kPi = 0x1.921fb6p1f, kPiLow = -0x1.777a5cp-24f;
constexpr float kHalfPi = 0x1.921fb6p0f, kHalfPiLow = -0x1.777a5cp-25f;

// (asin(a) - a) / a for a^2 = z up to 0.545^2.
Float asin_tail(const Float& z) {
  return z * horner(z, {4.42039668560028076171875e-2, 9.47565026581287384033203125e-3,
                        3.31694148480892181396484375e-2, 4.434879124164581298828125e-2,
                        7.501399517059326171875e-2, 0.166666448116302490234375});
}

// Beyond 0.54, where the second is below 1/2: asin(a) = pi/2 - 2 asin(sqrt((1 - a) / 2)).
struct Half {
  Bool far;
  Float asin;  // of a, or of the root
};
Half half_asin(const Float& a) {
  const Bool far = a > 0.542f;
  const Float z = select(far, fma(a, -0.5f, 0.5f), a * a);
  const Float s = select(far, sqrt(z), a);
  return {far, fma(asin_tail(z), s, s)};
}

// atan(a) for a from 0 to 1.
Float atan_near(const Float& a) {
  const Float z = a * a;
  const Float tail = horner(z, {-1.791501999832689762115478515625e-3,
                                1.0904536582529544830322265625e-2, -3.11577655375003814697265625e-2,
                                5.79358004033565521240234375e-2, -8.4020562469959259033203125e-2,
                                0.10951654613018035888671875, -0.14264126121997833251953125,
                                0.1999853551387786865234375, -0.3333329856395721435546875});
  return fma(z * tail, a, a);
}

}  // namespace

template <>
Float asin(const Float& x) {
  const Half h = half_asin(abs(x));
  return with_sign(select(h.far, kHalfPi - fma(2, h.asin, -kHalfPiLow), h.asin), x);
}

template <>
Float acos(const Float& x) {
  const Half h = half_asin(abs(x));
  const Float twice = h.asin + h.asin;
  const Float signed_ = with_sign(h.asin, x);
  const Float near = kHalfPi - (signed_ - kHalfPiLow);
  return select(h.far, select(x < 0, kPi - (twice - kPiLow), twice), near);
}

template <>
Float atan(const Float& x) {
  const Float a = abs(x);
  const Bool far = a > 1;
  const Float near = atan_near(select(far, rcp(a), a));
  return with_sign(select(far, kHalfPi - (near - kHalfPiLow), near), x);
}

template <>
Float atan2(const Float& y, const Float& x) {
  const Float ax = abs(x), ay = abs(y);
  const Bool steep = ay > ax;
  const Float large = max(ax, ay), small = min(ax, ay);
  // 0 / 0 is no angle but 0, and infinity / infinity is 1.
  const Float ratio =
      select(large == 0, Float(0), select(small == kInfinity<float>, Float(1), small / large));
  const Float near = atan_near(ratio);
  const Float first = select(steep, kHalfPi - (near - kHalfPiLow), near);
  const Float angle = select(bits(x) < 0, kPi - (first - kPiLow), first);
  return select((x != x) | (y != y), Float(kNan<float>), with_sign(angle, y));
}

}  // namespace heddle::detail::math
