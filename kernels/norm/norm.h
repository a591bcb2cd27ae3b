// Normalisation of each row of a matrix, with a weight for each column.
//
//   Status s = kernels::rms_norm(stream, x, w, y, 1e-6f);       // y = x / sqrt(mean(x²) + eps) · w
//   Status s = kernels::layer_norm(stream, x, w, b, y, 1e-5f);  // y = (x - mean) / sqrt(variance + eps) · w + b
//
//   // sum = x + residual, rounded to their type; y is the norm of the sum
//   s = kernels::add_rms_norm(stream, x, residual, w, y, sum, 1e-6f);
//   s = kernels::add_layer_norm(stream, x, residual, w, b, y, sum, 1e-5f);
//
// x, y: rows × columns; w, b: columns; all of f32, f16 or bf16, computed in f32 and rounded once; the same
// launch gives the same bits. The variance is that of the row itself, over its number of elements. Rows are held as
// those of softmax are (softmax.h), or blocks take them in turn and keep the weights, where rows begin at odd places; the floor is
// twice the matrix's bytes over the memory's bandwidth;
// mean and variance are found in one pass, by the method of Chan, Golub and LeVeque (1979). y and sum may each be the
// memory of x or of the residual, with the same strides.
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// One launch on the stream; none where there are no elements. kInvalidArgument where y's extents are not x's, or w or b
// has not as many elements as x has columns.
template <class T>
Status rms_norm(const Stream& stream, const TensorRef<const T, 2>& x,
                const TensorRef<const T, 1>& w, const TensorRef<T, 2>& y, float eps);
template <class T>
Status layer_norm(const Stream& stream, const TensorRef<const T, 2>& x,
                  const TensorRef<const T, 1>& w, const TensorRef<const T, 1>& b,
                  const TensorRef<T, 2>& y, float eps);

// Of x + residual, whose sums are a result too: as transformers add each layer's result to what goes around it. One
// launch, likewise; all matrices have x's extents.
template <class T>
Status add_rms_norm(const Stream& stream, const TensorRef<const T, 2>& x,
                    const TensorRef<const T, 2>& residual, const TensorRef<const T, 1>& w,
                    const TensorRef<T, 2>& y, const TensorRef<T, 2>& sum, float eps);
template <class T>
Status add_layer_norm(const Stream& stream, const TensorRef<const T, 2>& x,
                      const TensorRef<const T, 2>& residual, const TensorRef<const T, 1>& w,
                      const TensorRef<const T, 1>& b, const TensorRef<T, 2>& y,
                      const TensorRef<T, 2>& sum, float eps);

// Of the norms of x, the gradients of x and of the weights from those of y: dw(c) sums over all rows. What rows are
// normalised by is found again. The floor is three times the matrix's bytes where a block or a cluster holds the rows of x and
// dy, in registers or in shared memory: up to 131,072 elements on an H200, where rows of x, dy and dx begin equally far behind
// multiples of 16 bytes; of other rows, up to 1024 elements of 32 bits or 128 of 16. It is five times elsewhere, where a second
// launch reads x and dy for the weights' sums, and seven where dx is the memory of one of them besides. Sums are formed in f32, in an order that the shape and the device decide, in memory
// of the stream's (Stream::allocate), and two to four short launches end them. Of no rows the weights' gradients are 0. dx may be
// the memory of dy or x, with the same strides: where rows are read again, dx waits in memory of the stream's.
// kInvalidArgument where extents do not fit each other.
template <class T>
Status rms_norm_backward(const Stream& stream, const TensorRef<const T, 2>& x,
                         const TensorRef<const T, 1>& w, const TensorRef<const T, 2>& dy,
                         const TensorRef<T, 2>& dx, const TensorRef<T, 1>& dw, float eps);
template <class T>
Status layer_norm_backward(const Stream& stream, const TensorRef<const T, 2>& x,
                           const TensorRef<const T, 1>& w, const TensorRef<const T, 2>& dy,
                           const TensorRef<T, 2>& dx, const TensorRef<T, 1>& dw,
                           const TensorRef<T, 1>& db, float eps);

}  // namespace heddle::kernels
