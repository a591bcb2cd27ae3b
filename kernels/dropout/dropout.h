// Dropout: elements become 0 at random, and the others grow as much as that takes from the sum.
//
//   Status s = kernels::dropout(stream, x, 0.1f, seed, y);      // y(r, c) = x(r, c) / 0.9, or 0 with probability 0.1
//   s = kernels::dropout(stream, dy, 0.1f, seed, dx);           // its gradient, without a mask in memory
//
// Whether an element stays follows from its place and the seed: by word c % 4 of philox({c / 4, r, 0, 0}, seed), which
// stays where the word is at least 2^32 times the probability, rounded down. So any launch on any GPU drops the same ones.
#pragma once

#include <cstdint>

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// For T of f32, f16 and bf16, computed in f32; y may be x. kInvalidArgument for a probability that is not in [0, 1), and where
// x and y have not the same extents or 2^31 - 65536 rows or columns, or more.
template <class T>
Status dropout(const Stream& stream, const TensorRef<const T, 2>& x, float probability,
               uint64_t seed, const TensorRef<T, 2>& y);

// Whether dropout keeps the element of a row and a column.
bool dropout_keeps(float probability, uint64_t seed, uint32_t row, uint32_t column);

}  // namespace heddle::kernels
