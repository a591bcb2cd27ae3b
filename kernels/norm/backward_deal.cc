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

// Elements of a row that a thread of kHeld has, besides those of the next row and the sums of their columns, and those that a
// multiprocessor holds, for their registers.
constexpr int kHeldElements = 8, kHeldOfProcessor = 8192, kMostThreads = 1024;
// Threads of a block that has several rows.
constexpr int kSharedThreads = 128;
// Elements of a row that are loaded one by one, at most: of 32 bits and of 16.
constexpr int kMostSingles = 1024, kMostNarrowSingles = 128;
// Vectors of a row with edges, at least.
constexpr int kFewestPeeled = 16;
// Sums that warps of kStaged send, at most.
constexpr int kMostSums = 4;
// kStaged: elements a thread, and of a multiprocessor, for their registers; rows on their way; blocks of a cluster.
constexpr int kStagedElements = 16, kStagedOfProcessor = 8192, kMostStages = 4, kMostBlocks = 16;

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
  if (threads > kMostThreads) return std::nullopt;
  const bool shares = threads <= kWarpSize && !rows.peeled;
  rows.threads = static_cast<int>(shares ? std::bit_ceil(static_cast<uint64_t>(threads))
                                         : divide_up(threads, kWarpSize) * kWarpSize);
  rows.rows = shares ? kSharedThreads / rows.threads : 1;
  rows.vectors = static_cast<int>(divide_up(vectors.most, rows.threads));
  rows.whole = !rows.peeled && vectors.most == int64_t{rows.threads} * rows.vectors;
  if (rows.peeled) rows.whole_vectors = static_cast<int>(vectors.least / rows.threads);
  deal.of_processor = std::max(
      kHeldOfProcessor / (rows.threads * rows.rows * std::max(elements, kHeldElements)), 1);
  return deal;
}

// Of so many blocks a row, elements a thread and blocks of a multiprocessor, and elements of a multiprocessor at most.
std::optional<BackwardDeal> staged_deal(const BackwardProblem& problem, const DeviceInfo& device,
                                        int blocks, int elements, int of_processor, int most) {
  const RowsOf& of = problem.rows.of;
  if (!device.cluster_launch || !problem.dense) return std::nullopt;
  BackwardDeal deal{.way = BackwardWay::kStaged, .of_processor = of_processor};
  RowDeal& rows = deal.rows;
  const Vectors vectors = vectors_of(of);
  if (vectors.width == 1) return std::nullopt;
  rows.blocks = blocks;
  rows.width = vectors.width;
  rows.peeled = vectors.peeled;
  const int64_t of_block = divide_up(vectors.most, blocks),
                threads = divide_up(of_block, elements / rows.width),
                // Warps are given registers by fours.
      unit = threads > 2 * kWarpSize ? 4 * kWarpSize : kWarpSize,
                all = divide_up(threads, unit) * unit;
  if (all > kMostThreads || all * elements * of_processor > most) return std::nullopt;
  rows.threads = static_cast<int>(all);
  rows.vectors = static_cast<int>(divide_up(of_block, rows.threads));
  // The last block has fewer.
  const int64_t span = int64_t{rows.threads} * rows.vectors, others = (blocks - 1) * span;
  if (vectors.most <= others) return std::nullopt;
  rows.whole = !rows.peeled && vectors.most - others == span;
  if (!rows.whole) {
    rows.whole_vectors =
        static_cast<int>(std::max<int64_t>(vectors.least - others, 0) / rows.threads);
  }
  const int64_t memory =
      device.limits.max_shared_per_block / of_processor - warp_value_bytes(rows, kMostSums);
  for (deal.stages = kMostStages; deal.stages >= kFewestStages; --deal.stages) {
    if (staged_bytes(rows, of.element_bytes, of.inputs, deal.stages) <= memory) return deal;
  }
  return std::nullopt;
}

}  // namespace

std::string BackwardDeal::to_string() const {
  if (way == BackwardWay::kApart) return "apart";
  return absl::StrCat(way == BackwardWay::kHeld ? "held " : absl::StrCat("staged ", stages, " "),
                      rows.to_string(), rows.peeled ? " peeled" : "", ", ", of_processor,
                      " a multiprocessor");
}
std::string BackwardProblem::to_string() const {
  return absl::StrCat(rows.to_string(), dense ? "" : ", strided");
}

BackwardDeal deal_backward(const BackwardProblem& problem, const DeviceInfo&) {
  return held_deal(problem.rows.of, kHeldElements).value_or(BackwardDeal{});
}

std::vector<BackwardDeal> backward_deals(const BackwardProblem& problem, const DeviceInfo& device) {
  std::vector<BackwardDeal> deals = {deal_backward(problem, device)};
  const auto add = [&](const std::optional<BackwardDeal>& deal) {
    if (deal && !absl::c_linear_search(deals, *deal)) deals.push_back(*deal);
  };
  add(held_deal(problem.rows.of, 2 * kHeldElements));
  for (int blocks = 1; blocks <= kMostBlocks; blocks *= 2) {
    for (const int elements : {8, kStagedElements, 32}) {
      for (const int of_processor : {1, 2, 4}) {
        add(staged_deal(problem, device, blocks, elements, of_processor, 2 * kStagedOfProcessor));
      }
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
