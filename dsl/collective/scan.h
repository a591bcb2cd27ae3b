// Prefix sums over the lanes of a warp.
//
//   Int up_to_me = warp_scan(count, plus());                    // inclusive
//   Int before_me = up_to_me - count;
//
// Combines in the order of the lanes, so any associative function of anything Traced will do:
// maximum(), or a lambda on a struct.
#pragma once

#include "heddle/dsl/collective/reduce.h"

namespace heddle {

// Inclusive scan: lane i gets the combination of the values of lanes 0 to i. All 32 lanes of the
// warp take part.
template <class X, class Combine>
auto warp_scan(const X& value, Combine combine, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  detail::traced_t<X> result(value);
  const Int lane = lane_id();
  for (int delta = 1; delta < kWarpSize; delta *= 2) {
    const auto below = shfl_up(result, delta);
    detail::replace_leaves(result, select(lane >= delta, combine(below, result), result));
  }
  return result;
}

}  // namespace heddle
