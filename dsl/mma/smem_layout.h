// Layouts of shared memory from swizzle atoms: tiles that the copy engine writes box by box, and
// that tensor cores, ldmatrix and stmatrix read and write without bank conflicts.
//
//   const Layout layout = make_smem_layout<bfloat16>({128, 64, 4}, Major::k);  // rows, depth, stages
//   const auto tiles = make_smem_tensor<bfloat16>(layout);     // make_tma_atom() fills them (tma_atom.h)
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

}  // namespace heddle
