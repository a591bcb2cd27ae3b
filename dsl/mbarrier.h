// Barriers in shared memory that count arrivals and bytes, and the bulk copies that tell them
// (sm_90).
//
//   const Mbarrier full(2);                                   // two of them
//   Shared<float, 2> tiles({2, 1024});
//   If(thread_idx.x == 0, [&] {
//     full.init(0, 1);
//     full.init(1, 1);
//     fence_mbarrier_init();
//   });
//   sync_threads();
//   If(thread_idx.x == 0, [&] {
//     full.expect_tx(stage, 1024 * 4);                        // arrives, and announces the bytes
//     bulk_load(tiles.at(stage, 0), x.at(row, 0), 1024, full, stage);
//   });
//   full.wait(stage, round % 2);                              // all threads: now the tile is there
#pragma once

#include "heddle/dsl/view.h"

namespace heddle {

class Mbarrier;

namespace detail {

void emit_mbarrier(ir::Opcode opcode, Node barriers, Node index, const Node* value, SourceLoc loc);
void emit_bulk_load(const Access& to, const Access& from, ir::Scalar scalar, Node elements,
                    Node barriers, Node index);
void emit_bulk_store(const Access& to, const Access& from, ir::Scalar scalar, Node elements);
void emit_bulk_wait(int groups, SourceLoc loc);
void emit_set_max_registers(int count, bool increase, SourceLoc loc);

}  // namespace detail

// An array of mbarriers. Each goes through phases, whose parities are 0, 1, 0, …: one ends when as
// many threads have arrived as init() said and the bytes that were announced have come.
class Mbarrier {
 public:
  explicit Mbarrier(int count, SourceLoc loc = SourceLoc::current())
      : words_(static_cast<int64_t>(count), loc) {}
  explicit Mbarrier(const Shared<uint64_t>& words) : words_(words) {}

  // By one thread, with fence_mbarrier_init() and a barrier of the block behind it.
  void init(detail::Arg<int32_t> index, detail::Arg<uint32_t> arrivals) const {
    detail::emit_mbarrier(detail::op::kMbarrierInit, words_.view_node(), index.node, &arrivals.node,
                          index.loc);
  }
  void arrive(detail::Arg<int32_t> index) const {
    detail::emit_mbarrier(detail::op::kMbarrierArrive, words_.view_node(), index.node, nullptr,
                          index.loc);
  }
  // Announces bytes that copies will bring in this phase, and arrives.
  void expect_tx(detail::Arg<int32_t> index, detail::Arg<uint32_t> bytes) const {
    detail::emit_mbarrier(detail::op::kMbarrierExpectTx, words_.view_node(), index.node,
                          &bytes.node, index.loc);
  }
  // Until the phase of that parity has ended: the current one or the one before.
  void wait(detail::Arg<int32_t> index, detail::Arg<uint32_t> parity) const {
    detail::emit_mbarrier(detail::op::kMbarrierWait, words_.view_node(), index.node, &parity.node,
                          index.loc);
  }
  // The words, for map_shared(): Mbarrier(map_shared(bars.words(), rank)).arrive(0).
  const Shared<uint64_t>& words() const { return words_; }

 private:
  Shared<uint64_t> words_;
};

// Copies `count` elements, of a multiple of 16 bytes together as both places are, from global to
// shared memory, and tells a barrier. By one thread; the others wait at the barrier.
template <class T>
void bulk_load(const detail::Place<T>& to, const detail::Place<const T>& from,
               detail::Arg<int32_t> count, const Mbarrier& barriers, detail::Arg<int32_t> index) {
  detail::emit_bulk_load(to.access, from.access, detail::scalar_of<T>(), count.node,
                         barriers.words().view_node(), index.node);
}
// From shared to global memory. Writers of the tile call fence_async(), then all meet at a barrier,
// then one thread stores, commits and waits before the tile is written again.
template <class T>
void bulk_store(const detail::Place<T>& to, const detail::Place<T>& from,
                detail::Arg<int32_t> count) {
  detail::emit_bulk_store(to.access, from.access, detail::scalar_of<T>(), count.node);
}
inline void bulk_commit(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kBulkCommit, loc);
}
inline void bulk_wait(int groups = 0, SourceLoc loc = SourceLoc::current()) {
  detail::emit_bulk_wait(groups, loc);
}

// Makes a thread's writes to shared memory visible to copies and tensor cores; and its inits of
// mbarriers to the cluster and to copies.
inline void fence_async(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kFenceAsync, loc);
}
inline void fence_mbarrier_init(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kFenceMbarrierInit, loc);
}

// Between kernels that are launched programmatically one behind the other: waits for those before,
// and lets those behind start. Otherwise both do nothing.
inline void grid_dependency_wait(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kGridDependencyWait, loc);
}
inline void grid_dependency_launch(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kGridDependencyLaunch, loc);
}

// The warp-group's threads give up registers, or ask for more: 24 to 256, a multiple of 8.
inline void decrease_registers(int count, SourceLoc loc = SourceLoc::current()) {
  detail::emit_set_max_registers(count, false, loc);
}
inline void increase_registers(int count, SourceLoc loc = SourceLoc::current()) {
  detail::emit_set_max_registers(count, true, loc);
}

}  // namespace heddle
