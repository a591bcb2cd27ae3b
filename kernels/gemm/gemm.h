// Matrix multiplication on Hopper's tensor cores: d = a * b^T.
//
//   Status s = kernels::gemm(stream, a, b, d);      // a: m × k, b: n × k, d: m × n
//
// Elements of f16 or bf16 are multiplied exactly, summed in f32, in an order that the shape alone
// decides, and rounded once. Any m and n; k is a multiple of 8, and so is n, since rows start at
// multiples of 16 bytes. The floor is 2 m n k operations over the tensor cores' rate (989 TFLOP/s
// of an H200 at its highest clock, which its power does not allow for long).
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// Multiplies a, (m, k), by the transpose of b, (n, k), into d, (m, n). One launch on the stream;
// none where m or n is 0. kInvalidArgument where the extents do not fit each other, k is 0, or rows
// do not start at multiples of 16 bytes. Needs sm_90a.
Status gemm(const Stream& stream, const TensorRef<const half, 2>& a,
            const TensorRef<const half, 2>& b, const TensorRef<half, 2>& d);
Status gemm(const Stream& stream, const TensorRef<const bfloat16, 2>& a,
            const TensorRef<const bfloat16, 2>& b, const TensorRef<bfloat16, 2>& d);

}  // namespace heddle::kernels
