#include <algorithm>
#include <bit>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "heddle/kernels/norm/backward_deal_internal.h"
#include "heddle/kernels/rows/staged_rows.h"
#include "heddle/kernels/rows/warp_values.h"

namespace heddle::kernels {
namespace {

// Elements of a row that a thread of kHeld has, besides those of the next row and the sums of their columns: of short rows and
// of others; and those that a multiprocessor holds, for their registers.
constexpr int kHeldElements = 8, kMoreHeldElements = 16, kHeldOfProcessor = 8192,
              kMostThreads = 1024;
constexpr int64_t kShortRow = 4096;
// Threads of a block that has several rows.
constexpr int kSharedThreads = 128;
// Elements of a row that are loaded one by one, at most: of 32 bits and of 16.
constexpr int kMostSingles = 1024, kMostNarrowSingles = 128;
// Vectors of a row with edges, at least.
constexpr int kFewestPeeled = 16;
// kStaged: rows on their way, at most; elements of a thread, of rows that a cluster shares more of them where enough threads are
// left; blocks and elements of a multiprocessor; bytes that each of these blocks takes besides.
constexpr int kMostStages = 4, kStagedElements = 16, kMoreStagedElements = 32, kStagedThreads = 128,
              kMostOfProcessor = 4, kStagedOfProcessor = 8192, kBlockBytes = 1024;
// The share of a cluster's threads that have something to do, at least, where another cluster's have more.
constexpr double kBalanced = 0.85;
// Rows that are shorter are held: of 16 bits without edges, and with; and with edges those that are centred, whose sums of columns
// would leave few registers.
constexpr int64_t kShortNarrowRow[] = {1024, 2048}, kShortCentredRow = 512;

// In which vectors threads have the same columns of all rows: they begin with the rows; or equally far behind the beginnings
// of some of the rows; or are single elements.
struct Vectors {
  int width;
  bool peeled;
  // Of a row, at most and at least.
  int64_t most, least;
};
Vectors vectors_of(const RowsOf& of) {
  const int widest = kVectorBytes / of.element_bytes;
  if (of.aligned && of.columns % widest == 0) {
    return {widest, false, of.columns / widest, of.columns / widest};
  }
  if (of.alike && of.columns >= kFewestPeeled * widest) {
    return {widest, true, of.columns / widest, (of.columns - (widest - 1)) / widest};
  }
  return {1, false, of.columns, of.columns};
}

std::optional<BackwardDeal> held_deal(const RowsOf& of, int elements) {
  BackwardDeal deal{.way = BackwardWay::kHeld};
  RowDeal& rows = deal.rows;
  const Vectors vectors = vectors_of(of);
  rows.width = vectors.width;
  rows.peeled = vectors.peeled;
  const int singles = of.element_bytes < 4 ? kMostNarrowSingles : kMostSingles;
  if (rows.width == 1 && of.columns > singles) return std::nullopt;
  const int64_t threads = divide_up(vectors.most, divide_up(elements, rows.width));
  if (threads * elements > kHeldOfProcessor) return std::nullopt;
  const bool shares = threads <= kWarpSize && !rows.peeled;
  rows.threads = static_cast<int>(shares ? std::bit_ceil(static_cast<uint64_t>(threads))
                                         : divide_up(threads, kWarpSize) * kWarpSize);
  rows.rows = shares ? kSharedThreads / rows.threads : 1;
  rows.vectors = static_cast<int>(divide_up(vectors.most, rows.threads));
  rows.whole = !rows.peeled && vectors.most == int64_t{rows.threads} * rows.vectors;
  if (rows.peeled) rows.whole_vectors = static_cast<int>(vectors.least / rows.threads);
  deal.of_processor = std::max(kHeldOfProcessor / (rows.threads * rows.rows * elements), 1);
  return deal;
}

// How many of each thread's vectors there are, and threads of whole warps: the fewest places for so many vectors, with about so
// many a thread.
void fit(int64_t vectors, int each, RowDeal& rows) {
  int64_t fewest = 0;
  for (const int of_thread : {each, each - 1, each + 1}) {
    if (of_thread < 1) continue;
    const int64_t threads = divide_up(divide_up(vectors, of_thread), kWarpSize) * kWarpSize,
                  all = threads * of_thread;
    if (fewest > 0 && all >= fewest) continue;
    fewest = all;
    rows.threads = static_cast<int>(threads);
    rows.vectors = of_thread;
  }
}

// What a deal is asked to have: blocks a row, elements a thread, about, and blocks of a multiprocessor; elements of a
// multiprocessor at most.
struct Wanted {
  int blocks, elements, of_processor, most;
};
std::optional<BackwardDeal> staged_deal(const BackwardProblem& problem, const DeviceInfo& device,
                                        const Wanted& wanted) {
  const RowsOf& of = problem.rows.of;
  const Vectors vectors = vectors_of(of);
  if (!device.cluster_launch || vectors.width == 1 || wanted.blocks > most_blocks(device)) {
    return std::nullopt;
  }
  BackwardDeal deal{.way = BackwardWay::kStaged, .of_processor = wanted.of_processor};
  RowDeal& rows = deal.rows;
  rows.blocks = wanted.blocks;
  rows.width = vectors.width;
  rows.peeled = vectors.peeled;
  fit(divide_up(vectors.most, rows.blocks), std::max(wanted.elements / rows.width, 1), rows);
  const int64_t span = int64_t{rows.threads} * rows.vectors;
  if (rows.threads * rows.vectors * wanted.of_processor > wanted.most / rows.width ||
      rows.threads * wanted.of_processor > kMostThreads) {
    return std::nullopt;
  }
  // The last blocks have fewer, or none.
  rows.whole = !rows.peeled && vectors.most == rows.blocks * span;
  if (!rows.whole) {
    const int64_t of_last = std::max<int64_t>(vectors.least - (rows.blocks - 1) * span, 0);
    rows.whole_vectors = static_cast<int>(of_last / rows.threads);
  }
  // Warps send two sums, and two more of centred rows.
  const int64_t memory = std::min(device.limits.max_shared_per_block,
                                  device.shared_per_sm / wanted.of_processor - kBlockBytes) -
                         warp_value_bytes(rows, 2 * problem.sums);
  for (deal.stages = kMostStages; deal.stages >= kFewestStages; --deal.stages) {
    if (staged_bytes(rows, of.element_bytes, of.inputs, deal.stages) <= memory) return deal;
  }
  return std::nullopt;
}
// The same, with as many blocks of a multiprocessor as have room, so that some work while others wait; of rows of 32 bits more than
// two where the most stages have.
std::optional<BackwardDeal> staged_deal(const BackwardProblem& problem, const DeviceInfo& device,
                                        int blocks, int elements, int64_t most_of_processor) {
  const RowsOf& of = problem.rows.of;
  // Elements of a multiprocessor whose sums, weights and rows have room in its registers.
  const int most =
      of.element_bytes < 4 && problem.sums == 1 ? 2 * kStagedOfProcessor : kStagedOfProcessor;
  for (int of_processor = kMostOfProcessor; of_processor >= 1; of_processor /= 2) {
    if (of_processor > most_of_processor) continue;
    const auto deal = staged_deal(problem, device, {blocks, elements, of_processor, most});
    const bool wide = of.element_bytes == 4;
    if (deal && !(wide && of_processor > 2 && deal->stages < kMostStages)) return deal;
  }
  return std::nullopt;
}
double balance(const BackwardProblem& problem, const BackwardDeal& deal) {
  return static_cast<double>(vectors_of(problem.rows.of).most) /
         (int64_t{deal.rows.blocks} * deal.rows.threads * deal.rows.vectors);
}

// What an H200 is fastest with: blocks alone, pairs, or the largest clusters. Clusters of 4 and 8 were slower for all rows that
// were measured: of powers of two, and of a few elements more or less.
std::optional<BackwardDeal> best_staged(const BackwardProblem& problem, const DeviceInfo& device) {
  const RowsOf& of = problem.rows.of;
  if (of.columns <= kStagedOfProcessor) {
    // Where rows have edges, a block waits longer for its first warp.
    const int64_t short_rows = (vectors_of(of).peeled ? 2 : 1) * kShortRow;
    return staged_deal(problem, device, 1, kStagedElements,
                       std::max<int64_t>(short_rows / std::max<int64_t>(of.columns, 1), 1));
  }
  std::optional<BackwardDeal> best;
  const auto better = [&](const std::optional<BackwardDeal>& deal) {
    if (deal && (!best || balance(problem, *deal) > balance(problem, *best))) best = deal;
    return best && balance(problem, *best) >= kBalanced;
  };
  if (of.element_bytes < 4) {
    const bool more = of.columns > 2 * kStagedOfProcessor;
    if (better(staged_deal(problem, device, 2, more ? kMoreStagedElements : kStagedElements, 1)))
      return best;
  }
  for (int blocks = most_blocks(device); blocks > 1; blocks /= 2) {
    const bool more = of.columns >= int64_t{blocks} * kStagedThreads * kMoreStagedElements;
    if (better(staged_deal(problem, device, blocks, more ? kMoreStagedElements : kStagedElements,
                           kMostOfProcessor))) {
      return best;
    }
  }
  return best;
}

}  // namespace

std::string BackwardDeal::to_string() const {
  if (way == BackwardWay::kApart) return "apart";
  return absl::StrCat(way == BackwardWay::kHeld ? "held " : absl::StrCat("staged ", stages, " "),
                      rows.to_string(), rows.peeled ? " peeled" : "", ", ", of_processor,
                      " a multiprocessor");
}
std::string BackwardProblem::to_string() const { return rows.to_string(); }

BackwardDeal deal_backward(const BackwardProblem& problem, const DeviceInfo& device) {
  const RowsOf& of = problem.rows.of;
  const bool peeled = vectors_of(of).peeled;
  const bool more = peeled || of.columns >= kShortRow;
  const auto held = held_deal(of, more ? kMoreHeldElements : kHeldElements);
  const int64_t most = peeled && problem.sums > 1 ? kShortCentredRow - 1
                       : of.element_bytes < 4     ? kShortNarrowRow[peeled] - 1
                                                  : kStagedOfProcessor;
  if (held && of.columns <= most) return *held;
  if (const auto staged = best_staged(problem, device)) return *staged;
  return held.value_or(BackwardDeal{});
}

std::vector<BackwardDeal> backward_deals(const BackwardProblem& problem, const DeviceInfo& device) {
  std::vector<BackwardDeal> deals = {deal_backward(problem, device)};
  const auto add = [&](const std::optional<BackwardDeal>& deal) {
    if (deal && !absl::c_linear_search(deals, *deal)) deals.push_back(*deal);
  };
  for (const int elements : {kHeldElements, kMoreHeldElements})
    add(held_deal(problem.rows.of, elements));
  for (int blocks = 1; blocks <= most_blocks(device); blocks *= 2) {
    for (const int elements : {kStagedElements / 2, kStagedElements, kMoreStagedElements}) {
      for (int of_processor = 1; of_processor <= kMostOfProcessor; of_processor *= 2)
        add(staged_deal(problem, device, {blocks, elements, of_processor, 2 * kStagedOfProcessor}));
    }
  }
  add(BackwardDeal{});
  return deals;
}

int64_t backward_groups(const BackwardDeal& deal, int64_t rows, const DeviceInfo& device) {
  // A cluster's blocks lie in one GPC, which has 16 or 18 multiprocessors, or half as many pairs of them.
  constexpr int kProcessorsOfGpc = 16;
  const int blocks = deal.rows.blocks,
            usable = blocks <= 2 ? device.sm_count
                                 : device.sm_count / kProcessorsOfGpc * kProcessorsOfGpc;
  const int64_t groups = divide_up(rows, deal.rows.rows),
                clusters = int64_t{std::max(usable / blocks, 1)} * deal.of_processor;
  // Rows so far apart begin equally far behind aligned places.
  const int64_t period = deal.rows.peeled ? deal.rows.width : 1;
  return std::min(groups, std::max<int64_t>(clusters / period, 1) * period);
}

}  // namespace heddle::kernels
