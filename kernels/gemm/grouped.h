// Products of groups of rows, each with a matrix of its own, in one launch: experts of a mixture, or
// products of different heights. How many rows a group has is in the device's memory, and the host never
// waits for it.
//
//   // d[r] = a[r] b[g]^T for the rows r of group g: ends[g - 1] <= r < ends[g]
//   Status s = kernels::gemm_grouped(stream, a, b, d, ends);   // a: m x k, b: groups x n x k, d: m x n
//   // The first rows[g] rows of d[g] = a[g] b[g]^T
//   s = kernels::gemm_masked(stream, a, b, d, rows);           // a: groups x m x k, d: groups x m x n
//
// Rows of d that belong to no group, which are those from rows[g] or the last of the ends on, are left as
// they are. Groups may be empty and begin at any row; `ends` never fall. Element types, strides and errors are those of
// gemm() (gemm.h); matrices of 16-bit elements may be transposed. Epilogues get their group by
// GemmPart::group(), and by_column() of a matrix (groups, n) is the group's vector.
//
// The floor is that of gemm(), of the rows of all groups, each group's rounded up to a tile.
#pragma once

#include "heddle/kernels/gemm/fused.h"

namespace heddle::kernels {
// The products, with an epilogue as gemm_with() takes it (fused.h).
template <class Epilogue, class T, class D, class... Args>
Status gemm_grouped_with(const Stream& stream, const Epilogue& epilogue,
                         const TensorRef<const T, 2>& a, const TensorRef<const T, 3>& b,
                         const TensorRef<D, 2>& d, const TensorRef<const int32_t, 1>& ends,
                         const Args&... args) {
  const TensorRef<const T, 3> as = detail::in_batches(a), bs = detail::in_batches(b);
  const TensorRef<D, 3> ds = detail::in_batches(d);
  return detail::launch_gemm<GroupTiles<RowsInOneMatrix>, PlainLoop>(
      stream, epilogue, detail::problem_of_groups({as, bs, ds}, ends.extents[0], true), as, bs, ds,
      ends, args...);
}
template <class Epilogue, class T, class D, class... Args>
Status gemm_masked_with(const Stream& stream, const Epilogue& epilogue,
                        const TensorRef<const T, 3>& a, const TensorRef<const T, 3>& b,
                        const TensorRef<D, 3>& d, const TensorRef<const int32_t, 1>& rows,
                        const Args&... args) {
  const TensorRef<const T, 3> as = detail::in_batches(a), bs = detail::in_batches(b);
  const TensorRef<D, 3> ds = detail::in_batches(d);
  return detail::launch_gemm<GroupTiles<RowsOfMatrices>, PlainLoop>(
      stream, epilogue, detail::problem_of_groups({as, bs, ds}, rows.extents[0], false), as, bs, ds,
      rows, args...);
}

// The products alone: element types of a and b, and of d. kInvalidArgument where extents or strides do
// not fit. Needs sm_90a.
#define HEDDLE_GROUPED_GEMM_TYPES(declare) \
  declare(half, half);                     \
  declare(bfloat16, bfloat16);             \
  declare(float8_e4m3, bfloat16)
#define HEDDLE_DECLARE_GROUPED_GEMM(T, D)                                       \
  Status gemm_grouped(const Stream& stream, const TensorRef<const T, 2>& a,     \
                      const TensorRef<const T, 3>& b, const TensorRef<D, 2>& d, \
                      const TensorRef<const int32_t, 1>& ends);                 \
  Status gemm_masked(const Stream& stream, const TensorRef<const T, 3>& a,      \
                     const TensorRef<const T, 3>& b, const TensorRef<D, 3>& d,  \
                     const TensorRef<const int32_t, 1>& rows)
HEDDLE_GROUPED_GEMM_TYPES(HEDDLE_DECLARE_GROUPED_GEMM);
#undef HEDDLE_DECLARE_GROUPED_GEMM

}  // namespace heddle::kernels
