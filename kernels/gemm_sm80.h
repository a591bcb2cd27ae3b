// Matrix multiplication by mma.sync, from sm_80 on: d = a * b^T.
//
//   Status s = kernels::gemm_sm80(stream, a, b, d);      // a: m × k, b: n × k, d: m × n
//
// Elements of f16 or bf16 are multiplied exactly, summed in f32 in the order of k, and rounded once. Any m
// and n; k is a multiple of 8, and rows of a and b start at multiples of 16 bytes. gemm.h has the kernel of
// Hopper.
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// Multiplies a, (m, k), by the transpose of b, (n, k), into d, (m, n). One launch on the stream; none where
// m or n is 0. kInvalidArgument where the extents do not fit each other, k is 0 or no multiple of 8, or
// rows of a or b do not start at multiples of 16 bytes.
Status gemm_sm80(const Stream& stream, const TensorRef<const half, 2>& a,
                 const TensorRef<const half, 2>& b, const TensorRef<half, 2>& d);
Status gemm_sm80(const Stream& stream, const TensorRef<const bfloat16, 2>& a,
                 const TensorRef<const bfloat16, 2>& b, const TensorRef<bfloat16, 2>& d);

// The kernel for an element type (half or bfloat16), of blocks of 128 threads; its grid is its own.
template <class T>
const Kernel<Tensor<const T, 2>, Tensor<const T, 2>, Tensor<T, 2>>& gemm_sm80_kernel();

}  // namespace heddle::kernels
