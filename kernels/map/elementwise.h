// Elementwise operations by name, as maps (map.h): tensors of any element types and strides, broadcast; computed in f32
// and rounded once to the output's type.
//
//   Status s = kernels::add(stream, x, bias, y);       // y(i, j) = x(i, j) + bias(j)
//   s = kernels::multiply(stream, x, 0.5f, y);
//   s = kernels::gelu(stream, x, y);
//   s = kernels::swiglu(stream, gate, up, y);          // y = silu(gate) up
//   s = kernels::silu_backward(stream, x, dy, dx);
#pragma once

#include "heddle/kernels/map/map.h"

namespace heddle::kernels {
namespace detail {

// x / (1 + exp(-x)), which is 0 where the exponential is infinite.
inline Float silu(const Float& x) { return x * fast::rcp(fast::exp(-x) + 1.0f); }

inline constexpr auto kGelu =
    define_map("gelu(x, y)", [](Float x) { return x * 0.5f * (erf(x * 0.707106781f) + 1.0f); });
// To within what 16 bits can tell.
inline constexpr auto kNarrowGelu =
    define_map("narrow_gelu(x, y)", [](Float x) { return x * fast::normcdf(x); });

}  // namespace detail

// a + b and a b; tensors or numbers.
inline constexpr auto add = define_map("add(a, b, y)", [](Float a, Float b) { return a + b; });
inline constexpr auto multiply =
    define_map("multiply(a, b, y)", [](Float a, Float b) { return a * b; });
// x, or 0 where it is negative; a NaN stays one.
inline constexpr auto relu = define_map("relu(x, y)", [](Float x) { return max_nan(x, 0.0f); });
// x times the logistic function of x.
inline constexpr auto silu = define_map("silu(x, y)", [](Float x) { return detail::silu(x); });
// silu(gate) up.
inline constexpr auto swiglu =
    define_map("swiglu(gate, up, y)", [](Float gate, Float up) { return detail::silu(gate) * up; });

// The gradient of x from that of y, where y is the function of x: dy times the derivative. That of relu is 0 at 0.
inline constexpr auto relu_backward = define_map(
    "relu_backward(x, dy, dx)", [](Float x, Float dy) { return select(x <= 0.0f, 0.0f, dy); });
inline constexpr auto silu_backward = define_map("silu_backward(x, dy, dx)", [](Float x, Float dy) {
  const Float logistic = fast::rcp(fast::exp(-x) + 1.0f);
  return dy * logistic * (1.0f + x * (1.0f - logistic));
});
inline constexpr auto gelu_backward = define_map("gelu_backward(x, dy, dx)", [](Float x, Float dy) {
  const Float distribution = 0.5f * (erf(x * 0.707106781f) + 1.0f);
  return dy * (distribution + x * 0.398942280f * fast::exp(-0.5f * x * x));
});

// x times the normal distribution function of x, by 1 + erf(x / sqrt(2)): within 2^-22 |x| of it, so that a small result of
// a large negative x has few right digits; of 16 bits within 2^-12 of its own and 2^-27 |x|.
template <class X, int kFrom, class Y, int kTo>
Status gelu(const Stream& stream, const TensorRef<X, kFrom>& x, const TensorRef<Y, kTo>& y) {
  if constexpr (sizeof(Y) <= 2) return detail::kNarrowGelu(stream, x, y);
  if constexpr (sizeof(Y) > 2) return detail::kGelu(stream, x, y);
}

}  // namespace heddle::kernels
