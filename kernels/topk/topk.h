// The greatest, or the least, elements of each row of a matrix, in their order, and where they are.
//
//   Status s = kernels::topk(stream, Extreme::kGreatest, x, values, indices);
//
// Row r of values has the k greatest elements of row r of x, k being the columns of values and indices, the greatest
// first; row r of indices has their columns. Of equal elements the one in front comes first; -0 is equal to 0, and a NaN
// is greater than every number, as PyTorch orders them. Values have the bits that x has. Results do not depend on how
// the work is dealt out.
//
// Each element is read once, the floor: it is compared with a bound that k elements before it reach, and the few that
// beat it are kept in shared memory.
#pragma once

#include <cstdint>

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// Which elements of a row.
enum class Extreme : uint8_t { kGreatest, kLeast };

// k at most.
inline constexpr int64_t kMostTop = 1024;

// For T of f32, f16, bf16 and i32. One launch, and where few rows are long further ones, with memory of the stream's
// (Stream::allocate); none where there are no rows or k is 0. kInvalidArgument where values and indices have not as many
// rows as x and equally many columns, where k is more than x's columns or kMostTop, and for rows of 2^31 - 65536
// elements or more.
template <class T>
Status topk(const Stream& stream, Extreme which, const TensorRef<const T, 2>& x,
            const TensorRef<T, 2>& values, const TensorRef<int64_t, 2>& indices);

}  // namespace heddle::kernels
