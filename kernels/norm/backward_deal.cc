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

// kHeld: so many elements of x and of dy a thread, besides those of the next row and the sums of their columns, of so many
// threads at most. Those that a multiprocessor has at once, for their registers; and those of a block that has several rows.
constexpr int kHeldElements = 8, kMostThreads = 1024, kSharedThreads = 128;
// Elements of a row that are loaded one by one, at most: of 32 bits and of 16.
constexpr int kMostSingles = 1024, kMostNarrowSingles = 128;
// Sums that warps of kStaged send, at most.
constexpr int kMostSums = 4;
// kStaged: elements a thread, with a few more where they are single ones, threads of a multiprocessor, blocks of a cluster.
constexpr int kStagedElements = 16, kStagedSingles = 18, kStagedThreads = 512, kMostBlocks = 16;

// Vectors begin with the rows, or are single elements, as in all rows a thread has the same columns.
int width_of(const RowsOf& of) {
  const int widest = kVectorBytes / of.element_bytes;
  return of.aligned && of.columns % widest == 0 ? widest : 1;
}

std::optional<BackwardDeal> held_deal(const RowsOf& of) {
  BackwardDeal deal{.way = BackwardWay::kHeld};
  RowDeal& rows = deal.rows;
  rows.width = width_of(of);
  const int singles = of.element_bytes < 4 ? kMostNarrowSingles : kMostSingles;
  if (rows.width == 1 && of.columns > singles) return std::nullopt;
  const int64_t vectors = of.columns / rows.width,
                threads = divide_up(vectors, divide_up(kHeldElements, rows.width));
  if (threads > kMostThreads) return std::nullopt;
  rows.threads =
      static_cast<int>(threads <= kWarpSize ? std::bit_ceil(static_cast<uint64_t>(threads))
                                            : divide_up(threads, kWarpSize) * kWarpSize);
  rows.rows = threads <= kWarpSize ? kSharedThreads / rows.threads : 1;
  rows.vectors = static_cast<int>(divide_up(vectors, rows.threads));
  rows.whole = vectors == int64_t{rows.threads} * rows.vectors;
  deal.of_processor = std::max(kMostThreads / (rows.threads * rows.rows), 1);
  return deal;
}

// Of so many blocks a row, elements a thread and threads a multiprocessor, at most.
std::optional<BackwardDeal> staged_deal(const BackwardProblem& problem, const DeviceInfo& device,
                                        int blocks, int elements, int of_processor) {
  const RowsOf& of = problem.rows.of;
  if (!device.cluster_launch || !problem.dense) return std::nullopt;
  BackwardDeal deal{.way = BackwardWay::kStaged};
  RowDeal& rows = deal.rows;
  rows.blocks = blocks;
  rows.width = width_of(of);
  const int64_t vectors = of.columns / rows.width, of_block = divide_up(vectors, blocks),
                threads = divide_up(of_block, std::max(elements / rows.width, 1)),
                // Warps are given registers by fours.
      unit = threads > 2 * kWarpSize ? 4 * kWarpSize : kWarpSize;
  if (divide_up(threads, unit) * unit > std::min(of_processor, kMostThreads)) return std::nullopt;
  rows.threads = static_cast<int>(divide_up(threads, unit) * unit);
  rows.vectors = static_cast<int>(divide_up(of_block, rows.threads));
  const int64_t span = int64_t{rows.threads} * rows.vectors;
  // The last block has fewer.
  const int64_t of_last = vectors - (blocks - 1) * span;
  if (of_last <= 0) return std::nullopt;
  rows.whole = of_last == span;
  if (!rows.whole) rows.whole_vectors = static_cast<int>(of_last / rows.threads);
  deal.of_processor = of_processor / rows.threads;
  if (deal.of_processor *
          (staged_bytes(rows, of.element_bytes, of.inputs) + warp_value_bytes(rows, kMostSums)) >
      device.limits.max_shared_per_block) {
    return std::nullopt;
  }
  return deal;
}

}  // namespace

std::string BackwardDeal::to_string() const {
  if (way == BackwardWay::kApart) return "apart";
  return absl::StrCat(way == BackwardWay::kHeld ? "held " : "staged ", rows.to_string(), ", ",
                      of_processor, " a multiprocessor");
}
std::string BackwardProblem::to_string() const {
  return absl::StrCat(rows.to_string(), dense ? "" : ", strided");
}

BackwardDeal staged_backward(const BackwardProblem& problem, const DeviceInfo& device) {
  const int elements = width_of(problem.rows.of) == 1 ? kStagedSingles : kStagedElements;
  for (int blocks = 1; blocks <= kMostBlocks; blocks *= 2) {
    const auto deal = staged_deal(problem, device, blocks, elements, kStagedThreads);
    if (deal) return *deal;
  }
  return {};
}

BackwardDeal deal_backward(const BackwardProblem& problem, const DeviceInfo&) {
  return held_deal(problem.rows.of).value_or(BackwardDeal{});
}

std::vector<BackwardDeal> backward_deals(const BackwardProblem& problem, const DeviceInfo& device) {
  std::vector<BackwardDeal> deals = {deal_backward(problem, device)};
  for (int blocks = 1; blocks <= kMostBlocks; blocks *= 2) {
    for (const int elements : {8, kStagedElements, kStagedSingles, 32}) {
      for (const int threads : {384, kStagedThreads, 768, kMostThreads}) {
        const auto deal = staged_deal(problem, device, blocks, elements, threads);
        if (deal && !absl::c_linear_search(deals, *deal)) deals.push_back(*deal);
      }
    }
  }
  return deals;
}

int64_t backward_clusters(const BackwardDeal& deal, const DeviceInfo& device) {
  // A cluster's blocks lie in one GPC, which has 16 or 18 multiprocessors, or half as many pairs of them.
  constexpr int kProcessorsOfGpc = 16;
  const int blocks = deal.rows.blocks,
            usable = blocks <= 2 ? device.sm_count
                                 : device.sm_count / kProcessorsOfGpc * kProcessorsOfGpc;
  return int64_t{std::max(usable / blocks, 1)} * deal.of_processor;
}

}  // namespace heddle::kernels
