#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "heddle/kernels/norm/norm_deal_internal.h"

namespace heddle::kernels {
namespace {

// Of rows in shared memory: a thread's elements, and the fewest of a candidate; blocks of a multiprocessor, at most, and of a
// candidate; elements of a multiprocessor, as weights and a row take few registers.
constexpr int kElements = 32, kFewestElements = 8, kMostOfProcessor = 4, kMoreOfProcessor = 8,
              kOfProcessor = 32768;
// Elements of rows with edges that are taken in turn on an H200: of 16 bits, and where rows are centred of 32 too.
constexpr int64_t kFewestNarrow = 16384, kMostNarrow = 65536, kFewestCentredNarrow = 2048,
                  kFewestCentredWide = 16384;

// A block's share of the rows of two matrices that registers hold rather than shared memory, at least.
constexpr int64_t kFewestHeldBytes = 65536;

// Warps send two values.
Staging staging(int blocks, int elements, int of_processor) {
  return {.blocks = blocks,
          .elements = elements,
          .of_processor = of_processor,
          .most = kOfProcessor,
          .floats = 2};
}

// What an H200 is fastest with: blocks alone and pairs that have all stages, of which some work while others wait; or the largest
// clusters.
std::optional<TurnDeal> best_staged(const RowsOf& of, const DeviceInfo& device) {
  const int most = most_blocks(device);
  for (const int blocks : {1, 2, most}) {
    for (int of_processor = kMostOfProcessor; blocks * of_processor > 1; of_processor /= 2) {
      const auto deal = staged_deal(of, device, staging(blocks, kElements, of_processor));
      if (deal && deal->stages == kMostStages) return deal;
      if (blocks == most && of_processor <= 2 && deal) return deal;
    }
  }
  return std::nullopt;
}

// Whether rows are taken in turn: where weights are loaded element by element otherwise.
bool goes_in_turn(const NormProblem& problem) {
  const RowsOf& of = problem.rows.of;
  if (!turn_vectors(of).peeled) return false;
  const bool narrow = of.element_bytes < 4;
  if (problem.centred) return of.columns >= (narrow ? kFewestCentredNarrow : kFewestCentredWide);
  return narrow && of.columns >= kFewestNarrow && of.columns <= kMostNarrow;
}

// How rows are dealt out that are each taken once.
RowDeal row_deal(const NormProblem& problem, const DeviceInfo& device) {
  const RowsOf& of = problem.rows.of;
  RowDeal deal = deal_rows(of, device);
  if (problem.centred && deal.peeled && of.element_bytes < 4 && deal.threads == kWarpSize) {
    // Half as many lanes, each with twice as many vectors, do less besides loading weights one by one. whole_vectors stays that of
    // all lanes, less than is true: with the true one rows of 1023 were slower (0.90 of a copy instead of 0.97).
    deal.threads /= 2;
    deal.rows *= 2;
    deal.vectors *= 2;
  }
  if (of.inputs > 1 && shared_bytes(deal, of.inputs) >= kFewestHeldBytes) {
    if (const auto held = deal_in_registers(of, device)) return *held;
  }
  return deal;
}

}  // namespace

TurnDeal deal_norm(const NormProblem& problem, const DeviceInfo& device) {
  if (goes_in_turn(problem)) {
    if (const auto staged = best_staged(problem.rows.of, device)) return *staged;
  }
  return {.rows = row_deal(problem, device)};
}

std::vector<TurnDeal> norm_deals(const NormProblem& problem, const DeviceInfo& device) {
  std::vector<TurnDeal> deals = {deal_norm(problem, device)};
  const auto add = [&](const std::optional<TurnDeal>& deal) {
    // By name: the model's own deal may differ from the candidate of its name in whole_vectors.
    const auto has_name = [&](const TurnDeal& other) {
      return other.to_string() == deal->to_string();
    };
    if (deal && !absl::c_any_of(deals, has_name)) deals.push_back(*deal);
  };
  for (int blocks = 1; blocks <= most_blocks(device); blocks *= 2) {
    for (int elements = kFewestElements; elements <= kElements; elements *= 2) {
      for (int of_processor = 1; of_processor <= kMoreOfProcessor; of_processor *= 2)
        add(staged_deal(problem.rows.of, device, staging(blocks, elements, of_processor)));
    }
  }
  for (const RowDeal& rows : row_deals(problem.rows, device)) add(TurnDeal{.rows = rows});
  return deals;
}

}  // namespace heddle::kernels
