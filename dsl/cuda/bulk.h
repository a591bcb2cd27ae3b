// Bulk copies: one thread starts the transfer of a tile, or its addition to memory, and all threads
// work on meanwhile (sm_90).
//
//   If(thread_idx.x == 0, [&] {
//     full.expect_tx(0, 1024 * 4);                                 // an Mbarrier, see mbarrier.h
//     bulk_load(tile.at(0), x.at(row, 0), 1024, full, 0);
//   });
//   full.wait(0, 0u);                                              // all threads: it is there
//
//   fence_async();                                                 // all who wrote the tile
//   sync_threads();
//   If(thread_idx.x == 0, [&] {
//     bulk_store(y.at(row, 0), tile.at(0), 1024);                  // or bulk_add(y.at(row, 0), …)
//     bulk_commit();
//     bulk_wait();
//   });
//
// Each takes `count` elements from the given places on. Their size in bytes and both places are
// multiples of 16 bytes. Copies to shared memory signal a barrier in the shared memory of the block
// that receives them. Copies to global memory belong to groups. Views of global memory may have an
// L2 eviction priority (L2Evict).
#pragma once

#include <concepts>
#include <type_traits>

#include "heddle/dsl/cuda/atomic.h"
#include "heddle/dsl/cuda/mbarrier.h"

namespace heddle {

// The blocks of a cluster that a multicast goes to: a mask, bit r for the block of rank r.
struct Multicast {
  detail::Arg<uint32_t> ranks;  // the mask
  // From a mask of ranks.
  explicit Multicast(detail::Arg<uint32_t> ranks_) : ranks(ranks_) {}
};

namespace detail {

struct BulkCopy {
  const Access& to;
  const Access& from;
  ir::Scalar scalar;
  const Node& count;
};
struct BulkBarrier {
  const Node& words;
  const Node& index;
};
void emit_bulk(ir::Opcode opcode, const BulkCopy& copy, const BulkBarrier* barrier = nullptr,
               const Node* ranks = nullptr);
void emit_store_async(const Access& to, const Node& value, const BulkBarrier& barrier,
                      SourceLoc loc);
// Bytes of an element of the value.
int bytes_of(const Node& value);
void emit_bulk_reduce(AtomicKind kind, const BulkCopy& copy, const BulkBarrier* barrier = nullptr);
void emit_bulk_prefetch(const Access& from, ir::Scalar scalar, const Node& count);
void emit_bulk_wait(ir::Opcode opcode, int groups, SourceLoc loc);

}  // namespace detail

// Bulk copy from global to shared memory, of `count` elements. Barrier `index` of `barriers` counts
// the bytes that have arrived. Where the grid itself has written the source, the threads that did call
// fence_async(FenceSpace::global), before whatever tells the one that copies.
template <class T, class From>
requires std::same_as<std::remove_const_t<From>, T>
void bulk_load(const detail::ElementAddress<T>& to, const detail::ElementAddress<From>& from,
               const detail::Arg<int32_t>& count, const Mbarrier& barriers,
               const detail::Arg<int32_t>& index) {
  const detail::BulkBarrier told{barriers.words().view_node(), index.node};
  detail::emit_bulk(detail::op::kBulkLoad,
                    {to.access, from.access, detail::scalar_of<T>(), count.node}, &told);
}
// Multicast: likewise to several blocks of the cluster at once. Each gets the elements at the same
// place of its own array, and its own barrier, which expects the bytes, counts them. All these
// blocks must be running.
template <class T, class From>
requires std::same_as<std::remove_const_t<From>, T>
void bulk_load(const detail::ElementAddress<T>& to, const detail::ElementAddress<From>& from,
               const detail::Arg<int32_t>& count, const Mbarrier& barriers,
               const detail::Arg<int32_t>& index, const Multicast& blocks) {
  const detail::BulkBarrier told{barriers.words().view_node(), index.node};
  detail::emit_bulk(detail::op::kBulkLoad,
                    {to.access, from.access, detail::scalar_of<T>(), count.node}, &told,
                    &blocks.ranks.node);
}
// Bulk copy from the block's shared memory to that of another block of the cluster, whose array and
// barrier map_shared() gives:
//
//   const Mbarrier told(map_shared(full.words(), 1));
//   bulk_copy(map_shared(tile, 1).at(0), tile.at(0), 1024, told, 0);
//
// Before it, the threads that wrote the source call fence_async() and meet at a barrier.
template <class T>
void bulk_copy(const detail::ElementAddress<T>& to, const detail::ElementAddress<T>& from,
               const detail::Arg<int32_t>& count, const Mbarrier& barriers,
               const detail::Arg<int32_t>& index) {
  const detail::BulkBarrier told{barriers.words().view_node(), index.node};
  detail::emit_bulk(detail::op::kBulkCopy,
                    {to.access, from.access, detail::scalar_of<T>(), count.node}, &told);
}
// Asynchronous store of an element of 4 or 8 bytes, or of neighbours of 4, 8 or 16 bytes together, to
// another block's shared memory. That block's barrier, which expects the bytes, counts them, and its
// threads see the value behind a wait of scope cluster. Nothing else of the thread is ordered.
//
//   const Mbarrier told(map_shared(full.words(), 1));
//   store_async(map_shared(sums, 1).at(cluster_rank()), sum, told, 0);
template <class T>
requires(sizeof(T) == 4 || sizeof(T) == 8) void store_async(const detail::ElementAddress<T>& to,
                                                            detail::ArgOf<T> value,
                                                            const Mbarrier& barriers,
                                                            const detail::Arg<int32_t>& index) {
  detail::emit_store_async(to.access, value.node, {barriers.words().view_node(), index.node},
                           value.loc);
}
template <class T, int N>
requires(N * sizeof(T) == 4 || N * sizeof(T) == 8 ||
         N * sizeof(T) == 16) void store_async(const detail::ElementAddress<T>& to,
                                               const Vec<T, N>& value, const Mbarrier& barriers,
                                               const detail::Arg<int32_t>& index) {
  detail::emit_store_async(to.access, value.node(), {barriers.words().view_node(), index.node},
                           index.loc);
}
// Bulk copy from shared to global memory. The threads that wrote the tile call fence_async(), then
// all meet at a barrier; then one thread stores and commits, and waits before the tile is written
// again.
template <class T>
void bulk_store(const detail::ElementAddress<T>& to, const detail::ElementAddress<T>& from,
                const detail::Arg<int32_t>& count) {
  detail::emit_bulk(detail::op::kBulkStore,
                    {to.access, from.access, detail::scalar_of<T>(), count.node});
}

// Bulk reduction: combines each element of the destination with that of the tile, each by a relaxed
// atomic of its own. In global memory, used like bulk_store; in the shared memory of another block,
// with a barrier like bulk_copy. Types in global / shared memory:
//
//   add            32- and 64-bit integers, half, bfloat16, float, double / 32- and 64-bit integers
//   min, max       32- and 64-bit integers, half, bfloat16 / 32-bit integers
//   and, or, xor   32- and 64-bit integers / 32-bit integers
//   inc, dec       uint32_t / uint32_t
//
// inc: old >= tile ? 0 : old + 1. dec: old == 0 || old > tile ? tile : old - 1.
#define HEDDLE_BULK_REDUCTION(name, kind)                                                          \
  template <class T>                                                                               \
  void bulk_##name(const detail::ElementAddress<T>& to, const detail::ElementAddress<T>& from,     \
                   const detail::Arg<int32_t>& count) {                                            \
    detail::emit_bulk_reduce(detail::AtomicKind::kind,                                             \
                             {to.access, from.access, detail::scalar_of<T>(), count.node});        \
  }                                                                                                \
  template <class T>                                                                               \
  void bulk_##name(const detail::ElementAddress<T>& to, const detail::ElementAddress<T>& from,     \
                   const detail::Arg<int32_t>& count, const Mbarrier& barriers,                    \
                   const detail::Arg<int32_t>& index) {                                            \
    const detail::BulkBarrier told{barriers.words().view_node(), index.node};                      \
    detail::emit_bulk_reduce(detail::AtomicKind::kind,                                             \
                             {to.access, from.access, detail::scalar_of<T>(), count.node}, &told); \
  }
