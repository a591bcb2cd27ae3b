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
//
// GroupedTiles are those of a group of results of different heights, which only the device knows:
//
//   const GroupedTiles tiles(groups, columns, [&](const Int& g) { return ceil_div(rows(g), 128); });
//
// stream_k.h has tiles whose depths blocks share.
#pragma once

#include <tuple>
#include <utility>

#include "heddle/dsl/collective/scan.h"
#include "heddle/dsl/control.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/dsl/layout/sym_int.h"

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

  // The numbers of this block's tiles: the first one, how far they are apart, and all of them.
  Int first() const { return block_idx.x / order_.cluster; }
  Int step() const { return grid_dim.x / order_.cluster; }
  Range<int32_t> mine() const { return range(first(), count(), step()); }
  // Of them those of one of `turns` warpgroups that take turns.
  Range<int32_t> mine(const Int& turn, int turns) const {
    return range(first() + turn * step(), count(), step() * turns);
  }

 private:
  Int rows_, columns_, batches_;
  TileOrder order_;
};

// All tiles of a group of results that have the same number of columns: `row_tiles(group)` is how many
// tiles lie below each other in a result, 0 or more. The tiles of a result follow those of the result
// before. Each block computes where a tile lies, so nothing waits for the host to learn the heights:
// the lanes of a warp look at 32 results at once. All lanes of a warp call the constructor and at().
template <class RowTiles>
class GroupedTiles {
 public:
  // So many results, of so many tiles beside each other.
  GroupedTiles(const Int& groups, const Int& columns, RowTiles row_tiles,
               const TileOrder& order = {})
      : groups_(groups),
        columns_(columns),
        row_tiles_(std::move(row_tiles)),
        order_(order),
        count_(std::get<0>(walk(-1))) {}

  // How many there are, and where number `i` is; the batch is the result's number.
  const Int& count() const { return count_; }
  Tile at(const Int& i) const {
    const auto [count, group, first, rows] = walk(i);
    const Tile tile = PersistentTiles(max(rows, 1), columns_, 1, order_).at(max(i - first, 0));
    return {tile.row, tile.column, group};
  }

  // The numbers of this block's tiles: the first one, how far they are apart, and all of them.
  Int first() const { return block_idx.x / order_.cluster; }
  Int step() const { return grid_dim.x / order_.cluster; }
  Range<int32_t> mine() const { return range(first(), count(), step()); }
  // Of them those of one of `turns` warpgroups that take turns.
  Range<int32_t> mine(const Int& turn, int turns) const {
    return range(first() + turn * step(), count(), step() * turns);
  }

 private:
  // How many tiles there are; the result that has tile i, its first tile, and its tiles below each other.
  using Walk = std::tuple<Int, Int, Int, Int>;
  Walk walk(const Int& i) const {
    const Walk begin(0, 0, 0, 0);
    return For(range(ceil_div(groups_, kWarpSize)), begin,
               [&](const Int& part, const Walk& so_far) {
                 const auto& [before, group, first, rows] = so_far;
                 const Int mine = part * kWarpSize + lane_id();
                 const Int height = If(
                     mine < groups_, [&] { return Int(row_tiles_(mine)); }, [] { return Int(0); });
                 const Int behind = before + warp_scan(height * columns_, plus());
                 const Int total = shfl(behind, kWarpSize - 1);
                 const Bool here = i >= before && i < total;
                 const Int lane = ffs(ballot(behind > i)) - 1;
                 const Int first_here = shfl(behind - height * columns_, lane);
                 const Int rows_here = shfl(height, lane);
                 return Walk(total, select(here, part * kWarpSize + lane, group),
                             select(here, first_here, first), select(here, rows_here, rows));
               });
  }

  Int groups_, columns_;
  RowTiles row_tiles_;
  TileOrder order_;
  Int count_;
};

namespace detail {

// A scheduler: mine() has the numbers of a block's tiles, and at() finds one.
template <class X>
concept TileScheduler = requires(const X& tiles, const Int& i) {
  tiles.mine();
  tiles.at(i);
};

}  // namespace detail

// The loop over a block's tiles: For(tiles, init…, body), where body(tile, carried…) returns what is
// carried to the next tile. Every thread of the block walks them alike.
template <detail::TileScheduler Tiles, class Body>
void For(const Tiles& tiles, Body&& body) {
  For(tiles.mine(), [&](const Int& i) { body(tiles.at(i)); });
}
template <detail::TileScheduler Tiles, class Init, class Body>
auto For(const Tiles& tiles, const Init& init, Body&& body) {
  return For(tiles.mine(), init,
             [&](const Int& i, const Init& carried) { return body(tiles.at(i), carried); });
}

}  // namespace heddle
