// Norms' backward passes of rows that wait in shared memory. Internal to the norms.
#pragma once

#include <limits>

#include "heddle/kernels/norm/backward_deal_internal.h"
#include "heddle/kernels/norm/gradient_internal.h"
#include "heddle/kernels/rows/staged_rows.h"
#include "heddle/kernels/rows/warp_values.h"

namespace heddle::kernels {

// How many elements of a row each warp of a block or cluster has.
class WarpShares {
 public:
  // `row` is one of the rows.
  template <class U>
  WarpShares(const RowDeal& deal, const Row<U>& row)
      : deal_(deal), vectors_(row.vector_count()), edges_(row.edges()) {}
  // Warps are numbered by blocks, then in their block.
  Float count(const Int& warp) const {
    const int warps = deal_.threads / kWarpSize, of_block = deal_.threads * deal_.vectors;
    if (deal_.whole) return static_cast<float>(kWarpSize * deal_.vectors * deal_.width);
    const Int here = clamp(vectors_ - warp / warps * of_block, 0, of_block),
              rounds = here / deal_.threads,
              lanes = clamp(here - rounds * deal_.threads - warp % warps * kWarpSize, 0, kWarpSize);
    return cast<float>((rounds * kWarpSize + lanes) * deal_.width + select(warp == 0, edges_, 0));
  }

 private:
  static Int clamp(const Int& value, int low, int high) { return max(min(value, high), low); }
  const RowDeal& deal_;
  const Int vectors_, edges_;
};

// A row's mean, where rows are centred, and its sums, from what its warps sent: sums of squares and of products; or the mean of
// their elements, the sum of squares of what these differ from it, the sums of s, and of s times that difference.
struct MeanAndSums {
  Float mean;
  RowSums sums;
};
template <bool kCentred, class Values>
MeanAndSums row_sums_of(const Values& values, const WarpShares& shares, const Float& columns) {
  const auto sum = [&](auto of) { return values.sum(of); };
  if constexpr (kCentred) {
    // All at once: means are set apart from one of them. What is subtracted in the end is at most as many times the sum itself as
    // there are warps.
    const Float one = values.of(0)[0];
    const auto apart = [&](const auto& sent) { return sent[0] - one; };
    const Float mean_apart = sum([&](const auto&sent, const Int&warp) {
                               return shares.count(warp) * apart(sent);
                             }) *
                             fast::rcp(columns),
                squares = sum([&](const auto&sent, const Int&warp) {
                  return fma(shares.count(warp) * apart(sent), apart(sent), Float(sent[1]));
                }),
                of_s = sum([](const auto&sent, const Int&) { return Float(sent[2]); }),
                products = sum([&](const auto&sent, const Int&) {
                  return fma(Float(sent[2]), apart(sent), Float(sent[3]));
                });
    // Finite, so that infinite squares stay so.
    const Float apart_squares =
        min(mean_apart * mean_apart * columns, std::numeric_limits<float>::max());
    return {one + mean_apart, {squares - apart_squares, of_s, products - of_s * mean_apart}};
  } else {
    return {Float(0),
            {sum([](const auto& sent, const Int&) { return Float(sent[0]); }), Float(0),
             sum([](const auto& sent, const Int&) { return Float(sent[1]); })}};
  }
}

// Blocks, or clusters, that take one row after the other, and keep the sums of their columns in registers: dx, and
// of each block or cluster the sums for w and, where rows are centred, for b. While the sums of a row's warps are on their
// way, dx of the row before is stored. Where the deal peels, all rows of a block or cluster begin equally far behind aligned
// places.
template <class T, bool kCentred>
void staged_body(const BackwardDeal& how, const Tensor<const T, 2>& x, const Tensor<const T, 1>& w,
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
  const Float own_count =
                  shares.count(any.block() * (deal.threads / kWarpSize) + thread_idx.x / kWarpSize),
              elements = cast<float>(x.shape(1)), per_element = fast::rcp(elements);
  const auto of_warp = [](const Float& sum) { return warp_reduce(sum, plus()); };

  const auto begin = [&] {
    staged.wait();
    const RowPart<T> part = staged.newest(0), d = staged.newest(1);
    const RowPart<float> s = d.template map<float>(scaled<T>, weights),
                         wide_x =
                             part.template map<float>([](const Fragment<T>&v) { return wide(v); });
    if constexpr (kCentred) {
      // What a warp's elements differ from their own mean by; outside the row is 0.
      const Float mean = of_warp(sum_of(wide_x)) * fast::rcp(max(own_count, 1.0f));
      const RowPart<float> apart =
          wide_x.template map<float>([&](const Fragment<float>& v) { return v - mean; });
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
    const auto [mean, row_sums] = row_sums_of<kCentred>(values, shares, elements);
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
