// Norms' backward passes of rows that wait in shared memory. Internal to the norms.
#pragma once

#include "heddle/kernels/norm/gradient_internal.h"
#include "heddle/kernels/norm/staged_moments_internal.h"

namespace heddle::kernels {

// A row's mean, where rows are centred, and its sums, from what its warps sent: sums of squares and of products; or what
// row_moments() takes, the sums of s, and of s times what elements differ from the warp's mean by.
struct MeanAndSums {
  Float mean;
  RowSums sums;
};
template <bool kCentred, class Values>
MeanAndSums row_sums_of(const Values& values, const WarpShares& shares, const Float& per_element) {
  const auto sum = [&](int which) {
    return values.sum([&](const auto& sent, const Int&) { return Float(sent[which]); });
  };
  if constexpr (kCentred) {
    const RowMoments moments = row_moments(values, shares, per_element);
    const Float products = values.sum([&](const auto& sent, const Int&) {
      return fma(Float(sent[2]), sent[0] - moments.mean, Float(sent[3]));
    });
    return {moments.mean, {moments.squares, sum(2), products}};
  } else {
    return {Float(0), {sum(0), Float(0), sum(1)}};
  }
}

// Blocks, or clusters, that take one row after the other, and keep the sums of their columns in registers: dx, and
// of each block or cluster the sums for w and, where rows are centred, for b. While the sums of a row's warps are on their
// way, dx of the row before is stored. Where the deal peels, all rows of a block or cluster begin equally far behind aligned
// places.
template <class T, bool kCentred>
void staged_body(const TurnDeal& how, const Tensor<const T, 2>& x, const Tensor<const T, 1>& w,
                 const Tensor<const T, 2>& dy, const Tensor<T, 2>& dx, const Tensor<float, 3>& sums,
                 const Float& eps) {
  const RowDeal& deal = how.rows;
  min_blocks_per_sm(how.of_processor);
  const Int rows = x.shape(0), first = block_idx.x / deal.blocks, step = grid_dim.x / deal.blocks;
  WeightSums<T, kCentred> weight_sums(deal);
  constexpr int kSums = kCentred ? 4 : 2;
  const RowThreads any(deal, first, rows);
  const Row<const T> any_row(any, x);
  StagedRows<T> staged(any, any_row, {&x, &dy}, how.stages, first, step);
  WarpValues<kSums> values(deal);
  const RowPart<T> weights = any_row.beside(w, 0);
  const WarpShares shares(deal, any_row);
  const Float own_count = shares.own(any), per_element = fast::rcp(cast<float>(x.shape(1)));

  const auto begin = [&] {
    staged.wait();
    const RowPart<T> part = staged.newest(0), d = staged.newest(1);
    const RowPart<float> s = d.template map<float>(scaled<T>, weights),
                         wide_x =
                             part.template map<float>([](const Fragment<T>&v) { return wide(v); });
    if constexpr (kCentred) {
      const auto [mean, apart] = warp_mean(wide_x, own_count);
      values.send(Vec<float, kSums>(mean, of_warp(sum_of_products(apart, apart, /*only_row=*/true)),
                                    of_warp(sum_of(s)), of_warp(sum_of_products(s, apart))));
    } else {
      values.send(Vec<float, kSums>(of_warp(sum_of_products(wide_x, wide_x)),
                                    of_warp(sum_of_products(s, wide_x))));
    }
    staged.advance();
  };
  const auto end = [&](const Int& row) {
    values.receive();
    const auto [mean, row_sums] = row_sums_of<kCentred>(values, shares, per_element);
    const RowScale by{mean, fast::rsqrt(row_sums.squares * per_element + eps)};
    const Float mean_of_s = row_sums.of_s * per_element,
                slope = row_sums.of_products * per_element * by.scale * by.scale;
    const RowPart<T> part = staged.oldest(0), d = staged.oldest(1);
    staged.release(row);  // behind a barrier of the block
    values.free();
    weight_sums.add(part, d, by);
    const auto gradient = [&](const Fragment<T>& v, const Fragment<T>& g,
                              const Fragment<T>& weight) {
      return gradient_of<T, kCentred>(scaled(g, weight), v, by, mean_of_s, slope);
    };
    const RowThreads threads(deal, row, rows);
    Row<T>(threads, dx, any_row).store(0, part.template map<T>(gradient, d, weights));
  };
  For(range(first, rows + step, step), [&](const Int& row) {
    staged.turn(row);
    If(row < rows, begin);
    If(row > first, [&] { end(row - step); });
  });
  values.finish();
  for (int which = 0; which < weight_sums.kWeights; ++which) {
    weight_sums.store(which, any_row, [&](const Int& column, const Float& sum) {
      sums(which, first, column) = sum;
    });
  }
}

}  // namespace heddle::kernels
