// Softmax of each row of a matrix: y(r, c) = exp(x(r, c) - m) / sum, where m is the largest element of row r and
// sum that of exp(x(r, ·) - m).
//
//   Status s = kernels::softmax(stream, x, y);         // x, y: rows × columns
//   Status s = kernels::log_softmax(stream, x, y);     // y(r, c) = x(r, c) - m - log(sum)
//
// Elements of f32, f16 or bf16, computed in f32 and rounded once; the same launch gives the same bits. Rows stay
// in registers between the passes over them, up to those of a cluster of blocks: each element is read and
// written once, so that the floor is twice the matrix's bytes over the memory's bandwidth. Rows of more
// than that are read twice. y may be x's memory. A row with NaN or with +∞, or of -∞ alone, becomes NaN.
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// One launch on the stream; none where there are no elements. kInvalidArgument where y's extents are not x's.
template <class T>
Status softmax(const Stream& stream, const TensorRef<const T, 2>& x, const TensorRef<T, 2>& y);
template <class T>
Status log_softmax(const Stream& stream, const TensorRef<const T, 2>& x, const TensorRef<T, 2>& y);

}  // namespace heddle::kernels
