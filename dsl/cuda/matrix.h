// ldmatrix and stmatrix: a warp moves matrices of 8 rows of 16 bytes between shared memory and
// fragments, in the order that tensor cores use.
//
//   const Shared<half, 2> a({16, 16}), b({16, 8});
//   …
//   sync_threads();
//   const Int lane = lane_id();
//   const Fragment<half> fa = ldmatrix(a.at(lane % 16, lane / 16 * 8), 4);   // mma's A, 16 x 16
//   const Fragment<half> fb = ldmatrix(b.at(lane % 16, 0), 2, true);         // mma's B, 16 x 8
//   stmatrix(a.at(lane % 16, lane / 16 * 8), fa);                            // sm_90 and up
//
// Lane 8 m + r gives the place of row r of matrix m: its first element, at a multiple of 16 bytes.
// The places that other lanes give are not used; any will do.
//
// A lane has 4 bytes of each matrix, one matrix after the other. Of halves: elements 2 (l % 4) and
// 2 (l % 4) + 1 of row l / 4 in lane l; transposed, rows 2 (l % 4) and 2 (l % 4) + 1 of column l
// / 4.
//
// All 32 lanes call them together. Data that other lanes have written need a sync_warp() before,
// data of other warps a sync_threads().
#pragma once

#include "heddle/dsl/view.h"

namespace heddle {
namespace detail {

Node emit_ldmatrix(const Access& row, ir::Scalar scalar, int count, bool transpose);
void emit_stmatrix(const Access& row, const Node& matrices, bool transpose);

}  // namespace detail

// ldmatrix: loads 1, 2 or 4 matrices (`count`) of elements of 1, 2 or 4 bytes from shared memory.
// `transpose` is for elements of 2 bytes. Both are host numbers.
template <class T>
Fragment<std::remove_const_t<T>> ldmatrix(const detail::ElementAddress<T>& row, int count,
                                          bool transpose = false) {
  using Element = std::remove_const_t<T>;
  return Fragment<Element>(
      detail::emit_ldmatrix(row.access, detail::scalar_of<Element>(), count, transpose));
}

// stmatrix: stores a fragment's matrices, of 4 bytes in each lane, to shared memory (sm_90). Where
// rows overlap, it is unspecified which one stays.
template <class T>
void stmatrix(const detail::ElementAddress<T>& row, const Fragment<T>& matrices,
              bool transpose = false) {
  detail::emit_stmatrix(row.access, matrices.node(), transpose);
}

}  // namespace heddle
