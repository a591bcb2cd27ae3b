// A persistent kernel of clusters of two blocks, each with one warp that loads and two warpgroups
// that multiply. Both blocks of a cluster share the columns of d, so that each loads half of b's
// tile, for both.
#include "heddle/kernels/gemm.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace heddle::kernels {
namespace {

constexpr int kM = 128, kN = 256, kK = 64;  // a block's tile
constexpr int kStages = 3;                  // of a and b in shared memory
constexpr int kCluster = 2;                 // blocks, one below the other in d
constexpr int kGroups = 2;                  // warpgroups that multiply, of 64 rows each
constexpr int kGroupThreads = 128;
constexpr int kThreads = (1 + kGroups) * kGroupThreads;
constexpr int kPanel = 64;  // columns of d that one swizzled row of shared memory has
constexpr int kRaster = 8;  // cluster tiles below each other before the next column of tiles
constexpr int kFewRegisters = 40, kManyRegisters = 232;

// Where a block is in the pipeline: a stage, and the parity of its phase.
struct Slot {
  Int stage;
  UInt parity;

  Slot next() const {
    const Bool wraps = stage == kStages - 1;
    return {select(wraps, 0, stage + 1), select(wraps, parity ^ 1u, parity)};
  }
};

// The stages of a and b: loaded by copies of both blocks, and free again once the warpgroups of
// both have multiplied. Waits and arrivals are of scope block: what they order are copies and
// products, which are complete (dsl/SYNCHRONISATION.md).
struct Pipeline {
  Mbarrier full{kStages}, empty{kStages};

  void init() const {
    for (int stage = 0; stage < kStages; ++stage) {
      full.init(stage, 1u);
      empty.init(stage, kGroups * kCluster);
    }
    fence_mbarrier_init();
  }
  void wait_full(const Slot& slot) const {
    full.wait(slot.stage, slot.parity, MemoryOrder::acquire, MemoryScope::block);
  }
  void wait_empty(const Slot& slot) const {
    empty.wait(slot.stage, slot.parity, MemoryOrder::acquire, MemoryScope::block);
  }
  // By all threads of a warpgroup; `thread` counts in it.
  void release(const Int& stage, const Int& thread) const {
    If(thread < kCluster, [&] {
      const Mbarrier theirs(map_shared(empty.words(), thread));
      theirs.arrive(stage, MemoryOrder::release, MemoryScope::block);
    });
  }
};

// The tiles of d, kRaster below each other and then the next column.
struct Tiles {
  Int rows, columns;  // of clusters' tiles

