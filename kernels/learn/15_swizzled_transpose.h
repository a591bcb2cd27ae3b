// 15. Matrix transpose through a swizzled tile: no bank conflicts, and no memory spent on it.
//
//   swizzled_transpose.launch(stream, swizzled_transpose_shape(rows, columns), x, y);
//
// Program 2 pads each row of the shared tile by a word. A swizzle permutes the words within each
// row instead, by exclusive or with the row's number: S<5,0,5> moves element (i,j) of a 32 x 32
// tile to column i ^ j, so that a column's words lie in 32 banks. It is a part of the tile's
// layout; what reads and writes the tile does not know of it.
//
//   heddle layout 'S<5,0,5> o 0 o (32,32):(32,1)' --svg banks.svg --banks 32
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

inline constexpr int kTurn = 32, kTurnThreads = 256;

inline const auto swizzled_transpose =
    define_kernel("swizzled_transpose(x, y)", [](Tensor<const float, 2> x, Tensor<float, 2> y) {
      const Layout rows = make_layout({kTurn, kTurn}, GenRowMajor{});
      const auto tile = make_smem_tensor<float>(make_composed_layout(Swizzle(5, 0, 5), 0, rows));
      const auto turned = select(tile, {1, 0});
      const Layout threads = make_layout({kTurnThreads / kTurn, kTurn}, GenRowMajor{});
      const IntTuple extents{x.shape(0), x.shape(1)}, turned_extents{x.shape(1), x.shape(0)};
      const auto part = [&](const auto& tensor) {
        return local_partition(tensor, threads, thread_idx.x);
      };
      const auto block = [&](const auto& tensor, const IntTuple& coord) {
        return part(local_tile(tensor, {kTurn, kTurn}, coord));
      };
      const IntTuple here{block_idx.y, block_idx.x}, there{block_idx.x, block_idx.y};
      copy_if(within(block(make_identity_tensor(extents), here), extents), block(x, here),
              part(tile));
      sync_threads();
      copy_if(within(block(make_identity_tensor(turned_extents), there), turned_extents),
              part(turned), block(y, there));
    });

constexpr LaunchShape swizzled_transpose_shape(int64_t rows, int64_t columns) {
  return {.grid = {(columns + kTurn - 1) / kTurn, (rows + kTurn - 1) / kTurn},
          .block = kTurnThreads};
}

}  // namespace heddle::learn
