// Products, rung 8: warps with roles, and a tile twice as wide.
//
//   product_roles.launch(stream, product_roles_shape, a, b, d);
//
// m, n and k are multiples of 128, 256 and 64.
// Changed: one warp of a warpgroup of its own loads; two warpgroups multiply, and never wait for a
// free stage. The loading one gives its registers up, so that the others have 232 a thread: enough
// for the sums of 64 x 256 elements, 128 of them in each thread.
// Faster: a tile of 128 x 256 reads 1/85 of an element a multiply-add from L2 where 128 x 128
// reads 1/64, and m64n256k16 reads 80 bytes a cycle from shared memory, which gives 128, where
// m64n128k16 reads 96.
#pragma once

#include <tuple>

#include "heddle/kernels/learn/product/product.h"

namespace heddle::learn {

inline const auto product_roles =
    define_kernel("product_roles(a, b, d)", [](ProductIn a, ProductIn b, ProductOut d) {
      constexpr int kM = 128, kN = 256, kK = 64, kStages = 4, kGroups = 2;
      require_tiles(a, b, d, kM, kN, kK);
      require_block((1 + kGroups) * kWarpGroupSize);
      launch_grid(d.shape(1) / kN, d.shape(0) / kM);
      const TiledMma mma =
          make_tiled_mma(make_mma_atom(Wgmma<bfloat16, bfloat16, float>{kN}), {kGroups, 1, 1});
      const auto sA = make_smem_tensor<bfloat16>(make_smem_layout_A(mma, {kM, kK, kStages}));
      const auto sB = make_smem_tensor<bfloat16>(make_smem_layout_B(mma, {kN, kK, kStages}));
      const TmaAtom load_a = make_tma_atom(TmaLoad{}, a, sA(_, _, 0));
      const TmaAtom load_b = make_tma_atom(TmaLoad{}, b, sB(_, _, 0));
      const TmaPipeline pipe(
          {.stages = kStages, .bytes = load_a.bytes() + load_b.bytes(), .consumers = kGroups});
      pipe.start();
      const Int blocks = a.shape(1) / kK;

      const auto load = [&](const Int&) {
        const auto gA = local_tile(a, {kM, kK}, {block_idx.y, _});
        const auto gB = local_tile(b, {kN, kK}, {block_idx.x, _});
        If(warp_id() == 0, [&] {
          For(range(blocks), pipe.producer(), [&](const Int& k, const PipelineState& p) {
            pipe.produce(p, [&](const FullStage& full) {
              copy(full.load(load_a), gA(_, _, k), sA(_, _, p.index));
              copy(full.load(load_b), gB(_, _, k), sB(_, _, p.index));
            });
            return pipe.next(p);
          });
        });
      };
      const auto multiply = [&](const Int& thread) {
        const ThrMma mine = mma.get_slice(thread);
        using Loop = std::tuple<AccumulatorTile<float>, PipelineState, Int>;
        const Loop none(make_accumulator<float>(mma, {kM, kN}), pipe.consumer(), 0);
        const auto [sums, behind, last] =
            For(range(blocks), none, [&](const Int& k, const Loop& loop) {
              const auto& [so_far, p, stage] = loop;
              const Int& before = stage;
              pipe.wait(p);
              const auto added = gemm(mine, sA(_, _, p.index), sB(_, _, p.index), so_far, k != 0);
              wait(mma, 1);
              If(k != 0, [&] { pipe.release(before); });
              return Loop(added, pipe.next(p), p.index);
            });
        const auto gD = mine.partition_C(local_tile(d, {kM, kN}, {block_idx.y, block_idx.x}));
        copy(settle(sums), gD);
      };
      warp_roles(Role{1, 40, load}, Role{kGroups, 232, multiply});
    });

inline constexpr LaunchShape product_roles_shape = {.block = 384};

}  // namespace heddle::learn
