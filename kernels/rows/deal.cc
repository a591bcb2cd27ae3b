#include "heddle/kernels/rows/deal.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace heddle::kernels {
namespace {

// Loads that a thread begins together, where a row has threads enough.
constexpr int kFewVectors = 4;
// What a part has at most: loads, fewer where what stands beside its elements is loaded one by one, and elements in
// f32, with registers for what is computed from them.
constexpr int kMostVectors = 8;
constexpr int kPartElements = 32;
// Rows that a block holds in registers, in vectors: of this many threads, so that others of the multiprocessor load
// meanwhile.
constexpr int kHeldThreads = 512;
// A block's share of a longer row, in shared memory: as small as a cluster of the most blocks allows, and a thread's:
// many loads in flight of few threads, whose sums are soon combined.
constexpr int64_t kKeptBytes = 36864;
constexpr int kKeptVectors = 16;
// What a block has in shared memory besides: sums of its warps.
constexpr int64_t kOtherSharedBytes = 8192;
// Blocks that a multiprocessor has one after the other of rows that are read once: few of a single row, whose states one
// block combines.
constexpr int kBlocksInTurn = 4, kSharedBlocksInTurn = 16;
// Vectors of a lane of rows that a warp, or less, reads once; and at most, of so many elements where rows are so many that each
// multiprocessor has a block of them.
constexpr int kOnceVectors = 2, kMostOnceVectors = 8, kOnceElements = 64;
// Threads of a block that has several rows.
constexpr int kSharedThreads = 128;

int power_of_two(int64_t n) { return static_cast<int>(std::bit_ceil(static_cast<uint64_t>(n))); }

int whole_warps(int64_t threads) {
  return static_cast<int>(divide_up(threads, kWarpSize) * kWarpSize);
}

// Blocks for a row, of which each has so much at most; as many as there can be where that is less.
int blocks_for(int64_t vectors, int64_t of_block, const DeviceInfo& device) {
  return std::min(power_of_two(divide_up(vectors, of_block)), most_blocks(device));
}

// The deal of rows that wait in shared memory, however much that takes.
RowDeal kept_deal(RowDeal deal, int64_t vectors, int part, const RowsOf& rows,
                  const DeviceInfo& device) {
  deal.blocks = blocks_for(vectors, kKeptBytes / kVectorBytes / rows.inputs, device);
  const int64_t of_block = divide_up(vectors, deal.blocks);
  deal.threads = whole_warps(divide_up(of_block * rows.inputs, kKeptVectors));
  deal.vectors = part;
  deal.kept = static_cast<int>(divide_up(of_block, int64_t{deal.threads} * part));
  return deal;
}

// The deal of rows that are read once, and are longer than a warp's.
void deal_once(int64_t vectors, int part, const RowsOf& rows, const DeviceInfo& device,
               RowDeal& deal) {
  // So many blocks that the last ones to end leave few multiprocessors idle, but none with a short way to go.
  const int64_t resident = int64_t{device.sm_count} * device.max_threads_per_sm / kHeldThreads,
                turns = rows.rows == 1 ? kBlocksInTurn : kSharedBlocksInTurn,
                wanted = std::min(divide_up(turns * resident, rows.rows),
                                  divide_up(vectors, int64_t{kHeldThreads} * part));
  deal.blocks = power_of_two(std::max<int64_t>(wanted, 1));
  if (deal.blocks > 1) {
    // Where all blocks run at once, the time is that of a thread's way: a cluster needs no second launch.
    const int few = blocks_for(vectors, kHeldThreads * kFewVectors / 2, device);
    if (rows.rows * few <= resident && int64_t{few} * kHeldThreads * part >= vectors) {
      deal.blocks = few;
    } else {
      deal.apart = true;
    }
  }
  const int64_t of_block = divide_up(vectors, deal.blocks);
  deal.vectors = static_cast<int>(std::clamp<int64_t>(divide_up(of_block, kHeldThreads), 1, part));
  deal.threads = whole_warps(std::min<int64_t>(divide_up(of_block, deal.vectors), kHeldThreads));
  deal.in_parts = vectors > int64_t{deal.blocks} * deal.threads * deal.vectors;
}

// Vectors of a row that its threads hold, or of a part of it.
int64_t held(const RowDeal& deal) {
  return int64_t{deal.blocks} * deal.threads * deal.vectors * std::max(deal.kept, 1);
}

// Vectors of a row that a warp, or less, reads once, at most.
int64_t most_once(const RowsOf& rows, int width, const DeviceInfo& device) {
  const bool many = rows.rows >= int64_t{kSharedThreads / kWarpSize} * device.sm_count;
  return int64_t{kWarpSize} *
         (many ? std::min(kMostOnceVectors, kOnceElements / width) : kFewVectors);
}

// Lanes of a warp for a row that is read once: fewer where more than a third of their places for vectors would be empty.
int lanes_once(int64_t vectors) {
  int lanes = std::min(power_of_two(divide_up(vectors, kOnceVectors)), kWarpSize);
  const auto empty = [&] { return divide_up(vectors, lanes) * lanes - vectors; };
  while (lanes > 1 && 2 * empty() > vectors) lanes /= 2;
  return lanes;
}

// Deals of rows of so many vectors, each once.
class Deals {
 public:
  Deals(const RowsOf& rows, int64_t vectors, const DeviceInfo& device)
      : rows_(rows), vectors_(vectors), device_(device) {}

