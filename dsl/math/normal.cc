// The inverses of the error function, and the normal distribution, of f32.
#include "heddle/dsl/math/formulas_internal.h"

namespace heddle::detail::math {
namespace {

// The number whose error function is x, of w = -log(1 - x^2), which a caller may know better than
// from x.
Float inverse_erf(const Float& x, const Float& w) {
  const Float near = horner(
      w - 2.5f, {-0x1.279138p-27, 0x1.a0a68p-26, 0x1.f1b79ep-22, -0x1.d2aa9ep-19, -0x1.4c44bap-18,
                 0x1.ca0a4p-13, -0x1.486774p-10, -0x1.11c6d2p-8, 0x1.f91e8cp-3, 0x1.805c5ep0});
  const Float s = sqrt(w);
  const Float middle = horner(
      s - 3.125f, {-0x1.9e28a8p-13, -0x1.a0619ep-14, 0x1.60a2e8p-10, -0x1.5b4c8ap-9, 0x1.edb0c4p-9,
                   -0x1.59a0cap-8, 0x1.ce1658p-8, 0x1.00f39cp0, 0x1.7aaa3cp1});
  const Float far = horner(
      s - 7, {-0x1.649ea6p-29, 0x1.05196ep-26, -0x1.4350ap-25, 0x1.15c53cp-22, -0x1.cb7c56p-20,
              0x1.a0b958p-18, 0x1.b4aa8cp-18, -0x1.0ccd24p-11, 0x1.02335p0, 0x1.b79e04p2});
  const Float number = x * select(w < 5, near, select(s < 4, middle, far));
  return select(w == kInfinity<float>, with_sign(w, x), number);
}

}  // namespace

template <>
Float erfinv(const Float& x) {
  return inverse_erf(x, -log(fma(-x, x, 1)));
}

template <>
Float erfcinv(const Float& x) {
  return inverse_erf(1 - x, -log(x * (2 - x)));
}

template <>
Float normcdfinv(const Float& x) {
  return inverse_erf(fma(x, 2, -1), -log(x * fma(x, -4, 4))) * 0x1.6a09e6p0f;
}

// e^(-x^2 / 2) times half of erfcx(|x| / sqrt(2)).
template <>
Float normcdf(const Float& x) {
  const Float b = min(abs(x), 14.5f);
  const Float half_square = b * b * 0.5f;
  const Float rest = fma(b * 0.5f, b, -half_square);
  const Float z = b * 0x1.6a09e6p-1f;
  const Float tail =
      times(near_exp_sum(-half_square, -rest) * 0.5f, near_quotient(erfcx_numerator(z), z + 0.5f));
  const Float number = select(x < 0, tail, 1 - tail);
  return select(x == x, number, x);
}

}  // namespace heddle::detail::math
