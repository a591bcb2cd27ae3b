// Reductions of one mode of a tensor, and of all elements of a matrix.
//
//   Status s = kernels::reduce(stream, Reduction::kSum, Along::kLast, x, y);   // y(r) = Σ x(r, ·)
//   Status t = kernels::reduce(stream, Reduction::kMax, x3, y2);               // y(o, i) = max x(o, ·, i)
//
// Elements of f32, f16 or bf16 are combined in f32, in an order that the shape and the device decide, so that equal
// inputs give equal bits; those of i32 or u8 in 64 bits, where sums and products wrap. Any extents and strides. Each element is read once: the floor is the tensor's bytes over the
// memory's bandwidth. Where one launch would leave multiprocessors idle a second one combines what the blocks of the
// first have; its memory is the stream's (Stream::allocate). All can be captured in a graph.
#pragma once

#include <cstdint>

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// What becomes of the elements.
enum class Reduction : uint8_t {
  kSum,
  kMean,
  kProduct,
  kMax,  // NaN where an element is NaN, as for kMin
  kMin,
  kNorm2,  // the square root of the sum of squares
  kVar,  // the sum of the squared differences from the mean, over one less than the number of elements
  kArgmax,  // where the largest element is, the first of several; NaN counts as larger than all
  kArgmin,  // where the smallest is, likewise; NaN counts as smaller
};
// Which elements of a matrix are combined.
enum class Along : uint8_t {
  kLast,   // those of a row
  kFirst,  // those of a column
  kAll,
};

// y(o, i) = the reduction of x(o, ·, i). T is float, half or bfloat16. Of no elements the sum is 0, the product 1, norm2
// 0, mean and var NaN.
// kInvalidArgument where y's extents are not x's first and last one, where there is no element to be the largest, for
// kArgmax and kArgmin, whose results are integers, and where a mode, or the first and the last together, have more than
// 2^31 - 65536 elements: a mode that is reduced and whose elements lie side by side may have more.
template <class T>
Status reduce(const Stream& stream, Reduction reduction, const TensorRef<const T, 3>& x,
              const TensorRef<float, 2>& y);
// Likewise for kArgmax and kArgmin alone: y is a place along the mode, which has at most 2^31 - 65536 elements. Of integers, where
// T is int32_t or uint8_t, sums, products and extrema too: kInvalidArgument for kMean, kNorm2 and kVar.
template <class T>
Status reduce(const Stream& stream, Reduction reduction, const TensorRef<const T, 3>& x,
              const TensorRef<int64_t, 2>& y);

// The reduction of a matrix: y has an element a row, a column, or one. With kAll, places count row by row.
template <class T>
Status reduce(const Stream& stream, Reduction reduction, Along along,
              const TensorRef<const T, 2>& x, const TensorRef<float, 1>& y);
template <class T>
Status reduce(const Stream& stream, Reduction reduction, Along along,
              const TensorRef<const T, 2>& x, const TensorRef<int64_t, 1>& y);

}  // namespace heddle::kernels
