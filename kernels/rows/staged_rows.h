// Rows of matrices that a block, or a cluster, takes one after the other. Bulk copies bring the next ones to shared memory
// while threads work on these, and a thread has the same columns of all rows, wherever these begin in memory (sm_90). Internal
// to the kernels.
//
//   StagedRows<T> staged(deal, {&x, &dy}, first, step);
//   For(range(first, rows, step), [&](const Int& row) {
//     const RowThreads threads(deal, row, rows);
//     staged.wait();
//     … staged.newest(0, threads), staged.newest(1, threads) …      // this thread's elements of x and of dy
//     staged.advance();                                             // the row is no longer the newest, but still there
//     … staged.oldest(0, threads) …
//     staged.release(row);                                          // another takes the oldest one's place
//   });
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "heddle/kernels/rows/row.h"

namespace heddle::kernels {

// So many rows of a matrix are there, or on their way.
constexpr int stages_of(int element_bytes) { return element_bytes == 4 ? 3 : 4; }
// Shared memory of a block for so many matrices, and a little besides.
inline int64_t staged_bytes(const RowDeal& deal, int element_bytes, int matrices) {
  const int64_t elements = int64_t{deal.threads} * deal.vectors * deal.width;
  return stages_of(element_bytes) * matrices * (elements * element_bytes + kVectorBytes) +
         kVectorBytes * 2;
}

// Matrices of as many rows and columns. The deal has one row for a block or cluster, in no parts, and
// peels none; vectors of 16 bytes begin with the rows, or are single elements.
template <class T>
class StagedRows {
 public:
  // Begins to load the first rows of first, first + step, …. All threads of the block.
  StagedRows(const RowDeal& deal, std::vector<const Tensor<const T, 2>*> matrices, const Int& first,
             const Int& step)
      : deal_(deal),
        matrices_(std::move(matrices)),
        step_(step),
        full_(kStages),
        tiles_({kStages, static_cast<int64_t>(matrices_.size()),
                deal.threads * deal.vectors * deal.width + kWidth}) {
    if (has_edges()) edges_.resize(matrices_.size());
    If(thread_idx.x == 0, [&] {
      for (int stage = 0; stage < kStages; ++stage)
        full_.init(stage, has_edges() ? 1 + kWarpSize : 1);
      fence_mbarrier_init();
    });
    sync_threads();
    For(range(kStages).unroll(1), [&](const Int& stage) { load(first + stage * step, stage); });
  }

  // Waits until the row that comes next is there, and is the newest one.
  void wait() const {
    // What came is the block's own.
    full_.wait(newest_, parity_, MemoryOrder::acquire, MemoryScope::block);
  }
  // This thread's elements of the newest row, and of the oldest one that is not released; those outside the row are 0.
  RowPart<T> newest(size_t matrix, const RowThreads& threads) const {
    return part(matrix, threads, newest_);
  }
  RowPart<T> oldest(size_t matrix, const RowThreads& threads) const {
    return part(matrix, threads, oldest_);
  }
  // The next wait() is for the row behind the newest one.
  void advance() {
    newest_ = newest_ + 1;
    If(newest_ == kStages, [&] {
      newest_ = 0;
      parity_ = parity_ ^ 1u;
    });
  }
  // Begins to load what takes the place of the oldest row, which is `row`. All threads of the block.
  void release(const Int& row) {
    fence_async();
    sync_threads();
    load(row + kStages * step_, oldest_);
    oldest_ = select(oldest_ == kStages - 1, 0, oldest_ + 1);
  }

 private:
  static constexpr int kStages = stages_of(sizeof(T)), kWidth = kVectorBytes / int{sizeof(T)},
                       kNoPlace = -1;
  // So that a row's edges, which the next load stores, come before the wait for them.
  static_assert(kStages >= 3);
  bool has_edges() const { return deal_.width < kWidth; }

  RowPart<T> part(size_t matrix, const RowThreads& threads, const Int& stage) const {
    const Int begin = range_of(matrix, threads.row()).phase;
    return Row<const T>(threads, *matrices_[matrix]).vectors_in_row(0, T(0.0f), [&](const Int& at) {
      return Fragment<T>(tiles_.elements(deal_.width, stage, matrix, begin + at * deal_.width));
    });
  }

