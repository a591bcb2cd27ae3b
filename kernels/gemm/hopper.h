// The kernels of a product on Hopper's tensor cores: persistent and warp-specialised. One warp loads
// tiles by the copy engine, warpgroups multiply them, and the blocks of a cluster share what they
// load. There is a kernel for each element type, result type, configuration and epilogue.
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "heddle/kernels/gemm/config.h"
#include "heddle/kernels/gemm/epilogue.h"
#include "heddle/runtime/heddle.h"

namespace heddle::kernels {
namespace hopper {

constexpr int kProductRows = 64, kWarpRows = 16;  // of one wgmma, and of them each warp's

// Registers of a thread that loads, and of one that multiplies.
struct Registers {
  // Of the warp that loads, and of the warps that multiply.
  int few, many;
};
// What all have from the start is enough for few columns.
inline Registers registers(const GemmConfig& c) {
  if (c.groups == 3) return {32, 160};
  const int elements = c.rows_of_group() / kProductRows * c.n / 2;
  return c.groups == 2 && elements > 64 ? Registers{40, 232} : Registers{0, 0};
}

// The elements of accumulators, once the tensor cores have written them.
template <std::size_t... I, class Sums>
std::array<Fragment<float>, sizeof...(I)> settled(const Sums& sums, std::index_sequence<I...>) {
  return {wgmma_wait(sums[I])...};
}
// finish(sums, i) of each, as elements of D.
template <class D, class Finish, std::size_t... I>
std::array<Fragment<D>, sizeof...(I)> finished(
    const std::array<Fragment<float>, sizeof...(I)>& sums, const Finish& finish,
    std::index_sequence<I...>) {
  return {cast<D>(finish(sums[I], static_cast<int>(I)))...};
}
// Accumulators of 64 x n without a content, and results of no consequence.
template <std::size_t... I>
std::array<Accumulator<float>, sizeof...(I)> begun(int n, std::index_sequence<I...>) {
  return {((void)I, wgmma_begin<float>(n))...};
}
template <class T, std::size_t... I>
std::array<Fragment<T>, sizeof...(I)> no_results(int count, std::index_sequence<I...>) {
  return {((void)I, Fragment<T>(count, Value<T>(T(0.0f))))...};
}

// Puts 16 rows of a warp's results, columns from `first` on, into its tile of shared memory.
template <class D>
void put(const Tensor<D>& tile, const Fragment<D>& results, int first, int columns) {
  if constexpr (sizeof(D) == 2) {
    const Int row = lane_id() % 16, column = lane_id() / 16 * 8;
    for (int i = 0; i < columns; i += 16) {
      stmatrix(tile.at({row, i + column}), results.slice((first + i) / 2, 8));
    }
  } else {
    const Int row = lane_id() / 4, pair = lane_id() % 4;
    for (int i = 0; i < columns; i += 8) {
      for (int below = 0; below < 2; ++below) {
        store(local_tile(tile, {1, 2}, {row + 8 * below, i / 2 + pair}),
              results.slice((first + i) / 2 + 2 * below, 2));
      }
    }
  }
}

// kBlocks products of 64 rows lie below each other in a warpgroup's part of the tile.
template <int kBlocks, class T, class D, class Epilogue, class... Args>
void gemm_body(const GemmConfig& c, const Epilogue& epilogue, const Tensor<const T, 3>& a,
               const Tensor<const T, 3>& b, const Tensor<D, 3>& d, const Args&... args) {
  constexpr std::make_index_sequence<kBlocks> kEach;
  // Results of 16 bits leave registers for those of the tile before.
  constexpr bool kFewBits = sizeof(D) <= 2;
  const bool stores_late = kFewBits && c.stores_boxes;
  using Sums = std::array<Accumulator<float>, kBlocks>;
  using Results = std::array<Fragment<D>, kBlocks>;
  const auto sA = make_smem_tensor<T>(make_smem_layout<T>({c.m, c.k, c.stages}, c.a));
  const auto sB = make_smem_tensor<T>(make_smem_layout<T>({c.n, c.k, c.stages}, c.b));
  const auto sD = make_smem_tensor<D>(make_smem_layout<D>({c.m, c.store_columns, c.store_buffers}));
  const ClusterGrid cluster{c.cluster_rows, c.cluster_columns};
  const BoxOptions whole_lines{.promotion = 256};
  const IntTuple of_warp = {kWarpRows, c.store_columns};
  const TmaAtom load_a = make_tma_atom(TmaLoad{cluster.columns}, a, sA(_, _, 0), whole_lines);
  const TmaAtom load_b = make_tma_atom(TmaLoad{cluster.rows}, b, sB(_, _, 0), whole_lines);
  const TmaAtom store_d = make_tma_atom(TmaStore{}, d, local_tile(sD(_, _, 0), of_warp, {0, 0}));

  const TmaPipeline pipe({.stages = c.stages,
                          .bytes = load_a.bytes() + load_b.bytes(),
                          .consumers = c.groups,
                          .cluster = cluster});
  const PersistentTiles tiles(ceil_div(d.shape(0), c.m * cluster.rows),
                              ceil_div(d.shape(1), c.n * cluster.columns), d.shape(2),
                              {.band = c.band, .cluster = cluster.size()});
  const Int blocks = ceil_div(a.shape(1), c.k);
  const IntTuple extents = {d.shape(0), d.shape(1), d.shape(2)};
  const Int cluster_row = cluster.row(), cluster_column = cluster.column();
  // This block's tile of a cluster's.
  const auto mine = [&](const Int& i) {
    const Tile tile = tiles.at(i);
    return Tile{tile.row * cluster.rows + cluster_row,
                tile.column * cluster.columns + cluster_column, tile.batch};
  };
  If(thread_idx.x == 0, [&] {
    load_a.prefetch();
    load_b.prefetch();
    if (c.stores_boxes) store_d.prefetch();
  });
  pipe.start();
  grid_dependency_launch();

  // Bands of a stay in L2 while b passes through.
  const detail::View<const T, 3>& every_a = a;
  const detail::View<const T, 3>& every_b = b;
  const auto again = c.keeps_band ? every_a.with(L2Evict::last) : every_a;
  const auto once = c.keeps_band ? every_b.with(L2Evict::first) : every_b;
  const auto load = [&](const Int&) {
    If(warp_id() == 0, [&] {
      grid_dependency_wait();
      For(tiles.mine(), pipe.producer(), [&](const Int& i, const PipelineState& first) {
        const Tile tile = mine(i);
        const auto gA = local_tile(again, {c.m, c.k, 1}, {tile.row, _, tile.batch})(_, _, 0, _);
        const auto gB = local_tile(once, {c.n, c.k, 1}, {tile.column, _, tile.batch})(_, _, 0, _);
        return For(range(blocks), first, [&](const Int& k, const PipelineState& p) {
          pipe.produce(p, [&](const FullStage& full) {
            copy(full.load_for_row(load_a), gA(_, _, k), sA(_, _, p.index));
            copy(full.load_for_column(load_b), gB(_, _, k), sB(_, _, p.index));
          });
          return pipe.next(p);
        });
      });
    });
  };

  const auto multiply = [&](const Int& thread) {
    const Int group = thread / kWarpGroupSize, warp = thread / kWarpSize % 4;
    const Bool leads = lane_id() == 0;

    const auto product = [&](Sums sums, const PipelineState& p, const Bool& adds) {
      pipe.wait(p);
      for (int i = 0; i < kBlocks; ++i) {
        const IntTuple rows = {group * kBlocks + i, 0};
        sums[i] = wgmma(sums[i], local_tile(sA(_, _, p.index), {kProductRows, c.k}, rows),
                        sB(_, _, p.index), adds);
      }
      wgmma_commit();
      return sums;
    };
    // Each warp stores its 16 rows of each product, some columns after the others.
    const auto store = [&](const Results& results, const Int& number) {
      const Tile tile = mine(number);
      for (int part = 0; part < c.n / c.store_columns; ++part) {
        const int buffer = part % c.store_buffers;
        // Copies from this buffer are done: of all buffers, where a tile begins with the one that
        // the tile before has ended with.
        const bool turns = (c.n / c.store_columns) % c.store_buffers != 0;
        If(leads, [&] { bulk_wait_read(part == 0 && turns ? 0 : c.store_buffers - 1); });
        sync_warp();
        for (int i = 0; i < kBlocks; ++i) {
          const auto tile_of_warp =
              local_tile(sD(_, _, buffer), of_warp, {(group * kBlocks + i) * 4 + warp, 0});
          put(tile_of_warp, results[i], part * c.store_columns, c.store_columns);
        }
        fence_async();
        sync_warp();
        If(leads, [&] {
          for (int i = 0; i < kBlocks; ++i) {
            const Int rows = (group * kBlocks + i) * 4 + warp;
            const auto gD = local_tile(d, {kWarpRows, c.store_columns, 1},
                                       {tile.row * (c.m / kWarpRows) + rows,
                                        tile.column * (c.n / c.store_columns) + part, tile.batch});
            copy(store_d, local_tile(sD(_, _, buffer), of_warp, {rows, 0}), gD(_, _, 0));
          }
          bulk_commit();
        });
      }
    };

    const Int first_tile = block_idx.x / cluster.size();
    using Carried = std::tuple<PipelineState, Results, Int>;
    const Carried none(pipe.consumer(), no_results<D>(stores_late ? c.n / 2 : 1, kEach),
                       first_tile);
    const Carried last_tile = For(tiles.mine(), none, [&](const Int& tile, const Carried& carried) {
      const PipelineState& at = std::get<0>(carried);
      const Results& before = std::get<1>(carried);
      const Int& number_before = std::get<2>(carried);
      const Int ahead = min(blocks, 2);
      using Loop = std::tuple<Sums, PipelineState, Int>;
      const Loop started = For(range(ahead), Loop(begun(c.n, kEach), at, at.index),
                               [&](const Int& k, const Loop& so_far) {
                                 const auto& [sums, p, last] = so_far;
                                 return Loop(product(sums, p, k != 0), pipe.next(p), p.index);
                               });
      // The results of a tile are stored while the first products of the next one run.
      if (stores_late) {
        If(tile != first_tile, [&] { store(before, number_before); });
      }
      If(blocks > 1, [&] {
        wgmma_wait_groups(1);
        pipe.release(at);
      });
      // Each product is waited for while the next one runs.
      const auto [sums, next, last] =
          For(range(ahead, blocks), started, [&](const Int&, const Loop& so_far) {
            const auto& [sum, p, stage] = so_far;
            const Sums added = product(sum, p, true);
            wgmma_wait_groups(1);
            pipe.release(stage);
            return Loop(added, pipe.next(p), p.index);
          });
      const auto done = settled(sums, kEach);
      pipe.release(last);
      const Tile place = mine(tile);
      const auto part = [&](int i) {
        const Int row = place.row * c.m + (group * kBlocks + i) * kProductRows;
        return GemmPart(row, place.column * c.n, c.n, place.batch, extents);
      };
      if (!c.stores_boxes) {
        for (int i = 0; i < kBlocks; ++i) part(i).store(d, epilogue(part(i), done[i], args...));
        return Carried(next, before, tile);
      }
      const Results now = finished<D>(
          done, [&](const Fragment<float>& sum, int i) { return epilogue(part(i), sum, args...); },
          kEach);
      if (stores_late) return Carried(next, now, tile);
      store(now, tile);
      return Carried(next, before, tile);
    });
    if (stores_late) {
      If(first_tile < tiles.count(),
         [&] { store(std::get<1>(last_tile), std::get<2>(last_tile)); });
    }
    If(leads, [&] { bulk_wait(); });
  };

  const auto [few, many] = registers(c);
  warp_roles(Role{1, few, load}, Role{c.groups, many, multiply});
  // No block ends while another arrives at its barriers or copies to its memory.
  if (cluster.size() > 1) sync_cluster();
}

}  // namespace hopper

// An epilogue as what tells kernels apart: there is one kernel of those without a value.
template <class Epilogue>
struct EpilogueValue {
  Epilogue epilogue;  // the lambda or the struct
  friend bool operator==(const EpilogueValue& x, const EpilogueValue& y) {
    if constexpr (std::is_empty_v<Epilogue>) return true;
    if constexpr (!std::is_empty_v<Epilogue>) return x.epilogue == y.epilogue;
  }
};

// The kernels of an epilogue: d = epilogue(a * b^T), where a is (m, k, batch), b (n, k, batch) and d
// (m, n, batch). `Args` are the epilogue's own parameters.
template <class T, class D, class Epilogue, class... Args>
const auto& hopper_gemm(const GemmConfig& config, const Epilogue& epilogue = Epilogue()) {
  static const auto kernels =
      kernel_family(sizeof...(Args) == 0 ? "gemm(a, b, d)" : "gemm",
                    [](Host<GemmConfig> c, Host<EpilogueValue<Epilogue>> e, Tensor<const T, 3> a,
                       Tensor<const T, 3> b, Tensor<D, 3> d, Args... args) {
                      if (c.rows_of_group() == hopper::kProductRows) {
                        hopper::gemm_body<1>(c, e.epilogue, a, b, d, args...);
                      } else {
                        hopper::gemm_body<2>(c, e.epilogue, a, b, d, args...);
                      }
                    });
  return kernels(config, EpilogueValue<Epilogue>{epilogue});
}

}  // namespace heddle::kernels
