// Sums and places of extrema beside reductions.cu.
#pragma once

#include "bench/library/matrix.h"
#include "heddle/kernels/reduce/reduce.h"
#include "heddle/kernels/row_sum.h"

namespace heddle::bench::library {

inline void reductions(Pairs& pairs) {
  using kernels::Along, kernels::Reduction;
  const Stream& stream = pairs.stream();
  const std::string size = Pairs::by(kRows, kColumns);
  const Buffer x = pairs.floats(kElements, -4, 4);
  const auto in = matrix<const float>(x);
  const auto vector = [](const Buffer& out, int64_t n) { return as_tensor<float>(out, {n}); };
  pairs.compare(
      "reductions", "row_sum", size, kElements, {4 * kRows}, 1e-5,
      [&](Buffer* out) { return kernels::row_sum(stream, in, vector(out[0], kRows)); },
      [&](const Function& twin, Buffer* out) {
        launch(stream, twin, kHeldRows, address(x), address(out[0]), kColumns);
      });
  const auto to_twin = [&](const Function& twin, Buffer* out) {
    launch(stream, twin, kHeldRows, address(x), address(out[0]));
  };
  pairs.compare(
      "reductions", "reduce_rows", size, kElements, {4 * kRows}, 1e-6,
      [&](Buffer* out) {
        return kernels::reduce(stream, Reduction::kSum, Along::kLast, in, vector(out[0], kRows));
      },
      to_twin);
  pairs.compare(
      "reductions", "reduce_rows_argmax", size, kElements, {8 * kRows}, 0,
      [&](Buffer* out) {
        return kernels::reduce(stream, Reduction::kArgmax, Along::kLast, in,
                               as_tensor<int64_t>(out[0], {kRows}));
      },
      to_twin);

  constexpr int kStretches = 16, kBlocks = 4096;
  const Buffer sums = take(pairs.device().allocate(4 * kStretches * kColumns));
  pairs.compare(
      "reductions", "reduce_columns", size, kElements, {4 * kColumns}, 1e-6,
      [&](Buffer* out) {
        return kernels::reduce(stream, Reduction::kSum, Along::kFirst, in,
                               vector(out[0], kColumns));
      },
      [&](const std::vector<Function>& twins, Buffer* out) {
        launch(stream, twins[0], {.grid = {kColumns / 64, kStretches}, .block = {16, 16}},
               address(x), address(sums), kRows, kColumns, kRows / kStretches);
        launch(stream, twins[1], {.grid = kColumns / 128, .block = {128, 2}, .programmatic = true},
               address(sums), address(out[0]), kStretches, kColumns);
      },
      {"add_up_stretches"});
  pairs.compare(
      "reductions", "reduce_all", size, kElements, {4}, 1e-6,
      [&](Buffer* out) {
        return kernels::reduce(stream, Reduction::kSum, Along::kAll, in, vector(out[0], 1));
      },
      [&](const std::vector<Function>& twins, Buffer* out) {
        launch(stream, twins[0], {.grid = kBlocks, .block = 512}, address(x), address(sums));
        launch(stream, twins[1], {.grid = 1, .block = {1, 256}, .programmatic = true},
               address(sums), address(out[0]), kBlocks);
      },
      {"add_up_blocks"});
}

}  // namespace heddle::bench::library
