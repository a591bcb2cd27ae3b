// Sine and cosine of pi x: what x is off the nearest half is exact.
#include "heddle/dsl/internal/math.h"

namespace heddle::detail::math {
namespace {

struct HalfTurned {
  Float r;      // from -1/4 to 1/4
  Int quarter;  // of a turn: x = r + quarter / 2
};
HalfTurned halves(const Float& x) {
  // A number from 2^23 on is whole, from 2^24 on even, as 0 is.
  const Float near = select(abs(x) < 0x1p24f, x, x - x);
  const Float doubled = near + near;
  const Float nearest = rint(doubled);
  return {fma(nearest, -0.5f, near), cast<int>(nearest)};
}

Float sinpi_near(const Float& r) {
  const Float z = r * r;
  const Float tail = horner(z, {7.99617767333984375e-2, -0.599061191082000732421875,
                                2.55015659332275390625, -5.167712688446044921875});
  return fma(r, 0x1.921fb6p1f, r * fma(tail, z, -0x1.777a5cp-24f));
}
Float cospi_near(const Float& r) {
  const Float z = r * r;
  return fma(z,
             horner(z, {0.22974522411823272705078125, -1.33483588695526123046875,
                        4.0586986541748046875, -4.93480205535888671875}),
             1);
}

Float turned_sinpi(const Float& r, const Int& quarter) {
  const Float y = select((quarter & 1) != 0, cospi_near(r), sinpi_near(r));
  return select((quarter & 2) != 0, -y, y);
}

}  // namespace

template <>
Float sinpi(const Float& x) {
  const HalfTurned h = halves(x);
  // Whole numbers give 0 with their sign.
  const Bool whole = (h.r == 0) & ((h.quarter & 1) == 0);
  return select(whole, with_sign(Float(0), x), turned_sinpi(h.r, h.quarter));
}

template <>
Float cospi(const Float& x) {
  const HalfTurned h = halves(x);
  const Bool zero = (h.r == 0) & ((h.quarter & 1) != 0);
  return select(zero, Float(0), turned_sinpi(h.r, h.quarter + 1));
}

}  // namespace heddle::detail::math
