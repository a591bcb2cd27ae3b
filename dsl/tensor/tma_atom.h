// TMA copy atoms: the copy engine moves tiles of a kernel's parameter between global and shared
// memory, by boxes that are found from the layout of the tile.
//
//   const auto sA = make_smem_tensor<half>(layout);                  // (128,64,stages)
//   const TmaAtom load = make_tma_atom(TmaLoad{}, a, sA(_, _, 0));   // a: a parameter of the kernel
//   const auto gA = local_tile(a, {128, 64}, {block_idx.x, _});      // (128,64,k)
//   If(elect_one(), [&] {
//     full.expect_tx(stage, load.bytes());
//     copy(load.with(full, stage), gA(_, _, k), sA(_, _, stage));
//   });
//
//   const TmaAtom store = make_tma_atom(TmaStore{}, d, sD);
//   copy(store, sD, local_tile(d, {128, 128}, {m, n}));              // then bulk_commit()
//
//   const TmaAtom add = make_tma_atom(TmaReduce{TmaReduction::add}, d, sD);   // d += sD, likewise
//
// A tensor is a view with a layout to the view's coordinate, so a tile of it knows where it lies:
// that is the coordinate of its first element. Tiles have one to five modes. The tile in shared memory
// is swizzled by 32, 64 or 128 bytes or not at all, and consists of boxes that lie densely (box_of()):
// each has lines of the swizzle's width, one behind the other. One thread calls copy(). tensor_map.h
// says what parameters a map takes, and what happens at the tensor's edges; shapes need not be
// multiples of the tile's. The tensor's L2 eviction priority, x.with(L2Evict::first), is that of its
// copies.
#pragma once

#include "heddle/dsl/cuda/tensor_map.h"
#include "heddle/dsl/mma/smem_box.h"
#include "heddle/dsl/tensor/copy.h"

namespace heddle {

// A load from global to shared memory. With `slices`, so many blocks of a cluster share a tile: each
// loads one of as many equal parts, for all of them.
struct TmaLoad {
  // Blocks that share a tile.
  int slices = 1;
};
// A store from shared to global memory.
struct TmaStore {};
// What a reduction does with an element in memory and the tile's. Which element types have it: bulk.h.
enum class TmaReduction : uint8_t { add, min, max, bit_and, bit_or, bit_xor, inc, dec };
// A store that combines each element in memory with the tile's.
struct TmaReduce {
  // What it does with the two elements.
  TmaReduction op;
};

namespace detail {

// The boxes that fill a tile in shared memory, along its modes.
struct TileBoxes {
  Layout tile;  // as it was when they were found
  ir::Scalar scalar = {};
  BoxGrid grid;  // of the whole tile
  int swizzle = 0;
  int contiguous = 0;  // the mode whose elements are neighbours
  int sliced = 0;      // the mode that slices cut
  int slices = 1;

  int64_t bytes() const;  // of a tile, all slices together
};
// A copy atom: boxes, and the map that they are of.
struct TmaBoxes : TileBoxes {
  Node map = {};
  int rank = 0;             // of the view; 0: there are none, which was reported
  int mode[kMaxRank] = {};  // of the view, along which a mode of the tile runs
};
AtomicKind atomic_kind(TmaReduction op);
TmaBoxes make_tma_boxes(const AnyTensor& global, const AnyTensor& shared, int slices,
                        const BoxOptions& options, SourceLoc loc);

// Who counts the bytes of a load, and which blocks it goes to.
struct TmaTarget {
  const Node* words;
  const Node* index;
  const Node* ranks = nullptr;
  SymInt slice = 0;
};
void emit_tma_load(const TmaBoxes& boxes, const AnyTensor& global, const AnyTensor& shared,
                   const TmaTarget& target, SourceLoc loc);
void emit_tma_store(const TmaBoxes& boxes, const AnyTensor& global, const AnyTensor& shared,
                    const TmaReduction* reduction, SourceLoc loc);
void emit_tile_prefetch(const TmaBoxes& boxes, const AnyTensor& global, const SymInt& slice,
                        SourceLoc loc);

}  // namespace detail

class TmaAtom;

// A load with the barrier that counts its bytes; TmaAtom::with() makes it.
struct TmaLoadTo {
  // The load, and the barrier that counts its bytes.
  const TmaAtom& atom;
  detail::Node words, index;
  // Whether other blocks get it too: which ones, and the slice that this block loads.
  bool is_multicast = false;
  detail::Node ranks = {};
  SymInt slice = 0;
};

// A TMA copy atom of a parameter and the layout of a tile; make_tma_atom() makes it.
class TmaAtom {
 public:
  // For make_tma_atom().
  explicit TmaAtom(const detail::TmaBoxes& boxes) : boxes_(boxes) {}
  TmaAtom(const detail::TmaBoxes& boxes, TmaReduction reduction)
      : boxes_(boxes), reduces_(true), reduction_(reduction) {}

