// 11. A stencil in three dimensions: the next plane is under way while this one is worked on.
//
//   stencil.launch(stream, stencil_shape(rows, columns), x, y);   // rows, columns of y
//
// y(z, i, j) is a weighted sum of x's element there and those up to kReach away along each axis; x
// has a frame of kReach more on all sides. Blocks march through the planes. Along z a thread keeps
// what it needs in registers; along i and j its neighbours lie in shared memory, in one of two
// tiles: the other is being filled by asynchronous copies of 16 bytes, which no thread waits for
// until the plane is due. The number of columns is a multiple of 4.
#pragma once

#include <deque>

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

inline constexpr int kReach = 4, kPlaneRows = 16, kPlaneColumns = 32;  // of y, in a block's plane
inline constexpr int kTileRows = kPlaneRows + 2 * kReach, kTileColumns = kPlaneColumns + 2 * kReach;
inline constexpr float kWeights[kReach + 1] = {0.25f, 0.0625f, 0.03125f, 0.0234375f, 0.0078125f};

inline void stencil_body(Tensor<const float, 3> x, Tensor<float, 3> y) {
  Shared<float, 3> tiles({2, kTileRows, kTileColumns});
  Int row = block_idx.y * kPlaneRows, column = block_idx.x * kPlaneColumns;
  Int number = thread_idx.y * kPlaneColumns + thread_idx.x;
  Int copy_row = number / (kTileColumns / 4), copy_column = number % (kTileColumns / 4) * 4;
  Int from_row = row + copy_row, from_column = column + copy_column;
  Bool copies = copy_row < kTileRows && from_row < x.shape(1) && from_column < x.shape(2);
  const auto fetch = [&](const Int& z) {
    If(copies && z < y.shape(0), [&] {
      copy_async<4>(tiles.at(z & 1, copy_row, copy_column),
                    x.at(z + kReach, from_row, from_column));
    });
    copy_async_commit();
  };
  Int i = thread_idx.y + kReach, j = thread_idx.x + kReach;  // in the tile
  Int own_row = min(row + i, x.shape(1) - 1), own_column = min(column + j, x.shape(2) - 1);
  Bool writes = row + thread_idx.y < y.shape(1) && column + thread_idx.x < y.shape(2);
  std::deque<Var<float>> c;  // along z, this plane's in the middle
  for (int k = 0; k < 2 * kReach; ++k) c.emplace_back(x(k, own_row, own_column));
  c.emplace_back(0.0f);
  fetch(0);
  for (Int z : range(y.shape(0))) {
    fetch(z + 1);
    c[2 * kReach] = x(z + 2 * kReach, own_row, own_column);
    copy_async_wait(1);  // this plane is complete, the next may not be
    sync_threads();
    If(writes, [&] {
      Var<float> sum(kWeights[0] * c[kReach]);
      for (int k = 1; k <= kReach; ++k) {
        const auto at = [&](const Int& r, const Int& s) { return Float(tiles(z & 1, r, s)); };
        Float above = at(i - k, j), below = at(i + k, j), left = at(i, j - k), right = at(i, j + k);
        Float across = (above + below) + (left + right);
        sum = fma(kWeights[k], across + (c[kReach - k] + c[kReach + k]), sum);
      }
      y(z, row + thread_idx.y, column + thread_idx.x) = sum;
    });
    for (int k = 0; k < 2 * kReach; ++k) c[k] = c[k + 1];
    sync_threads();  // all have read the tile that the next trip fills
  }
}
inline const auto stencil = define_kernel("stencil(x, y)", stencil_body);

constexpr LaunchShape stencil_shape(int64_t rows, int64_t columns) {
  return {
      .grid = {(columns + kPlaneColumns - 1) / kPlaneColumns, (rows + kPlaneRows - 1) / kPlaneRows},
      .block = {kPlaneColumns, kPlaneRows}};
}

}  // namespace heddle::learn
