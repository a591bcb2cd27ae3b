// The boxes by which the copy engine fills a tile in shared memory.
//
//   const auto tiles = make_smem_tensor<bfloat16>(make_smem_layout<bfloat16>({128, 64, 4}));
//   const SmemBox box = box_of(tiles(_, _, 0));                // what one copy of the engine fills
//   const int extents[] = {box.extent(0), box.extent(1)};
//   const TensorMap map(a, extents, {.swizzle = box.swizzle});
//
// make_tma_atom() (tma_atom.h) makes map, boxes and copies from the tile.
#pragma once

#include "heddle/dsl/layout/layout.h"
#include "heddle/dsl/tensor/tensor.h"

namespace heddle {

// A box of a tensor map that fills a part of a tile.
struct SmemBox {
  IntTuple extents;    // elements along each mode of the tile
  int swizzle = 0;     // bytes of its swizzle, as BoxOptions takes them
  int contiguous = 0;  // the mode whose elements are neighbours
  int64_t count = 0;   // boxes that fill the tile; 0 where it is not ok()

  // The extent along a mode; 1 where the box is not ok().
  int extent(int mode) const {
    return count == 0 ? 1 : static_cast<int>(get(extents, mode).value().value());
  }
  // Whether there is one, else the reason.
  bool ok() const { return extents.ok(); }
  const std::string& error() const { return extents.error(); }
};

namespace detail {

SmemBox box_of(const Layout& tile, ir::Scalar scalar, SourceLoc loc);

// How boxes lie in a tile.
struct BoxGrid {
  int modes = 0;
  int64_t box[kMaxRank] = {};     // elements along each mode
  int64_t counts[kMaxRank] = {};  // boxes along each mode

  BoxGrid() = default;
  // Those of a tile; `box` is ok().
  BoxGrid(const Layout& tile, const SmemBox& box);

  int64_t count() const;
  int64_t extent(int mode) const { return box[mode] * counts[mode]; }
  // The coordinate of the first element of box `number`; boxes are counted along the first mode first. With
  // `origin`, of the tile that begins so far along mode `moved`.
  IntTuple first(int64_t number, const SymInt& origin = 0, int moved = 0) const;
  // Whether all begin at multiples of 128 bytes, if the tile does.
  bool are_aligned(const Layout& tile, ir::Scalar scalar) const;

  friend bool operator==(const BoxGrid&, const BoxGrid&) = default;
};

}  // namespace detail

// The largest box that is one piece of memory under a tile's layout, in a tensor map's order: the
// contiguous mode, then the others from the last to the first; a swizzle's width along the
// contiguous mode, and at most 256 elements along each. Box (i,j) lies at coordinate (i,j) of the tile's
// zipped_divide(tile, box.extents)({0, _}). It is an error where no mode is contiguous, the
// swizzle is none of the copy engine's, lines are no multiple of 16 bytes, or boxes do not begin at multiples of
// 128 bytes.
template <class T>
SmemBox box_of(const Layout& tile, SourceLoc loc = SourceLoc::current()) {
  return detail::box_of(tile, detail::scalar_of<std::remove_const_t<T>>(), loc);
}
template <class T>
SmemBox box_of(const Tensor<T>& tile, SourceLoc loc = SourceLoc::current()) {
  return detail::box_of(tile.any().layout, tile.any().scalar, loc);
}

}  // namespace heddle
