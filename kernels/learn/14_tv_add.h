// 14. z = x + y, elementwise, by a thread-value layout: tiles of a matrix of any size.
//
//   tv_add.launch(stream, tv_add_shape(rows, columns), x, y, z);
//
// A tile is 16 x 128: four rows of 32 threads, each with 4 x 4 elements. local_tile picks the
// block's tile of each tensor, composition with the thread-value layout the thread's elements of
// it; an identity tensor that is cut in the same way has their coordinates, and within() compares
// them with the matrix's extents.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

inline constexpr int kAddRows = 16, kAddColumns = 128, kAddThreads = 128;

inline const auto tv_add = define_kernel(
    "tv_add(x, y, z)", [](Tensor<const float, 2> x, Tensor<const float, 2> y, Tensor<float, 2> z) {
      const auto [tile, tv] =
          make_layout_tv(make_layout({4, 32}, {32, 1}), make_layout({4, 4}, {4, 1}));
      const Layout threads_values = tv;
      const IntTuple extents{x.shape(0), x.shape(1)}, tiler = tile;
      const auto part = [&](const auto& tensor) {
        const auto own = local_tile(tensor, tiler, {block_idx.y, block_idx.x});
        return composition(own, threads_values)(thread_idx.x, _);
      };
      const auto there = within(part(make_identity_tensor(extents)), extents);
      auto a = make_tensor<float>({4, 4}), b = make_tensor<float>({4, 4});
      copy_if(there, part(x), a);
      copy_if(there, part(y), b);
      transform(a, plus(), a, b);
      copy_if(there, a, part(z));
    });

constexpr LaunchShape tv_add_shape(int64_t rows, int64_t columns) {
  return {.grid = {(columns + kAddColumns - 1) / kAddColumns, (rows + kAddRows - 1) / kAddRows},
          .block = kAddThreads};
}

}  // namespace heddle::learn