  // Bytes of a tile, that a block's barrier counts: also what lies outside of the tensor.
  uint32_t bytes() const { return static_cast<uint32_t>(boxes_.bytes()); }
  // The extent of a box along a mode of the tile.
  int64_t box(int mode) const { return boxes_.grid.box[mode]; }

  // The load whose bytes barrier `index` counts.
  TmaLoadTo with(const Mbarrier& barriers, const detail::Arg<int32_t>& index) const {
    return {*this, barriers.words().view_node(), index.node};
  }
  // The load of slice number `slice` of the tile, to all blocks of the cluster whose bit is set in
  // `blocks`: to the same place and barrier of each.
  TmaLoadTo with(const Mbarrier& barriers, const detail::Arg<int32_t>& index,
                 const Multicast& blocks, const SymInt& slice) const {
    return {*this, barriers.words().view_node(), index.node, true, blocks.ranks.node, slice};
  }
  // Brings the tensor map near the copy engine, so that the first copy does not wait for it.
  void prefetch(SourceLoc loc = SourceLoc::current()) const {
    if (boxes_.rank != 0) detail::emit(detail::op::kTensorMapPrefetch, boxes_.map, loc);
  }

  // Brings a tile, or slice number `slice` of it, from memory to L2, where a load finds it. One thread calls it.
  template <detail::TensorLike From>
  void prefetch(const From& tile, const SymInt& slice = 0,
                SourceLoc loc = SourceLoc::current()) const {
    detail::emit_tile_prefetch(boxes_, detail::as_tensor(tile, loc).any(), slice, loc);
  }

  const detail::TmaBoxes& boxes() const { return boxes_; }
  // What a store does with the elements in memory; null: it overwrites them.
  const TmaReduction* reduction() const { return reduces_ ? &reduction_ : nullptr; }

 private:
  detail::TmaBoxes boxes_;
  bool reduces_ = false;
  TmaReduction reduction_ = TmaReduction::add;
};

// Makes a TMA copy atom of a parameter of the kernel, or of its modes in another order (select()),
// and a tile in shared memory of one to five modes, which are the tensor's first ones. A layout that
// boxes cannot fill is an error of the kernel that says why. `options` has what else the map says;
// its swizzle follows from the layout.
template <detail::TensorLike Global, detail::TensorLike Shared>
TmaAtom make_tma_atom(const TmaLoad& load, const Global& global, const Shared& tile,
                      const BoxOptions& options = {}, SourceLoc loc = SourceLoc::current()) {
  return TmaAtom(detail::make_tma_boxes(detail::as_tensor(global, loc).any(),
                                        detail::as_tensor(tile, loc).any(), load.slices, options,
                                        loc));
}
template <detail::TensorLike Global, detail::TensorLike Shared>
TmaAtom make_tma_atom(TmaStore, const Global& global, const Shared& tile,
                      const BoxOptions& options = {}, SourceLoc loc = SourceLoc::current()) {
  return make_tma_atom(TmaLoad{}, global, tile, options, loc);
}
template <detail::TensorLike Global, detail::TensorLike Shared>
TmaAtom make_tma_atom(TmaReduce reduce, const Global& global, const Shared& tile,
                      const BoxOptions& options = {}, SourceLoc loc = SourceLoc::current()) {
  return {make_tma_atom(TmaLoad{}, global, tile, options, loc).boxes(), reduce.op};
}

// Starts the load of a tile. Its barrier has been told of the bytes.
template <detail::TensorLike From, detail::Writable To>
void copy(const TmaLoadTo& load, const From& from, const To& to,
          SourceLoc loc = SourceLoc::current()) {
  const detail::TmaTarget target{&load.words, &load.index,
                                 load.is_multicast ? &load.ranks : nullptr, load.slice};
  detail::emit_tma_load(load.atom.boxes(), detail::as_tensor(from, loc).any(),
                        detail::as_tensor(to, loc).any(), target, loc);
}
// Starts the store or the reduction of a tile, which belongs to the thread's next bulk_commit(). What lies
// outside of the tensor is not written.
template <detail::TensorLike From, detail::Writable To>
void copy(const TmaAtom& store, const From& from, const To& to,
          SourceLoc loc = SourceLoc::current()) {
  detail::emit_tma_store(store.boxes(), detail::as_tensor(to, loc).any(),
                         detail::as_tensor(from, loc).any(), store.reduction(), loc);
}

}  // namespace heddle