HEDDLE_BULK_REDUCTION(add, kAdd)
HEDDLE_BULK_REDUCTION(min, kMin)
HEDDLE_BULK_REDUCTION(max, kMax)
HEDDLE_BULK_REDUCTION(and, kAnd)
HEDDLE_BULK_REDUCTION(or, kOr)
HEDDLE_BULK_REDUCTION(xor, kXor)
HEDDLE_BULK_REDUCTION(inc, kInc)
HEDDLE_BULK_REDUCTION(dec, kDec)
#undef HEDDLE_BULK_REDUCTION

// Prefetch: brings `count` elements of global memory to L2. Has no other effect.
template <class T>
void bulk_prefetch(const detail::ElementAddress<T>& from, const detail::Arg<int32_t>& count) {
  detail::emit_bulk_prefetch(from.access, detail::scalar_of<std::remove_const_t<T>>(), count.node);
}

// Closes the group of the thread's copies to global memory since the last commit.
inline void bulk_commit(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kBulkCommit, loc);
}
// Waits until at most `groups` of the thread's latest groups, a host number, are still under way.
// The older ones are then complete (bulk_wait), or have at least read their tiles, which may be
// written again (bulk_wait_read).
inline void bulk_wait(int groups = 0, SourceLoc loc = SourceLoc::current()) {
  detail::emit_bulk_wait(detail::op::kBulkWait, groups, loc);
}
inline void bulk_wait_read(int groups = 0, SourceLoc loc = SourceLoc::current()) {
  detail::emit_bulk_wait(detail::op::kBulkWaitRead, groups, loc);
}

}  // namespace heddle
