// Cube roots and lengths.
#include <cstddef>
#include <vector>

#include "heddle/dsl/math/fast_math.h"
#include "heddle/dsl/math/formulas_internal.h"

namespace heddle::detail::math {
namespace {

// The biased exponent.
template <class T>
Int biased_exponent(const Value<T>& a) {
  return cast<int>(bits(a) >> Format<T>::kMantissa);
}

// A number from 1 to 8 in size, or a special one, and the rest of its exponent: x = y * 2^(3
// third).
template <class T>
struct Cubed {
  Value<T> y;
  Int third;
};
template <class T>
Cubed<T> split(const Value<T>& a) {
  constexpr int kMantissa = Format<T>::kMantissa, kBias = Format<T>::kBias;
  constexpr int kLift = (kMantissa + 3) / 3;  // a third of what makes subnormals normal
  const Bool small = a < std::numeric_limits<T>::min();
  const Value<T> lifted = select(small, a * static_cast<T>(int64_t{1} << 3 * kLift), a);
  // floor(e / 3), moved by a multiple of 3 so that the product is positive; e is below 2^12.
  constexpr int kMove = (kBias + 2) / 3;
  const Int third = ((biased_exponent(lifted) + (3 * kMove - kBias)) * 0x5556 >> 16) - kMove;
  const BitsValue<T> down = cast<Bits<T>>(third * 3) << kMantissa;
  return {from_bits<T>(bits(lifted) - down), third - select(small, kLift, 0)};
}

// Multiplies the digits of an approximation r of 1 / cbrt(y) by three.
template <class T>
Value<T> improved(const Value<T>& r, const Value<T>& y) {
  constexpr T kThird = static_cast<T>(1.0 / 3), kTwoNinths = static_cast<T>(2.0 / 9);
  const Value<T> error = fma(-y * r * r, r, T{1});
  return fma(r * error, fma(error, kTwoNinths, kThird), r);
}

// 1 / cbrt(y) for y in [1, 8), within 2^-22 and 2^-51: from a first guess of the exponent's third,
// or from f32's.
Float rcbrt_near(const Float& y) {
  const Float first = from_bits<float>(0x54a21d2a - mulhi(bits(y), 0x55555556));
  return improved(improved(first, y), y);
}
Double rcbrt_near(const Double& y) { return improved(cast<double>(rcbrt_near(cast<float>(y))), y); }

template <class T>
Bool is_special(const Value<T>& a) {
  return (a == 0) | !(a < kInfinity<T>);
}

}  // namespace

// One step of Newton's from 2^(log2(a) / 3), which is good to 2^-18.
template <>
Float cbrt(const Float& x) {
  const Float a = abs(x);
  const Float guess = flushed_exp2(fast::log2(a) * (1.0f / 3));
  const Float off = fma(a, flushed_rcp(guess * guess), -guess);
  const Float y = fma(off, 1.0f / 3, guess);
  return select(is_special(a), x, with_sign(y, x));
}
template <>
Double cbrt(const Double& x) {
  const Double a = abs(x);
  const Cubed<double> c = split(a);
  const Double r = rcbrt_near(c.y);
  const Double root = c.y * r * r;
  // One step from the root, by how far its cube is off.
  const Double square = root * root;
  const Double left = fma(-square, root, c.y) - fma(root, root, -square) * root;
  const Double y = fma(left, 1.0 / 3 * r * r, root) * power_of_two<double>(cast<int64_t>(c.third));
  return select(is_special(a), x, with_sign(y, x));
}

template <class T>
Value<T> rcbrt(const Value<T>& x) {
  const Value<T> a = abs(x);
  const Cubed<T> c = split(a);
  const Value<T> r = rcbrt_near(c.y);
  const Value<T> square = r * r, cube = square * r;
  const Value<T> cube_low = fma(square, r, -cube) + fma(r, r, -square) * r;
  const Value<T> left = fma(-c.y, cube_low, fma(-c.y, cube, T{1}));
  const Value<T> y =
      fma(left, static_cast<T>(1.0 / 3) * r, r) * power_of_two<T>(cast<Bits<T>>(-c.third));
  return select(is_special(a), rcp(x), with_sign(y, x));
}
template Float rcbrt(const Float&);
template Double rcbrt(const Double&);

namespace {

// The length of a vector: root(square) * 2^exponent, without overflow.
template <class T>
struct Length {
  Pair<T> square;
  BitsValue<T> exponent;
  Bool infinite, nan;

