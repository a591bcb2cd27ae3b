// Norms of rows that wait in shared memory. Internal to the norms.
#pragma once

#include <optional>
#include <vector>

#include "heddle/kernels/norm/staged_moments_internal.h"

namespace heddle::kernels {

// Blocks, or clusters, that take one row after the other and keep the weights of their columns in registers. While the sums of a
// row's warps are on their way, the row before is stored. Where the deal peels, all rows of a block or cluster begin equally far
// behind aligned places.
template <class T>
void staged_norm_body(const TurnDeal& how, const Tensor<const T, 2>& x, const Residual<T>* residual,
                      const Tensor<const T, 1>& w, const Tensor<const T, 1>* b,
                      const Tensor<T, 2>& y, const Float& eps) {
  const RowDeal& deal = how.rows;
  min_blocks_per_sm(how.of_processor);
  const Int rows = x.shape(0), first = block_idx.x / deal.blocks, step = grid_dim.x / deal.blocks;
  const RowThreads any(deal, first, rows);
  const Row<const T> any_row(any, x);
  std::vector<const Tensor<const T, 2>*> in = {&x};
  if (residual != nullptr) in.push_back(&residual->of);
  StagedRows<T> staged(any, any_row, in, how.stages, first, step);
  WarpValues<2> values(deal);
  const RowPart<T> weights = any_row.beside(w, 0);
  std::optional<RowPart<T>> biases;
  if (b != nullptr) biases = any_row.beside(*b, 0);
  const WarpShares shares(deal, any_row);
  const Float own = shares.own(any), per_element = fast::rcp(cast<float>(x.shape(1)));

  // What is normalised, of staged.newest or staged.oldest.
  const auto row_of = [&](auto part) {
    return residual == nullptr ? part(0) : sum_of_rows<T>(part(0), part(1));
  };
  const auto begin = [&] {
    staged.wait();
    const RowPart<float> part =
        row_of([&](int matrix) { return staged.newest(matrix); }).template map<float>(wide<T>);
    if (b != nullptr) {
      const WarpMean mean = warp_mean(part, own);
      values.send(Vec<float, 2>(
          mean.mean, of_warp(sum_of_products(mean.apart, mean.apart, /*only_row=*/true))));
    } else {
      values.send(Vec<float, 2>(of_warp(sum_of_products(part, part)), 0.0f));
    }
    staged.advance();
  };
  const auto scale_of_row = [&]() -> RowScale {
    const auto scale = [&](const Float& squares) {
      return fast::rsqrt(squares * per_element + eps);
    };
    if (b == nullptr) {
      return {0, scale(values.sum([](const auto& sent, const Int&) { return Float(sent[0]); }))};
    }
    const RowMoments moments = row_moments(values, shares, per_element);
    return {moments.mean, scale(moments.squares)};
  };
  const auto end = [&](const Int& row) {
    values.receive();
    const RowScale by = scale_of_row();
    const RowPart<T> part = row_of([&](int matrix) { return staged.oldest(matrix); });
    staged.release(row);  // behind a barrier of the block
    values.free();
    const RowThreads threads(deal, row, rows);
    if (residual != nullptr) Row<T>(threads, residual->sum, any_row).store(0, part);
    Row<T>(threads, y, any_row).store(0, normalised<T>(part, by, weights, biases));
  };
  For(range(first, rows + step, step), [&](const Int& row) {
    staged.turn(row);
    If(row < rows, begin);
    If(row > first, [&] { end(row - step); });
  });
  values.finish();
}

}  // namespace heddle::kernels
