// Stream-K: tiles of a product whose depths blocks share, so that all of them have the same work also where
// the tiles do not fill the last wave of the grid.
//
//   const StreamKTiles tiles(rows, columns, batches, blocks_along_k, {.band = 8});
//   For(tiles, [&](const TileShare& share) {
//     … sums of the blocks share.first <= k < share.behind of tile share.row, share.column …
//     If(share.ends, [&] { … waits for and adds the sums of units share.lowest up to tiles.unit() … })
//         .Else([&] { … hands its sums over and says so … });
//   });
//
// A *unit* is a block or a cluster. Whole waves of tiles are given out as PersistentTiles does; the tiles
// that are left, with those of the last whole wave where there is one, lie behind each other as one long
// row of blocks along k, of which each unit gets as many, up to one. A tile's share that reaches its end
// is the owner's, who adds up the others' sums and has the result.
//
// A unit takes first the share whose tile another one finishes, then the results of its own, the one with
// others' shares last of the shared ones. So it hands over before it ever waits, and it waits for lower
// units alone: nobody waits for ever, even where units run one after the other by their numbers.
#pragma once

#include "heddle/dsl/pipeline/tile_scheduler.h"

namespace heddle {

// A unit's share of a tile, whose place is counted in tiles.
struct TileShare : Tile {
  Int first, behind;  // blocks along k, from the first up to the one behind the last
  Int lowest;         // the lowest unit that has a share of the tile
  Bool ends;          // whether this share is the tile's last one, whose unit has the result
};

// How a StreamKTiles walks, and what it shares.
struct StreamKOrder {
  int band = 8;     // tiles below each other before the next column
  int cluster = 1;  // consecutive blocks that are a unit
  // Where the tiles are fewer than the units: blocks along k of a share, at least, and shares of a tile,
  // at most.
  int least_blocks = 4;
  int most_shares = 8;
};

// All tiles of a result, given out to the units of the grid (x).
class StreamKTiles {
 public:
  // A result of so many tiles in each direction, each of so many blocks along k (1 or more).
  StreamKTiles(const Int& rows, const Int& columns, const Int& batches, const Int& depth,
               const StreamKOrder& order = {})
      : tiles_(rows, columns, batches, {.band = order.band, .cluster = order.cluster}),
        depth_(depth),
        order_(order) {}

  // This block's unit.
  Int unit() const { return tiles_.first(); }
  // The numbers of the unit's shares: those from first() up to count() are results, and the one before
  // first() is the share whose tile another unit finishes, where there is one.
  Range<int32_t> mine() const;
  Int first() const { return 0; }
  Int count() const;
  TileShare at(const Int& i) const;

 private:
  // What a unit has. It is computed where it is used: of warps that do different things, each keeps what it
  // needs in its registers.
  struct Part;
  Part part() const;

  PersistentTiles tiles_;
  Int depth_;
  StreamKOrder order_;
};

}  // namespace heddle
