// Tensor maps: the copy engine (TMA) moves a box of a tensor between global and shared memory. One
// thread asks for it; addresses, edges and swizzles are the engine's (sm_90).
//
//   const TensorMap map(x, {64, 32});                     // boxes of 64 rows of 32 floats
//   const Shared<float, 2> tile({64, 32});
//   If(thread_idx.x == 0, [&] {
//     full.expect_tx(0, map.bytes());                     // an Mbarrier, see mbarrier.h
//     tma_load(tile.at(0, 0), map, {64 * block_idx.y, 32 * block_idx.x}, full, 0);
//   });
//   full.wait(0, 0u);                                     // all threads: the box is there
//
//   fence_async();                                        // all who wrote the tile
//   sync_threads();
//   If(thread_idx.x == 0, [&] {
//     tma_store(map_of_y, {64 * block_idx.y, 32 * block_idx.x}, tile.at(0, 0));
//     bulk_commit();
//     bulk_wait();                                        // see bulk.h
//   });
//
// The host makes the map before each launch, from the address, extents and strides of the argument.
// The address is a multiple of 16 bytes; one mode has stride 1; the strides of the others are
// multiples of 16 bytes. A launch with another argument is refused. The coordinate of the contiguous
// mode, in bytes, is a multiple of 16 too.
//
// Elements of a box outside of the tensor are read as zeros and not written, so that coordinates
// may be negative or lie beyond the end. (Rows of what is stored end at a multiple of 16 bytes: the
// engine writes whole 16 bytes.) In shared memory the box lies densely, the contiguous mode
// first and then the other modes, last to first, from a multiple of 128 bytes on: a Shared array that
// boxes go to or come from is aligned for them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "heddle/dsl/cuda/bulk.h"

namespace heddle {

// What else a tensor map says of its boxes.
struct BoxOptions {
  // Bytes of a row of the swizzle: 32, 64 or 128, as long as the box is along the contiguous mode;
  // 0: none.
  int swizzle = 0;
  // Floats outside of the tensor are read as NaN.
  bool nan_fill = false;
  // L2 fetches 64, 128 or 256 bytes at least; 0: as it does.
  int promotion = 0;
};

namespace detail {

struct TensorMapInfo {
  Node node;
  int64_t box_bytes;
};
TensorMapInfo new_tensor_map(const Node& view, const int* box, int rank, const BoxOptions& options,
                             SourceLoc loc);
// Another tensor for a map: where it starts, and its extents and strides in the order of its modes.
struct MapReplacement {
  const Node& map;
  const Access& staging;
  const Access& place;
  const Access& start;
  ir::Scalar scalar;
  const Arg<int64_t>* extents;
  const Arg<int64_t>* strides;
  int rank;
};
Node emit_map_replace(const MapReplacement& replacement);
TensorMapInfo new_im2col_map(const Node& view, const int* box, const int* lower, const int* upper,
                             int rank, const BoxOptions& options, SourceLoc loc);
// `at`: a coordinate for each mode; `offsets`: for each mode of an image.
void emit_tma_load_im2col(const Access& to, ir::Scalar scalar, const Node& map,
                          const Arg<int32_t>* at, const Arg<int32_t>* offsets, int rank,
                          const BulkBarrier& barrier);
// A box at a coordinate of the tensor, in its own order of modes.
struct BoxPlace {
  const Node& map;
  const Arg<int32_t>* at;
  int rank;
  AccessMode mode = {};  // with an L2 eviction priority, or without
};
void emit_tma_load(const Access& to, ir::Scalar scalar, const BoxPlace& box,
                   const BulkBarrier& barrier, const Node* ranks);
void emit_tma_store(const BoxPlace& box, const Access& from, ir::Scalar scalar,
                    const AtomicKind* reduction);
void emit_tma_prefetch(const BoxPlace& box);

}  // namespace detail

// A tensor map of a kernel's parameter: its boxes have `box[i]` elements along mode i, 1 to 256.
template <class T, int Rank>
class TensorMap {
 public:
  // The map of a parameter of the kernel.
  TensorMap(const Tensor<T, Rank>& x, const int (&box)[Rank], const BoxOptions& options = {},
            SourceLoc loc = SourceLoc::current())
      : info_(detail::new_tensor_map(x.view_node(), box, Rank, options, loc)) {}

