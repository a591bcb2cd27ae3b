// 1. SAXPY, y = a x + y: who computes what.
//
//   saxpy.launch(stream, saxpy_shape(n), 2.0f, x, y);
//
// The lambda is the program of one thread, and a launch runs it in a grid of blocks of threads.
// Thread i of the grid owns element i, so that the 32 threads of a warp touch 32 neighbours: one
// transaction of memory. Blocks are whole, so the last one sticks out over the end: hence the If.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

inline const auto saxpy =
    define_kernel("saxpy(a, x, y)", [](Float a, Tensor<const float, 1> x, Tensor<float, 1> y) {
      Int i = block_idx.x * block_dim.x + thread_idx.x;
      If(i < y.shape(0), [&] { y(i) = a * x(i) + y(i); });
    });

constexpr LaunchShape saxpy_shape(int64_t n) { return {.grid = (n + 255) / 256, .block = 256}; }

}  // namespace heddle::learn
