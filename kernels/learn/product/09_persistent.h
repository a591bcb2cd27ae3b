// Products, rung 9: blocks that stay, and results that the copy engine stores.
//
//   product_persistent.launch(stream, product_persistent_shape(device.info()), a, b, d);
//
// m, n and k are multiples of 128, 256 and 64.
// Changed: there is a block for each multiprocessor, which takes one tile after the other, in
// bands of eight rows of tiles. Sums go to shared memory by stmatrix, 64 columns at a time through
// two buffers, and on from there by TMA.
// Faster: the warp that loads is a tile ahead by up to four stages, so the next tile's first
// products need not wait. The tiles at work at one time lie close together, 8 x 16 of them and not
// 4 x 32, and share more rows and columns of tiles, which L2 then reads once. Stores are whole
// lines of 128 bytes, and nobody waits for them.
#pragma once

#include <tuple>

#include "heddle/kernels/learn/product/product.h"

namespace heddle::learn {

inline const auto product_persistent = define_kernel("product_persistent(a, b, d)", [](ProductIn a,
                                                                                       ProductIn b,
                                                                                       ProductOut
                                                                                           d) {
  constexpr int kM = 128, kN = 256, kK = 64, kStages = 4, kGroups = 2;
  constexpr int kRows = kM / kGroups, kColumns = 64, kParts = kN / kColumns, kBuffers = 2;
  constexpr int kPiece = kRows * kColumns / kWarpGroupSize;  // elements of a thread
  require_tiles(a, b, d, kM, kN, kK);
  const TiledMma mma =
      make_tiled_mma(make_mma_atom(Wgmma<bfloat16, bfloat16, float>{kN}), {kGroups, 1, 1});
  const auto sA = make_smem_tensor<bfloat16>(make_smem_layout_A(mma, {kM, kK, kStages}));
  const auto sB = make_smem_tensor<bfloat16>(make_smem_layout_B(mma, {kN, kK, kStages}));
  const auto sD = make_smem_tensor<bfloat16>(make_smem_layout<bfloat16>({kM, kColumns, kBuffers}));
  const TmaAtom load_a = make_tma_atom(TmaLoad{}, a, sA(_, _, 0));
  const TmaAtom load_b = make_tma_atom(TmaLoad{}, b, sB(_, _, 0));
  const TmaAtom store_d =
      make_tma_atom(TmaStore{}, d, local_tile(sD(_, _, 0), {kRows, kColumns}, {0, 0}));
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
    const Int group = thread / kWarpGroupSize;
    const Bool leads = thread % kWarpGroupSize == 0;
    // Of 64 columns, by stmatrix.
    const TiledCopy puts = make_tiled_copy_C(
        make_copy_atom<bfloat16>(StMatrix{4}),
        make_tiled_mma(make_mma_atom(Wgmma<bfloat16, bfloat16, float>{kColumns}), {kGroups, 1, 1}));
    const ThrCopy own = puts.get_slice(thread);
    For(tiles, pipe.consumer(), [&](const Tile& tile, const PipelineState& first) {
      using Loop = std::tuple<AccumulatorTile<float>, PipelineState, Int>;
      const Loop none(make_accumulator<float>(mma, {kM, kN}), first, 0);
      const auto [sums, next, last] = For(range(blocks), none, [&](const Int& k, const Loop& loop) {
        const auto& [so_far, p, before] = loop;
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
      for (int part = 0; part < kParts; ++part) {
        const auto buffer = sD(_, _, part % kBuffers);
        If(leads, [&] { bulk_wait_read(kBuffers - 1); });
        named_barrier_sync(group + 1, kWarpGroupSize);
        const auto piece = local_tile(results, {kPiece, 1, 1}, {part, 0, 0});
        copy(puts, own.retile(piece), own.partition_D(buffer));
        fence_async();
        named_barrier_sync(group + 1, kWarpGroupSize);
        If(leads, [&] {
          copy(store_d, local_tile(buffer, {kRows, kColumns}, {group, 0}),
               local_tile(d, {kRows, kColumns},
                          {tile.row * kGroups + group, tile.column * kParts + part}));
          bulk_commit();
        });
      }
      return next;
    });
    If(leads, [&] { bulk_wait(); });
  };
  warp_roles(Role{1, 40, load}, Role{kGroups, 232, multiply});
});

// As many blocks as the GPU has multiprocessors.
inline LaunchShape product_persistent_shape(const DeviceInfo& device) {
  return {.grid = device.sm_count, .block = 384};
}

}  // namespace heddle::learn
