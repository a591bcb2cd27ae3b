// Products, rung 7: several stages, so that the copy engine and the tensor cores work at once.
//
//   product_pipeline.launch(stream, product_pipeline_shape, a, b, d);
//
// m, n and k are multiples of 128, 128 and 64.
// Changed: four stages. TmaPipeline has two barriers for each: `full` counts the bytes that
// arrive, `empty` the warpgroups that have read them.
// Faster: three stages are under way while one is multiplied; and wait(mma, 1) leaves a product
// running while the next one is started, so the tensor cores find it there when they are done.
#pragma once

#include <tuple>

#include "heddle/kernels/learn/product/product.h"

namespace heddle::learn {

inline const auto product_pipeline =
    define_kernel("product_pipeline(a, b, d)", [](ProductIn a, ProductIn b, ProductOut d) {
      constexpr int kTile = 128, kK = 64, kThreads = 256, kStages = 4;
      require_tiles(a, b, d, kTile, kTile, kK);
      require_block(kThreads);
      launch_grid(d.shape(1) / kTile, d.shape(0) / kTile);
      const TiledMma mma =
          make_tiled_mma(make_mma_atom(Wgmma<bfloat16, bfloat16, float>{kTile}), {2, 1, 1});
      const ThrMma mine = mma.get_slice(thread_idx.x);
      const auto sA = make_smem_tensor<bfloat16>(make_smem_layout_A(mma, {kTile, kK, kStages}));
      const auto sB = make_smem_tensor<bfloat16>(make_smem_layout_B(mma, {kTile, kK, kStages}));
      const TmaAtom load_a = make_tma_atom(TmaLoad{}, a, sA(_, _, 0));
      const TmaAtom load_b = make_tma_atom(TmaLoad{}, b, sB(_, _, 0));
      const auto gA = local_tile(a, {kTile, kK}, {block_idx.y, _});
      const auto gB = local_tile(b, {kTile, kK}, {block_idx.x, _});
      const auto gD = mine.partition_C(local_tile(d, {kTile, kTile}, {block_idx.y, block_idx.x}));
      const TmaPipeline pipe({.stages = kStages,
                              .bytes = load_a.bytes() + load_b.bytes(),
                              .consumers = kThreads / kWarpGroupSize});
      pipe.start();
      const Int blocks = a.shape(1) / kK;
      const auto load = [&](const Int& k, const PipelineState& to) {
        If(warp_id() == 0 && k < blocks, [&] {
          pipe.produce(to, [&](const FullStage& full) {
            copy(full.load(load_a), gA(_, _, k), sA(_, _, to.index));
            copy(full.load(load_b), gB(_, _, k), sB(_, _, to.index));
          });
        });
        return pipe.next(to);
      };
      const PipelineState ahead = For(range(kStages - 1), pipe.producer(), load);
      using Loop = std::tuple<AccumulatorTile<float>, PipelineState, PipelineState>;
      const auto [sums, next, behind] = For(
          range(blocks), Loop(make_accumulator<float>(mma, {kTile, kTile}), ahead, pipe.consumer()),
          [&](const Int& k, const Loop& loop) {
            const auto& [so_far, to, from] = loop;
            pipe.wait(from);
            const auto added =
                gemm(mine, sA(_, _, from.index), sB(_, _, from.index), so_far, k != 0);
            // The product before is complete, and its stage takes the next copies.
            wait(mma, 1);
            const Int before = select(from.index == 0, kStages - 1, from.index - 1);
            If(k != 0, [&] { pipe.release(before); });
            return Loop(added, load(k + (kStages - 1), to), pipe.next(from));
          });
      copy(settle(sums), gD);
    });

inline constexpr LaunchShape product_pipeline_shape = {.block = 256};

}  // namespace heddle::learn
