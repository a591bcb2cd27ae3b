// Rows of matrices that a block, or a cluster, takes one after the other. Bulk copies bring the next ones to shared memory
// while threads work on these (sm_90). Internal to the kernels.
//
//   StagedRows<T> staged(threads, row, {&x, &dy}, stages, first, step);
//   For(range(first, rows + step, step), [&](const Int& row) {        // a turn: begins a row, and ends the one before
//     staged.turn(row);
//     If(row < rows, [&] {
//       staged.wait();
//       … staged.newest(0), staged.newest(1) …                        // this thread's elements of x and of dy
//       staged.advance();                                             // the row is no longer the newest, but still there
//     });
//     If(row > first, [&] {
//       … staged.oldest(0) …
//       staged.release(row - step);                                   // another takes its place
//     });
//   });
#pragma once

#include <algorithm>
#include <deque>
#include <vector>

#include "heddle/kernels/rows/row.h"

namespace heddle::kernels {

// The row that is begun, the one that is ended, and one on its way at least.
inline constexpr int kFewestStages = 3;
// Shared memory of a block for so many matrices, and a little besides.
inline int64_t staged_bytes(const RowDeal& deal, int element_bytes, int matrices, int stages) {
  return int64_t{stages} * matrices * deal.threads * deal.vectors * deal.width * element_bytes +
         kVectorBytes * 2;
}

// Matrices of as many rows and columns. The deal has one row for a block or cluster, in no parts, and vectors of 16 bytes. Where
// it peels, the first row and those `step` after it begin equally far behind aligned places, in all matrices.
template <class T>
class StagedRows {
 public:
  // Begins to load the first rows of first, first + step, …. `any` and `row` are the first one's threads and itself, and outlive
  // this. All threads of the block.
  StagedRows(const RowThreads& any, const Row<const T>& row,
             std::vector<const Tensor<const T, 2>*> matrices, int stages, const Int& first,
             const Int& step)
      : any_(any),
        row_(row),
        matrices_(std::move(matrices)),
        stages_(stages),
        step_(step),
        rows_(matrices_[0]->shape(0)),
        count_(row_.count(0) * any.deal().width),
        column_(row_.first_column(0)),
        full_(stages),
        tiles_(
            {stages, static_cast<int64_t>(matrices_.size()), any.of_block() * any.deal().width}) {
    If(thread_idx.x == 0, [&] {
      for (int stage = 0; stage < stages; ++stage) full_.init(stage, 1);
      fence_mbarrier_init();
    });
    if (!any.deal().whole) clear_outside();
    sync_threads();
    For(range(stages).unroll(1), [&](const Int& stage) { load(first + stage * step, stage); });
    if (!any.deal().peeled) return;
    edges_.resize(matrices_.size());
    for (size_t m = 0; m < edges_.size(); ++m) edges_[m].next = edge(m, first);
  }

  // Begins the turn of a row. The turn behind the last row's begins no other and ends that one.
  void turn(const Int& row) {
    for (size_t m = 0; m < edges_.size(); ++m) {
      Edge& edge = edges_[m];
      edge.oldest = edge.newest;
      edge.newest = edge.next;
      edge.next = this->edge(m, min(row + step_, rows_ - 1));
    }
  }
  // Waits until the row that comes next is there, and is the newest one.
  void wait() const {
    // What came is the block's own.
    full_.wait(newest_, parity_, MemoryOrder::acquire, MemoryScope::block);
  }
  // This thread's elements of the newest row, and of the oldest one that is not released; those outside the row are 0.
  RowPart<T> newest(size_t matrix) const {
    return part(matrix, newest_, [](const Edge& edge) -> const Var<T>& { return edge.newest; });
  }
  RowPart<T> oldest(size_t matrix) const {
    return part(matrix, oldest_, [](const Edge& edge) -> const Var<T>& { return edge.oldest; });
  }
  // The next wait() is for the row behind the newest one.
  void advance() {
    newest_ = newest_ + 1;
    If(newest_ == stages_, [&] {
      newest_ = 0;
      parity_ = parity_ ^ 1u;
    });
  }
  // Begins to load what takes the place of the oldest row, which is `row`. All threads of the block.
  void release(const Int& row) {
    fence_async();
    sync_threads();
    load(row + stages_ * step_, oldest_);
    oldest_ = select(oldest_ == stages_ - 1, 0, oldest_ + 1);
  }

 private:
  // A thread's elements at the edges of the row that is ended, of the one that is begun, and of the next one.
  struct Edge {
    Var<T> oldest{0.0f}, newest{0.0f}, next{0.0f};
  };
  Value<T> edge(size_t matrix, const Int& row) const {
    const RowThreads threads(any_.deal(), row, rows_);
    return Row<const T>(threads, *matrices_[matrix], row_).load_edge(0, T(0.0f))[0];
  }

  // Vectors outside the rows, to which nothing is copied, are 0.
  void clear_outside() const {
    const int width = any_.deal().width;
    const Fragment<T> none(width, T(0.0f));
    for (int stage = 0; stage < stages_; ++stage) {
      for (size_t m = 0; m < matrices_.size(); ++m) {
        row_.vectors(0, [&](const Int& at) {
          If(at * width >= count_, [&] { tiles_.elements(width, stage, m, at * width) = none; });
          return none;
        });
      }
    }
  }

  template <class Choose>
  RowPart<T> part(size_t matrix, const Int& stage, Choose chosen) const {
    const int width = any_.deal().width;
    RowPart<T> out = row_.vectors(0, [&](const Int& at) {
      return Fragment<T>(tiles_.elements(width, stage, matrix, at * width));
    });
    if (any_.deal().peeled) row_.add_edge(0, Fragment<T>(1, Value<T>(chosen(edges_[matrix]))), out);
    return out;
  }

  // Begins to load row `row`, if there is one, to a stage of which nobody reads any more.
  void load(const Int& row, const Int& stage) const {
    If(thread_idx.x == 0 && row < rows_, [&] {
      const auto matrices = static_cast<int>(matrices_.size());
      full_.expect_tx(stage, cast<uint32_t>(count_ * (matrices * int{sizeof(T)})));
      If(count_ > 0, [&] {
        for (int m = 0; m < matrices; ++m) {
          const auto from = aligned_view(*matrices_[m], any_.deal().floods);
          bulk_load(tiles_.at(stage, m, 0), from.at(row, column_), count_, full_, stage);
        }
      });
    });
  }

  const RowThreads& any_;
  const Row<const T>& row_;  // the first one: a thread has the same columns of all
  const std::vector<const Tensor<const T, 2>*> matrices_;
  const int stages_;
  const Int step_, rows_, count_, column_;
  const Mbarrier full_;
  const Shared<T, 3> tiles_;
  std::deque<Edge> edges_;
  Var<int32_t> newest_{0}, oldest_{0};
  Var<uint32_t> parity_{0u};
};

}  // namespace heddle::kernels
