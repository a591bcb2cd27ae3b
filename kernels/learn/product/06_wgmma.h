// Products, rung 6: Hopper's tensor cores and its copy engine.
//
//   product_wgmma.launch(stream, product_wgmma_shape, a, b, d);
//
// m, n and k are multiples of 128, 128 and 64.
// Changed: both atoms. wgmma multiplies 64 x 128 x 16 for the 128 threads of a warpgroup, and
// reads a and b from shared memory itself: no ldmatrix, no registers for operands. TMA copies a
// whole tile for one thread, swizzled as the layout says, and counts the bytes at a barrier, which
// all wait for.
// Faster: only wgmma reaches the tensor cores' peak; mma.sync is fed through registers and does
// not. And threads have no addresses to compute. But there is one stage again, so copies and
// products take turns, and what this gains shows with the next rung.
#pragma once

#include "heddle/kernels/learn/product/product.h"

namespace heddle::learn {

inline const auto product_wgmma =
    define_kernel("product_wgmma(a, b, d)", [](ProductIn a, ProductIn b, ProductOut d) {
      constexpr int kTile = 128, kK = 64, kThreads = 256;
      require_tiles(a, b, d, kTile, kTile, kK);
      require_block(kThreads);
      launch_grid(d.shape(1) / kTile, d.shape(0) / kTile);
      const TiledMma mma =
          make_tiled_mma(make_mma_atom(Wgmma<bfloat16, bfloat16, float>{kTile}), {2, 1, 1});
      const ThrMma mine = mma.get_slice(thread_idx.x);
      const auto sA = make_smem_tensor<bfloat16>(make_smem_layout_A(mma, {kTile, kK}));
      const auto sB = make_smem_tensor<bfloat16>(make_smem_layout_B(mma, {kTile, kK}));
      const TmaAtom load_a = make_tma_atom(TmaLoad{}, a, sA);
      const TmaAtom load_b = make_tma_atom(TmaLoad{}, b, sB);
      const auto gA = local_tile(a, {kTile, kK}, {block_idx.y, _});
      const auto gB = local_tile(b, {kTile, kK}, {block_idx.x, _});
      const auto gD = mine.partition_C(local_tile(d, {kTile, kTile}, {block_idx.y, block_idx.x}));
      const Mbarrier full(1);
      If(thread_idx.x == 0, [&] {
        full.init(0, 1);
        fence_mbarrier_init();
      });
      sync_threads();
      const auto sums = For(range(a.shape(1) / kK), make_accumulator<float>(mma, {kTile, kTile}),
                            [&](const Int& k, const AccumulatorTile<float>& so_far) {
                              If(thread_idx.x == 0, [&] {
                                full.expect_tx(0, load_a.bytes() + load_b.bytes());
                                copy(load_a.with(full, 0), gA(_, _, k), sA);
                                copy(load_b.with(full, 0), gB(_, _, k), sB);
                              });
                              full.wait(0, cast<uint32_t>(k % 2));
                              const auto added = gemm(mine, sA, sB, so_far, k != 0);
                              wait(mma, 0);
                              sync_threads();
                              return added;
                            });
      copy(settle(sums), gD);
    });

inline constexpr LaunchShape product_wgmma_shape = {.block = 256};

}  // namespace heddle::learn
