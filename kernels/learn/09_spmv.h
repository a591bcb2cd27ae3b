// 9. Sparse matrix-vector product: a warp a row.
//
//   spmv.launch(stream, spmv_shape(rows), start, column, value, x, y);
//
// A matrix in CSR holds the columns and values of row r's elements from start(r) on, up to
// start(r + 1). With a thread a row, neighbouring threads would read far from each other; with a
// warp a row its lanes read neighbours, and the row's sum is one warp_reduce (Bell and Garland
// 2008).
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::learn {

inline constexpr int kRowsPerBlock = 8;

inline const auto spmv = define_kernel(
    "spmv(start, column, value, x, y)",
    [](Tensor<const int32_t, 1> start, Tensor<const int32_t, 1> column,
       Tensor<const float, 1> value, Tensor<const float, 1> x, Tensor<float, 1> y) {
      Int row = block_idx.x * kRowsPerBlock + warp_id();
      If(row < y.shape(0), [&] {
        Float sum = For(range(start(row) + lane_id(), start(row + 1), kWarpSize), Float(0),
                        [&](Int i, Float acc) { return fma(value(i), x(column(i)), acc); });
        Float total = warp_reduce(sum, plus());
        If(lane_id() == 0, [&] { y(row) = total; });
      });
    });

constexpr LaunchShape spmv_shape(int64_t rows) {
  return {.grid = (rows + kRowsPerBlock - 1) / kRowsPerBlock, .block = kRowsPerBlock * kWarpSize};
}

}  // namespace heddle::learn
