// Im2col copy atoms: the copy engine loads tiles (pixels, channels) of images, for convolutions as products of matrices.
//
//   const auto sA = make_smem_tensor<half>(make_smem_layout<half>({64, 64, 4}));        // (pixels, channels, stages)
//   const auto load = make_im2col_atom(x, sA(_, _, 0), {-1, -1}, {-1, -1});             // x(n, h, w, c), a 3 x 3 filter
//   If(elect_one(), [&] {
//     full.expect_tx(stage, load.bytes());
//     copy(load.with(full, stage), load.at({image, row, column, channel}, {r, s}), sA(_, _, stage));
//   });
//
// Boxes and swizzle follow from the tile, as those of TMA atoms do (tma_atom.h); Im2colMap says what `lower` and
// `upper` bound, and which pixels follow the first one (tensor_map.h). Tiles have at most 256 pixels.
#pragma once

#include "heddle/dsl/cuda/tensor_map.h"
#include "heddle/dsl/tensor/copy.h"
#include "heddle/dsl/tensor/tma_atom.h"

namespace heddle {

namespace detail {

struct Im2colBoxes : TileBoxes {
  Node map = {};
  int rank = 0;  // of the images; 0: there are none, which was reported
};
Im2colBoxes make_im2col_boxes(const Node& view, const AnyTensor& shared, const int* lower,
                              const int* upper, int rank, const BoxOptions& options, SourceLoc loc);
// `at`: a coordinate for each mode; `offsets`: for each mode of an image.
void emit_im2col_tile(const Im2colBoxes& boxes, const AnyTensor& shared, const Arg<int32_t>* at,
                      const Arg<int32_t>* offsets, const BulkBarrier& barrier, SourceLoc loc);

}  // namespace detail

// The first pixel and channel of a tile, and the element of the filter that it is for; Im2colAtom::at() makes it.
template <int Rank>
struct Im2colPlace {
  // A coordinate for each mode of the images, and an offset for each mode of an image.
  detail::Arg<int32_t> at[Rank];
  detail::Arg<int32_t> offsets[Rank - 2];
};

template <int Rank>
class Im2colAtom;

// A load with the barrier that counts its bytes; Im2colAtom::with() makes it.
template <int Rank>
struct Im2colLoadTo {
  // The load, and the barrier that counts its bytes.
  const Im2colAtom<Rank>& atom;
  detail::Node words, index;
};

// An im2col copy atom of images and the layout of a tile; make_im2col_atom() makes one.
template <int Rank>
class Im2colAtom {
  static_assert(Rank >= 3 && Rank <= 5, "images, 1 to 3 modes of an image, and channels");

 public:
  // For make_im2col_atom().
  explicit Im2colAtom(const detail::Im2colBoxes& boxes) : boxes_(boxes) {}

  // Bytes of a tile, that a block's barrier counts: also what lies outside of the images.
  uint32_t bytes() const { return static_cast<uint32_t>(boxes_.bytes()); }
  // The extent of a box along the pixels (0) or the channels (1).
  int64_t box(int mode) const { return boxes_.grid.box[mode]; }
  // Brings the tensor map near the copy engine, so that the first copy does not wait for it.
  void prefetch(SourceLoc loc = SourceLoc::current()) const {
    if (boxes_.rank != 0) detail::emit(detail::op::kTensorMapPrefetch, boxes_.map, loc);
  }
  // The load whose bytes barrier `index` counts.
  Im2colLoadTo<Rank> with(const Mbarrier& barriers, const detail::Arg<int32_t>& index) const {
    return {*this, barriers.words().view_node(), index.node};
  }
  // The tile whose first element is at a coordinate of the images, moved by an element of the filter, which are at
  // least 0 and below 65536, 256 or 32 where an image has one, two or three modes.
  Im2colPlace<Rank> at(const detail::Arg<int32_t> (&coordinate)[Rank],
                       const detail::Arg<int32_t> (&offsets)[Rank - 2]) const {
    return [&]<size_t... I, size_t... J>(std::index_sequence<I...>, std::index_sequence<J...>) {
      return Im2colPlace<Rank>{{coordinate[I]...}, {offsets[J]...}};
    }
    (std::make_index_sequence<Rank>(), std::make_index_sequence<Rank - 2>());
  }

  const detail::Im2colBoxes& boxes() const { return boxes_; }

 private:
  detail::Im2colBoxes boxes_;
};

// Makes an im2col copy atom of images, a parameter of the kernel whose last mode is channels, and a tile (pixels,
// channels) in shared memory, which is contiguous along the channels.
template <class T, int Rank, detail::TensorLike Shared>
Im2colAtom<Rank> make_im2col_atom(const Tensor<T, Rank>& images, const Shared& tile,
                                  const int (&lower)[Rank - 2], const int (&upper)[Rank - 2],
                                  const BoxOptions& options = {},
                                  SourceLoc loc = SourceLoc::current()) {
  return Im2colAtom<Rank>(detail::make_im2col_boxes(
      images.view_node(), detail::as_tensor(tile, loc).any(), lower, upper, Rank, options, loc));
}

// Starts the load of a tile. Its barrier has been told of the bytes.
template <int Rank, detail::Writable To>
void copy(const Im2colLoadTo<Rank>& load, const Im2colPlace<Rank>& from, const To& to,
          SourceLoc loc = SourceLoc::current()) {
  detail::emit_im2col_tile(load.atom.boxes(), detail::as_tensor(to, loc).any(), from.at,
                           from.offsets, {load.words, load.index}, loc);
}

}  // namespace heddle