  // What a block has of a row: `count` columns from `first` on, that lie so far behind an aligned place; in front of what can be
  // copied in bulk are `head`, and that is `body`.
  struct Range {
    Int first, count, phase, head, body;
  };
  Range range_of(size_t m, const Int& row) const {
    const Tensor<const T, 2>& x = *matrices_[m];
    const int span = deal_.threads * deal_.vectors * deal_.width;
    const Int first = deal_.blocks == 1 ? Int(0) : cluster_rank() * span,
              count = deal_.whole ? Int(span) : max(min(x.shape(1) - first, span), 0);
    if (!has_edges()) return {first, count, 0, 0, count};
    const Int beyond = cast<int32_t>(address_of(x.at(row, first))) & (kVectorBytes - 1),
              phase = beyond / int{sizeof(T)}, head = min((kWidth - phase) & (kWidth - 1), count);
    return {first, count, phase, head, (count - head) / kWidth * kWidth};
  }

  // Begins to load row `row`, if there is one, to a stage of which nobody reads any more.
  void load(const Int& row, const Int& stage) {
    If(thread_idx.x < kWarpSize, [&] {
      if (has_edges()) store_edges();
      If(row < matrices_[0]->shape(0), [&] {
        std::vector<Range> ranges;
        for (size_t m = 0; m < matrices_.size(); ++m) ranges.push_back(range_of(m, row));
        If(thread_idx.x == 0, [&] { load_bodies(ranges, row, stage); });
        if (has_edges()) load_edges(ranges, row, stage);
      });
    });
  }
  void load_bodies(const std::vector<Range>& ranges, const Int& row, const Int& stage) const {
    std::vector<Int> bodies;
    for (const Range& range : ranges) bodies.push_back(range.body);
    full_.expect_tx(stage, cast<uint32_t>(in_tree(bodies, plus()) * int{sizeof(T)}));
    for (size_t m = 0; m < ranges.size(); ++m) {
      const Range& range = ranges[m];
      If(range.body > 0, [&] {
        bulk_load(tiles_.at(stage, m, range.phase + range.head),
                  matrices_[m]->at(row, range.first + range.head), range.body, full_, stage);
      });
    }
  }
  // The elements in front of what is copied in bulk and behind it, fewer than a warp's lanes, wait in registers until the
  // next load begins, so that no thread waits for them.
  void load_edges(const std::vector<Range>& ranges, const Int& row, const Int& stage) {
    for (size_t m = 0; m < ranges.size(); ++m) {
      const Range& range = ranges[m];
      const Int lane = thread_idx.x, column = select(lane < range.head, lane, lane + range.body);
      edges_[m].place = select(column < range.count, range.phase + column, kNoPlace);
      If(column < range.count,
         [&] { edges_[m].value = (*matrices_[m])(row, range.first + column); });
    }
    edge_stage_ = stage;
  }
  void store_edges() {
    If(edge_stage_ != kNoPlace, [&] {
      for (size_t m = 0; m < edges_.size(); ++m) {
        If(edges_[m].place != kNoPlace,
           [&] { tiles_(edge_stage_, m, edges_[m].place) = edges_[m].value; });
      }
      full_.arrive(edge_stage_);
      edge_stage_ = kNoPlace;
    });
  }

  const RowDeal& deal_;
  const std::vector<const Tensor<const T, 2>*> matrices_;
  const Int step_;
  const Mbarrier full_;
  const Shared<T, 3> tiles_;
  // Of each matrix, of the row whose load has begun last.
  struct Edge {
    Var<T> value{0.0f};
    Var<int32_t> place{kNoPlace};
  };
  std::deque<Edge> edges_;
  Var<int32_t> edge_stage_{kNoPlace};
  Var<int32_t> newest_{0}, oldest_{0};
  Var<uint32_t> parity_{0u};
};

}  // namespace heddle::kernels
