// The kernels of a product on Hopper's tensor cores: persistent and warp-specialised. One warp loads
// tiles by the copy engine, warpgroups multiply them, and the blocks of a cluster share what they
// load. Configurations decide whether warpgroups share tiles or take turns (turns.h), and whether blocks
// share the depths of tiles: those of a cluster (split.h), or all (stream_k.h).
#pragma once

#include <optional>
#include <tuple>

#include "heddle/kernels/gemm/results.h"
#include "heddle/kernels/gemm/split.h"
#include "heddle/kernels/gemm/sums.h"
#include "heddle/kernels/gemm/turns.h"
#include "heddle/runtime/heddle.h"

namespace heddle::kernels {
namespace hopper {

// A tile is computed by warpgroups that multiply what one warp loads. `tiles` says which tiles (tiles.h),
// and `loop` how their products are summed (sums.h).
template <class T, class D, class Tiles, class Loop, class Epilogue, class... Args>
void gemm_body(const GemmConfig& c, const Tiles& tiles, const Loop& loop, const Epilogue& epilogue,
               const Tensor<const T, 3>& a, const Tensor<const T, 3>& b, const Tensor<D, 3>& d,
               const Args&... args) {
  constexpr bool kHasEpilogue = !std::is_same_v<Epilogue, PlainSums>;
  // Results of 16 bits leave registers for those of the tile before, but none for stores of single rows.
  const bool stores_late = sizeof(D) <= 2 && c.stores_boxes && !Tiles::kEndsInside && !c.ping_pong;
  // What no product of the same warpgroup hides leaves as it is computed.
  const bool stores_parts = c.ping_pong && c.stores_boxes && !Tiles::kEndsInside;
  const TiledMma mma =
      make_tiled_mma(make_mma_atom(Wgmma<T, T, float>{c.n}), {c.groups_of_tile(), 1, 1});
  const auto sA = make_smem_tensor<T>(make_smem_layout_A(mma, {c.m, c.k, c.stages}, c.a));
  const auto sB = make_smem_tensor<T>(make_smem_layout_B(mma, {c.n, c.k, c.stages}, c.b));
  const GemmResults<D> results(c, d, Tiles::kEndsInside);
  const ClusterGrid cluster = cluster_of(c);
  const BoxOptions whole_lines{.promotion = 256};
  const int a_rows = c.a_rows == 0 ? c.m : c.a_rows;
  const auto rows_of_a = [&](const Int& stage) {
    return local_tile(sA(_, _, stage), {a_rows, c.k}, {0, 0});
  };
  const TmaAtom load_a = make_tma_atom(TmaLoad{cluster.columns}, a, rows_of_a(0), whole_lines);
  const TmaAtom load_b = make_tma_atom(TmaLoad{cluster.rows}, b, sB(_, _, 0), whole_lines);
  const TmaPipeline pipe({.stages = c.stages,
                          .bytes = load_a.bytes() + load_b.bytes(),
                          .consumers = c.groups_of_tile(),
                          .cluster = cluster});
  // This block's part of k, of all tiles or of one.
  const Int blocks = ceil_div(a.shape(1), c.k);
  const Int first_block = c.split == 1 ? Int(0) : blocks * cluster_rank() / c.split;
  const Int behind = c.split == 1 ? blocks : blocks * (cluster_rank() + 1) / c.split;
  const auto depth_of = [&](const auto& tile) {
    if constexpr (Tiles::kSharesDepths)
      return tile.depth;
    else
      return Depth{first_block, behind};
  };
  const std::optional<SplitSums> split =
      c.split == 1 ? std::nullopt : std::optional<SplitSums>(std::in_place, c);
  If(thread_idx.x == 0, [&] {
    load_a.prefetch();
    load_b.prefetch();
    results.prefetch();
  });
  if (split) split->start();
  pipe.start();
  if (split) sync_cluster();
  grid_dependency_launch();

  // Bands of a stay in L2 while b passes through.
  const detail::View<const T, 3>& every_a = a;
  const detail::View<const T, 3>& every_b = b;
  const auto again = c.keeps_band ? every_a.with(L2Evict::last) : every_a;
  const auto once = c.keeps_band ? every_b.with(L2Evict::first) : every_b;
  const auto load_tiles = [&](const Int&) {
    If(warp_id() == 0, [&] {
      grid_dependency_wait();
      For(tiles, pipe.producer(), [&](const auto& tile, const PipelineState& first) {
        const auto rows = domain_offset({tile.row, 0, tile.batch}, again);
        const auto columns = domain_offset({tile.column, 0, tile.factor}, once);
        const auto gA = local_tile(rows, {a_rows, c.k, 1}, {0, _, 0})(_, _, 0, _);
        const auto gB = local_tile(columns, {c.n, c.k, 1}, {0, _, 0})(_, _, 0, _);
        const Depth depth = depth_of(tile);
        return For(range(depth.first, depth.behind), first,
                   [&](const Int& k, const PipelineState& p) {
                     pipe.produce(p, [&](const FullStage& full) {
                       copy(full.load_for_row(load_a), gA(_, _, k), rows_of_a(p.index));
                       copy(full.load_for_column(load_b), gB(_, _, k), sB(_, _, p.index));
                     });
                     return pipe.next(p);
                   });
      });
    });
  };

  const auto multiply_tiles = [&](const Int& thread) {
    const Int group = thread / kWarpGroupSize;
    if (a_rows != c.m) clear_rows(c, sA, a_rows, thread);
    const GemmStages<T> stages{c,
                               pipe,
                               mma.get_slice(c.ping_pong ? thread % kWarpGroupSize : thread),
                               sA,
                               sB,
                               first_block,
                               behind - first_block};
    const auto& schedule = tiles.schedule();
    const Turns turns(c, schedule, group, stages.blocks);
    const Tensor<D> finished = make_tensor<D>({c.columns() / 2, c.rows_of_group() / kProductRows});
    const Int first_tile = schedule.first();
    using Carried = std::tuple<PipelineState, Int, UInt>;
    const Carried begin(turns.first(pipe.consumer()), first_tile, 0u);
    const Carried end = For(turns.mine(), begin, [&](const Int& number, const Carried& before) {
      // The results of a tile are stored while the first products of the next one run.
      const auto tile = tiles.at(number);
      const auto store_last = [&] {
        if (!stores_late) return;
        If(Tiles::kSharesDepths ? number > first_tile : number != first_tile,
           [&] { results.store(finished, tiles.at(std::get<1>(before)), group); });
      };
      turns.wait(number);
      const TileSums done = loop(Tiles::kSharesDepths ? stages.of(depth_of(tile)) : stages, tile,
                                 std::get<0>(before), store_last, [&] {
                                   turns.pass(number);
                                   if (!kHasEpilogue) return;
                                   results.prefetch_for_epilogue(tile, thread, args...);
                                   pin_with_early_loads();
                                 });
      const UInt& phase = std::get<2>(before);
      const auto finish = [&](const Tensor<float>& all) {
        if (stores_parts) return results.compute_and_store(epilogue, all, tile, group, args...);
        results.compute(epilogue, all, finished, tile, group, args...);
        if (c.stores_boxes && !stores_late) results.store(finished, tile, group);
      };
      const Tensor<float> sums = done.first(_, _, 0);
      if constexpr (Tiles::kSharesDepths) {
        // Registers need not keep results where there are none.
        tiles.bring_together(sums, tile, thread, finish, [&] { clear(finished); });
      } else {
        finish(split ? (*split)(done.first, phase, thread) : sums);
      }
      return Carried(turns.next(done.second), number, phase ^ 1u);
    });
    if (stores_late) {
      If(first_tile < schedule.count(),
         [&] { results.store(finished, tiles.at(std::get<1>(end)), group); });
    }
    results.wait();
  };

  const auto [few, many] = c.registers(Loop::kAccumulators, kHasEpilogue);
  warp_roles(Role{1, few, load_tiles}, Role{c.groups, many, multiply_tiles});
  // No block ends while another arrives at its barriers or copies to its memory.
  if (c.cluster() > 1) sync_cluster();
}

}  // namespace hopper
}  // namespace heddle::kernels
