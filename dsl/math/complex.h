// Complex numbers.
//
//   Complex<float> z = {x(i), y(i)};
//   Complex<float> w = exp(z) * conj(z) + 1.0f;
//   Complex<float> s = For(range(n), Complex<float>{0, 0}, [&](Int k, Complex<float> s) { … });
//
// A plain struct of two Values, so that whatever carries structs carries it: loops, If, select,
// shuffles, reductions. Products and quotients are the textbook's: parts that overflow or are
// infinite may give NaN where C's Annex G finds an infinity. T is float or double (half and
// bfloat16 too, for arithmetic).
#pragma once

#include "heddle/dsl/math/math.h"

namespace heddle {

// A complex number of the kernel.
template <class T>
struct Complex {
  Value<T> re, im;  // the real and the imaginary part

  friend Complex operator+(const Complex& a, const Complex& b) {
    return {a.re + b.re, a.im + b.im};
  }
  friend Complex operator-(const Complex& a, const Complex& b) {
    return {a.re - b.re, a.im - b.im};
  }
  friend Complex operator-(const Complex& a) { return {-a.re, -a.im}; }
  friend Complex operator*(const Complex& a, const Complex& b) {
    return {fma(a.re, b.re, -(a.im * b.im)), fma(a.re, b.im, a.im * b.re)};
  }
  // By Smith's way: the divisor's smaller part over its larger one, so that its square cannot
  // overflow.
  friend Complex operator/(const Complex& a, const Complex& b) {
    const Bool flat = abs(b.re) >= abs(b.im);
    const Value<T> large = select(flat, b.re, b.im), small = select(flat, b.im, b.re);
    const Value<T> ratio = small / large, length = fma(small, ratio, large);
    const Value<T> x = select(flat, fma(a.im, ratio, a.re), fma(a.re, ratio, a.im));
    const Value<T> y = select(flat, fma(-a.re, ratio, a.im), fma(a.im, ratio, -a.re));
    return {x / length, y / length};
  }
  // With a real number.
  friend Complex operator+(const Complex& a, const detail::Arg<T>& b) {
    return {a.re + Value<T>(b.node), a.im};
  }
  friend Complex operator-(const Complex& a, const detail::Arg<T>& b) {
    return {a.re - Value<T>(b.node), a.im};
  }
  friend Complex operator*(const Complex& a, const detail::Arg<T>& b) {
    return {a.re * Value<T>(b.node), a.im * Value<T>(b.node)};
  }
  friend Complex operator/(const Complex& a, const detail::Arg<T>& b) {
    return {a.re / Value<T>(b.node), a.im / Value<T>(b.node)};
  }
  friend Complex operator+(const detail::Arg<T>& a, const Complex& b) {
    return {Value<T>(a.node) + b.re, b.im};
  }
  friend Complex operator-(const detail::Arg<T>& a, const Complex& b) {
    return {Value<T>(a.node) - b.re, -b.im};
  }
  friend Complex operator*(const detail::Arg<T>& a, const Complex& b) {
    return {Value<T>(a.node) * b.re, Value<T>(a.node) * b.im};
  }
  friend Bool operator==(const Complex& a, const Complex& b) {
    return (a.re == b.re) & (a.im == b.im);
  }
};

// The conjugate.
template <class T>
Complex<T> conj(const Complex<T>& z) {
  return {z.re, -z.im};
}
// |z|^2 (norm), |z| (abs) and the angle from -pi to pi (arg).
template <class T>
Value<T> norm(const Complex<T>& z) {
  return fma(z.re, z.re, z.im * z.im);
}
template <class T>
Value<T> abs(const Complex<T>& z) {
  return hypot(z.re, z.im);
}
template <class T>
Value<T> arg(const Complex<T>& z) {
  return atan2(z.im, z.re);
}
// length * e^(i angle) (polar), and e^z (exp).
template <class T>
Complex<T> polar(const Value<T>& length, const Value<T>& angle) {
  const auto turn = sincos(angle);
  return {length * turn.cos, length * turn.sin};
}
template <class T>
Complex<T> exp(const Complex<T>& z) {
  return polar(exp(z.re), z.im);
}

}  // namespace heddle
