// How many elements lie in each of a number of bins of equal width.
//
//   Status s = kernels::histogram(stream, x, 0.0, 1.0, counts);    // counts(b) = elements of x in bin b
//
// The bins divide [lower, upper]. An element x is in bin floor((x − lower) · bins / (upper − lower)), and `upper` itself in
// the last one; what is outside, and NaN, is in none. Of integers that is exact. Of floats x − lower, bins / (upper − lower)
// and their product are rounded to f32 each, so that an element near an edge may be counted beside it (of more than 2^22
// bins some places away), always in the same bin. The floor is one reading of x.
#pragma once

#include <cstdint>

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// For T of f32, f16, bf16, i32 and u8; counts(b) is overwritten, and its length is the number of bins. kInvalidArgument where
// there are no bins, lower is not below upper, one of them is no number of i32, for integers, or of f32, upper − lower or
// bins / (upper − lower) is none of f32, and for 2^31 - 65536 elements or bins, or more. Two launches.
template <class T>
Status histogram(const Stream& stream, const TensorRef<const T, 1>& x, double lower, double upper,
                 const TensorRef<int32_t, 1>& counts);

}  // namespace heddle::kernels
