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

#include <optional>

#include "heddle/dsl/cuda/atomic.h"
#include "heddle/dsl/view.h"

namespace heddle {

namespace detail {

struct MbarrierPlace {
  const Node& words;
  const Node& index;
  SourceLoc loc;
};
// What is left out has the default of the op.
struct MbarrierOrder {
  std::optional<MemoryOrder> order{};
  std::optional<MemoryScope> scope{};
};

// `value`: nullptr where there is none.
Node emit_mbarrier(ir::Opcode opcode, const MbarrierPlace& place, const Node* value = nullptr,
                   const MbarrierOrder& order = {});
void emit_set_max_registers(int count, bool increase, SourceLoc loc);

}  // namespace detail

// An array of mbarriers. Each goes through phases, whose parities are 0, 1, 0, …. A phase ends when
// as many arrivals have come as init() said, and all bytes that expect_tx() announced.
//
// Arrivals release and waits acquire, unless they are told to be relaxed: then they order no other
// accesses (PTX 8.6). Where no scope is given, an arrival at another block's barrier has the scope
// cluster, and so have all waits of a kernel with clusters; others have the scope block, which is
// faster. dsl/SYNCHRONISATION.md says when it is enough.
class Mbarrier {
 public:
  // So many barriers in shared memory of their own.
  explicit Mbarrier(int count, SourceLoc loc = SourceLoc::current())
      : words_(static_cast<int64_t>(count), loc) {}
  // The barriers in these words, such as those of another block (map_shared()).
  explicit Mbarrier(const Shared<uint64_t>& words) : words_(words) {}

  // Initialises barrier `index` for so many arrivals in each phase, 1 to 1048575. One thread calls
  // it, then fence_mbarrier_init(), then the block meets at a barrier.
  void init(const detail::Arg<int32_t>& index, const detail::Arg<uint32_t>& arrivals) const {
    detail::emit_mbarrier(detail::op::kMbarrierInit, place(index), &arrivals.node);
  }
  // Ends the life of barrier `index`, which no thread uses any more: its bytes may serve for
  // something else, and are unwritten.
  void inval(const detail::Arg<int32_t>& index) const {
    detail::emit_mbarrier(detail::op::kMbarrierInval, place(index));
  }
  // Arrives, and does not wait. Relaxed or release.
  void arrive(const detail::Arg<int32_t>& index, MemoryOrder order = MemoryOrder::release,
              std::optional<MemoryScope> scope = {}) const {
    detail::emit_mbarrier(detail::op::kMbarrierArrive, place(index), nullptr, {order, scope});
  }
  // Likewise, so many times at once.
  void arrive(const detail::Arg<int32_t>& index, const detail::Arg<uint32_t>& count,
              MemoryOrder order = MemoryOrder::release,
              std::optional<MemoryScope> scope = {}) const {
    detail::emit_mbarrier(detail::op::kMbarrierArrive, place(index), &count.node, {order, scope});
  }
  // Announces bytes that copies will bring in this phase, and arrives. Relaxed or release.
  void expect_tx(const detail::Arg<int32_t>& index, const detail::Arg<uint32_t>& bytes,
                 MemoryOrder order = MemoryOrder::release,
                 std::optional<MemoryScope> scope = {}) const {
    detail::emit_mbarrier(detail::op::kMbarrierExpectTx, place(index), &bytes.node, {order, scope});
  }
  // Announces bytes and does not arrive: before the last arrival of the phase. Relaxed.
  void announce_tx(const detail::Arg<int32_t>& index, const detail::Arg<uint32_t>& bytes,
                   std::optional<MemoryScope> scope = {}) const {
    detail::emit_mbarrier(detail::op::kMbarrierAnnounceTx, place(index), &bytes.node, {{}, scope});
  }
  // Waits until the phase of that parity has ended, which is the current one or the one before.
  // Relaxed or acquire.
  void wait(const detail::Arg<int32_t>& index, const detail::Arg<uint32_t>& parity,
            MemoryOrder order = MemoryOrder::acquire, std::optional<MemoryScope> scope = {}) const {
    detail::emit_mbarrier(detail::op::kMbarrierWait, place(index), &parity.node, {order, scope});
  }
  // Whether that phase has ended. Does not wait; where the phase has ended, orders as wait() does.
  Bool test(const detail::Arg<int32_t>& index, const detail::Arg<uint32_t>& parity,
            MemoryOrder order = MemoryOrder::acquire, std::optional<MemoryScope> scope = {}) const {
    return Bool(detail::emit_mbarrier(detail::op::kMbarrierTest, place(index), &parity.node,
                                      {order, scope}));
  }
  // The words, for map_shared(): Mbarrier(map_shared(bars.words(), rank)).arrive(0).
  const Shared<uint64_t>& words() const { return words_; }

 private:
  detail::MbarrierPlace place(const detail::Arg<int32_t>& index) const {
    return {words_.view_node(), index.node, index.loc};
  }

  Shared<uint64_t> words_;
};

// Arrives at barrier `index` of the block, once, when all copy_async (async.h) of the thread up to
// here are complete, and goes on. A wait() then sees what they wrote; no commit is needed.
inline void copy_async_arrive(const Mbarrier& barriers, const detail::Arg<int32_t>& index) {
  detail::emit_mbarrier(detail::op::kCopyArrive,
                        {barriers.words().view_node(), index.node, index.loc});
}
// Which memory fence_async() is about: the block's own shared memory, global memory, or all.
enum class FenceSpace : uint8_t { shared, global, all };

namespace detail {
void emit_fence_async(FenceSpace space, SourceLoc loc);
}  // namespace detail

// Proxy fence: makes the thread's accesses to shared memory visible to bulk copies and tensor cores.
// To global memory, with FenceSpace::global: what the grid itself writes and then copies in bulk.
inline void fence_async(FenceSpace space = FenceSpace::shared,
                        SourceLoc loc = SourceLoc::current()) {
  detail::emit_fence_async(space, loc);
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