  void add(RowDeal deal) {
    const bool has_edges = deal.peeled && deal.threads < 2 * deal.width;
    const bool fits = deal.kept == 0 || (deal.width > 1 && shared_bytes(deal, rows_.inputs) <=
                                                               device_.limits.max_shared_per_block);
    if (has_edges || !fits || deal.threads > kMostThreads) return;
    deal.in_parts = vectors_ > held(deal);
    find_whole(rows_, deal);
    if (!absl::c_linear_search(all_, deal)) all_.push_back(deal);
  }
  std::vector<RowDeal> take() { return std::move(all_); }

 private:
  static constexpr int kMostThreads = 1024;
  const RowsOf& rows_;
  const int64_t vectors_;
  const DeviceInfo& device_;
  std::vector<RowDeal> all_;
};

}  // namespace

void find_whole(const RowsOf& rows, RowDeal& deal) {
  const int64_t vectors = std::max<int64_t>(divide_up(rows.columns, deal.width), 1),
                places = std::max<int64_t>(held(deal), 1);
  deal.whole = !deal.peeled && vectors % places == 0;
  deal.whole_vectors = 0;
  if (deal.whole || deal.kept > 0 || deal.in_parts) return;
  // A row has so many vectors at least, wherever it begins, and the last blocks have fewer of them, or none.
  const int64_t least = (rows.columns - (deal.peeled ? deal.width - 1 : 0)) / deal.width,
                before = int64_t{deal.blocks - 1} * deal.threads * deal.vectors;
  deal.whole_vectors = static_cast<int>(std::max<int64_t>(least - before, 0) / deal.threads);
}

int most_blocks(const DeviceInfo& device) {
  if (!device.cluster_launch) return 1;
  // Large devices of these generations take clusters of 16 blocks, all that have clusters 8.
  const bool large = device.compute_major == 9 || device.compute_major == 10;
  return large && device.sm_count >= 100 ? 16 : 8;
}

std::optional<RowDeal> deal_in_registers(const RowsOf& rows, const DeviceInfo& device) {
  const int width = kVectorBytes / rows.element_bytes;
  if (!rows.aligned || rows.columns % width != 0) return std::nullopt;
  const int64_t vectors = rows.columns / width;
  RowDeal deal{.width = width};
  deal.vectors = kPartElements / width;
  deal.blocks = blocks_for(vectors, int64_t{kHeldThreads} * deal.vectors, device);
  deal.threads = whole_warps(divide_up(vectors, int64_t{deal.blocks} * deal.vectors));
  if (deal.threads > kHeldThreads) return std::nullopt;
  find_whole(rows, deal);
  return deal;
}

RowDeal deal_rows(const RowsOf& rows, const DeviceInfo& device) {
  RowDeal deal;
  const bool wide = rows.aligned || rows.alike;
  deal.width = wide ? kVectorBytes / rows.element_bytes : 1;
  // Rows that are not vectors alone have elements at their edges; vectors are so short that most elements are not.
  const bool exact = rows.aligned && rows.columns % deal.width == 0;
  while (!exact && deal.width > 1 && rows.columns < 4 * deal.width) deal.width /= 2;
  deal.peeled = !exact && deal.width > 1;

  const int64_t vectors = std::max<int64_t>(divide_up(rows.columns, deal.width), 1);
  const int part = std::clamp(kPartElements / deal.width / rows.inputs, 1,
                              deal.peeled ? kFewVectors : kMostVectors);
  const int few = std::clamp(kFewVectors / rows.inputs, 1, part);
  const bool once = rows.rows > 0;
  if (once && vectors > most_once(rows, deal.width, device)) {
    deal_once(vectors, part, rows, device, deal);
  } else if (once || vectors <= kWarpSize * kFewVectors) {
    // What is read once needs no more loads under way than make neighbours of a warp's lanes neighbours in memory.
    deal.threads = once ? lanes_once(vectors)
                        : std::min(power_of_two(divide_up(vectors, kFewVectors)), kWarpSize);
    // Of the elements at the edges, fewer than two vectors, each has a thread.
    if (deal.peeled) deal.threads = std::max(deal.threads, 2 * deal.width);
    deal.rows = kSharedThreads / deal.threads;
    deal.vectors = static_cast<int>(divide_up(vectors, deal.threads));
  } else if (vectors <= kHeldThreads * few) {
    deal.threads = whole_warps(divide_up(vectors, few));
    deal.vectors = few;
  } else if (const RowDeal kept = kept_deal(deal, vectors, part, rows, device);
             kept.width > 1 &&
             shared_bytes(kept, rows.inputs) <= device.limits.max_shared_per_block) {
    deal = kept;
  } else {
    deal.blocks = blocks_for(vectors, kHeldThreads * kMostVectors, device);
    deal.vectors = part;
    deal.threads = whole_warps(
        std::min<int64_t>(divide_up(vectors, int64_t{deal.blocks} * part), kHeldThreads));
    deal.in_parts = vectors > int64_t{deal.blocks} * deal.threads * part;
  }
  find_whole(rows, deal);
  return deal;
}

