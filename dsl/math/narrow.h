// Pairs of 4-bit floats, two in a byte.
//
//   Vec<float4_e2m1x2, 4> codes = pack_e2m1(v);          // v: Vec<float, 8>
//   Vec<half, 8> back = unpack_e2m1(codes);              // exact
//   Float4E2M1x2 one = pack_e2m1(Vec<float, 2>(a, b));
//
// Rounded once to nearest even to 0, 0.5, 1, 1.5, 2, 3, 4 and 6 of either sign; larger numbers
// become 6, and so does a NaN. The scale that goes with a block of them is a Float8E8M0, to which
// cast<> rounds up and cast<>(x, Rounding::zero) toward zero. Both need sm_100a, or a later
// architecture-specific target.
#pragma once

#include "heddle/dsl/vec.h"

namespace heddle {

// Converts to 4-bit floats, rounded to nearest even.
inline Float4E2M1x2 pack_e2m1(const Vec<float, 2>& v, SourceLoc loc = SourceLoc::current()) {
  return Float4E2M1x2(
      detail::emit_as(detail::scalar_type<float4_e2m1x2>(), detail::op::kE2m1Pack, v.node(), loc));
}
template <int N>
requires(N > 2) Vec<float4_e2m1x2, N / 2> pack_e2m1(const Vec<float, N>& v,
                                                    SourceLoc loc = SourceLoc::current()) {
  using Pairs = Vec<float4_e2m1x2, N / 2>;
  return Pairs(detail::emit_as(Pairs::type(), detail::op::kE2m1Pack, v.node(), loc));
}
// An even number of elements.
inline Fragment<float4_e2m1x2> pack_e2m1(const Fragment<float>& v,
                                         SourceLoc loc = SourceLoc::current()) {
  const detail::NodeType pairs =
      detail::fragment_type(detail::scalar_of<float4_e2m1x2>(), v.size() / 2, loc);
  return Fragment<float4_e2m1x2>(detail::emit_as(pairs, detail::op::kE2m1Pack, v.node(), loc));
}

// Converts 4-bit floats to half, which is exact.
inline Vec<half, 2> unpack_e2m1(const Float4E2M1x2& pair, SourceLoc loc = SourceLoc::current()) {
  return Vec<half, 2>(
      detail::emit_as(Vec<half, 2>::type(), detail::op::kE2m1Unpack, pair.node(), loc));
}
template <int N>
requires(N <= 8) Vec<half, 2 * N> unpack_e2m1(const Vec<float4_e2m1x2, N>& pairs,
                                              SourceLoc loc = SourceLoc::current()) {
  using Numbers = Vec<half, 2 * N>;
  return Numbers(detail::emit_as(Numbers::type(), detail::op::kE2m1Unpack, pairs.node(), loc));
}
inline Fragment<half> unpack_e2m1(const Fragment<float4_e2m1x2>& pairs,
                                  SourceLoc loc = SourceLoc::current()) {
  const detail::NodeType numbers =
      detail::fragment_type(detail::scalar_of<half>(), 2 * pairs.size(), loc);
  return Fragment<half>(detail::emit_as(numbers, detail::op::kE2m1Unpack, pairs.node(), loc));
}

}  // namespace heddle
