// Norms of rows in 8 bits, with a scale for each row: what a product of scaled 8-bit floats takes (gemm/scaled.h).
//
//   Status s = kernels::rms_norm_quantized(stream, x, w, y, scales, 1e-6f);
//   // y(r, c) scales(r) is about the rms_norm of x; scales(r) = the greatest magnitude of its row r / 448
//
//   // Of x + residual, whose sums, rounded to their type, are a result too
//   s = kernels::add_rms_norm_quantized(stream, x, residual, w, y, scales, sum, 1e-6f);
//
// x, residual, sum: rows × columns, w, b: columns, of f32, f16 or bf16; y: rows × columns of e4m3; scales: a number for
// each row. A norm is computed in f32 as norm.h has it, divided by its row's scale and rounded once to e4m3, so that the
// greatest of a row is ±448, the greatest finite number. A scale is 2^-100 / 448 at least, which that of a row of zeros is.
// The sum may be the memory of x or of the residual. NaNs stay NaNs and do not count for the scale; where a norm is infinite so is the scale, and all finite ones become 0. The
// floor is the bytes of x and y over the memory's bandwidth. For sm_89 and later.
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// One launch on the stream; none where there are no elements, which leaves scales as they are. kInvalidArgument where a matrix's extents are not x's, or w, b
// or scales has not an element for each column or row of x.
template <class T>
Status rms_norm_quantized(const Stream& stream, const TensorRef<const T, 2>& x,
                          const TensorRef<const T, 1>& w, const TensorRef<float8_e4m3, 2>& y,
                          const TensorRef<float, 1>& scales, float eps);
template <class T>
Status layer_norm_quantized(const Stream& stream, const TensorRef<const T, 2>& x,
                            const TensorRef<const T, 1>& w, const TensorRef<const T, 1>& b,
                            const TensorRef<float8_e4m3, 2>& y, const TensorRef<float, 1>& scales,
                            float eps);
template <class T>
Status add_rms_norm_quantized(const Stream& stream, const TensorRef<const T, 2>& x,
                              const TensorRef<const T, 2>& residual, const TensorRef<const T, 1>& w,
                              const TensorRef<float8_e4m3, 2>& y, const TensorRef<float, 1>& scales,
                              const TensorRef<T, 2>& sum, float eps);

}  // namespace heddle::kernels
