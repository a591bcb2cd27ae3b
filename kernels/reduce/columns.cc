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
// Blocks that a multiprocessor has one after the other.
constexpr int kBlocksInTurn = 4;

// The largest power of two up to n, between 1 and `most`, which is one.
int power_of_two(int64_t n, int64_t most) {
  return static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(n, 1, most))));
}

}  // namespace

ColumnDeal deal_columns(const ColumnsOf& of) {
  ColumnDeal deal{.width = of.width};
  const int64_t loads = of.states ? kStateLoads : kLoads,
                below = of.rows / (of.states ? kLeastStates : kLeastRows),
                vectors = divide_up(of.columns, deal.width);
  // Lanes for all columns of a few, or as many as leave room for threads below.
  const int64_t beside = kThreads / power_of_two(below, of.states ? kThreads : kBelow);
  deal.lanes = power_of_two(2 * vectors - 1, beside);
  deal.rows = power_of_two(below, kThreads / deal.lanes);
  deal.unroll = static_cast<int>(std::clamp<int64_t>(of.rows / deal.rows, 1, loads));
  return deal;
}

int64_t stretches(const ColumnsOf& of, const ColumnDeal& deal, const DeviceInfo& device) {
  const int64_t blocks = of.outer * divide_up(of.columns, int64_t{deal.lanes} * deal.width),
                resident = int64_t{device.sm_count} * device.max_threads_per_sm / kThreads,
                most = of.rows / (int64_t{deal.rows} * (of.states ? kManyStates : kLeastRows));
  return std::max<int64_t>(std::min(divide_up(kBlocksInTurn * resident, blocks), most), 1);
}

LaunchShape column_shape(const ColumnsOf& of, const ColumnDeal& deal, int64_t stretches) {
  return {.grid = of.outer * stretches * divide_up(of.columns, int64_t{deal.lanes} * deal.width),
          .block = {deal.lanes, deal.rows}};
}

}  // namespace heddle::kernels