std::vector<RowDeal> row_deals(const RowsProblem& problem, const DeviceInfo& device) {
  const RowsOf& rows = problem.of;
  const RowDeal model = deal_rows(rows, device);
  if (rows.rows > 0) return {model};
  const RowDeal base{.width = model.width, .peeled = model.peeled};
  const int64_t vectors = std::max<int64_t>(divide_up(rows.columns, base.width), 1);
  const int most = std::max(2 * kPartElements / base.width / rows.inputs, 1);
  Deals deals(rows, vectors, device);
  deals.add(model);
  // A warp's lanes, or fewer, have a row in registers.
  for (int threads = 1; threads <= kWarpSize; threads *= 2) {
    RowDeal deal = base;
    deal.threads = threads;
    deal.vectors = static_cast<int>(std::min<int64_t>(divide_up(vectors, threads), most + 1));
    // As many lanes as have something to do, and as few as hold the row.
    if (deal.vectors > most || (threads > 1 && vectors <= threads / 2 && !base.peeled)) continue;
    for (const int of_block : {64, 128, 256}) {
      deal.rows = of_block / threads;
      deals.add(deal);
    }
  }
  for (int blocks = 1; blocks <= most_blocks(device); blocks *= 2) {
    RowDeal deal = base;
    deal.blocks = blocks;
    const int64_t of_block = divide_up(vectors, blocks);
    if (of_block < 2 * kWarpSize) break;
    // A block's threads, or a cluster's, have it in registers, or read it again for each pass.
    for (int each = 1; each <= std::min(most, kMostVectors); each *= 2) {
      deal.vectors = each;
      deal.threads = whole_warps(divide_up(of_block, each));
      deals.add(deal);
      for (const int threads : {kHeldThreads / 2, kHeldThreads, 2 * kHeldThreads}) {
        deal.threads = threads;
        if (of_block > int64_t{threads} * each) deals.add(deal);
      }
    }
    // Or in shared memory.
    for (const int kept : {kKeptVectors / 2, kKeptVectors, 2 * kKeptVectors}) {
      deal.threads = whole_warps(divide_up(of_block * rows.inputs, kept));
      deal.vectors = std::clamp(kPartElements / base.width / rows.inputs, 1, kFewVectors);
      deal.kept = static_cast<int>(divide_up(of_block, int64_t{deal.threads} * deal.vectors));
      deals.add(deal);
      deal.kept = 0;
    }
  }
  return deals.take();
}

std::string RowDeal::to_string() const {
  return absl::StrCat("threads=", threads, " rows=", rows, " blocks=", blocks, " vectors=", vectors,
                      " kept=", kept);
}
std::string RowsProblem::to_string() const {
  return absl::StrCat(rows, "x", of.columns, " of ", of.element_bytes, " bytes",
                      of.inputs > 1 ? absl::StrCat(", ", of.inputs, " inputs") : "",
                      of.aligned ? ""
                      : of.alike ? ", unaligned alike"
                                 : ", unaligned");
}

int64_t shared_bytes(const RowDeal& deal, int inputs) {
  return int64_t{deal.threads} * deal.vectors * deal.kept * kVectorBytes * inputs +
         kOtherSharedBytes;
}

LaunchShape row_shape(const RowDeal& deal, int64_t rows) {
  return {.grid = divide_up(rows, deal.rows) * deal.blocks,
          .block = {deal.threads, deal.rows},
          .cluster = deal.apart ? 1 : deal.blocks};
}

}  // namespace heddle::kernels
