// Products, rung 9: blocks that stay, and results that the copy engine stores.
//
//   product_persistent.launch(stream, product_persistent_shape(device.info()), a, b, d);
//
// m, n and k are multiples of 128, 256 and 64.
// Changed: there is a block for each multiprocessor, which takes one tile after the other, in
// bands of eight rows of tiles. Results leave by stmatrix and TMA (tile_store.h).
// Faster: the warp that loads goes on to the next tile while this one's results leave, so its
// first products need not wait for memory. 132 tiles in a band are some 8 x 16, where rows of 32
// tiles make 4 x 32: 24 rows and columns of tiles from memory in place of 36, the rest from L2.
// And nobody waits for stores, which are whole lines of 128 bytes.
#pragma once

#include <tuple>

#include "heddle/kernels/learn/product/tile_store.h"

namespace heddle::learn {

inline void product_persistent_body(const ProductIn& a, const ProductIn& b, const ProductOut& d) {
  constexpr int kM = 128, kN = 256, kK = 64, kStages = 4, kGroups = 2;
  require_tiles(a, b, d, kM, kN, kK);
  const TiledMma mma =
      make_tiled_mma(make_mma_atom(Wgmma<bfloat16, bfloat16, float>{kN}), {kGroups, 1, 1});
  const auto sA = make_smem_tensor<bfloat16>(make_smem_layout_A(mma, {kM, kK, kStages}));
  const auto sB = make_smem_tensor<bfloat16>(make_smem_layout_B(mma, {kN, kK, kStages}));
  const TmaAtom load_a = make_tma_atom(TmaLoad{}, a, sA(_, _, 0));
  const TmaAtom load_b = make_tma_atom(TmaLoad{}, b, sB(_, _, 0));
  const TileStore store(d, kGroups);
  const TmaPipeline pipe(
      {.stages = kStages, .bytes = load_a.bytes() + load_b.bytes(), .consumers = kGroups});
  pipe.start();
  const PersistentTiles tiles(d.shape(0) / kM, d.shape(1) / kN, 1, {.band = 8});
  const Int blocks = a.shape(1) / kK;

  const auto load = [&](const Int&) {
    If(warp_id() == 0, [&] {
      For(tiles, pipe.producer(), [&](const Tile& tile, const PipelineState& first) {
        const auto gA = local_tile(a, {kM, kK}, {tile.row, _});
        const auto gB = local_tile(b, {kN, kK}, {tile.column, _});
        return For(range(blocks), first, [&](const Int& k, const PipelineState& p) {
          pipe.produce(p, [&](const FullStage& full) {
            copy(full.load(load_a), gA(_, _, k), sA(_, _, p.index));
            copy(full.load(load_b), gB(_, _, k), sB(_, _, p.index));
          });
          return pipe.next(p);
        });
      });
    });
  };
  const auto multiply = [&](const Int& thread) {
    const ThrMma mine = mma.get_slice(thread);
    For(tiles, pipe.consumer(), [&](const Tile& tile, const PipelineState& first) {
      using Loop = std::tuple<AccumulatorTile<float>, PipelineState, Int>;
      const Loop none(make_accumulator<float>(mma, {kM, kN}), first, 0);
      const auto [sums, next, last] = For(range(blocks), none, [&](const Int& k, const Loop& loop) {
        const auto& [so_far, p, stage] = loop;
        const Int& before = stage;
        pipe.wait(p);
        const auto added = gemm(mine, sA(_, _, p.index), sB(_, _, p.index), so_far, k != 0);
        wait(mma, 1);
        If(k != 0, [&] { pipe.release(before); });
        return Loop(added, pipe.next(p), p.index);
      });
      const auto done = settle(sums);
      pipe.release(last);
      const auto results = make_fragment_like<bfloat16>(done);
      copy(done, results);
      store(results, tile, thread);
      return next;
    });
    store.finish(thread);
  };
  warp_roles(Role{1, 40, load}, Role{kGroups, 232, multiply});
}
inline const auto product_persistent =
    define_kernel("product_persistent(a, b, d)", product_persistent_body);

// As many blocks as the GPU has multiprocessors.
inline LaunchShape product_persistent_shape(const DeviceInfo& device) {
  return {.grid = device.sm_count, .block = 384};
}

}  // namespace heddle::learn
