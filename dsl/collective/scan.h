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

// Inclusive scan over segments of `width` lanes (1, 2, 4, 8, 16 or 32): a lane gets the combination of the values of its
// segment's lanes up to itself. All 32 lanes of the warp take part.
template <class X, class Combine>
auto warp_scan(const X& value, Combine combine, int width = kWarpSize,
               SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  detail::traced_t<X> result(value);
  if (!detail::is_width(width)) {
    detail::report(loc, "warp_scan() over a width that is no power of two from 1 to 32",
                   "scan over 1, 2, 4, 8, 16 or 32 lanes");
    return result;
  }
  const Int lane = width == kWarpSize ? Int(lane_id()) : lane_id() % width;
  for (int delta = 1; delta < width; delta *= 2) {
    const auto below = shfl_up(result, delta);
    detail::replace_leaves(result, select(lane >= delta, combine(below, result), result));
  }
  return result;
}

}  // namespace heddle
