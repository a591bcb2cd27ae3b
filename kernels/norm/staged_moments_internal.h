// The moments of rows that wait in shared memory, from what their warps sent. Internal to the norms.
#pragma once

#include "heddle/kernels/norm/norm_rows_internal.h"
#include "heddle/kernels/rows/staged_rows.h"
#include "heddle/kernels/rows/turn_deal.h"
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
  // This thread's warp's, as `threads` share the row.
  Float own(const RowThreads& threads) const {
    return count(threads.block() * (deal_.threads / kWarpSize) + thread_idx.x / kWarpSize);
  }

 private:
  static Int clamp(const Int& value, int low, int high) { return max(min(value, high), low); }
  const RowDeal& deal_;
  const Int vectors_, edges_;
};

// The sum of what the lanes of a warp have.
inline Float of_warp(const Float& sum) { return warp_reduce(sum, plus()); }
// The mean of a warp's elements, so many, and what this thread's differ from it by; outside the row is 0.
struct WarpMean {
  Float mean;
  RowPart<float> apart;
};
inline WarpMean warp_mean(const RowPart<float>& part, const Float& count) {
  // Nothing counts before what may be infinite.
  const Float mean = of_warp(sum_of(part) * fast::rcp(max(count, 1.0f)));
  return {mean, part.map<float>([&](const Fragment<float>& v) { return v - mean; })};
}

// Of a row: its mean, and the sum of the squares of what elements differ from it.
struct RowMoments {
  Float mean, squares;
};
// From what warps sent: the mean of their elements, and the sum of squares of what these differ from it.
template <class Values>
RowMoments row_moments(const Values& values, const WarpShares& shares, const Float& per_element) {
  // Set apart from one of them, so that equal means give that one.
  const Float one = values.of(0)[0];
  const Float mean = one + values.sum([&](const auto& sent, const Int& warp) {
    return shares.count(warp) * per_element * (sent[0] - one);
  });
  return {mean, values.sum([&](const auto& sent, const Int& warp) {
            const Float apart = sent[0] - mean;
            return fma(shares.count(warp) * apart, apart, Float(sent[1]));
          })};
}

}  // namespace heddle::kernels
