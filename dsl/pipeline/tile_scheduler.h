// Tile schedulers: which tiles of a result a block computes, one after the other, in a kernel whose
// grid is as large as the device and not as the result.
//
//   const PersistentTiles tiles(rows, columns, batches, {.band = 8});
//   For(tiles, pipe.consumer(), [&](const Tile& tile, PipelineState p) {
//     … tile.row, tile.column, tile.batch …
//     return p;
//   });
//
// Blocks take tiles in turns. Consecutive tiles lie close together: bands of `band` rows, in each
// the tiles of a column below each other before the next column, so that those at work at one time
// read few different rows and columns, which L2 then holds.
#pragma once

#include "heddle/dsl/control.h"
#include "heddle/dsl/cuda/builtins.h"

namespace heddle {

// A tile's place, counted in tiles.
struct Tile {
  // The tile's row and column in the result, and the result's number.
  Int row, column, batch;
};

// How a PersistentTiles walks.
struct TileOrder {
  int band = 8;     // tiles below each other before the next column
  int cluster = 1;  // consecutive blocks that work on one tile together
};

// All tiles of a result, given out to the blocks of the grid (x) in turns.
class PersistentTiles {
 public:
  // A result of so many tiles in each direction.
  PersistentTiles(const Int& rows, const Int& columns, const Int& batches,
                  const TileOrder& order = {})
      : rows_(rows), columns_(columns), batches_(batches), order_(order) {}

  // How many there are, and where number `i` is.
  Int count() const { return rows_ * columns_ * batches_; }
  Tile at(const Int& i) const;

  // The numbers of this block's tiles.
  Range<int32_t> mine() const {
    return range(block_idx.x / order_.cluster, count(), grid_dim.x / order_.cluster);
  }

 private:
  Int rows_, columns_, batches_;
  TileOrder order_;
};

// The loop over a block's tiles: For(tiles, init…, body), where body(tile, carried…) returns what is
// carried to the next tile. Every thread of the block walks them alike.
template <class Body>
void For(const PersistentTiles& tiles, Body&& body) {
  For(tiles.mine(), [&](const Int& i) { body(tiles.at(i)); });
}
template <class Init, class Body>
auto For(const PersistentTiles& tiles, const Init& init, Body&& body) {
  return For(tiles.mine(), init,
             [&](const Int& i, const Init& carried) { return body(tiles.at(i), carried); });
}

}  // namespace heddle
