// Products, rung 10: blocks share tiles, and results leave while the next products run.
//
//   product_cluster.launch(stream, product_cluster_shape(device.info()), a, b, d);
//
// m, n and k are multiples of 256, 256 and 128.
// Changed: two blocks below each other are a cluster, and have the same columns of d. Each loads
// half of b's tile, for both (multicast). Results stay in registers, as bf16, until the next
// tile's first two products have been started.
// Faster: a block reads 128 + 128 rows from L2 for a step along k, where it read 128 + 256. And
// the tensor cores have work while results leave. This is the kernel of kernels/gemm/hopper.h but
// for its choices: element types, transposes, tiles of other sizes, edges, and epilogues.
#pragma once

#include <tuple>

#include "heddle/kernels/learn/product/tile_store.h"

namespace heddle::learn {

inline void product_cluster_body(const ProductIn& a, const ProductIn& b, const ProductOut& d) {
  constexpr int kM = 128, kN = 256, kK = 64, kStages = 4, kGroups = 2;
  const ClusterGrid cluster{.rows = 2};
  require_tiles(a, b, d, kM * cluster.rows, kN, 2 * kK);
  const TiledMma mma =
      make_tiled_mma(make_mma_atom(Wgmma<bfloat16, bfloat16, float>{kN}), {kGroups, 1, 1});
  const auto sA = make_smem_tensor<bfloat16>(make_smem_layout_A(mma, {kM, kK, kStages}));
  const auto sB = make_smem_tensor<bfloat16>(make_smem_layout_B(mma, {kN, kK, kStages}));
  const TmaAtom load_a = make_tma_atom(TmaLoad{}, a, sA(_, _, 0));
  const TmaAtom load_b = make_tma_atom(TmaLoad{cluster.rows}, b, sB(_, _, 0));
  const TileStore store(d, kGroups);
  const TmaPipeline pipe({.stages = kStages,
                          .bytes = load_a.bytes() + load_b.bytes(),
                          .consumers = kGroups,
                          .cluster = cluster});
  pipe.start();
  const PersistentTiles tiles(d.shape(0) / (kM * cluster.rows), d.shape(1) / kN, 1,
                              {.band = 8, .cluster = cluster.size()});
  const Int cluster_row = cluster.row(), blocks = a.shape(1) / kK;
  // This block's half of a cluster's tile.
  const auto at = [&](const Int& number) {
    const Tile tile = tiles.at(number);
    return Tile{tile.row * cluster.rows + cluster_row, tile.column, tile.batch};
  };

  const auto load = [&](const Int&) {
    If(warp_id() == 0, [&] {
      For(tiles.mine(), pipe.producer(), [&](const Int& number, const PipelineState& first) {
        const Tile tile = at(number);
        const auto gA = local_tile(a, {kM, kK}, {tile.row, _});
        const auto gB = local_tile(b, {kN, kK}, {tile.column, _});
        return For(range(blocks), first, [&](const Int& k, const PipelineState& p) {
          pipe.produce(p, [&](const FullStage& full) {
            copy(full.load(load_a), gA(_, _, k), sA(_, _, p.index));
            copy(full.load_for_column(load_b), gB(_, _, k), sB(_, _, p.index));
          });
          return pipe.next(p);
        });
      });
    });
  };
  const auto multiply = [&](const Int& thread) {
    const ThrMma mine = mma.get_slice(thread);
    const auto results = make_tensor<bfloat16>(partition_shape_C(mma, {kM, kN}));
    clear(results);
    using Loop = std::tuple<AccumulatorTile<float>, PipelineState, Int>;
    const auto product = [&](const Loop& loop, bool adds) {
      const auto& [so_far, p, before] = loop;
      pipe.wait(p);
      return Loop(gemm(mine, sA(_, _, p.index), sB(_, _, p.index), so_far, adds), pipe.next(p),
                  p.index);
    };
    const Int first_tile = block_idx.x / cluster.size();
    using Carried = std::tuple<PipelineState, Int>;
    const auto compute = [&](const Int& number, const Carried& carried) {
      const auto& [first, number_before] = carried;
      const Int& before = number_before;
      const Loop none(make_accumulator<float>(mma, {kM, kN}), first, 0);
      const Loop begun = product(product(none, false), true);
      // Two products run while the tile before leaves.
      If(number != first_tile, [&] { store(results, at(before), thread); });
      wait(mma, 1);
      pipe.release(first);
      const auto [sums, next, last] =
          For(range(2, blocks), begun, [&](const Int&, const Loop& loop) {
            const Loop added = product(loop, true);
            wait(mma, 1);
            pipe.release(std::get<2>(loop));
            return added;
          });
      const auto done = settle(sums);
      pipe.release(last);
      copy(done, results);
      return Carried(next, number);
    };
    const Int last_tile =
        std::get<1>(For(tiles.mine(), Carried(pipe.consumer(), first_tile), compute));
    If(first_tile < tiles.count(), [&] { store(results, at(last_tile), thread); });
    store.finish(thread);
  };
  warp_roles(Role{1, 40, load}, Role{kGroups, 232, multiply});
  // No block ends while the other one arrives at its barriers or copies to its memory.
  sync_cluster();
}
inline const auto product_cluster = define_kernel("product_cluster(a, b, d)", product_cluster_body);

// As many clusters of two blocks as the GPU has room for.
inline LaunchShape product_cluster_shape(const DeviceInfo& device) {
  return {.grid = device.sm_count / 2 * 2, .block = 384, .cluster = 2};
}

}  // namespace heddle::learn
