// Mbarriers: barriers in shared memory that count arrivals and the bytes of bulk copies (bulk.h).
// And moving registers between warpgroups (sm_90).
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
void emit_set_max_registers(int count, bool increase, SourceLoc loc);

}  // namespace detail

// An array of mbarriers. Each goes through phases, whose parities are 0, 1, 0, …. A phase ends when
// as many threads have arrived as init() said, and all bytes have come that expect_tx() announced.
class Mbarrier {
 public:
  // So many barriers in shared memory of their own.
  explicit Mbarrier(int count, SourceLoc loc = SourceLoc::current())
      : words_(static_cast<int64_t>(count), loc) {}
  // The barriers in these words, such as those of another block (map_shared()).
  explicit Mbarrier(const Shared<uint64_t>& words) : words_(words) {}

  // Initialises barrier `index` for so many arrivals in each phase. One thread calls it, then
  // fence_mbarrier_init(), then the block meets at a barrier.
  void init(detail::Arg<int32_t> index, detail::Arg<uint32_t> arrivals) const {
    detail::emit_mbarrier(detail::op::kMbarrierInit, words_.view_node(), index.node, &arrivals.node,
                          index.loc);
  }
  // Arrives, and does not wait.
  void arrive(detail::Arg<int32_t> index) const {
    detail::emit_mbarrier(detail::op::kMbarrierArrive, words_.view_node(), index.node, nullptr,
                          index.loc);
  }
  // Announces bytes that copies will bring in this phase, and arrives.
  void expect_tx(detail::Arg<int32_t> index, detail::Arg<uint32_t> bytes) const {
    detail::emit_mbarrier(detail::op::kMbarrierExpectTx, words_.view_node(), index.node,
                          &bytes.node, index.loc);
  }
  // Waits until the phase of that parity has ended, which is the current one or the one before.
  void wait(detail::Arg<int32_t> index, detail::Arg<uint32_t> parity) const {
    detail::emit_mbarrier(detail::op::kMbarrierWait, words_.view_node(), index.node, &parity.node,
                          index.loc);
  }
  // The words, for map_shared(): Mbarrier(map_shared(bars.words(), rank)).arrive(0).
  const Shared<uint64_t>& words() const { return words_; }

 private:
  Shared<uint64_t> words_;
};

// Proxy fence: makes the thread's writes to shared memory visible to bulk copies and tensor cores.
inline void fence_async(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kFenceAsync, loc);
}
// Makes the thread's init() of mbarriers visible to the cluster and to bulk copies.
inline void fence_mbarrier_init(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kFenceMbarrierInit, loc);
}

// setmaxnreg: the threads of a warpgroup give up registers, or ask for more. `count` is what each
// has afterwards: 24 to 256, a multiple of 8.
inline void decrease_registers(int count, SourceLoc loc = SourceLoc::current()) {
  detail::emit_set_max_registers(count, false, loc);
}
inline void increase_registers(int count, SourceLoc loc = SourceLoc::current()) {
  detail::emit_set_max_registers(count, true, loc);
}

}  // namespace heddle
