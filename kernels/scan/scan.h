// Prefix sums of the rows of a matrix.
//
//   Status s = kernels::scan(stream, Prefix::kInclusive, x, y);   // y(r, c) = x(r, 0) + … + x(r, c)
//   s = kernels::scan(stream, Prefix::kExclusive, x, y);          // y(r, c) = x(r, 0) + … + x(r, c - 1), 0 for c = 0
//
//   // The same of each segment: those begin at a row's first element and where heads is not 0.
//   s = kernels::segmented_scan(stream, Prefix::kInclusive, x, heads, y);
//
// Elements of f32, f16 and bf16 are added up in f32, and each sum is rounded to their type; those of i32 modulo 2^32. The
// order of the additions follows from the shape, from where rows begin and from the number of multiprocessors alone, so
// that equal inputs give equal bits. Each element is read once and written once, the floor, also of rows that are many
// blocks' (a chained scan: Merrill and Garland, Single-pass Parallel Prefix Scan with Decoupled Look-back, 2016). Such
// blocks wait for those in front of them, and count, as CUB does, on a GPU's beginning blocks in the order of their
// numbers. y may be the memory of x, with the same strides.
#pragma once

#include <cstdint>

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// Whether a sum includes the element at its place.
enum class Prefix : uint8_t { kInclusive, kExclusive };

// One launch, and where rows are longer than a block's tile one that clears their progress, in memory of the stream's
// (Stream::allocate); none where there are no elements. kInvalidArgument where y's extents are not x's, for rows of
// 2^31 - 65536 elements or more, and for more than 2^31 - 65536 rows.
template <class T>
Status scan(const Stream& stream, Prefix prefix, const TensorRef<const T, 2>& x,
            const TensorRef<T, 2>& y);

// Likewise; heads has x's extents.
template <class T>
Status segmented_scan(const Stream& stream, Prefix prefix, const TensorRef<const T, 2>& x,
                      const TensorRef<const uint8_t, 2>& heads, const TensorRef<T, 2>& y);

}  // namespace heddle::kernels
