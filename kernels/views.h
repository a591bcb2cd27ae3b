// Other views of a tensor's memory.
#pragma once

#include <cstdint>

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// The same memory by other modes.
template <int kModes, class T, int kRank>
TensorRef<T, kModes> seen_as(const TensorRef<T, kRank>& tensor, const int64_t (&extents)[kModes],
                             const int64_t (&strides)[kModes]) {
  TensorRef<T, kModes> seen(tensor.data, extents, strides);
  seen.capacity_bytes = tensor.capacity_bytes;
  seen.memory = tensor.memory, seen.allocation = tensor.allocation;
  return seen;
}

// A tensor of one mode as a matrix of one row.
template <class T>
TensorRef<T, 2> as_row(const TensorRef<T, 1>& tensor) {
  const int64_t n = tensor.extents[0], stride = tensor.strides[0];
  return seen_as<2>(tensor, {1, n}, {n * stride, stride});
}

// Some neighbouring elements of a tensor whose stride is 1.
template <class T>
TensorRef<T, 1> part_of(TensorRef<T, 1> tensor, int64_t first, int64_t count) {
  tensor.data += first;
  tensor.extents[0] = count;
  if (tensor.capacity_bytes >= 0) tensor.capacity_bytes -= first * static_cast<int64_t>(sizeof(T));
  return tensor;
}

}  // namespace heddle::kernels
