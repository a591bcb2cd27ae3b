// What an epilogue reads, brought to L2 while the last products run. Internal to the kernels.
#pragma once

#include "heddle/kernels/gemm/tiles.h"

namespace heddle::kernels {

// An argument of an epilogue that has no element for each of the result's.
template <class X>
void prefetch_tile(const GemmConfig&, const GemmTile&, const Int&, const Int&, const X&) {}

// The tile's elements of a tensor of the result's extents, from `first_column` on: each thread's share, by
// its number among those that multiply the tile.
template <class X>
void prefetch_tile(const GemmConfig& c, const GemmTile& tile, const Int& first_column,
                   const Int& thread, const Tensor<const X, 3>& x) {
  constexpr int kLine = 128 / sizeof(X);  // elements of a line of L2
  const int lines = (c.columns() + kLine - 1) / kLine;
  const int threads = c.groups_of_tile() * kWarpGroupSize;
  for (int first = 0; first < c.m * lines; first += threads) {
    const Int line = thread % threads + first;
    const Int row = tile.row + line / lines, column = first_column + line % lines * kLine;
    If(row < min(tile.end, x.shape(0)) && column < x.shape(1) && tile.batch < x.shape(2),
       [&] { x.prefetch(row, column, tile.batch); });
  }
}

}  // namespace heddle::kernels
