#include <bit>

#include "heddle/kernels/reduce/columns_internal.h"

namespace heddle::kernels {
namespace {

constexpr int kThreads = 256;
// Loads of a thread under way, and rows that it has at least where others have more of its columns: elements come from
// memory, states from the cache.
constexpr int kLoads = 16, kLeastRows = 2 * kLoads;
constexpr int kStateLoads = 8, kLeastStates = kStateLoads;
// States that a thread has at least where a further launch combines those of stretches.
constexpr int kManyStates = 64;
// Threads below each other where columns are many: with fewer, more states would be stored, with more, rows be read in
// pieces of less than 256 bytes.
constexpr int kBelow = 16;
// Blocks for each multiprocessor, all of which run at once or in two turns: with more of them, more states are stored, and
// each block waits for its first loads (sum of bf16 2097152 x 64: 71.7 us with 32, 67.1 with 4).
constexpr int kBlocksOfElements = 4, kBlocksOfStates = 32;
// Two blocks of a cluster, where so many for each multiprocessor are all: no further launch combines what they have (sum of
// bf16 8192 x 16384: 64.2 us, otherwise 66.6). Larger clusters leave multiprocessors empty.
constexpr int kInCluster = 2, kBlocksInClusters = 2;

// The largest power of two up to n, between 1 and `most`, which is one.
int power_of_two(int64_t n, int64_t most) {
  return static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(n, 1, most))));
}

int64_t tiles(const ColumnsOf& of, const ColumnDeal& deal) {
  return of.outer * divide_up(of.columns, int64_t{deal.lanes} * deal.width);
}

// Blocks that share a column's rows, where there are so many for each multiprocessor.
int64_t parts(const ColumnsOf& of, const ColumnDeal& deal, const DeviceInfo& device) {
  const int64_t blocks =
                    int64_t{device.sm_count} * (of.states ? kBlocksOfStates : kBlocksOfElements),
                most = of.rows / (int64_t{deal.rows} * (of.states ? kManyStates : kLeastRows));
  return std::max<int64_t>(std::min(blocks / tiles(of, deal), most), 1);
}

// Loads of a thread under way, of so many rows of it: half as many where the loop over the single rows that are left would
// have more than an eighth of them.
int loads_at_once(int64_t rows, int64_t most) {
  const int64_t all = std::clamp<int64_t>(rows, 1, most);
  return static_cast<int>(rows % all > rows / 8 ? all / 2 : all);
}

}  // namespace

ColumnDeal deal_columns(const ColumnsOf& of, const DeviceInfo& device) {
  ColumnDeal deal{.width = of.width};
  const int64_t below = of.rows / (of.states ? kLeastStates : kLeastRows),
                vectors = divide_up(of.columns, deal.width);
  // Lanes for all columns of a few, or as many as leave room for threads below.
  const int64_t beside = kThreads / power_of_two(below, of.states ? kThreads : kBelow);
  deal.lanes = power_of_two(2 * vectors - 1, beside);
  deal.rows = power_of_two(below, kThreads / deal.lanes);
  const int64_t all = kInCluster * tiles(of, deal);
  if (!of.states && device.cluster_launch && parts(of, deal, device) > 1 && all > device.sm_count &&
      all <= kBlocksInClusters * int64_t{device.sm_count}) {
    deal.blocks = kInCluster;
  }
  const int64_t of_block = divide_up(of.rows, stretches(of, deal, device) * deal.blocks);
  deal.unroll = loads_at_once(of_block / deal.rows, of.states ? kStateLoads : kLoads);
  return deal;
}

int64_t stretches(const ColumnsOf& of, const ColumnDeal& deal, const DeviceInfo& device) {
  return deal.blocks > 1 ? 1 : parts(of, deal, device);
}

LaunchShape column_shape(const ColumnsOf& of, const ColumnDeal& deal, int64_t stretches) {
  return {.grid = stretches * deal.blocks * tiles(of, deal),
          .block = {deal.lanes, deal.rows},
          .cluster = deal.blocks};
}

}  // namespace heddle::kernels
