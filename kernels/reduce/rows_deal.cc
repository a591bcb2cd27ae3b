#include "absl/strings/str_cat.h"
#include "heddle/kernels/reduce/rows_deal_internal.h"

namespace heddle::kernels {
namespace {

// Of longer rows a thread would take too long for one alone.
constexpr int64_t kMostTogether = 256;
// Threads of a block, and bytes of its rows: so few that a multiprocessor has several blocks, whose copies and sums overlap.
constexpr int kThreads[] = {32, 64, 128, 256};
constexpr int64_t kMostBytes = 48 * 1024;

}  // namespace

const std::vector<std::string>& reduction_names() {
  static const auto& names = *new std::vector<std::string>{
      "sum", "mean", "product", "max", "min", "norm2", "var", "argmax", "argmin"};
  return names;
}

RowsReduceDeal deal_rows_reduce(const RowsReduceProblem& problem, const DeviceInfo& device) {
  return {deal_rows(problem.rows.of, device), {}};
}

std::vector<RowsReduceDeal> rows_reduce_deals(const RowsReduceProblem& problem,
                                              const DeviceInfo& device) {
  std::vector<RowsReduceDeal> deals = {deal_rows_reduce(problem, device)};
  const RowsOf& of = problem.rows.of;
  if (!problem.packed || of.columns > kMostTogether) return deals;
  for (const int threads : kThreads) {
    if (threads * of.columns * of.element_bytes > kMostBytes) break;
    deals.push_back({deals[0].rows, {static_cast<int>(of.columns), threads}});
  }
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
