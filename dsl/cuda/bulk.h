// Bulk copies: one thread has a tile brought, sent or added while all others work on (sm_90).
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
// Each takes a number of elements, of a multiple of 16 bytes together as both places are, from
// there on. Copies to shared memory tell a barrier in the memory of the block that gets them.
// Copies to global memory belong to groups. Views of global memory may say L2Evict.
#pragma once

#include <concepts>
#include <type_traits>

#include "heddle/dsl/cuda/atomic.h"
#include "heddle/dsl/cuda/mbarrier.h"

namespace heddle {

// Blocks of a cluster, bit r for the one of rank r.
struct Multicast {
  detail::Arg<uint32_t> ranks;
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
void emit_bulk_reduce(AtomicKind kind, const BulkCopy& copy, const BulkBarrier* barrier = nullptr);
void emit_bulk_prefetch(const Access& from, ir::Scalar scalar, const Node& count);
void emit_bulk_wait(ir::Opcode opcode, int groups, SourceLoc loc);

}  // namespace detail

// From global memory, where this grid has stored nothing itself, to shared memory.
template <class T, class From>
requires std::same_as<std::remove_const_t<From>, T>
void bulk_load(const detail::ElementAddress<T>& to, const detail::ElementAddress<From>& from,
               const detail::Arg<int32_t>& count, const Mbarrier& barriers,
               const detail::Arg<int32_t>& index) {
  const detail::BulkBarrier told{barriers.words().view_node(), index.node};
  detail::emit_bulk(detail::op::kBulkLoad,
                    {to.access, from.access, detail::scalar_of<T>(), count.node}, &told);
}
// Likewise to several blocks of the cluster at once: in each, to the same place of its own array,
// telling its own barrier, of which it has announced the bytes. All must be running.
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
// From the block's shared memory to another block's, as map_shared() gives array and barrier:
//   const Mbarrier told(map_shared(full.words(), 1));
//   bulk_copy(map_shared(tile, 1).at(0), tile.at(0), 1024, told, 0);
// Writers of the source call fence_async() and meet at a barrier before.
template <class T>
void bulk_copy(const detail::ElementAddress<T>& to, const detail::ElementAddress<T>& from,
               const detail::Arg<int32_t>& count, const Mbarrier& barriers,
               const detail::Arg<int32_t>& index) {
  const detail::BulkBarrier told{barriers.words().view_node(), index.node};
  detail::emit_bulk(detail::op::kBulkCopy,
                    {to.access, from.access, detail::scalar_of<T>(), count.node}, &told);
}
// From shared to global memory. Writers of the tile call fence_async(), then all meet at a barrier,
// then one thread stores, commits and waits before the tile is written again.
template <class T>
void bulk_store(const detail::ElementAddress<T>& to, const detail::ElementAddress<T>& from,
                const detail::Arg<int32_t>& count) {
  detail::emit_bulk(detail::op::kBulkStore,
                    {to.access, from.access, detail::scalar_of<T>(), count.node});
}

// Each element of the destination becomes what the operation makes of it and the tile's, by a
// relaxed atomic of its own. In global memory, like bulk_store; in another block's shared memory,
// telling a barrier like bulk_copy. Where / there:
//   add            32- and 64-bit integers, half, bfloat16, float, double / 32- and 64-bit integers
//   min, max       32- and 64-bit integers, half, bfloat16 / 32-bit integers
//   and, or, xor   32- and 64-bit integers / 32-bit integers
//   inc, dec       uint32_t / uint32_t
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
HEDDLE_BULK_REDUCTION(inc, kInc)  // old >= tile's ? 0 : old + 1
HEDDLE_BULK_REDUCTION(dec, kDec)  // old == 0 || old > tile's ? tile's : old - 1
#undef HEDDLE_BULK_REDUCTION

// Brings elements of global memory to L2; changes nothing.
template <class T>
void bulk_prefetch(const detail::ElementAddress<T>& from, const detail::Arg<int32_t>& count) {
  detail::emit_bulk_prefetch(from.access, detail::scalar_of<std::remove_const_t<T>>(), count.node);
}

// Closes the group of the thread's copies to global memory since the last commit.
inline void bulk_commit(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kBulkCommit, loc);
}
// Until at most `groups` of the thread's groups, the latest, are under way: of the others, all is
// written; or the tiles have been read, and may be written again. Host numbers.
inline void bulk_wait(int groups = 0, SourceLoc loc = SourceLoc::current()) {
  detail::emit_bulk_wait(detail::op::kBulkWait, groups, loc);
}
inline void bulk_wait_read(int groups = 0, SourceLoc loc = SourceLoc::current()) {
  detail::emit_bulk_wait(detail::op::kBulkWaitRead, groups, loc);
}

}  // namespace heddle
