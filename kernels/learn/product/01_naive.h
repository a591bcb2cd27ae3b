// Products, rung 1: a thread for each element of d.
//
//   product_naive.launch(stream, product_naive_shape, a, b, d);
//
// m and n are multiples of 16. The definition, written down. Each multiply-add loads two elements,
// and a warp, which has 16 columns of d, reads 16 rows of b that lie far apart: 16 transactions
// where one would do. The caches keep what the next steps of the loop read, else it would be far
// slower still.
#pragma once

#include "heddle/kernels/learn/product/product.h"

namespace heddle::learn {

inline const auto product_naive =
    define_kernel("product_naive(a, b, d)", [](ProductIn a, ProductIn b, ProductOut d) {
      constexpr int kBlock = 16;
      require_tiles(a, b, d, kBlock, kBlock, 1);
      require_block(kBlock, kBlock);
      launch_grid(d.shape(1) / kBlock, d.shape(0) / kBlock);
      const Int row = block_idx.y * kBlock + thread_idx.y;
      const Int column = block_idx.x * kBlock + thread_idx.x;
      Var<float> sum(0.0f);
      for (Int k : range(a.shape(1))) sum += cast<float>(a(row, k)) * cast<float>(b(column, k));
      d(row, column) = cast<bfloat16>(sum);
    });

inline constexpr LaunchShape product_naive_shape = {.block = {16, 16}};

}  // namespace heddle::learn
