// Products, rung 5: copies run ahead of the products, by cp.async.
//
//   product_cp_async.launch(stream, product_cp_async_shape, a, b, d);
//
// m, n and k are multiples of 128, 128 and 32.
// Changed: the copy's atom, and four stages of tiles in place of one. cp.async writes shared
// memory without registers between, and nobody waits for it but copy_async_wait().
// Faster: while a stage is multiplied, copies fill the three behind it, so the latency of memory,
// some 600 cycles, passes behind three blocks of products. One barrier a block of k is enough: it
// shows a stage's data to all threads, and says that all have read the stage before it.
#pragma once

#include <tuple>

#include "heddle/kernels/learn/product/product.h"

namespace heddle::learn {

inline const auto product_cp_async =
    define_kernel("product_cp_async(a, b, d)", [](ProductIn a, ProductIn b, ProductOut d) {
      constexpr int kTile = 128, kK = 32, kThreads = 128, kStages = 4;
      require_tiles(a, b, d, kTile, kTile, kK);
      require_block(kThreads);
      launch_grid(d.shape(1) / kTile, d.shape(0) / kTile);
      const TiledMma mma = make_tiled_mma(
          make_mma_atom(MmaSync<bfloat16, bfloat16, float>{16, 8, 16}), {2, 2, 1}, {_, 32, _});
      const ThrMma mine = mma.get_slice(thread_idx.x);
      const TiledCopy loads =
          make_tiled_copy(make_copy_atom<bfloat16>(CopyAsync{128}),
                          make_layout({32, 4}, GenRowMajor{}), make_layout({1, 8}));
      const ThrCopy part = loads.get_slice(thread_idx.x);
      const auto sA = make_smem_tensor<bfloat16>(make_smem_layout_A(mma, {kTile, kK, kStages}));
      const auto sB = make_smem_tensor<bfloat16>(make_smem_layout_B(mma, {kTile, kK, kStages}));
      const auto gA = part.partition_S(local_tile(a, {kTile, kK}, {block_idx.y, _}));
      const auto gB = part.partition_S(local_tile(b, {kTile, kK}, {block_idx.x, _}));
      const auto gD = mine.partition_C(local_tile(d, {kTile, kTile}, {block_idx.y, block_idx.x}));
      const Int blocks = a.shape(1) / kK;
      // A group of copies for each block of k; behind the last one it is empty.
      const auto load = [&](const Int& k, const Int& stage) {
        If(k < blocks, [&] {
          copy(loads, gA(_, _, _, k), part.partition_D(sA)(_, _, _, stage));
          copy(loads, gB(_, _, _, k), part.partition_D(sB)(_, _, _, stage));
        });
        copy_async_commit();
      };
      for (int stage = 0; stage < kStages - 1; ++stage) load(stage, stage);
      const auto none = make_fragment_like<float>(gD);
      clear(none);
      using Loop = std::tuple<AccumulatorTile<float>, Int>;
      const auto [sums, last] = For(
          range(blocks), Loop(make_accumulator(mma, none), 0), [&](const Int& k, const Loop& loop) {
            const auto& [so_far, stage] = loop;
            copy_async_wait(kStages - 2);
            sync_threads();
            // All threads have read the stage of the block before: it takes the next copies.
            load(k + (kStages - 1), select(stage == 0, kStages - 1, stage - 1));
            const auto more = gemm(mine, sA(_, _, stage), sB(_, _, stage), so_far);
            return Loop(more, select(stage == kStages - 1, 0, stage + 1));
          });
      copy(settle(sums), gD);
    });

inline constexpr LaunchShape product_cp_async_shape = {.block = 128};

}  // namespace heddle::learn
