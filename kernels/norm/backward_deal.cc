#include <algorithm>
#include <bit>
#include <optional>

#include "absl/algorithm/container.h"
#include "heddle/kernels/norm/backward_deal_internal.h"

namespace heddle::kernels {
namespace {

// Elements of a row that a thread has in registers, besides those of the next row and the sums of their columns: of short rows and
// of others; and those that a multiprocessor holds, for their registers.
constexpr int kHeldElements = 8, kMoreHeldElements = 16, kHeldOfProcessor = 8192;
constexpr int64_t kShortRow = 4096;
// Threads of a block that has several rows.
constexpr int kSharedThreads = 128;
// Elements of a row that are loaded one by one, at most: of 32 bits and of 16.
constexpr int kMostSingles = 1024, kMostNarrowSingles = 128;
// Of rows in shared memory: elements of a thread, of rows that a cluster shares more of them where enough threads are left;
// blocks and elements of a multiprocessor.
constexpr int kStagedElements = 16, kMoreStagedElements = 32, kStagedThreads = 128,
              kMostOfProcessor = 4, kStagedOfProcessor = 8192;
// The share of a cluster's threads that have something to do, at least, where another cluster's have more.
constexpr double kBalanced = 0.85;
// Rows that are shorter are held: of 16 bits without edges, and with; and with edges those that are centred, whose sums of columns
// would leave few registers.
constexpr int64_t kShortNarrowRow[] = {1024, 2048}, kShortCentredRow = 512;

std::optional<TurnDeal> held_deal(const RowsOf& of, int elements) {
  TurnDeal deal;
  RowDeal& rows = deal.rows;
  const TurnVectors vectors = turn_vectors(of);
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
  find_whole(of, rows);
  deal.of_processor = std::max(kHeldOfProcessor / (rows.threads * rows.rows * elements), 1);
  return deal;
}

// Warps send two sums, and two more of centred rows. Those of columns, weights and rows have room in registers for so many elements
// of a multiprocessor.
Staging staging(const BackwardProblem& problem, int blocks, int elements, int64_t of_processor) {
  const bool few = problem.rows.of.element_bytes < 4 && problem.sums == 1;
  return {.blocks = blocks,
          .elements = elements,
          .of_processor = static_cast<int>(of_processor),
          .most = few ? 2 * kStagedOfProcessor : kStagedOfProcessor,
          .floats = 2 * problem.sums};
}

// Rows in shared memory with as many blocks of a multiprocessor as have room, so that some work while others wait,
// wanted.of_processor at most; of rows of 32 bits more than two where these have all stages.
std::optional<TurnDeal> fullest_staged_deal(const RowsOf& of, const DeviceInfo& device,
                                            Staging wanted) {
  for (; wanted.of_processor >= 1; wanted.of_processor /= 2) {
    const auto deal = staged_deal(of, device, wanted);
    const bool crowded = of.element_bytes == 4 && wanted.of_processor > 2;
    if (deal && !(crowded && deal->stages < kMostStages)) return deal;
  }
  return std::nullopt;
}

// How many vectors a row has for each place that its threads have for one.
double balance(const RowsOf& of, const TurnDeal& deal) {
  return static_cast<double>(turn_vectors(of).most) /
         (int64_t{deal.rows.blocks} * deal.rows.threads * deal.rows.vectors);
}

// What an H200 is fastest with: blocks alone, pairs, or the largest clusters. Clusters of 4 and 8 were slower for all rows that
// were measured: of powers of two, and of a few elements more or less.
std::optional<TurnDeal> best_staged(const BackwardProblem& problem, const DeviceInfo& device) {
  const RowsOf& of = problem.rows.of;
  const auto fullest = [&](int blocks, int elements, int64_t of_processor) {
    return fullest_staged_deal(of, device, staging(problem, blocks, elements, of_processor));
  };
  if (of.columns <= kStagedOfProcessor) {
    // Where rows have edges, a block waits longer for its first warp.
    const int64_t short_rows = (turn_vectors(of).peeled ? 2 : 1) * kShortRow,
                  blocks = short_rows / std::max<int64_t>(of.columns, 1);
    return fullest(
        1, kStagedElements,
        std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(blocks, 1, kMostOfProcessor))));
  }
  std::optional<TurnDeal> best;
  const auto better = [&](const std::optional<TurnDeal>& deal) {
    if (deal && (!best || balance(of, *deal) > balance(of, *best))) best = deal;
    return best && balance(of, *best) >= kBalanced;
  };
  if (of.element_bytes < 4) {
    const bool more = of.columns > 2 * kStagedOfProcessor;
    if (better(fullest(2, more ? kMoreStagedElements : kStagedElements, 1))) return best;
  }
  for (int blocks = most_blocks(device); blocks > 1; blocks /= 2) {
    const bool more = of.columns >= int64_t{blocks} * kStagedThreads * kMoreStagedElements;
    if (better(fullest(blocks, more ? kMoreStagedElements : kStagedElements, kMostOfProcessor)))
      return best;
  }
  return best;
}

}  // namespace

BackwardDeal deal_backward(const BackwardProblem& problem, const DeviceInfo& device) {
  const RowsOf& of = problem.rows.of;
  const bool peeled = turn_vectors(of).peeled;
  const bool more = peeled || of.columns >= kShortRow;
  const auto held = held_deal(of, more ? kMoreHeldElements : kHeldElements);
  const int64_t most = peeled && problem.sums > 1 ? kShortCentredRow - 1
                       : of.element_bytes < 4     ? kShortNarrowRow[peeled] - 1
                                                  : kStagedOfProcessor;
  if (held && of.columns <= most) return {*held};
  if (const auto staged = best_staged(problem, device)) return {*staged};
  return {held.value_or(TurnDeal{})};
}

std::vector<BackwardDeal> backward_deals(const BackwardProblem& problem, const DeviceInfo& device) {
  std::vector<BackwardDeal> deals = {deal_backward(problem, device)};
  const auto add = [&](const std::optional<TurnDeal>& deal) {
    if (deal && !absl::c_linear_search(deals, *deal)) deals.push_back({*deal});
  };
  const RowsOf& of = problem.rows.of;
  for (const int elements : {kHeldElements, kMoreHeldElements}) add(held_deal(of, elements));
  for (int blocks = 1; blocks <= most_blocks(device); blocks *= 2) {
    for (const int elements : {kStagedElements / 2, kStagedElements, kMoreStagedElements}) {
      for (int of_processor = 1; of_processor <= kMostOfProcessor; of_processor *= 2) {
        Staging wanted = staging(problem, blocks, elements, of_processor);
        wanted.most = 2 * kStagedOfProcessor;
        add(staged_deal(of, device, wanted));
      }
    }
  }
  add(TurnDeal{});
  return deals;
}

}  // namespace heddle::kernels
