// Softmax of each row of a matrix: y(r, c) = exp(x(r, c) - m) / sum, where m is the largest element of row r and
// sum that of exp(x(r, ·) - m).
//
//   Status s = kernels::softmax(stream, x, y);         // x, y: rows × columns
//   Status s = kernels::log_softmax(stream, x, y);     // y(r, c) = x(r, c) - m - log(sum)
//
//   s = kernels::softmax_backward(stream, y, dy, dx);      // dx(r, c) = y(r, c) (dy(r, c) - Σ y(r, ·) dy(r, ·))
//   s = kernels::log_softmax_backward(stream, y, dy, dx);  // dx(r, c) = dy(r, c) - exp(y(r, c)) Σ dy(r, ·)
//
// Elements of f32, f16 or bf16, computed in f32 and rounded once; the same launch gives the same bits. Rows stay
// in registers or shared memory between the passes over them, up to those of a cluster of blocks: each element is read
// and written once, so that the floor is the matrices' bytes over the memory's bandwidth. Rows of more
// than that are read twice. What is written may be the memory of what is read. A row of x with NaN or with +∞, or of -∞
// alone, becomes NaN.
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// One launch on the stream; none where there are no elements. kInvalidArgument where y's extents are not x's.
template <class T>
Status softmax(const Stream& stream, const TensorRef<const T, 2>& x, const TensorRef<T, 2>& y);
template <class T>
Status log_softmax(const Stream& stream, const TensorRef<const T, 2>& x, const TensorRef<T, 2>& y);

// The gradient of the loss by x, from y and the loss's gradient dy by it. One launch, likewise.
template <class T>
Status softmax_backward(const Stream& stream, const TensorRef<const T, 2>& y,
                        const TensorRef<const T, 2>& dy, const TensorRef<T, 2>& dx);
template <class T>
Status log_softmax_backward(const Stream& stream, const TensorRef<const T, 2>& y,
                            const TensorRef<const T, 2>& dy, const TensorRef<T, 2>& dx);

}  // namespace heddle::kernels
