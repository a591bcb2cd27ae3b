// The kernels of a product on Hopper's tensor cores: persistent and warp-specialised. One warp loads
// tiles by the copy engine, warpgroups multiply them, and the blocks of a cluster share what they
// load. There is a kernel for each element type, result type, configuration and epilogue.
#pragma once

#include <algorithm>
#include <optional>
#include <tuple>

#include "heddle/kernels/gemm/results.h"
#include "heddle/kernels/gemm/split.h"
#include "heddle/kernels/gemm/sums.h"
#include "heddle/runtime/heddle.h"

namespace heddle::kernels {
namespace hopper {

// Registers of a thread that loads, and of one that multiplies.
struct Registers {
  // Of the warp that loads, and of the warps that multiply.
  int few, many;
};
// What all have from the start is enough for few columns and no epilogue.
inline Registers registers(const GemmConfig& c, int accumulators, bool has_epilogue) {
  if (c.groups == 3) return {32, 160};
  const int elements = accumulators * c.rows_of_group() / kProductRows * c.n / 2;
  return c.groups == 2 && elements > (has_epilogue ? 32 : 64) ? Registers{40, 232}
                                                              : Registers{0, 0};
}

// Clears the rows of all stages from `first` on, which products read and whose results nobody stores.
template <class T>
void clear_rows(const GemmConfig& c, const Tensor<T>& stages, int first, const Int& thread) {
  const int width = 16 / int{sizeof(T)}, chunks = c.k / width;
  const int threads = c.groups * kWarpGroupSize, together = threads / chunks;
  const Int row = thread / chunks, column = thread % chunks;
  for (int stage = 0; stage < c.stages; ++stage) {
    for (int above = first; above < c.m; above += together) {
      If(above + row < c.m, [&] {
        store(local_tile(stages(_, _, stage), {1, width}, {above + row, column}),
              Fragment<T>(width, Value<T>(T(0.0f))));
      });
    }
  }
  fence_async();
  named_barrier_sync(1, threads);
}

constexpr int kEpilogueColumns = 32;  // that an epilogue gets at once

// A tile is computed by warpgroups that multiply what one warp loads. `tiles` says which tiles (tiles.h),
// and `loop` how their products are summed (sums.h).
template <class T, class D, class Tiles, class Loop, class Epilogue, class... Args>
void gemm_body(const GemmConfig& c, const Tiles& tiles, const Loop& loop, const Epilogue& epilogue,
               const Tensor<const T, 3>& a, const Tensor<const T, 3>& b, const Tensor<D, 3>& d,
               const Args&... args) {
  constexpr bool kHasEpilogue = !std::is_same_v<Epilogue, PlainSums>;
  // Results of 16 bits leave registers for those of the tile before, but none for stores of single rows.
  const bool stores_late = sizeof(D) <= 2 && c.stores_boxes && !Tiles::kEndsInside;
  const TiledMma mma = make_tiled_mma(make_mma_atom(Wgmma<T, T, float>{c.n}), {c.groups, 1, 1});
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
                          .consumers = c.groups,
                          .cluster = cluster});
  // This block's part of k, in blocks.
  const Int blocks = ceil_div(a.shape(1), c.k);
  const Int first_block = c.split == 1 ? Int(0) : blocks * cluster_rank() / c.split;
  const Int behind = c.split == 1 ? blocks : blocks * (cluster_rank() + 1) / c.split;
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
      For(tiles, pipe.producer(), [&](const GemmTile& tile, const PipelineState& first) {
        const auto rows = domain_offset({tile.row, 0, tile.batch}, again);
        const auto columns = domain_offset({tile.column, 0, tile.factor}, once);
        const auto gA = local_tile(rows, {a_rows, c.k, 1}, {0, _, 0})(_, _, 0, _);
        const auto gB = local_tile(columns, {c.n, c.k, 1}, {0, _, 0})(_, _, 0, _);
        return For(range(first_block, behind), first, [&](const Int& k, const PipelineState& p) {
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
    const GemmStages<T> stages{c,  pipe,        mma.get_slice(thread), sA,
                               sB, first_block, behind - first_block};
    const int products = c.rows_of_group() / kProductRows;
    // What an epilogue makes of more columns at once would need registers besides the sums.
    const int at_once = kHasEpilogue ? std::min(c.columns(), kEpilogueColumns) : c.columns();
    const Tensor<D> finished = make_tensor<D>({c.columns() / 2, products});
    const Int first_tile = block_idx.x / c.cluster();
    using Carried = std::tuple<PipelineState, Int, UInt>;
    const Carried begin(pipe.consumer(), first_tile, 0u);
    const Carried end = For(tiles.mine(), begin, [&](const Int& number, const Carried& before) {
      // The results of a tile are stored while the first products of the next one run.
      const GemmTile tile = tiles.at(number);
      const auto [sums, next] = loop(stages, tile, std::get<0>(before), [&] {
        if (!stores_late) return;
        If(number != first_tile,
           [&] { results.store(finished, tiles.at(std::get<1>(before)), group); });
      });
      const UInt& phase = std::get<2>(before);
      const Tensor<float> all = split ? (*split)(sums, phase, thread) : sums(_, _, 0);
      for (int i = 0; i < products; ++i) {
        const GemmPart part = results.part(tile, group, i);
        for (int first = 0; first < c.columns(); first += at_once) {
          const GemmPart some = part.columns(first, at_once);
          const Fragment<float> result =
              epilogue(some, load(all(_, i)).slice(first / 2, at_once / 2), args...);
          if (c.stores_boxes) {
            const Fragment<D> elements = cast<D>(result);
            store(local_tile(finished(_, i), {at_once / 2}, {first / at_once}), elements);
            if (at_once != c.columns()) pin(elements);
          } else {
            some.store(d, result);
          }
        }
      }
      if (c.stores_boxes && !stores_late) results.store(finished, tile, group);
      return Carried(next, number, phase ^ 1u);
    });
    if (stores_late) {
      If(first_tile < tiles.count(),
         [&] { results.store(finished, tiles.at(std::get<1>(end)), group); });
    }
    If(lane_id() == 0, [&] { bulk_wait(); });
  };

  const auto [few, many] = registers(c, Loop::kAccumulators, kHasEpilogue);
  warp_roles(Role{1, few, load_tiles}, Role{c.groups, many, multiply_tiles});
  // No block ends while another arrives at its barriers or copies to its memory.
  if (c.cluster() > 1) sync_cluster();
}

// An epilogue as what tells kernels apart: there is one kernel of those without a value.
template <class Epilogue>
struct EpilogueValue {
  Epilogue epilogue;  // the lambda or the struct
  friend bool operator==(const EpilogueValue& x, const EpilogueValue& y) {
    if constexpr (std::is_empty_v<Epilogue>) return true;
    if constexpr (!std::is_empty_v<Epilogue>) return x.epilogue == y.epilogue;
  }
};

// The kernels of tiles, a loop and an epilogue. Their parameters are a, b and d, then those of the tiles
// (`Of`), of the loop (`By`) and of the epilogue.
template <class Tiles, class Loop, class Epilogue, class TileParameters, class LoopParameters,
          class... Args>
struct Family;
// With the lists of parameters taken apart.
template <class Tiles, class Loop, class Epilogue, class... Of, class... By, class... Args>
struct Family<Tiles, Loop, Epilogue, Parameters<Of...>, Parameters<By...>, Args...> {
  // The kernel of a configuration, for elements of T into D; made when it is first asked for.
  template <class T, class D>
  static const auto& kernel(const GemmConfig& config, const Epilogue& epilogue) {
    constexpr bool kIsPlain = sizeof...(Of) + sizeof...(By) + sizeof...(Args) == 0;
    static const auto kernels = kernel_family(
        kIsPlain             ? "gemm(a, b, d)"
        : sizeof...(Of) != 0 ? Tiles::kName
                             : Loop::kName,
        [](Host<GemmConfig> c, Host<EpilogueValue<Epilogue>> e, Tensor<const T, 3> a,
           Tensor<const T, 3> b, Tensor<D, 3> d, Of... of, By... by, Args... args) {
          // The kernel before may have written what says where tiles lie, and how they are summed.
          if (sizeof...(Of) + sizeof...(By) != 0) grid_dependency_wait();
          gemm_body(c, Tiles(c, b, d, of...), Loop{by...}, e.epilogue, a, b, d, args...);
        });
    return kernels(config, EpilogueValue<Epilogue>{epilogue});
  }
};

}  // namespace hopper

// The kernels of an epilogue: d = epilogue(a * b^T), where a is (m, k, batch), b (n, k, batch) and d
// (m, n, batch); then what the tiles and the loop take, and `Args`, the epilogue's own parameters.
template <class Tiles, class Loop, class T, class D, class Epilogue, class... Args>
const auto& hopper_gemm(const GemmConfig& config, const Epilogue& epilogue = Epilogue()) {
  using Family =
      hopper::Family<Tiles, Loop, Epilogue, typename Tiles::Takes, typename Loop::Takes, Args...>;
  return Family::template kernel<T, D>(config, epilogue);
}

}  // namespace heddle::kernels
