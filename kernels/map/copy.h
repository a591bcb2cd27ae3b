// Copies of tensors, to other strides and to other element types.
//
//   Status s = kernels::copy(stream, x, y);                     // y(i, j) = x(i, j)
//   s = kernels::copy(stream, kernels::permuted(x, {1, 0}), y); // y(j, i) = x(i, j)
//   s = kernels::cast(stream, x, y);                            // y(i, j) = x(i, j), converted to y's type
//   s = kernels::fill(stream, 0.0f, y);
//
// Maps (map.h): any extents and strides, broadcast as they broadcast. A copy keeps every bit, a NaN's too. The floor
// is the bytes of both tensors over the memory's bandwidth, for transposed ones too.
#pragma once

#include "heddle/kernels/map/map.h"

namespace heddle::kernels {

// The same elements with the modes in another order: mode i of the result is mode order[i] of x. `order` has each number
// from 0 to kRank - 1 once.
template <class T, int kRank>
TensorRef<T, kRank> permuted(const TensorRef<T, kRank>& x, const int (&order)[kRank]) {
  TensorRef<T, kRank> y = x;
  for (int i = 0; i < kRank; ++i) {
    y.extents[i] = x.extents[order[i]];
    y.strides[i] = x.strides[order[i]];
  }
  return y;
}

namespace detail {

// Elements as integers of as many bytes, which keep every bit.
template <class T, int kRank>
auto as_bits(const TensorRef<T, kRank>& x) {
  static_assert(sizeof(T) <= 8, "copies are of elements of 1, 2, 4 or 8 bytes");
  using Narrow = std::conditional_t<sizeof(T) == 1, uint8_t, uint16_t>;
  using Wide = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  using Bits = std::conditional_t<(sizeof(T) < 4), Narrow, Wide>;
  using B = std::conditional_t<std::is_const_v<T>, const Bits, Bits>;
  TensorRef<B, kRank> bits(reinterpret_cast<B*>(x.data), x.extents, x.strides);
  bits.capacity_bytes = x.capacity_bytes;
  bits.memory = x.memory, bits.allocation = x.allocation;
  return bits;
}

inline constexpr auto kCopy = define_map("copy(x, y)", [](auto x) { return x; });
inline constexpr auto kCast = define_map("cast(x, y)", [](auto x) { return x; });
inline constexpr auto kFill = define_map("fill(value, y)", [](auto value) { return value; });

}  // namespace detail

// y = x. Elements of 1, 2, 4 or 8 bytes.
template <class From, int kFrom, class T, int kTo>
requires std::is_same_v<std::remove_const_t<From>, T> Status copy(const Stream& stream,
                                                                  const TensorRef<From, kFrom>& x,
                                                                  const TensorRef<T, kTo>& y) {
  return detail::kCopy(stream, detail::as_bits(x), detail::as_bits(y));
}

// y = x, each element converted as by cast<>(): floats rounded to the nearest, integers from floats cut off and held within what
// they can be; e4m3 and e5m2 become their largest numbers rather than infinite.
template <class From, int kFrom, class To, int kTo>
Status cast(const Stream& stream, const TensorRef<From, kFrom>& x, const TensorRef<To, kTo>& y) {
  return detail::kCast(stream, x, y);
}

// Every element of y is `value`.
template <class T, int kRank>
Status fill(const Stream& stream, T value, const TensorRef<T, kRank>& y) {
  return detail::kFill(stream, value, y);
}

}  // namespace heddle::kernels
