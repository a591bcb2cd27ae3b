// Hyperbolic functions and their inverses.
#include "heddle/dsl/internal/math.h"

namespace heddle::detail::math {
namespace {

// e^x / 2, which is finite wherever sinh and cosh are.
Float half_exp(const Float& x) { return exp_sum(x, Float(0), -1); }

}  // namespace

template <>
Float sinh(const Float& x) {
  const Float a = abs(x), z = x * x, half = half_exp(a);
  const Float near =
      fma(z * horner(z, {2.789983909678994677960872650146484375e-6,
                         1.98416659259237349033355712890625e-4, 8.333315141499042510986328125e-3,
                         0.16666667163372039794921875}),
          x, x);
  return select(a < 1, near, with_sign(half - 0.25f * rcp(half), x));
}

template <>
Float cosh(const Float& x) {
  const Float half = half_exp(abs(x));
  return fma(0.25f, rcp(half), half);
}

// Beyond the polynomial, 1 - 2 / (e^2x + 1).
template <class T>
Value<T> tanh_from(const Value<T>& x, const Value<T>& tail) {
  const Value<T> a = abs(x);
  const Value<T> far = T{1} - T{2} / (exp(a + a) + T{1});
  return with_sign(select(a < static_cast<T>(0.7), fma(tail, a, a), far), x);
}

template <>
Float tanh(const Float& x) {
  const Float z = x * x;
  return tanh_from(
      x, z * horner(z, {1.90098746679723262786865234375e-3, -7.891555316746234893798828125e-3,
                        2.15759091079235076904296875e-2, -5.3922288119792938232421875e-2,
                        0.13333000242710113525390625, -0.3333332538604736328125}));
}
template <>
Double tanh(const Double& x) {
  const Double z = x * x;
  return tanh_from(
      x, z * horner(z, {4.800541282184394483172236445245317781882476992905139923095703e-6,
                        -2.706815917298123177125654392760623068170389160513877868652344e-5,
                        8.81256255437098495698552969024319736490724608302116394042969e-5,
                        -2.34838814933732817520628533003446136717684566974639892578125e-4,
                        5.885790782374816960953456401739458669908344745635986328125e-4,
                        -1.45549451352344088629620078023663154453970491886138916015625e-3,
                        3.59207312706334713769962263540946878492832183837890625e-3,
                        -8.8632295788931454716408353533552144654095172882080078125e-3,
                        2.18694881237949216579163902451909962110221385955810546875e-2,
                        -5.39682539514567405358747009813669135656688690185546875e-2,
                        0.1333333333329893566343571364996023476123809814453125,
                        -0.333333333333330872338962080903002060949802398681640625}));
}

template <>
Float asinh(const Float& x) {
  const Float a = abs(x);
  const Bool far = a > 0x1p20f;
  const Float grown = fma(a, a / (1 + sqrt(fma(a, a, 1))), a);
  const Float y = log1p(select(far, a, grown));
  return with_sign(select(far, y + 0x1.62e43p-1f, y), x);
}

template <>
Float acosh(const Float& x) {
  const Float t = x - 1;
  const Bool far = x > 0x1p20f;
  const Float y = log1p(select(far, x, t + sqrt(fma(t, t, t + t))));
  return select(x < 1, Float(kNan<float>), select(far, y + 0x1.62e43p-1f, y));
}

template <>
Float atanh(const Float& x) {
  const Float a = abs(x);
  return with_sign(0.5f * log1p((a + a) / (1 - a)), x);
}

}  // namespace heddle::detail::math
