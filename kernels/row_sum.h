// The sum of each row of a matrix: y(r) = x(r, 0) + x(r, 1) + …
//
//   Status s = kernels::row_sum(stream, x, y);      // x: rows × columns, y: rows
//
// Elements of f32, f16 or bf16 are summed in f32, in an order that the shape alone decides, so
// equal inputs give equal bits. Any number of rows and columns, zero included (a row without
// columns sums to 0); more than 2^31 elements too. Reads each element once: the floor is the
// matrix's bytes over the memory's bandwidth.
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// Sums each row of x, (rows, columns), into y, (rows). One launch on the stream; none where there
// are no rows. kInvalidArgument where y's extent is not x's number of rows.
Status row_sum(const Stream& stream, const TensorRef<const float, 2>& x,
               const TensorRef<float, 1>& y);
Status row_sum(const Stream& stream, const TensorRef<const half, 2>& x,
               const TensorRef<float, 1>& y);
Status row_sum(const Stream& stream, const TensorRef<const bfloat16, 2>& x,
               const TensorRef<float, 1>& y);

// The kernel for an element type (float, half or bfloat16), and the best launch for a matrix of
// these extents.
template <class T>
const Kernel<Tensor<const T, 2>, Tensor<float, 1>>& row_sum_kernel();
LaunchShape row_sum_shape(int64_t rows, int64_t columns, int element_bytes);

}  // namespace heddle::kernels
