// 16. y(b, h, s, w) = x(b, s, h, w): modes in another order, of any extents.
//
//   swap_heads.launch(stream, swap_heads_shape(elements), x, y);
//
// Each thread has one element. Counted with the fastest mode first, its number becomes a coordinate
// by three divisions, whose divisors the host turns into multipliers: the kernel has no division.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

inline constexpr int kSwapThreads = 256;

inline const auto swap_heads =
    define_kernel("swap_heads(x, y)", [](Tensor<const float, 4> x, Tensor<float, 4> y) {
      const auto in = select(x, {3, 1, 2, 0});
      const auto out = select(y, {3, 2, 1, 0});
      const Int i = block_idx.x * kSwapThreads + thread_idx.x;
      const IntTuple at = idx2crd(i, shape(out));
      If(i < size(out), [&] { out(at) = in(at); });
    });

// Of up to 2^31 - 1 elements.
constexpr LaunchShape swap_heads_shape(int64_t elements) {
  return {.grid = (elements + kSwapThreads - 1) / kSwapThreads, .block = kSwapThreads};
}

}  // namespace heddle::learn
