// 2. Matrix transpose, y(j, i) = x(i, j): shared memory turns a tile round.
//
//   transpose.launch(stream, transpose_shape(rows, columns), x, y);
//
// Rows of x are columns of y, so one of the two would be touched with a stride, 32 transactions a
// warp instead of one. A block therefore reads a square tile along x's rows into its shared memory
// and, once all of it is there, writes it along y's rows. Shared memory has 32 banks, one word
// wide; the odd row length puts the words of a column into different ones.
//
// The library's own (kernels/map/copy.h) takes any strides.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

inline constexpr int kTile = 32;
inline constexpr int kTileThreads = 8;  // along y: each thread moves four elements

inline const auto transpose =
    define_kernel("transpose(x, y)", [](Tensor<const float, 2> x, Tensor<float, 2> y) {
      Shared<float, 2> tile({kTile, kTile + 1});
      Int row = block_idx.y * kTile, column = block_idx.x * kTile;
      // A host loop: it runs while the kernel is traced, so the kernel has its body four times.
      for (int k = 0; k < kTile; k += kTileThreads) {
        Int i = thread_idx.y + k, j = thread_idx.x;
        If(row + i < x.shape(0) && column + j < x.shape(1),
           [&] { tile(i, j) = x(row + i, column + j); });
      }
      sync_threads();
      for (int k = 0; k < kTile; k += kTileThreads) {
        Int i = thread_idx.x, j = thread_idx.y + k;
        If(row + i < x.shape(0) && column + j < x.shape(1),
           [&] { y(column + j, row + i) = tile(i, j); });
      }
    });

constexpr LaunchShape transpose_shape(int64_t rows, int64_t columns) {
  return {.grid = {(columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile},
          .block = {kTile, kTileThreads}};
}

}  // namespace heddle::learn
