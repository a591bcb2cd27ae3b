#include "heddle/dsl/pipeline/stream_k.h"

#include "heddle/dsl/math/integer.h"

namespace heddle {
namespace {

// Tiles whose depths are shared, of all. Where there is a whole wave, the last one is too: shares are then
// longer than a tile, so that at most two units have one of the same tile.
Int shared_tiles(const Int& all, const Int& units) {
  const Int left = all % units;
  return select(left != 0 && all > units, left + units, left);
}

// Blocks along k that lie behind each other, divided among units: each gets as many, the first ones one more.
struct Division {
  Int least, longer;  // blocks of a unit, and units with one more

  Division(const Int& blocks, const Int& units) : least(blocks / units), longer(blocks % units) {}
  // A unit's first block, and the unit that has a block.
  Int begin(const Int& unit) const { return unit * least + min(unit, longer); }
  Int unit_of(const Int& block) const {
    const Int behind = longer * (least + 1);
    return select(block < behind, block / (least + 1),
                  longer + max(block - behind, 0) / max(least, 1));
  }
};

}  // namespace

struct StreamKTiles::Part {
  Int units, unit;
  Int shared;       // tiles whose depths are shared
  Int sharers;      // units that share them
  Division blocks;  // of these tiles
  Int begin, end;   // this unit's blocks
  Int behind;       // the tile behind the last shared one that is the unit's result
  Int own, alone;   // its results of shared tiles, and its other tiles

  Part(const PersistentTiles& tiles, const Int& depth, const StreamKOrder& order)
      : units(tiles.step()),
        unit(tiles.first()),
        shared(shared_tiles(tiles.count(), units)),
        sharers(max(min(units, shared * max(min(depth / order.least_blocks, order.most_shares), 1)),
                    1)),
        blocks(shared * depth, sharers),
        begin(blocks.begin(min(unit, sharers))),
        end(blocks.begin(min(unit + 1, sharers))),
        behind(end / depth),
        own(behind - begin / depth),
        alone((tiles.count() - shared) / units) {}
};

StreamKTiles::Part StreamKTiles::part() const { return Part(tiles_, depth_, order_); }

Int StreamKTiles::count() const {
  const Part mine = part();
  return mine.own + mine.alone;
}

Range<int32_t> StreamKTiles::mine() const {
  return range(select(part().end % depth_ != 0, -1, 0), count());
}

TileShare StreamKTiles::at(const Int& i) const {
  const Part mine = part();
  const Bool is_shared = i < mine.own;
  const Int shared = max(mine.behind - 1 - i, 0), origin = shared * depth_;
  const Int alone = mine.shared + (i - mine.own) * mine.units + mine.unit;
  const Tile tile = tiles_.at(select(is_shared, shared, alone));
  const Int first = select(is_shared, max(mine.begin - origin, 0), 0);
  const Int behind = select(is_shared, min(mine.end - origin, depth_), depth_);
  return {tile, first, behind, select(first == 0, mine.unit, mine.blocks.unit_of(origin)),
          behind == depth_};
}

}  // namespace heddle
