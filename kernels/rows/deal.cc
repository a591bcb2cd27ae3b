#include "heddle/kernels/rows/deal.h"

#include <algorithm>
#include <bit>

namespace heddle::kernels {
namespace {

// Vectors of a thread before a row gets more threads: so many loads are under way together.
constexpr int kFewVectors = 4;
// Vectors that a thread holds in its registers at most, with room for what is computed from them.
constexpr int kMostVectors = 8;
// Threads of a block before a row gets more blocks: at least two blocks are resident, so that one loads while
// another computes or stores.
constexpr int kBlockThreads = 512;
// The most blocks of a cluster on every device that has clusters.
constexpr int kClusterBlocks = 8;
constexpr int kMostThreads = 1024;
// What a block has in shared memory besides: sums of its warps, a barrier.
constexpr int kOtherSharedBytes = 8192;
// Threads of a block that has several rows.
constexpr int kSharedThreads = 128;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

int power_of_two(int64_t n) { return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(n))); }

// A block's vectors of a row.
int64_t copied_bytes(const RowDeal& deal) {
  return int64_t{deal.threads} * deal.vectors * kVectorBytes;
}

// Clusters that are resident at once for sure: those of each group of multiprocessors, of which some are not there.
int64_t resident_clusters(const RowDeal& deal, const DeviceInfo& device) {
  constexpr int kProcessorsOfGroup = 18, kOtherRegisters = 32;
  // Elements in f32, and what else a thread needs.
  const int registers = deal.threads * (deal.vectors * deal.width + kOtherRegisters);
  const int per_processor =
      static_cast<int>(std::min({int64_t{device.registers_per_sm / registers},
                                 int64_t{device.max_threads_per_sm / deal.threads},
                                 device.shared_per_sm / (copied_bytes(deal) + kOtherSharedBytes)}));
  const int64_t groups = std::max(device.sm_count / kProcessorsOfGroup, 1);
  return groups * (kProcessorsOfGroup / deal.blocks) * std::max(per_processor, 1);
}

}  // namespace

RowDeal deal_rows(const RowsOf& rows, const DeviceInfo& device) {
  RowDeal deal;
  const bool wide = rows.aligned || rows.alike;
  deal.width = wide ? kVectorBytes / rows.element_bytes : 1;
  // Rows that are not vectors alone have elements at their edges; where they are short, nothing else.
  const bool exact = rows.aligned && rows.columns % deal.width == 0;
  if (!exact && rows.columns < 4 * deal.width) deal.width = 1;
  deal.peeled = !exact && deal.width > 1;
  const int64_t vectors = std::max<int64_t>(divide_up(rows.columns, deal.width), 1);

  if (vectors <= kWarpSize * kFewVectors) {
    deal.threads = std::min(power_of_two(divide_up(vectors, kFewVectors)), kWarpSize);
    // Of the elements at the edges, fewer than two vectors, each has a thread.
    if (deal.peeled) deal.threads = std::max(deal.threads, 2 * deal.width);
    deal.rows = kSharedThreads / deal.threads;
  } else {
    const int most_blocks = device.cluster_launch ? kClusterBlocks : 1;
    const int64_t wanted = divide_up(vectors, int64_t{kBlockThreads} * kMostVectors);
    deal.blocks = std::min(power_of_two(wanted), most_blocks);
    const int64_t of_block = divide_up(vectors, deal.blocks);
    // More threads where each has registers for what it holds, in f32.
    const bool has_room = deal.width * kMostVectors * kMostThreads <= device.registers_per_sm / 2;
    const int most_threads = wanted > most_blocks && has_room ? kMostThreads : kBlockThreads;
    const int64_t threads =
        divide_up(of_block, of_block <= kBlockThreads * kFewVectors ? kFewVectors : kMostVectors);
    deal.threads = static_cast<int>(
        std::min<int64_t>(divide_up(threads, kWarpSize) * kWarpSize, most_threads));
  }
  const int64_t together = int64_t{deal.threads} * deal.blocks;
  const int64_t each = divide_up(vectors, together);
  deal.vectors = static_cast<int>(std::min<int64_t>(each, kMostVectors));
  deal.in_parts = each > kMostVectors;
  deal.whole = !deal.peeled && vectors == together * deal.vectors;
  // Where few blocks are resident, one at work leaves the memory idle.
  deal.copied = deal.blocks > 1 && deal.width > 1 && !deal.in_parts &&
                copied_bytes(deal) + kOtherSharedBytes <= device.limits.max_shared_per_block;
  return deal;
}

LaunchShape row_shape(const RowDeal& deal, int64_t rows, const DeviceInfo& device) {
  int64_t owners = divide_up(rows, deal.rows);
  if (deal.copied) owners = std::min(owners, resident_clusters(deal, device));
  return {.grid = owners * deal.blocks, .block = {deal.threads, deal.rows}, .cluster = deal.blocks};
}

}  // namespace heddle::kernels