  // An infinite component makes the length infinite, whatever the others are.
  Value<T> finish(const Value<T>& finite, T of_infinity) const {
    const Value<T> number = select(nan, Value<T>(kNan<T>), finite);
    return select(infinite, Value<T>(of_infinity), number);
  }
};
template <class T>
Length<T> length(std::initializer_list<Value<T>> components) {
  std::vector<Value<T>> sizes;  // the largest first
  Bool infinite = false, nan = false;
  for (const Value<T>& x : components) {
    Value<T> size = abs(x);
    infinite.node() = (infinite | (size == kInfinity<T>)).node();
    nan.node() = (nan | (x != x)).node();
    if (!sizes.empty()) {
      const Value<T> largest = sizes[0], other = size;
      sizes[0].node() = max(largest, other).node();
      size.node() = min(largest, other).node();
    }
    sizes.push_back(size);
  }
  constexpr int kBias = Format<T>::kBias;
  const Int exponent = max(min(biased_exponent(sizes[0]) - kBias, kBias - 1), 1 - kBias);
  const BitsValue<T> wide = cast<Bits<T>>(exponent);
  const Value<T> scale = power_of_two<T>(-wide);
  const Value<T> largest = sizes[0] * scale;
  const Pair<T> square = product(largest, largest);
  Value<T> rest = square.lo;
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    const Value<T> scaled = sizes[i] * scale;
    rest.node() = fma(scaled, scaled, rest).node();
  }
  // Either of the two may be the larger.
  const Value<T> whole = square.hi + rest, more = whole - square.hi;
  const Value<T> lost = (square.hi - (whole - more)) + (rest - more);
  return {{whole, lost}, wide, infinite, nan};
}

template <class T>
Value<T> norm(std::initializer_list<Value<T>> components) {
  const Length<T> l = length(components);
  return l.finish(sqrt(l.square.hi) * power_of_two<T>(l.exponent), kInfinity<T>);
}

template <class T>
Value<T> inverse_norm(std::initializer_list<Value<T>> components) {
  const Length<T> l = length(components);
  // One step from the root's inverse, by how far its square times the length's is off 1.
  const Value<T> r = rcp(sqrt(l.square.hi));
  const Pair<T> square = product(r, r);
  const Value<T> left =
      fma(-square.hi, l.square.hi, T{1}) - fma(square.hi, l.square.lo, square.lo * l.square.hi);
  const Value<T> inverse = select(l.square.hi == 0, r, fma(r * static_cast<T>(0.5), left, r));
  return l.finish(inverse * power_of_two<T>(-l.exponent), T{0});
}

}  // namespace

template <class T>
Value<T> hypot(const Value<T>& x, const Value<T>& y) {
  return norm({x, y});
}
template Float hypot(const Float&, const Float&);
template Double hypot(const Double&, const Double&);

template <class T>
Value<T> rhypot(const Value<T>& x, const Value<T>& y) {
  return inverse_norm({x, y});
}
template Float rhypot(const Float&, const Float&);
template Double rhypot(const Double&, const Double&);

template <class T>
Value<T> norm3d(const Value<T>& x, const Value<T>& y, const Value<T>& z) {
  return norm({x, y, z});
}
template Float norm3d(const Float&, const Float&, const Float&);
template Double norm3d(const Double&, const Double&, const Double&);

template <class T>
Value<T> norm4d(const Value<T>& x, const Value<T>& y, const Value<T>& z, const Value<T>& w) {
  return norm({x, y, z, w});
}
template Float norm4d(const Float&, const Float&, const Float&, const Float&);
template Double norm4d(const Double&, const Double&, const Double&, const Double&);

template <class T>
Value<T> rnorm3d(const Value<T>& x, const Value<T>& y, const Value<T>& z) {
  return inverse_norm({x, y, z});
}
template Float rnorm3d(const Float&, const Float&, const Float&);
template Double rnorm3d(const Double&, const Double&, const Double&);

template <class T>
Value<T> rnorm4d(const Value<T>& x, const Value<T>& y, const Value<T>& z, const Value<T>& w) {
  return inverse_norm({x, y, z, w});
}
template Float rnorm4d(const Float&, const Float&, const Float&, const Float&);
template Double rnorm4d(const Double&, const Double&, const Double&, const Double&);

}  // namespace heddle::detail::math
