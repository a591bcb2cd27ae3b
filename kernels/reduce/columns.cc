#include "heddle/kernels/reduce/columns.h"

#include <bit>

namespace heddle::kernels {
namespace {

constexpr int kThreads = 256;
// Loads of a thread under way, more of narrow ones.
constexpr int kLoads = 8, kNarrowLoads = 16;
// Threads beside each other, at most where there are rows enough for others below them.
constexpr int kLanes = 64;
// Rows that a thread has at least where rows are split, in loads, and blocks that a multiprocessor has one after the other.
constexpr int kLeastLoads = 2 * kLoads;
constexpr int kBlocksInTurn = 2;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The least power of two from n on, at most `most`, which is one.
int power_of_two(int64_t n, int most) {
  if (n >= most) return most;
  return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(n, 1))));
}

}  // namespace

ColumnDeal deal_columns(const ColumnsOf& of) {
  ColumnDeal deal{.width = of.width};
  const int64_t vectors = divide_up(of.columns, deal.width);
  deal.unroll =
      static_cast<int>(std::clamp<int64_t>(of.rows, 1, deal.width == 1 ? kNarrowLoads : kLoads));
  const int below = power_of_two(divide_up(of.rows, deal.unroll), kThreads / kLanes);
  deal.lanes = power_of_two(vectors, kThreads / below);
  deal.rows = power_of_two(divide_up(of.rows, deal.unroll), kThreads / deal.lanes);
  return deal;
}

int64_t stretches(const ColumnsOf& of, const ColumnDeal& deal, const DeviceInfo& device) {
  const int64_t blocks = of.outer * divide_up(of.columns, int64_t{deal.lanes} * deal.width),
                resident = int64_t{device.sm_count} * device.max_threads_per_sm / kThreads,
                most = of.rows / (int64_t{deal.rows} * kLeastLoads);
  return std::max<int64_t>(std::min(divide_up(kBlocksInTurn * resident, blocks), most), 1);
}

LaunchShape column_shape(const ColumnsOf& of, const ColumnDeal& deal, int64_t stretches) {
  return {.grid = of.outer * stretches * divide_up(of.columns, int64_t{deal.lanes} * deal.width),
          .block = {deal.lanes, deal.rows}};
}

}  // namespace heddle::kernels
