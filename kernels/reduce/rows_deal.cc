#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "heddle/kernels/reduce/rows_deal_internal.h"

namespace heddle::kernels {
namespace {

// Of longer rows a thread would take too long for one alone.
constexpr int64_t kMostTogether = 256;
// Threads of a block, and bytes of its rows: so few that a multiprocessor has several blocks, whose copies and sums overlap.
constexpr int kThreads[] = {32, 64, 128, 256};
constexpr int kBestThreads = 64;
constexpr int64_t kMostBytes = 48 * 1024;
// Odd rows whose threads would wait for single loads: bytes of one, at most, also where an element takes more work.
constexpr int64_t kMostOddBytes = 320, kMostCostlyBytes = 384;
constexpr Reduction kCostly[] = {Reduction::kVar, Reduction::kArgmax, Reduction::kArgmin};

std::optional<RowsReduceDeal> together(const RowsReduceProblem& problem, const RowDeal& rows,
                                       int threads) {
  const RowsOf& of = problem.rows.of;
  if (!problem.packed || of.columns > kMostTogether ||
      threads * of.columns * of.element_bytes > kMostBytes) {
    return std::nullopt;
  }
  return RowsReduceDeal{rows, {static_cast<int>(of.columns), threads}};
}

}  // namespace

const std::vector<std::string>& reduction_names() {
  static const auto& names = *new std::vector<std::string>{
      "sum", "mean", "product", "max", "min", "norm2", "var", "argmax", "argmin"};
  return names;
}

RowsReduceDeal deal_rows_reduce(const RowsReduceProblem& problem, const DeviceInfo& device) {
  const RowsOf& of = problem.rows.of;
  const bool costly = absl::c_linear_search(kCostly, problem.reduction),
             few = of.columns * of.element_bytes <= (costly ? kMostCostlyBytes : kMostOddBytes);
  const RowsReduceDeal apart{deal_rows(of, device), {}};
  // Of fewer rows some multiprocessors would have none.
  const bool many = problem.rows.rows >= int64_t{kBestThreads} * device.sm_count;
  if (of.aligned || !few || !many) return apart;
  return together(problem, apart.rows, kBestThreads).value_or(apart);
}

std::vector<RowsReduceDeal> rows_reduce_deals(const RowsReduceProblem& problem,
                                              const DeviceInfo& device) {
  std::vector<RowsReduceDeal> deals = {deal_rows_reduce(problem, device)};
  const auto add = [&](const std::optional<RowsReduceDeal>& deal) {
    if (deal && !absl::c_linear_search(deals, *deal)) deals.push_back(*deal);
  };
  const RowDeal rows = deal_rows(problem.rows.of, device);
  add(RowsReduceDeal{rows, {}});
  for (const int threads : kThreads) add(together(problem, rows, threads));
  return deals;
}

std::string RowsReduceDeal::to_string() const {
  return together.threads > 0 ? absl::StrCat("together threads=", together.threads)
                              : rows.to_string();
}
std::string RowsReduceProblem::to_string() const {
  return absl::StrCat(reduction_names()[static_cast<size_t>(reduction)], " of ", rows.to_string(),
                      packed ? ", packed" : "");
}

}  // namespace heddle::kernels