  // Bytes of a box, for Mbarrier::expect_tx().
  uint32_t bytes() const { return static_cast<uint32_t>(info_.box_bytes); }
  // Brings the map near the copy engine, so that the first copy does not wait for it.
  void prefetch(SourceLoc loc = SourceLoc::current()) const {
    detail::emit(detail::op::kTensorMapPrefetch, info_.node, loc);
  }

  // A map like this one, which is a parameter's, of another tensor: for kernels that work on a group of
  // tensors. A whole warp calls it, all lanes with the same arguments, and copies with the new map:
  //
  //   const Shared<uint64_t> staging(16);
  //   const TensorMap map = base.replace(staging.at(0), maps.at(16 * block_idx.x), x.at(first_row, 0),
  //                                      {rows, columns}, {columns, 1});
  //
  // Extents and strides, in elements, are in the order of the tensor's modes; the contiguous one of the
  // parameter stays contiguous. The address and the other strides are multiples of 16 bytes, and the
  // extents are at least 1. `staging` is 128 bytes of shared memory, `place` 128 bytes of global memory
  // at a multiple of 128 bytes, which hold the map: they stay as they are until the copies that take
  // it are complete. sm_90a, PTX 8.3.
  TensorMap replace(const detail::ElementAddress<uint64_t>& staging,
                    const detail::ElementAddress<uint64_t>& place,
                    const detail::ElementAddress<T>& start,
                    const detail::Arg<int64_t> (&extents)[Rank],
                    const detail::Arg<int64_t> (&strides)[Rank]) const {
    TensorMap made = *this;
    made.info_.node = detail::emit_map_replace(
        {info_.node, staging.access, place.access, start.access,
         detail::scalar_of<std::remove_const_t<T>>(), extents, strides, Rank});
    return made;
  }

  const detail::Node& node() const { return info_.node; }

 private:
  detail::TensorMapInfo info_;
};

// A tensor map for convolutions as products of matrices (im2col). The parameter's first mode is images, its last
// one channels, which are contiguous, and those between, 1 to 3 of them, are an image's:
//
//   const Im2colMap map(x, {.pixels = 64, .channels = 32}, {-1, -1}, {-1, -1});   // x(n, h, w, c), a 3 x 3 filter
//   tma_load(tile.at(0, 0), map, {image, row, column, channel}, {r, s}, full, 0);  // of the filter's row r, column s
//
// Its pixels are those at lower to extent - 1 + upper along each mode of an image; for a filter of R rows with a
// padding of P that is -P, and P - (R - 1). A box is so many pixels, 1 to 1024, of so many channels, 1 to 256: the one
// at the coordinate, which is one of the map's, and those that follow it, the last mode of an image first, and after
// an image's last pixel those of the next. Each is read at its place plus the offsets, as 0 outside of the tensor.
struct Im2colBox {
  // Of a box: 1 to 1024 pixels, 1 to 256 channels.
  int pixels;
  int channels;
};
template <class T, int Rank>
class Im2colMap {
  static_assert(Rank >= 3 && Rank <= 5, "images, 1 to 3 modes of an image, and channels");

 public:
  // The map of a parameter of the kernel.
  Im2colMap(const Tensor<T, Rank>& x, const Im2colBox& box, const int (&lower)[Rank - 2],
            const int (&upper)[Rank - 2], const BoxOptions& options = {},
            SourceLoc loc = SourceLoc::current()) {
    const int extents[] = {box.channels, box.pixels};
    info_ = detail::new_im2col_map(x.view_node(), extents, lower, upper, Rank, options, loc);
  }

  // Bytes of a box, for Mbarrier::expect_tx().
  uint32_t bytes() const { return static_cast<uint32_t>(info_.box_bytes); }
  // Brings the map near the copy engine, so that the first copy does not wait for it.
  void prefetch(SourceLoc loc = SourceLoc::current()) const {
    detail::emit(detail::op::kTensorMapPrefetch, info_.node, loc);
  }

