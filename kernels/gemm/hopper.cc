// A persistent, warp-specialised product: one warp loads tiles by the copy engine, warpgroups
// multiply them and store results, and the blocks of a cluster share what they load.
#include "heddle/kernels/gemm/hopper.h"

#include <array>
#include <tuple>

namespace heddle::kernels {
namespace {

constexpr int kProductRows = 64;  // of one wgmma
// Registers of a thread that loads, and of one that multiplies, by the number of warpgroups that do.
struct Registers {
  int few, many;
};
constexpr Registers kRegisters[] = {{0, 0}, {0, 0}, {40, 232}, {32, 160}};

// The elements of accumulators, converted, once the tensor cores have written them.
template <class T, std::size_t... I, class Sums>
std::array<Fragment<T>, sizeof...(I)> settled(const Sums& sums, std::index_sequence<I...>) {
  return {cast<T>(wgmma_wait(sums[I]))...};
}
// Accumulators of 64 x n without a content.
template <std::size_t... I>
std::array<Accumulator<float>, sizeof...(I)> begun(int n, std::index_sequence<I...>) {
  return {((void)I, wgmma_begin<float>(n))...};
}

// kBlocks products of 64 rows lie below each other in a warpgroup's part of the tile.
template <class T, int kBlocks>
void gemm_body(const GemmConfig& c, Tensor<const T, 3> a, Tensor<const T, 3> b, Tensor<T, 3> d) {
  using Sums = std::array<Accumulator<float>, kBlocks>;
  constexpr std::make_index_sequence<kBlocks> kEach;
  const auto sA = make_smem_tensor<T>(make_smem_layout<T>({c.m, c.k, c.stages}));
  const auto sB = make_smem_tensor<T>(make_smem_layout<T>({c.n, c.k, c.stages}));
  const auto sD = make_smem_tensor<T>(make_smem_layout<T>({c.m, c.store_columns, c.store_buffers}));
  const ClusterGrid cluster{c.cluster_rows, c.cluster_columns};
  const BoxOptions whole_lines{.promotion = 256};
  const TmaAtom load_a = make_tma_atom(TmaLoad{cluster.columns}, a, sA(_, _, 0), whole_lines);
  const TmaAtom load_b = make_tma_atom(TmaLoad{cluster.rows}, b, sB(_, _, 0), whole_lines);
  const IntTuple group_rows = {c.rows_of_group(), c.store_columns};
  const TmaAtom store_d = make_tma_atom(TmaStore{}, d, local_tile(sD(_, _, 0), group_rows, {0, 0}));

  const TmaPipeline pipe({.stages = c.stages,
                          .bytes = load_a.bytes() + load_b.bytes(),
                          .consumers = c.groups,
                          .cluster = cluster});
  const PersistentTiles tiles(ceil_div(d.shape(0), c.m * cluster.rows),
                              ceil_div(d.shape(1), c.n * cluster.columns), d.shape(2),
                              {.band = c.band, .cluster = cluster.size()});
  const Int blocks = ceil_div(a.shape(1), c.k);
  const Int cluster_row = cluster.row(), cluster_column = cluster.column();
  const auto place = [&](const Tile& tile) {
    return Tile{tile.row * cluster.rows + cluster_row,
                tile.column * cluster.columns + cluster_column, tile.batch};
  };
  pipe.start();

  const auto load = [&](const Int&) {
    If(warp_id() == 0, [&] {
      For(tiles, pipe.producer(), [&](const Tile& of_cluster, const PipelineState& first) {
        const Tile tile = place(of_cluster);
        const auto gA = local_tile(a, {c.m, c.k, 1}, {tile.row, _, tile.batch})(_, _, 0, _);
        const auto gB = local_tile(b, {c.n, c.k, 1}, {tile.column, _, tile.batch})(_, _, 0, _);
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
    const Int group = warp_id() / 4 - 1, thread_in_group = thread % kWarpGroupSize;
    const Bool leads = thread_in_group == 0;
    const auto group_tile = [&](const auto& tile) {
      return local_tile(tile, group_rows, {group, 0});
    };
    const Int store_row = warp_id() % 4 * 16 + lane_id() % 16, store_column = lane_id() / 16 * 8;

    const auto product = [&](Sums sums, const PipelineState& p, bool adds) {
      pipe.wait(p);
      for (int i = 0; i < kBlocks; ++i) {
        sums[i] = wgmma(
            sums[i], local_tile(sA(_, _, p.index), {kProductRows, c.k}, {group * kBlocks + i, 0}),
            sB(_, _, p.index), adds);
      }
      wgmma_commit();
      return sums;
    };
    For(tiles, pipe.consumer(), [&](const Tile& of_cluster, const PipelineState& at) {
      const Tile tile = place(of_cluster);
      // Each product is waited for while the next one runs.
      const Sums first = product(begun(c.n, kEach), at, false);
      const auto gD = local_tile(d, {c.rows_of_group(), c.store_columns, 1},
                                 {tile.row * c.groups + group, _, tile.batch})(_, _, 0, _);
      const Int first_column = tile.column * (c.n / c.store_columns);
      const auto [sums, next, last] =
          For(range(1, blocks), std::tuple(first, pipe.next(at), at.index),
              [&](const Int&, const std::tuple<Sums, PipelineState, Int>& so_far) {
                const auto& [sum, p, before] = so_far;
                const Sums added = product(sum, p, true);
                wgmma_wait_groups(1);
                pipe.release(before);
                return std::tuple(added, pipe.next(p), p.index);
              });
      const auto out = settled<T>(sums, kEach);
      pipe.release(last);

      for (int part = 0; part < c.n / c.store_columns; ++part) {
        const int buffer = part % c.store_buffers;
        // The copy that read this buffer last is done.
        If(leads, [&] { bulk_wait_read(c.store_buffers - 1); });
        named_barrier_sync(group + 1, kWarpGroupSize);
        for (int i = 0; i < kBlocks; ++i) {
          for (int column = 0; column < c.store_columns; column += 16) {
            const int from = (part * c.store_columns + column) / 2;
            stmatrix(group_tile(sD(_, _, buffer))
                         .at({i * kProductRows + store_row, column + store_column}),
                     out[i].slice(from, 8));
          }
        }
        fence_async();
        named_barrier_sync(group + 1, kWarpGroupSize);
        If(leads, [&] {
          copy(store_d, group_tile(sD(_, _, buffer)), gD(_, _, first_column + part));
          bulk_commit();
        });
      }
      return next;
    });
    If(leads, [&] { bulk_wait(); });
  };

  warp_roles(Role{1, kRegisters[c.groups].few, load},
             Role{c.groups, kRegisters[c.groups].many, multiply});
  // No block ends while another arrives at its barriers or copies to its memory.
  if (cluster.size() > 1) sync_cluster();
}

}  // namespace

template <class T>
const GemmKernel<T>& hopper_gemm(const GemmConfig& config) {
  static const auto kernels = kernel_family(
      "gemm(a, b, d)",
      [](Host<GemmConfig> c, Tensor<const T, 3> a, Tensor<const T, 3> b, Tensor<T, 3> d) {
        if (c.rows_of_group() == kProductRows) {
          gemm_body<T, 1>(c, a, b, d);
        } else {
          gemm_body<T, 2>(c, a, b, d);
        }
      });
  return kernels(config);
}
template const GemmKernel<half>& hopper_gemm<half>(const GemmConfig&);
template const GemmKernel<bfloat16>& hopper_gemm<bfloat16>(const GemmConfig&);

}  // namespace heddle::kernels
