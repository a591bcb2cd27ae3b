// 13. The sum of each row, by layouts: how a tensor is divided among threads is a value.
//
//   layout_row_sum.launch(stream, layout_row_sum_shape(rows), x, y);
//
// make_layout_tv says which threads have which elements of a tile: here 128 threads in a row, four
// neighbours each. zipped_divide cuts a row of x into such tiles, and composition gives each tile's
// elements to the threads: `mine(_, k)` is what a thread has of tile k. How wide its access is
// follows from the layout and what the launch knows of the row's stride, so the kernel says nothing
// of it. The rest of the row, which fills no tile, goes by a predicate: an identity tensor, divided
// in the same way, says where each element lies.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

inline constexpr int kRowThreads = 128, kRowValues = 4;

inline const auto layout_row_sum =
    define_kernel("layout_row_sum(x, y)", [](Tensor<const float, 2> x, Tensor<float, 1> y) {
      const auto [tile, tv] = make_layout_tv(make_layout({kRowThreads}), make_layout({kRowValues}));
      const Tiler to_threads{tv, _};
      Tensor<const float> row = x(block_idx.x, _);
      const auto mine = composition(zipped_divide(row, tile), to_threads);
      const SymInt full = floor_div(SymInt(x.shape(1)), size(tile));
      auto values = make_tensor<float>(kRowValues);
      Var<float> sum(0.0f);
      for (Int k : range(full)) {
        copy(mine.slice({{thread_idx.x, _}, k}), values);
        sum += reduce(values, plus());
      }
      const auto where =
          composition(zipped_divide(make_identity_tensor(row.shape()), tile), to_threads);
      fill(values, 0.0f);
      copy_if(within(where.slice({{thread_idx.x, _}, full}), row.shape()),
              mine.slice({{thread_idx.x, _}, full}), values);
      Float total = block_reduce(sum + reduce(values, plus()), plus());
      If(thread_idx.x == 0, [&] { y(block_idx.x) = total; });
    });

constexpr LaunchShape layout_row_sum_shape(int64_t rows) {
  return {.grid = rows, .block = kRowThreads};
}

}  // namespace heddle::learn