  const detail::Node& node() const { return info_.node; }

 private:
  detail::TensorMapInfo info_;
};

// Copies a box of pixels to shared memory, where it lies as pixels × channels. The offsets, one for each mode of an
// image, are at least 0, and below 65536, 256 or 32 where an image has one, two or three modes.
template <class T, class From, int Rank>
requires std::is_same_v<std::remove_const_t<From>, T>
void tma_load(const detail::ElementAddress<T>& to, const Im2colMap<From, Rank>& map,
              const detail::Arg<int32_t> (&at)[Rank],
              const detail::Arg<int32_t> (&offsets)[Rank - 2], const Mbarrier& barriers,
              const detail::Arg<int32_t>& index) {
  detail::emit_tma_load_im2col(to.access, detail::scalar_of<T>(), map.node(), at, offsets, Rank,
                               {barriers.words().view_node(), index.node});
}

// Copies the box at a coordinate to shared memory. Barrier `index` of `barriers` counts its bytes,
// those outside of the tensor too.
template <class T, class From, int Rank>
requires std::is_same_v<std::remove_const_t<From>, T>
void tma_load(const detail::ElementAddress<T>& to, const TensorMap<From, Rank>& map,
              const detail::Arg<int32_t> (&at)[Rank], const Mbarrier& barriers,
              const detail::Arg<int32_t>& index) {
  detail::emit_tma_load(to.access, detail::scalar_of<T>(), {map.node(), at, Rank},
                        {barriers.words().view_node(), index.node}, nullptr);
}
// Multicast: to several blocks of the cluster at once, to the same place of each one's own array.
// Each one's own barrier, which expects the bytes, counts them. All these blocks must be running.
template <class T, class From, int Rank>
requires std::is_same_v<std::remove_const_t<From>, T>
void tma_load(const detail::ElementAddress<T>& to, const TensorMap<From, Rank>& map,
              const detail::Arg<int32_t> (&at)[Rank], const Mbarrier& barriers,
              const detail::Arg<int32_t>& index, const Multicast& blocks) {
  detail::emit_tma_load(to.access, detail::scalar_of<T>(), {map.node(), at, Rank},
                        {barriers.words().view_node(), index.node}, &blocks.ranks.node);
}
// Copies a box from shared memory to a coordinate; used like bulk_store().
template <class T, int Rank>
void tma_store(const TensorMap<T, Rank>& map, const detail::Arg<int32_t> (&at)[Rank],
               const detail::ElementAddress<T>& from) {
  detail::emit_tma_store({map.node(), at, Rank}, from.access, detail::scalar_of<T>(), nullptr);
}
// Combines each element of the tensor in the box with the shared one, like bulk_add() and so on.
#define HEDDLE_TMA_REDUCTION(name, kind)                                                      \
  template <class T, int Rank>                                                                \
  void tma_##name(const TensorMap<T, Rank>& map, const detail::Arg<int32_t>(&at)[Rank],       \
                  const detail::ElementAddress<T>& from) {                                    \
    const detail::AtomicKind op = detail::AtomicKind::kind;                                   \
    detail::emit_tma_store({map.node(), at, Rank}, from.access, detail::scalar_of<T>(), &op); \
  }
HEDDLE_TMA_REDUCTION(add, kAdd)
HEDDLE_TMA_REDUCTION(min, kMin)
HEDDLE_TMA_REDUCTION(max, kMax)
HEDDLE_TMA_REDUCTION(and, kAnd)
HEDDLE_TMA_REDUCTION(or, kOr)
HEDDLE_TMA_REDUCTION(xor, kXor)
HEDDLE_TMA_REDUCTION(inc, kInc)
HEDDLE_TMA_REDUCTION(dec, kDec)
#undef HEDDLE_TMA_REDUCTION
// Brings a box to L2. Has no other effect.
template <class T, int Rank>
void tma_prefetch(const TensorMap<T, Rank>& map, const detail::Arg<int32_t> (&at)[Rank]) {
  detail::emit_tma_prefetch({map.node(), at, Rank});
}

}  // namespace heddle
