// A scaled sum of two vectors, in place: y(i) = alpha · x(i) + beta · y(i).
//
//   Status s = kernels::axpby(stream, 2.0f, x, 0.5f, y);      // x, y: n elements
//
// Elements of f32, f16 or bf16; alpha and beta are f32. Each element is fma(alpha, x, beta · y) in f32,
// rounded once more to the element's type. Where beta is 0, y is not read: NaNs and uninitialised memory in it
// do not show, as in BLAS. Any number of elements, zero included, and any strides; x and y may be the same
// tensor, but may not overlap otherwise. The floor is three elements' bytes each, two where beta is 0, over
// the memory's bandwidth.
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// One launch on the stream, two where both tensors start equally far from an aligned address; none where there are
// no elements. kInvalidArgument where the extents differ.
Status axpby(const Stream& stream, float alpha, const TensorRef<const float, 1>& x, float beta,
             const TensorRef<float, 1>& y);
Status axpby(const Stream& stream, float alpha, const TensorRef<const half, 1>& x, float beta,
             const TensorRef<half, 1>& y);
Status axpby(const Stream& stream, float alpha, const TensorRef<const bfloat16, 1>& x, float beta,
             const TensorRef<bfloat16, 1>& y);

}  // namespace heddle::kernels
