// Products, rung 4: tensor cores, by mma.sync.
//
//   product_mma.launch(stream, product_mma_shape, a, b, d);
//
// m, n and k are multiples of 128, 128 and 32.
// Changed: the atom. One mma.sync of a warp does 16 x 8 x 16 multiply-adds, and four warps have 64
// x 64 elements of d each; gemm() is the line that it was. Tiles stay bf16, and are swizzled:
// make_smem_layout_A permutes pieces of 16 bytes, so that the eight rows of a matrix that ldmatrix
// reads lie in all banks. It gives four matrices of 8 x 8 to a warp's registers by one
// instruction.
// Faster: 2048 multiply-adds an instruction in place of 32. The peak is 15 times that of f32, and
// is now far away: the block waits for its copies, then for its products, in turns.
#pragma once

#include "heddle/kernels/learn/product/product.h"

namespace heddle::learn {

inline const auto product_mma =
    define_kernel("product_mma(a, b, d)", [](ProductIn a, ProductIn b, ProductOut d) {
      constexpr int kTile = 128, kK = 32, kThreads = 128;
      require_tiles(a, b, d, kTile, kTile, kK);
      require_block(kThreads);
      launch_grid(d.shape(1) / kTile, d.shape(0) / kTile);
      const TiledMma mma = make_tiled_mma(
          make_mma_atom(MmaSync<bfloat16, bfloat16, float>{16, 8, 16}), {2, 2, 1}, {_, 32, _});
      const ThrMma mine = mma.get_slice(thread_idx.x);
      const TiledCopy loads =
          make_tiled_copy(make_copy_atom<bfloat16>(CopyUniversal{128}),
                          make_layout({32, 4}, GenRowMajor{}), make_layout({1, 8}));
      const ThrCopy part = loads.get_slice(thread_idx.x);
      const auto sA = make_smem_tensor<bfloat16>(make_smem_layout_A(mma, {kTile, kK}));
      const auto sB = make_smem_tensor<bfloat16>(make_smem_layout_B(mma, {kTile, kK}));
      const auto gA = part.partition_S(local_tile(a, {kTile, kK}, {block_idx.y, _}));
      const auto gB = part.partition_S(local_tile(b, {kTile, kK}, {block_idx.x, _}));
      const auto gD = mine.partition_C(local_tile(d, {kTile, kTile}, {block_idx.y, block_idx.x}));
      const auto none = make_fragment_like<float>(gD);
      clear(none);
      const auto sums = For(range(a.shape(1) / kK), make_accumulator(mma, none),
                            [&](const Int& k, const AccumulatorTile<float>& so_far) {
                              copy(loads, gA(_, _, _, k), part.partition_D(sA));
                              copy(loads, gB(_, _, _, k), part.partition_D(sB));
                              sync_threads();
                              const auto added = gemm(mine, sA, sB, so_far);
                              sync_threads();
                              return added;
                            });
      copy(settle(sums), gD);
    });

inline constexpr LaunchShape product_mma_shape = {.block = 128};

}  // namespace heddle::learn
