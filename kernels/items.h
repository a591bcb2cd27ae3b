// Rows that are dealt out by items, a thread each: neighbouring threads have neighbouring items, and then the next row's.
//
//   const ItemGrid grid = item_grid(rows, items, kThreads);                 // on the host
//   kernel.launch(stream, grid.shape, x, grid.slab, y);
//   const ItemOfRow at = item_of_row(slab, x.shape(0), items, kThreads);    // in the kernel
//   If(at.inside, [&] { … });
//
// Numbers of threads have 32 bits: more threads are cut into slabs of rows along the grid's second dimension.
#pragma once

#include <algorithm>

#include "heddle/kernels/vectors.h"
#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// How rows of items are launched.
struct ItemGrid {
  LaunchShape shape;  // a thread an item
  int32_t slab;       // rows of a slab
};
// Of rows of at least one item each, fewer than kMostCounted both.
inline ItemGrid item_grid(int64_t rows, int64_t items, int threads,
                          int64_t most_threads = int64_t{1} << 31) {
  const int64_t slab = std::clamp<int64_t>(most_threads / items, 1, rows);
  return {{.grid = {divide_up(slab * items, threads), divide_up(rows, slab)}, .block = threads},
          static_cast<int32_t>(slab)};
}

// What a thread has of them.
struct ItemOfRow {
  Int row;      // its number
  Int item;     // of the row
  Bool inside;  // whether it is one of a row
};
inline ItemOfRow item_of_row(const Int& slab, const Int& rows, const Int& items, int threads) {
  const UInt number = bitcast<uint32_t>(Int(block_idx.x)) * static_cast<uint32_t>(threads) +
                      bitcast<uint32_t>(Int(thread_idx.x));
  const Divmod<uint32_t> at = FastDivmod(items).divmod(number);
  const Int of_slab = bitcast<int32_t>(at.quotient), row = block_idx.y * slab + of_slab;
  return {row, bitcast<int32_t>(at.remainder), of_slab < slab && row < rows};
}

}  // namespace heddle::kernels
