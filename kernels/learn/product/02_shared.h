// Products, rung 2: tiles in shared memory.
//
//   product_shared.launch(stream, product_shared_shape, a, b, d);
//
// m, n and k are multiples of 32.
// Changed: the 1024 threads of a block bring a tile of 32 x 32 of a and of b into shared memory,
// each thread one element of both, along the rows: one transaction a warp.
// Faster: an element is loaded once for 32 multiply-adds. Now shared memory is the limit: a
// multiply-add reads two words of it, and a multiprocessor gets 32 words a cycle but could do 128
// multiply-adds, so this reaches an eighth of the peak of f32 at most. Rows are a word longer than
// they need be, so that the 32 rows that a warp reads lie in 32 banks.
#pragma once

#include "heddle/kernels/learn/product/product.h"

namespace heddle::learn {

inline const auto product_shared =
    define_kernel("product_shared(a, b, d)", [](ProductIn a, ProductIn b, ProductOut d) {
      constexpr int kTile = 32;
      require_tiles(a, b, d, kTile, kTile, kTile);
      require_block(kTile * kTile);
      launch_grid(d.shape(1) / kTile, d.shape(0) / kTile);
      const Layout threads = make_layout({kTile, kTile}, GenRowMajor{});
      const Layout padded = make_layout({kTile, kTile}, {kTile + 1, 1});
      const auto sA = make_smem_tensor<float>(padded), sB = make_smem_tensor<float>(padded);
      const auto gA = local_tile(a, {kTile, kTile}, {block_idx.y, _});  // (32,32,k)
      const auto gB = local_tile(b, {kTile, kTile}, {block_idx.x, _});
      const auto gD = local_tile(d, {kTile, kTile}, {block_idx.y, block_idx.x});
      // The thread's element of a tile; and thread (i,j)'s row i of a and row j of b.
      const auto own = [&](const auto& tile) {
        return local_partition(tile, threads, thread_idx.x);
      };
      const auto a_row = local_partition(sA, threads, thread_idx.x, {1, _});
      const auto b_row = local_partition(sB, threads, thread_idx.x, {_, 1});
      const auto sum = make_tensor<float>({1, 1});
      clear(sum);
      for (Int k : range(a.shape(1) / kTile)) {
        copy(own(gA(_, _, k)), own(sA));
        copy(own(gB(_, _, k)), own(sB));
        sync_threads();
        gemm(a_row, b_row, sum);
        sync_threads();
      }
      copy(sum, own(gD));
    });

inline constexpr LaunchShape product_shared_shape = {.block = 1024};

}  // namespace heddle::learn
