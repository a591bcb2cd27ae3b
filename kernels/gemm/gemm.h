// Matrix multiplication on Hopper's tensor cores: d = epilogue(a * b^T).
//
//   Status s = kernels::gemm(stream, a, b, d);               // a: m x k, b: n x k, d: m x n
//   s = kernels::gemm(stream, a, b, d, {.alpha = 2, .beta = 1}, c);     // 2 a b^T + c
//   s = kernels::gemm_with(stream, bias_relu, a, b, d, bias);           // fused.h
//
// grouped.h has products of groups of rows, scaled.h those of scaled 8-bit floats, gemm_stream_k.h those
// whose tiles do not fill the device.
// `heddle run gemm` multiplies files; `heddle list gemm` and entry.cc say how they lie.
//
// Element types of a and b, and of d: half, bfloat16 or float8_e4m3 into 16 bits or float; tfloat32
// into float. Products are exact, sums are f32 in an order that the shape alone decides, and
// results are rounded once. (Tensor cores add with fewer bits than f32 has; of float8_e4m3 with 13 or
// so, so that long sums lose more.)
//
// Any m, n and k. Matrices of 16-bit elements may be contiguous along either mode: a row-major k x n
// matrix is the b of as_tensor<const half>(buffer, {n, k}, {1, n}), with the extents and strides of
// what is multiplied. Others are contiguous along k. a and b start at multiples of 16 bytes, and so do
// their lines. d's rows are contiguous, and stored fastest where they start and end at multiples of 16
// bytes; d shares no memory with a and b, and may be c. With three modes, (batch, m, k) and so on,
// there is a product for each batch.
//
// The floor is 2 m n k operations over the tensor cores' rate (of 16 bits 989 TFLOP/s of an H200 at
// 1.83 GHz; tfloat32 has half of it, float8_e4m3 twice), which its power does not allow for long.
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// The factors of d = alpha * a * b^T + beta * c.
struct GemmScale {
  // Of the product, and of c; where beta is 0, c is not read.
  float alpha = 1, beta = 0;
};

// The products: element types of a and b, and of d. One launch on the stream; none where d is empty.
// kInvalidArgument where the extents do not fit each other, k is 0, or strides are none of those
// above. Needs sm_90a.
#define HEDDLE_GEMM_TYPES(declare) \
  declare(half, half);             \
  declare(half, float);            \
  declare(bfloat16, bfloat16);     \
  declare(bfloat16, float);        \
  declare(tfloat32, float);        \
  declare(float8_e4m3, half);      \
  declare(float8_e4m3, bfloat16);  \
  declare(float8_e4m3, float)
#define HEDDLE_DECLARE_GEMM(T, D)                                                               \
  Status gemm(const Stream& stream, const TensorRef<const T, 2>& a,                             \
              const TensorRef<const T, 2>& b, const TensorRef<D, 2>& d);                        \
  Status gemm(const Stream& stream, const TensorRef<const T, 2>& a,                             \
              const TensorRef<const T, 2>& b, const TensorRef<D, 2>& d, const GemmScale& scale, \
              const TensorRef<const D, 2>& c);                                                  \
  Status gemm(const Stream& stream, const TensorRef<const T, 3>& a,                             \
              const TensorRef<const T, 3>& b, const TensorRef<D, 3>& d)
HEDDLE_GEMM_TYPES(HEDDLE_DECLARE_GEMM);
#undef HEDDLE_DECLARE_GEMM

}  // namespace heddle::kernels
