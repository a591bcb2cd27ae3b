// Bulk copy atoms: one copy of the engine moves a tile whose elements lie one behind the other, on both sides in the
// same order. They need no tensor map.
//
//   const auto tile = local_tile(x, 1024, block_idx.x);
//   If(thread_idx.x == 0, [&] {
//     full.expect_tx(0, 1024 * 4);
//     copy(BulkLoad{}.with(full, 0), tile, shared);        // from global to shared memory
//   });
//
//   copy(BulkStore{}, shared, local_tile(y, 1024, block_idx.x));                      // then bulk_commit()
//   copy(BulkReduce{TmaReduction::add}, shared, local_tile(y, 1024, block_idx.x));    // y += shared, likewise
//
// Tiles have host numbers as extents, and a multiple of 16 bytes; both places are multiples of 16 bytes. One thread
// calls copy(). bulk.h says what order the copies keep, and which types have reductions.
#pragma once

#include "heddle/dsl/cuda/bulk.h"
#include "heddle/dsl/tensor/copy.h"
#include "heddle/dsl/tensor/tma_atom.h"

namespace heddle {

// A bulk load with the barrier that counts its bytes; BulkLoad::with() makes it.
struct BulkLoadTo {
  // The barrier.
  detail::Node words, index;
  // Whether several blocks get it, and which ones.
  bool is_multicast = false;
  detail::Node ranks = {};
};
// A bulk copy from global to shared memory.
struct BulkLoad {
  // The load whose bytes barrier `index` counts.
  BulkLoadTo with(const Mbarrier& barriers, const detail::Arg<int32_t>& index) const {
    return {barriers.words().view_node(), index.node};
  }
  // The load to the same place and barrier of each block of the cluster whose bit is set in `blocks`.
  BulkLoadTo with(const Mbarrier& barriers, const detail::Arg<int32_t>& index,
                  const Multicast& blocks) const {
    return {barriers.words().view_node(), index.node, true, blocks.ranks.node};
  }
};
// A bulk copy from shared to global memory.
struct BulkStore {};
// A bulk copy that combines each element in memory with the tile's.
struct BulkReduce {
  // What it does with the two elements.
  TmaReduction op;
};

namespace detail {

void emit_bulk_tile(ir::Opcode opcode, const AnyTensor& from, const AnyTensor& to,
                    const BulkLoadTo* load, SourceLoc loc);
void emit_bulk_tile_reduce(TmaReduction op, const AnyTensor& from, const AnyTensor& to,
                           SourceLoc loc);

}  // namespace detail

// Starts the load of a tile. Its barrier has been told of the bytes.
template <detail::TensorLike From, detail::Writable To>
void copy(const BulkLoadTo& load, const From& from, const To& to,
          SourceLoc loc = SourceLoc::current()) {
  detail::emit_bulk_tile(detail::op::kBulkLoad, detail::as_tensor(from, loc).any(),
                         detail::as_tensor(to, loc).any(), &load, loc);
}
// Starts the store, or the reduction, of a tile, which belongs to the thread's next bulk_commit().
template <detail::TensorLike From, detail::Writable To>
void copy(BulkStore, const From& from, const To& to, SourceLoc loc = SourceLoc::current()) {
  detail::emit_bulk_tile(detail::op::kBulkStore, detail::as_tensor(from, loc).any(),
                         detail::as_tensor(to, loc).any(), nullptr, loc);
}
template <detail::TensorLike From, detail::Writable To>
void copy(BulkReduce reduce, const From& from, const To& to, SourceLoc loc = SourceLoc::current()) {
  detail::emit_bulk_tile_reduce(reduce.op, detail::as_tensor(from, loc).any(),
                                detail::as_tensor(to, loc).any(), loc);
}

}  // namespace heddle
