// Products, rung 3: a tile of d in each thread's registers.
//
//   product_registers.launch(stream, product_registers_shape, a, b, d);
//
// m, n and k are multiples of 128, 128 and 16.
// Changed: a block has 128 x 128 elements of d, and each of its 256 threads 8 x 8 of them.
// TiledMma says which: an atom of one multiply-add, over 16 x 16 threads with four neighbours each
// along both modes. Tiles lie turned in shared memory, so that these neighbours are one load of 16
// bytes.
// Faster: a step along k reads 16 words by 4 loads for 64 multiply-adds, a quarter of a word each
// in place of two; and global memory is read 16 bytes a thread, each element once for 128
// multiply-adds. Multiply-adds are nearly all that is left in the loop, and their peak is the
// limit.
#pragma once

#include "heddle/kernels/learn/product/product.h"

namespace heddle::learn {

inline const auto product_registers =
    define_kernel("product_registers(a, b, d)", [](ProductIn a, ProductIn b, ProductOut d) {
      constexpr int kTile = 128, kK = 16, kThreads = 256;
      require_tiles(a, b, d, kTile, kTile, kK);
      require_block(kThreads);
      launch_grid(d.shape(1) / kTile, d.shape(0) / kTile);
      // 16 x 16 threads. Each has four neighbours along both modes of a tile of 64 x 64.
      const Layout fours = make_layout({16, 4}, {4, 1});
      const TiledMma mma = make_tiled_mma(make_mma_atom(UniversalFma<float>{}),
                                          make_layout({16, 16, 1}, {16, 1, 0}), {fours, fours, _});
      const ThrMma mine = mma.get_slice(thread_idx.x);
      // A thread copies eight neighbours, 16 bytes; a warp 32 rows.
      const TiledCopy loads = make_tiled_copy(make_copy_atom<bfloat16>(CopyUniversal{128}),
                                              make_layout({kTile, 2}), make_layout({1, 8}));
      const ThrCopy part = loads.get_slice(thread_idx.x);
      const Layout turned = make_layout({kTile, kK});  // contiguous along the rows
      const auto sA = make_smem_tensor<float>(turned), sB = make_smem_tensor<float>(turned);
      const auto gA = part.partition_S(local_tile(a, {kTile, kK}, {block_idx.y, _}));
      const auto gB = part.partition_S(local_tile(b, {kTile, kK}, {block_idx.x, _}));
      const auto gD = mine.partition_C(local_tile(d, {kTile, kTile}, {block_idx.y, block_idx.x}));
      const auto bring = [&](const auto& from, const auto& tile) {
        const auto registers = make_fragment_like(from);
        copy(loads, from, registers);
        copy(registers, part.partition_D(tile));
      };
      const auto none = make_fragment_like<float>(gD);
      clear(none);
      const auto sums = For(range(a.shape(1) / kK), make_accumulator(mma, none),
                            [&](const Int& k, const AccumulatorTile<float>& so_far) {
                              bring(gA(_, _, _, k), sA);
                              bring(gB(_, _, _, k), sB);
                              sync_threads();
                              const auto added = gemm(mine, sA, sB, so_far);
                              sync_threads();
                              return added;
                            });
      copy(settle(sums), gD);
    });

inline constexpr LaunchShape product_registers_shape = {.block = 256};

}  // namespace heddle::learn
