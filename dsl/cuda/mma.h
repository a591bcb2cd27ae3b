// mma: a warp multiplies matrices by its tensor cores, d = accumulator + a * b, all of them in fragments.
//
//   const Fragment<half> a = ldmatrix(x.at(lane % 16, lane / 16 * 8), 4);    // 16 x 16
//   const Fragment<half> b = ldmatrix(y.at(lane % 16, 0), 2, true);          // 16 x 8
//   const Fragment<float> d = mma(Fragment<float>(4, 0.0f), a, b);           // 16 x 8
//
// a is 16 x K, b K x 8 and the accumulator 16 x 8. The types, and K for each:
//
//   half, half              -> float or half    8, 16
//   bfloat16, bfloat16      -> float            8, 16
//   tfloat32, tfloat32      -> float            4, 8
//   int8_t or uint8_t       -> int32_t          16, 32
//   8-bit floats            -> float or half    16, 32; from sm_89 on
//
// Lane l has of the accumulator the elements 2 (l % 4) and 2 (l % 4) + 1 of row l / 4, and then those of row l / 4 + 8.
// Of a it has 4 bytes of neighbours along K from byte 4 (l % 4) of row l / 4, the same of row l / 4 + 8, and
// where rows have 32 bytes both again 16 bytes further on. Of b it has them of column l / 4. ldmatrix loads 16-bit
// elements so.
//
// All 32 lanes call it together.
#pragma once

#include "heddle/dsl/vec.h"

namespace heddle {
namespace detail {

Node emit_mma(const Node& accumulator, const Node& a, const Node& b, SourceLoc loc);

}  // namespace detail

// accumulator + a * b; the fragments' sizes say which K. A combination that there is none of is an error of the kernel.
template <class D, class A, class B>
Fragment<D> mma(const Fragment<D>& accumulator, const Fragment<A>& a, const Fragment<B>& b,
                SourceLoc loc = SourceLoc::current()) {
  return Fragment<D>(detail::emit_mma(accumulator.node(), a.node(), b.node(), loc));
}

}  // namespace heddle
