// Cube roots and lengths.
#include "heddle/dsl/internal/math.h"

namespace heddle::detail::math {
namespace {

// A number from 1 to 8 in size, or a special one, and the rest of its exponent: x = y * 2^(3
// third).
struct Cubed {
  Float y;
  Int third;
};
Cubed split(const Float& a) {
  const Bool small = a < 0x1p-126f;
  const Int b = bits(select(small, a * 0x1p24f, a));
  // floor(e / 3) for e from -127 to 128, moved so that the product is positive.
  const Int e = (b >> 23) - 127;
  const Int third = ((e + 129) * 0x5556 >> 16) - 43;
  return {from_bits<float>(b - ((third * 3) << 23)), third - select(small, 8, 0)};
}

// 1 / cbrt(y) for y in [1, 8), within 2^-22: a first guess of the exponent's third, twice improved.
Float rcbrt_near(const Float& y) {
  const Float first = from_bits<float>(0x54a21d2a - mulhi(bits(y), 0x55555556));
  const auto improved = [&](const Float& r) {
    const Float error = fma(-y * r * r, r, 1);
    return fma(r * error, fma(error, 2.0f / 9, 1.0f / 3), r);
  };
  return improved(improved(first));
}

Bool is_special(const Float& a) { return (a == 0) | !(a < kInfinity<float>); }

}  // namespace

template <>
Float cbrt(const Float& x) {
  const Float a = abs(x);
  const Cubed c = split(a);
  const Float r = rcbrt_near(c.y);
  const Float root = c.y * r * r;
  // One step from the root, by how far its cube is off.
  const Float square = root * root;
  const Float left = fma(-square, root, c.y) - fma(root, root, -square) * root;
  const Float y = fma(left, (1.0f / 3) * r * r, root) * power_of_two<float>(c.third);
  return select(is_special(a), x, with_sign(y, x));
}

template <>
Float rcbrt(const Float& x) {
  const Float a = abs(x);
  const Cubed c = split(a);
  const Float r = rcbrt_near(c.y);
  const Float square = r * r, cube = square * r;
  const Float cube_low = fma(square, r, -cube) + fma(r, r, -square) * r;
  const Float left = fma(-c.y, cube_low, fma(-c.y, cube, 1));
  const Float y = fma(left, (1.0f / 3) * r, r) * power_of_two<float>(-c.third);
  return select(is_special(a), rcp(x), with_sign(y, x));
}

namespace {

// sqrt(x^2 + y^2) as root * 2^exponent, without overflow.
struct Length {
  Float root;
  Int exponent;
};
Length length(const Float& ax, const Float& ay) {
  const Float large = max(ax, ay), small = min(ax, ay);
  const Int exponent = max(min((bits(large) >> 23) - 127, 126), -126);
  const Float scale = power_of_two<float>(-exponent);
  const Float a = large * scale, b = small * scale;
  const Pair<float> square = {a * a, fma(a, a, -(a * a))};
  return {sqrt(square.hi + fma(b, b, square.lo)), exponent};
}

}  // namespace

template <>
Float hypot(const Float& x, const Float& y) {
  const Float ax = abs(x), ay = abs(y);
  const Length l = length(ax, ay);
  const Float finite =
      select((x != x) | (y != y), Float(kNan<float>), l.root * power_of_two<float>(l.exponent));
  const Float inf = kInfinity<float>;
  return select((ax == inf) | (ay == inf), inf, finite);
}

template <>
Float rhypot(const Float& x, const Float& y) {
  const Float ax = abs(x), ay = abs(y);
  const Length l = length(ax, ay);
  const Float finite = select((x != x) | (y != y), Float(kNan<float>),
                              rcp(l.root) * power_of_two<float>(-l.exponent));
  const Float inf = kInfinity<float>;
  return select((ax == inf) | (ay == inf), Float(0), finite);
}

}  // namespace heddle::detail::math
