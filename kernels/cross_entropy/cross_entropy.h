// Cross-entropy of each row of a matrix with a class: loss(r) = log(sum of exp(x(r, ·))) - x(r, target(r)).
//
//   Status s = kernels::cross_entropy(stream, x, target, loss);   // x: rows × classes; target, loss: rows
//
// x of f32, f16 or bf16, targets of int32 or int64, losses in f32. A row with a negative target has no part in the sum that
// is trained on: its loss is 0. Other targets are less than the number of classes. Each element is read once, and
// the same launch gives the same bits; the floor is the matrix's bytes over the memory's bandwidth.
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// One launch on the stream; none where there are no elements. kInvalidArgument where target or loss has not an element for
// each row, or where there are rows and no classes.
template <class T, class Index>
Status cross_entropy(const Stream& stream, const TensorRef<const T, 2>& x,
                     const TensorRef<const Index, 1>& target, const TensorRef<float, 1>& loss);

}  // namespace heddle::kernels
