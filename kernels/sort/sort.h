// Elements in ascending or descending order, and others that go with them.
//
//   Status s = kernels::sort(stream, Order::kAscending, x, y);                        // y = x, in order
//   s = kernels::sort_pairs(stream, Order::kAscending, keys, values, sorted, moved);  // moved(i) goes with sorted(i)
//
// Equal elements keep their order (stable). −0 equals +0, and NaNs are equal to each other and greater than all else; every
// element keeps its bits. A radix sort in one pass over memory for each 8 bits of a key (Adinets and Merrill, Onesweep,
// 2022): f32 is read five times and written four times.
#pragma once

#include <cstdint>

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

enum class Order { kAscending, kDescending };

// For T of f32, f16, bf16, i32, u32 and i64. y may be x. kInvalidArgument where they have not the same length, and for
// more than 2^30 - 65536 elements. As many launches as T has bytes, and two.
template <class T>
Status sort(const Stream& stream, Order order, const TensorRef<const T, 1>& x,
            const TensorRef<T, 1>& y);

// The same of keys, and values of V, of i32, f32 or i64, that are moved as the keys are. The
// results may be the inputs, and must not overlap each other.
template <class T, class V>
Status sort_pairs(const Stream& stream, Order order, const TensorRef<const T, 1>& keys,
                  const TensorRef<const V, 1>& values, const TensorRef<T, 1>& sorted_keys,
                  const TensorRef<V, 1>& sorted_values);

}  // namespace heddle::kernels
