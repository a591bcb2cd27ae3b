// What every warp of a block, or cluster, has of a row, handed to all its warps while they go on: a reduction that is begun in
// one place and ended in another, so that nobody waits for the way to other blocks (sm_90). Internal to the kernels.
//
//   WarpValues<2> values(deal);
//   For(range(first, rows + step, step), [&](const Int& row) {            // a turn
//     If(row < rows, [&] { … values.send({sum, product}); });
//     If(row > first, [&] {
//       values.receive();                                                 // what was sent in the turn before
//       … values.sum([](const Vec<float, 2>& sent, const Int& warp) { return Float(sent[0]); }) …
//       sync_threads();
//       values.free();                                                    // which the block reads no more
//     });
//   });
//   values.finish();
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "heddle/dsl/dsl.h"
#include "heddle/kernels/rows/deal.h"

namespace heddle::kernels {

// Turns whose values have a place. What is sent in a turn takes that of four turns before, which other blocks have long freed.
inline constexpr int kValueTurns = 4;

// Shared memory of a block for so many floats of each warp, and their barriers.
inline int64_t warp_value_bytes(const RowDeal& deal, int floats) {
  return int64_t{kValueTurns} *
             (deal.blocks * (deal.threads / kWarpSize) * floats * int64_t{sizeof(float)} +
              2 * int64_t{sizeof(uint64_t)}) +
         kVectorBytes;
}

// N floats of each warp: 2 or 4. All threads of the cluster call everything, and receive() what is sent in the turn behind it.
template <int N>
class WarpValues {
 public:
  // For blocks and clusters of this deal, of whole warps. Waits until all blocks of a cluster run.
  explicit WarpValues(const RowDeal& deal)
      : blocks_(deal.blocks),
        warps_(deal.threads / kWarpSize),
        told_(kValueTurns),
        free_(kValueTurns),
        slots_({kValueTurns, static_cast<int64_t>(blocks_) * warps_ * N}) {
    If(thread_idx.x == 0, [&] {
      for (int turn = 0; turn < kValueTurns; ++turn) {
        told_.init(turn, blocks_ == 1 ? warps_ : 1);
        if (blocks_ > 1) free_.init(turn, blocks_);
      }
      fence_mbarrier_init();
    });
    if (blocks_ == 1) {
      sync_threads();
    } else {
      cluster_arrive();
      cluster_wait();
    }
  }

  // Sends what all lanes of the warp have alike.
  void send(const Vec<float, N>& value) {
    const Int warp = thread_idx.x / kWarpSize, lane = lane_id();
    if (blocks_ == 1) {
      If(lane == 0, [&] {
        slots_.template vec<N>(sent_, warp * N) = value;
        told_.arrive(sent_);
      });
    } else {
      wait_for_place();
      If(thread_idx.x == 0, [&] {
        told_.expect_tx(sent_, static_cast<uint32_t>(blocks_ * warps_ * N * sizeof(float)));
      });
      const Int slot = cluster_rank() * warps_ + warp;
      If(lane < blocks_, [&] {
        store_async(map_shared(slots_, lane).at(sent_, slot * N), value,
                    Mbarrier(map_shared(told_.words(), lane)), sent_);
      });
    }
    advance();
  }
  // Waits for what was sent of a row.
  void receive() {
    told_.wait(received_, parity_);
    turn_ = received_;
    received_ = (received_ + 1) & (kValueTurns - 1);
    If(received_ == 0, [&] { parity_ = parity_ ^ 1u; });
  }
  // What was received is read no more, by any thread of the block: a block's barrier stands between. In a block alone each warp
  // says so by what it sends two turns later.
  void free() const {
    if (blocks_ == 1) return;
    If(thread_idx.x < blocks_, [&] {
      Mbarrier(map_shared(free_.words(), thread_idx.x))
          .arrive(turn_, MemoryOrder::release, MemoryScope::block);
    });
  }
  // Behind the last turn: no block ends before all others have freed what it sent, since they say so in its memory.
  void finish() {
    if (blocks_ == 1) return;
    For(range(kValueTurns), [&](const Int&) {
      wait_for_place();
      advance();
    });
  }
  // What one warp sent.
  Vec<float, N> of(const Int& warp) const { return slots_.template vec<N>(turn_, warp * N); }
  // f(value, which warp's) of all warps, added up: warps are numbered by blocks, then in their block.
  template <class F>
  Float sum(F f) const {
    const int count = blocks_ * warps_, lanes = width();
    std::vector<Float> all;
    for (int passed = 0; passed < count; passed += lanes) {
      const Int slot = (lane_id() & (lanes - 1)) + passed;
      const Float value = f(of(min(slot, count - 1)), slot);
      all.push_back(passed + lanes <= count ? value : select(slot < count, value, 0.0f));
    }
    return warp_reduce(in_tree(std::move(all), plus()), plus(), lanes);
  }

 private:
  // Until all blocks have freed what was sent to the next place before. At first all are free. What was read is not written, so
  // that the scope is each block's own.
  void wait_for_place() const {
    free_.wait(sent_, free_parity_, MemoryOrder::acquire, MemoryScope::block);
  }
  void advance() {
    sent_ = (sent_ + 1) & (kValueTurns - 1);
    If(sent_ == 0, [&] { free_parity_ = free_parity_ ^ 1u; });
  }
  // Lanes that share the slots.
  int width() const {
    return static_cast<int>(
        std::bit_ceil(static_cast<unsigned>(std::min(blocks_ * warps_, kWarpSize))));
  }

  const int blocks_, warps_;
  const Mbarrier told_, free_;
  const Shared<float, 2> slots_;
  Var<int32_t> sent_{0}, received_{0}, turn_{0};
  Var<uint32_t> parity_{0u}, free_parity_{1u};
};

}  // namespace heddle::kernels
