#include "heddle/kernels/rows/turn_deal.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/rows/staged_rows.h"
#include "heddle/kernels/rows/warp_values.h"

namespace heddle::kernels {
namespace {

// Vectors of a row with edges, at least.
constexpr int kFewestPeeled = 16;
// Threads of a multiprocessor, at most; bytes that each of its blocks takes besides.
constexpr int kMostThreads = 1024, kBlockBytes = 1024;

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

}  // namespace

std::string TurnDeal::to_string() const {
  if (!in_turn()) return rows.to_string();
  return absl::StrCat(stages == 0 ? "held " : absl::StrCat("staged ", stages, " "),
                      rows.to_string(), rows.peeled ? " peeled" : "", ", ", of_processor,
                      " a multiprocessor");
}

TurnVectors turn_vectors(const RowsOf& of) {
  const int widest = kVectorBytes / of.element_bytes;
  if (of.aligned && of.columns % widest == 0) {
    return {widest, false, of.columns / widest};
  }
  if (of.alike && of.columns >= kFewestPeeled * widest) {
    return {widest, true, of.columns / widest};
  }
  return {1, false, of.columns};
}

std::optional<TurnDeal> staged_deal(const RowsOf& of, const DeviceInfo& device,
                                    const Staging& wanted) {
  const TurnVectors vectors = turn_vectors(of);
  if (!device.cluster_launch || vectors.width == 1) return std::nullopt;
  TurnDeal deal{.of_processor = wanted.of_processor};
  RowDeal& rows = deal.rows;
  rows.blocks = wanted.blocks;
  rows.width = vectors.width;
  rows.peeled = vectors.peeled;
  fit(divide_up(vectors.most, rows.blocks), std::max(wanted.elements / rows.width, 1), rows);
  const int64_t span = int64_t{rows.threads} * rows.vectors;
  if (span * wanted.of_processor > wanted.most / rows.width ||
      rows.threads * wanted.of_processor > kMostThreads) {
    return std::nullopt;
  }
  find_whole(of, rows);
  const int64_t memory = std::min(device.limits.max_shared_per_block,
                                  device.shared_per_sm / wanted.of_processor - kBlockBytes) -
                         warp_value_bytes(rows, wanted.floats);
  for (deal.stages = kMostStages; deal.stages >= kFewestStages; --deal.stages) {
    if (staged_bytes(rows, of.element_bytes, of.inputs, deal.stages) <= memory) return deal;
  }
  return std::nullopt;
}

int64_t turn_groups(const TurnDeal& deal, int64_t rows, const DeviceInfo& device) {
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
LaunchShape turn_shape(const TurnDeal& deal, int64_t rows, const DeviceInfo& device) {
  return {.grid = turn_groups(deal, rows, device) * deal.rows.blocks,
          .block = {deal.rows.threads, deal.rows.rows},
          .cluster = deal.rows.blocks};
}

}  // namespace heddle::kernels
