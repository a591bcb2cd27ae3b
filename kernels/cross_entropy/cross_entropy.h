// Cross-entropy of each row of a matrix with a class: loss(r) = log(sum of exp(x(r, ·))) - x(r, target(r)).
//
//   Status s = kernels::cross_entropy(stream, x, target, loss);   // x: rows × classes; target, loss: rows
//
//   // dx(r, c) = dloss(r) p(c), where p is the softmax of row r, at the target less 1
//   s = kernels::cross_entropy_backward(stream, x, target, dloss, dx);
//
// x and dx of f32, f16 or bf16, targets of int32 or int64, losses and their gradients in f32. A row with a negative
// target has no part in the sum that is trained on: its loss is 0, and so is its gradient. Other targets are less than
// the number of classes. Each element is read once and its gradient written once, and the same launch gives the same
// bits; the floor is the matrices' bytes over the memory's bandwidth. dx may be the memory of x.
#pragma once

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// One launch on the stream; none where there are no elements. kInvalidArgument where target or loss has not an element for
// each row, or where there are rows and no classes.
template <class T, class Index>
Status cross_entropy(const Stream& stream, const TensorRef<const T, 2>& x,
                     const TensorRef<const Index, 1>& target, const TensorRef<float, 1>& loss);

// The gradient by x of a number whose gradient by loss(r) is dloss(r): 1 where it is the sum of the losses, 1 / rows
// where it is their mean. One launch, likewise.
template <class T, class Index>
Status cross_entropy_backward(const Stream& stream, const TensorRef<const T, 2>& x,
                              const TensorRef<const Index, 1>& target,
                              const TensorRef<const float, 1>& dloss, const TensorRef<T, 2>& dx);

}  // namespace heddle::kernels