  Int count() const { return rows * columns; }
  std::pair<Int, Int> at(const Int& tile) const {
    const Int strip = tile / (columns * kRaster);
    const Int height = min(rows - strip * kRaster, Int(kRaster));
    const Int in_strip = tile - strip * (columns * kRaster);
    return {strip * kRaster + in_strip % height, in_strip / height};
  }
};

template <class T>
void gemm_body(Tensor<const T, 2> a, Tensor<const T, 2> b, Tensor<T, 2> d) {
  const Swizzle swizzle(3, 3, 3);
  const BoxOptions swizzled{.swizzle = 128, .promotion = 256};
  const TensorMap a_map(a, {kM, kK}, swizzled);
  const TensorMap b_map(b, {kN / kCluster, kK}, swizzled);
  const TensorMap d_map(d, {kM / kGroups, kPanel}, {.swizzle = 128});
  const auto a_tiles =
      make_smem_tensor<T>(composition(swizzle, make_layout({kM, kK, kStages}, {kK, 1, kM * kK})));
  const auto b_tiles =
      make_smem_tensor<T>(composition(swizzle, make_layout({kN, kK, kStages}, {kK, 1, kN * kK})));
  const auto d_tile = make_smem_tensor<T>(
      composition(swizzle, make_layout({kM, {kPanel, kN / kPanel}}, {kPanel, {1, kM * kPanel}})));
  const Pipeline pipeline;

  const Int rank = cluster_rank();
  const Int cluster = block_idx.x / kCluster, clusters = grid_dim.x / kCluster;
  const Int blocks = ceil_div(a.shape(1), kK);
  const Tiles tiles{ceil_div(a.shape(0), kM * kCluster), ceil_div(b.shape(0), kN)};
  If(thread_idx.x == 0, [&] { pipeline.init(); });
  sync_cluster();

  const auto load = [&] {
    For(range(cluster, tiles.count(), clusters), Slot{0, 1u}, [&](const Int& tile, const Slot& at) {
      const auto [row, column] = tiles.at(tile);
      const Int a_row = (row * kCluster + rank) * kM;
      const Int b_row = column * kN + rank * (kN / kCluster);
      return For(range(blocks), at, [&](const Int& k, const Slot& slot) {
        pipeline.wait_empty(slot);
        If(elect_one(), [&] {
          pipeline.full.expect_tx(slot.stage, (kM + kN) * kK * sizeof(T));
          tma_load(a_tiles.at({0, 0, slot.stage}), a_map, {a_row, k * kK}, pipeline.full,
                   slot.stage);
          tma_load(b_tiles.at({rank * (kN / kCluster), 0, slot.stage}), b_map, {b_row, k * kK},
                   pipeline.full, slot.stage, Multicast((1u << kCluster) - 1));
        });
        return slot.next();
      });
    });
  };

  const auto multiply = [&] {
    const Int group = warp_id() / 4 - 1;
    const Int thread = thread_idx.x % kGroupThreads;
    const Int store_row = warp_id() % 4 * 16 + lane_id() % 16;
    For(range(cluster, tiles.count(), clusters), Slot{0, 0u}, [&](const Int& tile, const Slot& at) {
      const auto product = [&](const Accumulator<float>& sum, const Slot& slot, bool adds) {
        pipeline.wait_full(slot);
        const Accumulator<float> next =
            wgmma(sum, local_tile(a_tiles(_, _, slot.stage), {kM / kGroups, kK}, {group, 0}),
                  b_tiles(_, _, slot.stage), adds);
        wgmma_commit();
        return next;
      };
      // Each product is waited for while the next one runs.
      const Accumulator<float> first = product(wgmma_begin<float>(kN), at, false);
      const auto [sums, next, last] =
          For(range(1, blocks), std::tuple(first, at.next(), at.stage),
              [&](const Int&, const std::tuple<Accumulator<float>, Slot, Int>& so_far) {
                const auto& [sum, slot, before] = so_far;
                const Accumulator<float> added = product(sum, slot, true);
                wgmma_wait_groups(1);
                pipeline.release(before, thread);
                return std::tuple(added, slot.next(), slot.stage);
              });
      const Fragment<T> out = cast<T>(wgmma_wait(sums));
      pipeline.release(last, thread);

      // The copy of the tile before has read shared memory, then this one's goes there.
      const Bool leads = thread == 0;
      If(leads, [&] { bulk_wait_read(); });
      named_barrier_sync(group + 1, kGroupThreads);
      for (int column = 0; column < kN; column += 16) {
        stmatrix(d_tile.at({group * (kM / kGroups) + store_row, column + lane_id() / 16 * 8}),
                 out.slice(column / 2, 8));
      }
      fence_async();
      named_barrier_sync(group + 1, kGroupThreads);
      If(leads, [&] {
        const auto [row, column] = tiles.at(tile);
        for (int panel = 0; panel < kN; panel += kPanel) {
          tma_store(d_map,
                    {(row * kCluster + rank) * kM + group * (kM / kGroups), column * kN + panel},
                    d_tile.at({group * (kM / kGroups), panel}));
        }
        bulk_commit();
      });
      return next;
    });
    If(thread == 0, [&] { bulk_wait(); });
  };

  If(warp_id() < 4, [&] {
    decrease_registers(kFewRegisters);
    If(warp_id() == 0, load);
  }).Else([&] {
    increase_registers(kManyRegisters);
    multiply();
  });
  // No block ends while the other arrives at its barriers or copies to its memory.
  sync_cluster();
}

}  // namespace

template <class T>
const Kernel<Tensor<const T, 2>, Tensor<const T, 2>, Tensor<T, 2>>& gemm_kernel() {
  static const auto kernel = define_kernel("gemm(a, b, d)", gemm_body<T>);
  return kernel;
}
template const Kernel<Tensor<const half, 2>, Tensor<const half, 2>, Tensor<half, 2>>&
gemm_kernel<half>();
template const Kernel<Tensor<const bfloat16, 2>, Tensor<const bfloat16, 2>, Tensor<bfloat16, 2>>&
gemm_kernel<bfloat16>();

LaunchShape gemm_shape(int64_t m, int64_t n, int multiprocessors) {
  const int64_t tiles = ((m + kCluster * kM - 1) / (kCluster * kM)) * ((n + kN - 1) / kN);
  const int64_t clusters = std::min<int64_t>(tiles, std::max(multiprocessors / kCluster, 1));
  return {.grid = clusters * kCluster, .block = kThreads, .cluster = kCluster};
}

namespace {

template <class T>
Status launch_gemm(const Stream& stream, const TensorRef<const T, 2>& a,
                   const TensorRef<const T, 2>& b, const TensorRef<T, 2>& d) {
  const int64_t m = a.extents[0], n = b.extents[0], k = a.extents[1];
  if (b.extents[1] != k || d.extents[0] != m || d.extents[1] != n || k == 0) {
    return InvalidArgumentError(absl::StrCat(
        "gemm: a is ", m, " x ", k, ", b ", n, " x ", b.extents[1], " and d ", d.extents[0], " x ",
        d.extents[1], "; a takes m x k, b n x k and d m x n, with k above 0"));
  }
  if (m == 0 || n == 0) return OkStatus();
  return gemm_kernel<T>().launch(stream, gemm_shape(m, n, stream.device().info().sm_count), a, b,
                                 d);
}

}  // namespace

Status gemm(const Stream& stream, const TensorRef<const half, 2>& a,
            const TensorRef<const half, 2>& b, const TensorRef<half, 2>& d) {
  return launch_gemm(stream, a, b, d);
}
Status gemm(const Stream& stream, const TensorRef<const bfloat16, 2>& a,
            const TensorRef<const bfloat16, 2>& b, const TensorRef<bfloat16, 2>& d) {
  return launch_gemm(stream, a, b, d);
}

}  // namespace heddle::kernels
