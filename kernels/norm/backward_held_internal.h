// Norms' backward passes of rows that a block has in registers. Internal to the norms.
#pragma once

#include <deque>
#include <vector>

#include "heddle/kernels/norm/backward_deal_internal.h"
#include "heddle/kernels/norm/row_gradient_internal.h"

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
// of each block the sums for w and, where rows are centred, for b.
template <class T, bool kCentred>
void held_body(const BackwardDeal& how, const Tensor<const T, 2>& x, const Tensor<const T, 1>& w,
               const Tensor<const T, 2>& dy, const Tensor<T, 2>& dx, const Tensor<float, 3>& sums,
               const Float& eps) {
  const T zero(0.0f);
  const RowDeal& deal = how.rows;
  WeightSums<T, kCentred> weight_sums(deal);
  const Int rows = x.shape(0), groups = (rows + (deal.rows - 1)) / deal.rows;
  const auto threads_of = [&](const Int& group) {
    return RowThreads(deal, deal.rows > 1 ? group * deal.rows + thread_idx.y : group, rows);
  };
  const auto load = [&](const Tensor<const T, 2>& matrix, const Int& group) {
    const RowThreads threads = threads_of(min(group, groups - 1));
    return Row<const T>(threads, matrix).load(0, zero);
  };
  // The elements of the row, or rows, that come next are loaded while these are worked on, where they take few registers,
  // or no other block of the multiprocessor works meanwhile.
  const bool ahead = sizeof(T) == 2 || how.of_processor == 1;
  NextRows<T> next_x(ahead, load(x, block_idx.x)), next_dy(ahead, load(dy, block_idx.x));
  For(range(block_idx.x, groups, grid_dim.x), [&](const Int& at) {
    const RowThreads threads = threads_of(at);
    const auto take = [&](const Tensor<const T, 2>& matrix, NextRows<T>& next) {
      return ahead ? next.take(load(matrix, at + grid_dim.x)) : load(matrix, at);
    };
    const RowPart<T> this_x = take(x, next_x), this_dy = take(dy, next_dy);
    const InputRow<T> in(threads, x, this_x), gradient(threads, dy, this_dy);
    const RowScale row =
        store_gradient<T, kCentred>(threads, in, gradient, w, Row<T>(threads, dx), eps);
    // The last row, which others repeat, counts once.
    weight_sums.add(this_x, this_dy, row, [&](const Fragment<float>& sum) {
      return deal.rows > 1 ? select(threads.exists(), sum, Fragment<float>(deal.width, 0.0f)) : sum;
    });
  });
  const Int columns = x.shape(1);
  const int span = deal.threads * deal.vectors * deal.width;
  const Int own = deal.rows > 1 ? Int(thread_idx.y) : Int(0);
  Shared<float, 2> all({deal.rows, span});
  for (int which = 0; which < weight_sums.kWeights; ++which) {
    for (int v = 0; v < deal.vectors; ++v) {
      const Int column = (thread_idx.x + v * deal.threads) * deal.width;
      const Fragment<float> of = weight_sums.of(which, v);
      for (int i = 0; i < deal.width; ++i) all(own, column + i) = of[i];
    }
    sync_threads();
    For(range(own * deal.threads + thread_idx.x, min(columns, span), deal.threads * deal.rows),
        [&](const Int& column) {
          std::vector<Float> of_rows;
          for (int r = 0; r < deal.rows; ++r) of_rows.push_back(all(r, column));
          sums(which, block_idx.x, column) = in_tree(of_rows, plus());
        });
    if (kCentred && which == 0) sync_threads();
  }
}

}  // namespace heddle::kernels
