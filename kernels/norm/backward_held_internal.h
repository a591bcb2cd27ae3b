// Norms' backward passes of rows that a block has in registers. Internal to the norms.
#pragma once

#include <deque>
#include <vector>

#include "heddle/kernels/norm/row_gradient_internal.h"
#include "heddle/kernels/rows/turn_deal.h"

namespace heddle::kernels {

// What a thread has of the rows that come next.
template <class T>
class NextRows {
 public:
  // Of none where rows are not loaded ahead.
  NextRows(bool ahead, const RowPart<T>& first) : in_row_(first.in_row) {
    if (!ahead) return;
    for (const Fragment<T>& v : first.vectors) vectors_.emplace_back(v);
  }
  // These; `after` comes next.
  RowPart<T> take(const RowPart<T>& after) {
    RowPart<T> out{{}, in_row_};
    for (size_t v = 0; v < vectors_.size(); ++v) {
      out.vectors.push_back(vectors_[v]);
      vectors_[v] = after.vectors[v];
    }
    return out;
  }

 private:
  std::deque<Var<Fragment<T>>> vectors_;
  const std::vector<Bool> in_row_;
};

// Blocks that take one row, or some short ones, after the other, and keep the sums of their columns in registers: dx, and
// of each block the sums for w and, where rows are centred, for b. Where the deal peels, all rows of a block begin equally far
// behind aligned places.
template <class T, bool kCentred>
void held_body(const TurnDeal& how, const Tensor<const T, 2>& x, const Tensor<const T, 1>& w,
               const Tensor<const T, 2>& dy, const Tensor<T, 2>& dx, const Tensor<float, 3>& sums,
               const Float& eps) {
  const T zero(0.0f);
  const RowDeal& deal = how.rows;
  WeightSums<T, kCentred> weight_sums(deal);
  const Int rows = x.shape(0), groups = (rows + (deal.rows - 1)) / deal.rows;
  const auto threads_of = [&](const Int& group) {
    return RowThreads(deal, deal.rows > 1 ? group * deal.rows + thread_idx.y : group, rows);
  };
  const RowThreads any = threads_of(block_idx.x);
  const Row<const T> first(any, x);
  const RowPart<T> kept = first.beside(w, 0);
  const auto weights = [&](const Int&) { return kept; };
  const auto load = [&](const Tensor<const T, 2>& matrix, const Int& group) {
    const RowThreads threads = threads_of(group);
    return Row<const T>(threads, matrix, first).load(0, zero);
  };
  // The elements of the row, or rows, that come next are loaded while these are worked on, where they take few registers,
  // or no other block of the multiprocessor works meanwhile.
  const bool ahead = sizeof(T) == 2 || how.of_processor == 1;
  NextRows<T> next_x(ahead, load(x, block_idx.x)), next_dy(ahead, load(dy, block_idx.x));
  For(range(block_idx.x, groups, grid_dim.x), [&](const Int& at) {
    const RowThreads threads = threads_of(at);
    const Int after = at + grid_dim.x, next = select(after < groups, after, at);
    const auto take = [&](const Tensor<const T, 2>& matrix, NextRows<T>& rows_after) {
      return ahead ? rows_after.take(load(matrix, next)) : load(matrix, at);
    };
    const RowPart<T> this_x = take(x, next_x), this_dy = take(dy, next_dy);
    const InputRow<T> in(threads, x, this_x), gradient(threads, dy, this_dy);
    const RowScale row = store_gradient<T, kCentred>(threads, in, gradient, weights,
                                                     Row<T>(threads, dx, first), eps);
    // The last row, which others repeat, counts once.
    weight_sums.add(this_x, this_dy, row, [&](const Fragment<float>& sum) {
      return deal.rows > 1 ? select(threads.exists(), sum, Fragment<float>(sum.size(), 0.0f)) : sum;
    });
  });
  if (deal.rows == 1) {
    for (int which = 0; which < weight_sums.kWeights; ++which) {
      weight_sums.store(which, first, [&](const Int& column, const Float& sum) {
        sums(which, block_idx.x, column) = sum;
      });
    }
    return;
  }
  // Those of a block's rows are added up first.
  const Int columns = x.shape(1), own = thread_idx.y;
  Shared<float, 2> all({deal.rows, deal.threads * deal.vectors * deal.width});
  for (int which = 0; which < weight_sums.kWeights; ++which) {
    weight_sums.store(which, first,
                      [&](const Int& column, const Float& sum) { all(own, column) = sum; });
    sync_threads();
    For(range(own * deal.threads + thread_idx.x, columns, deal.threads * deal.rows),
        [&](const Int& column) {
          std::vector<Float> of_rows;
          for (int r = 0; r < deal.rows; ++r) of_rows.push_back(all(r, column));
          sums(which, block_idx.x, column) = in_tree(of_rows, plus());
        });
    if (kCentred && which == 0) sync_threads();
  }
}

}  // namespace heddle::kernels
