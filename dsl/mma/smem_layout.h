// Layouts of shared memory from swizzle atoms: tiles that the copy engine writes box by box, and
// that tensor cores, ldmatrix and stmatrix read and write without bank conflicts.
//
//   const Layout layout = make_smem_layout<bfloat16>({128, 64, 4}, Major::k);  // rows, depth, stages
//   const auto tiles = make_smem_tensor<bfloat16>(layout);
//   const SmemBox box = box_of(tiles(_, _, 0));                // what one copy of the engine fills
//   const int extents[] = {box.extent(0), box.extent(1)};
//   const TensorMap map(a, extents, {.swizzle = box.swizzle});
//
// A tile of an operand has rows (of A the rows of the product, of B its columns) and a depth, along
// which products sum. It is K-major where its elements are contiguous along the depth, and MN-major
// where they are along the rows. The *atom* is the smallest swizzled piece: eight lines of 16, 32, 64
// or 128 contiguous bytes. Atoms are laid one behind the other along the mode that is not contiguous,
// then along the contiguous one, then over the stages, so that each box is one piece of memory.
//
// A tile of results that stmatrix writes and the copy engine stores is laid out alike: K-major where
// the matrix in global memory has contiguous rows, MN-major where it has contiguous columns.
#pragma once

#include "heddle/dsl/layout/layout.h"
#include "heddle/dsl/tensor/tensor.h"

namespace heddle {

// Which mode of a tile (rows, depth) is contiguous: the depth (k), or the rows (mn).
enum class Major : uint8_t { k, mn };

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

Layout smem_layout_atom(ir::Scalar scalar, Major major, int swizzle_bytes, SourceLoc loc);
// Which swizzle: so many bytes, or the widest one that divides the contiguous extent and `part` elements
// of it, which instructions take.
struct SwizzleChoice {
  int bytes = -1;  // -1: the widest one
  int64_t part = 0;
};
Layout make_smem_layout(ir::Scalar scalar, const IntTuple& shape, Major major,
                        const SwizzleChoice& choice, SourceLoc loc);
SmemBox box_of(const Layout& tile, ir::Scalar scalar, SourceLoc loc);

}  // namespace detail

// The atom for elements of T: (8,w):(w,1) or, MN-major, (w,8):(1,w), where w elements are the
// swizzle's bytes, 32, 64 or 128; without a swizzle, 0, they are 16.
template <class T>
Layout smem_layout_atom(Major major, int swizzle_bytes, SourceLoc loc = SourceLoc::current()) {
  return detail::smem_layout_atom(detail::scalar_of<T>(), major, swizzle_bytes, loc);
}
// The layout of a tile of a shape (rows, depth) or tiles (rows, depth, stages…), which are host
// numbers: from the atom with the widest swizzle that divides the contiguous extent, or with the given
// one. It is an error where no atom divides the shape: 16 bytes along the contiguous mode, eight
// elements along the other.
template <class T>
Layout make_smem_layout(const IntTuple& shape, Major major = Major::k,
                        SourceLoc loc = SourceLoc::current()) {
  return detail::make_smem_layout(detail::scalar_of<T>(), shape, major, {}, loc);
}
template <class T>
Layout make_smem_layout(const IntTuple& shape, Major major, int swizzle_bytes,
                        SourceLoc loc = SourceLoc::current()) {
  return detail::make_smem_layout(detail::scalar_of<T>(), shape, major, {.bytes = swizzle_bytes},
                                  loc);
}

// The largest box that is one piece of memory under a tile's layout, in a tensor map's order: the
// contiguous mode, then the others from the last to the first; at most a swizzle's width along the
// contiguous mode, and 256 elements along each. Box (i,j) lies at coordinate (i,j) of the tile's
// zipped_divide(tile, box.extents)({0, _}). It is an error where no mode is contiguous, or the
// swizzle is none of the copy engine's.
template <class T>
SmemBox box_of(const Layout& tile, SourceLoc loc = SourceLoc::current()) {
  return detail::box_of(tile, detail::scalar_of<std::remove_const_t<T>>(), loc);
}
template <class T>
SmemBox box_of(const Tensor<T>& tile, SourceLoc loc = SourceLoc::current()) {
  return detail::box_of(tile.any().layout, tile.any().scalar, loc);
}

}  // namespace heddle
