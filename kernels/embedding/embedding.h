// Rows of a table by their numbers, and gradients of such a table.
//
//   Status s = kernels::embedding(stream, table, ids, y);             // y(i, ·) = table(ids(i), ·)
//   s = kernels::embedding_backward(stream, ids, dy, dtable);         // dtable(ids(i), ·) += dy(i, ·)
//
// A row that is taken is read and written once, the floor. An id is a row of the table; the interpreter reports another
// one, on a GPU it reads or writes outside of the table. Gradients are added by atomics in memory, in no fixed order, so
// that those of rows which are taken several times may differ in their last bits from run to run.
#pragma once

#include <cstdint>

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// For T of f32, f16, bf16 and ids of i32 and i64. kInvalidArgument where y has not as many rows as there are ids, or not
// the table's columns, and for rows of 2^31 - 65536 elements or more. One launch; none where y is empty.
template <class T, class Id>
Status embedding(const Stream& stream, const TensorRef<const T, 2>& table,
                 const TensorRef<const Id, 1>& ids, const TensorRef<T, 2>& y);

// The same of a dtable of f32, to which gradients are added.
template <class T, class Id>
Status embedding_backward(const Stream& stream, const TensorRef<const Id, 1>& ids,
                          const TensorRef<const T, 2>& dy, const TensorRef<float, 2>& dtable);

}  // namespace heddle::kernels
