// Tiles whose depths blocks share by stream-K (dsl/pipeline/stream_k.h), and how their sums come together:
// through global memory, in a fixed order, so that results are the same bits each time. Internal to the
// kernels; gemm_stream_k.h has the function.
#pragma once

#include "heddle/kernels/gemm/tiles.h"

namespace heddle::kernels {

// Floats that are stored at once.
inline constexpr int kQuad = 4;

// A block's share of a tile of a product.
struct GemmShare : GemmTile {
  Depth depth;  // of the share
  Int lowest;   // the lowest unit that has a share of the tile
  Bool ends;    // whether this block finishes the tile
};

// The tiles of a batch of products, whose depths units (clusters) share.
class StreamTiles {
 public:
  // The kernel's further parameters: memory for the sums of each block, (block, element), and a flag for
  // each of its warps, 0 before the launch and behind it. The others are BatchTiles'.
  using Takes = Parameters<Tensor<float, 2>, Tensor<uint32_t, 1>>;
  static constexpr const char* kName = "gemm_stream_k(a, b, d, ...)";
  static constexpr bool kEndsInside = false, kSharesDepths = true;

  // The tiles of d, of the depth of b.
  template <class T, class D>
  StreamTiles(const GemmConfig& c, const Tensor<const T, 3>& b, const Tensor<D, 3>& d,
              const Tensor<float, 2>& sums, const Tensor<uint32_t, 1>& flags)
      : c_(c),
        tiles_(c,
               StreamKTiles(ceil_div(d.shape(0), c.m * c.cluster_rows),
                            ceil_div(d.shape(1), c.n * c.cluster_columns), d.shape(2),
                            ceil_div(b.shape(1), c.k), {.band = c.band, .cluster = c.cluster()})),
        rows_(d.shape(0)),
        sums_(sums),
        flags_(flags) {}

  // The schedule, the numbers of this block's shares, and where share i lies.
  const StreamKTiles& schedule() const { return tiles_.schedule(); }
  auto mine() const { return schedule().mine(); }
  GemmShare at(const Int& i) const {
    const TileShare share = schedule().at(i);
    const Tile tile = tiles_.of_block(share);
    return {{tile.row, tile.column, rows_, tile.batch, tile.batch},
            {share.first, share.behind},
            share.lowest,
            share.ends};
  }

  // Calls finish(all) with all sums of a tile where this block finishes it; else hands its own over, and
  // calls without().
  template <class Finish, class Without>
  void bring_together(const Tensor<float>& sums, const GemmShare& share, const Int& thread,
                      const Finish& finish, const Without& without) const {
    If(share.ends, [&] {
      add_others(sums, share, thread);
      finish(sums);
    }).Else([&] {
      hand_over(sums, thread);
      without();
    });
  }

 private:
  static constexpr int kAtOnce = 16;  // sums that are added

  // Stores a thread's sums (values,products) of a share that another unit's block finishes. Each warp has a
  // flag of its own, which it raises when all its lanes have stored: warps wait for warps alone.
  void hand_over(const Tensor<float>& sums, const Int& thread) const {
    const Int me = block_idx.x;
    for (int i = 0; i < products(); ++i) {
      for (int v = 0; v < values(); v += kQuad) {
        sums_.vec<kQuad>(me, place_of(i, v, thread)) =
            Vec<float, kQuad>(load(sums(_, i)).slice(v, kQuad));
      }
    }
    sync_warp();
    If(lane_id() == 0,
       [&] { atomic_store(flags_(flag_of(me, thread)), 1u, MemoryOrder::release); });
  }
  // Adds the sums of all lower units that have a share of the tile, the lowest first. They hand over
  // before they wait themselves. Flags that were waited for are lowered again, for the next launch.
  void add_others(const Tensor<float>& sums, const GemmShare& share, const Int& thread) const {
    const auto others = range(share.lowest, schedule().unit());
    const auto block_of = [&](const Int& unit) { return unit * c_.cluster() + cluster_rank(); };
    For(others, [&](const Int& unit) {
      const Int flag = flag_of(block_of(unit), thread);
      While([&] { return atomic_load(flags_(flag), MemoryOrder::acquire) == 0u; }, [] {});
    });
    sync_warp();
    // Some sums of all units before the next ones: what a loop carries takes registers twice.
    for (int i = 0; i < products(); ++i) {
      for (int first = 0; first < values(); first += kAtOnce) {
        const Fragment<float> all = For(others, load(sums(_, i)).slice(first, kAtOnce),
                                        [&](const Int& unit, const Fragment<float>& so_far) {
                                          Var<Fragment<float>> more(so_far);
                                          const Int other = block_of(unit);
                                          for (int v = 0; v < kAtOnce; v += kQuad) {
                                            const Vec<float, kQuad> part = sums_.vec<kQuad>(
                                                other, place_of(i, first + v, thread));
                                            for (int e = 0; e < kQuad; ++e)
                                              more[v + e] = so_far[v + e] + part[e];
                                          }
                                          return Fragment<float>(more);
                                        });
        store(local_tile(sums(_, i), {kAtOnce}, {first / kAtOnce}), all);
      }
    }
    For(others, [&](const Int& unit) {
      If(lane_id() == 0, [&] { atomic_store(flags_(flag_of(block_of(unit), thread)), 0u); });
    });
  }

  // A warpgroup's products, and a thread's sums of each.
  int products() const { return c_.rows_of_group() / kProductRows; }
  int values() const { return c_.n / 2; }
  // Where four of a thread's sums lie, and the flag of its warp in a block.
  Int place_of(int product, int value, const Int& thread) const {
    const int quad = (product * values() + value) / kQuad;
    return (quad * (c_.groups * kWarpGroupSize) + thread) * kQuad;
  }
  Int flag_of(const Int& block, const Int& thread) const {
    return block * (c_.groups * kWarpsOfGroup) + thread / kWarpSize;
  }

  GemmConfig c_;
  ClusterTiles<StreamKTiles> tiles_;
  Int rows_;
  Tensor<float, 2> sums_;
  Tensor<uint32_t, 1> flags_;
};

}  // namespace heddle::kernels
