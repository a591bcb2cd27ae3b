// How long a configuration of a product takes, and which one is therefore chosen.
#include <algorithm>

#include "heddle/dsl/pipeline/stream_k.h"
#include "heddle/kernels/gemm/model_internal.h"
#include "heddle/runtime/tuning/tunable.h"

namespace heddle::kernels {
namespace {

// What the model takes of a multiprocessor of an H200, by measurements (gemm_bench --tune).
constexpr double kMacsPerCycle = 4096;  // of elements of one byte, by the tensor cores
// How much longer products take by one warpgroup alone: nobody multiplies while it waits.
constexpr double kAlone = 1.25;
// Bytes that L2 brings to one multiprocessor, that come to it from its cluster too, and that L2 brings to
// all of them.
constexpr double kBytesPerCycle = 73, kBytesToOnePerCycle = 85, kAllBytesPerCycle = 6000;
// Of the stages that could be loading, the share of one that is not, since it is in use.
constexpr double kStagesInUse = 0.5;
// A stage takes more cycles to be waited for; and for each line of its depth where blocks of a cluster wait
// for each other's rows of a, while each of them has columns of b that come from memory.
constexpr double kStageCycles = 30, kSharedRowsCycles = 50;
// Between two tiles of a warpgroup, and for each sum that an epilogue takes, unless the other warpgroup multiplies.
constexpr double kTileCycles = 700, kEpilogueCyclesOfSum = 0.1;
constexpr double kMeetCycles =
    1200;  // until the blocks of a cluster have met, at its start and end
// To add up the parts of a depth: once, and for each sum that comes from another block. Not measured.
constexpr double kExchangeCycles = 1500, kExchangeCyclesOfSum = 0.1;
constexpr double kFillCycles = 5000;  // until the first stage is there, and after the last one
constexpr double kMemoryBytesPerCycle = 2300;  // of the whole device
// What power allows: so many cycles for each that the tensor cores multiply in, and more for each element
// that is loaded for a multiplication.
constexpr double kPowerCycles = 0.91, kPowerCyclesOfLoad = 22.5;
// The share of these, and of L2's time, that products take whose results leave while others run: nothing is idle. They
// are the faster ones where work decides. Where power does, in products of seconds, they take 3 % more energy.
constexpr double kShareOfTurns = 0.9;
// Of two that memory or power limits, the one with less work for multiprocessors and L2 is the faster.
constexpr double kHiddenWork = 0.05;

}  // namespace

namespace gemm_model {

// Blocks of a cluster lie in one GPC, which has 16 or 18 multiprocessors on an H200: clusters of 4 or 8 leave
// two of 18 idle. (The driver knows how many clusters fit, but by the kernel.)
constexpr int kProcessorsOfGpc = 16, kSmallCluster = 2;
int clusters_of(const GemmConfig& config, const runtime::DeviceInfo& device) {
  const int size = config.cluster(), gpcs = device.sm_count / kProcessorsOfGpc;
  if (size <= kSmallCluster || gpcs == 0) return std::max(device.sm_count / size, 1);
  return std::max(gpcs * (kProcessorsOfGpc / size), 1);
}

int64_t sharers(int64_t tiles, int64_t blocks, int64_t clusters) {
  const StreamKOrder order;
  return std::min(clusters,
                  tiles * std::clamp<int64_t>(blocks / order.least_blocks, 1, order.most_shares));
}

}  // namespace gemm_model

using gemm_model::ceil_div;
using gemm_model::clusters_of;
using gemm_model::kLineBytes;
using gemm_model::sharers;

double expected_cycles(const GemmConfig& config, const GemmProblem& problem,
                       const runtime::DeviceInfo& device) {
  const double multiply = static_cast<double>(config.m) * config.n * config.k *
                          problem.element_bytes / kMacsPerCycle * (config.groups == 1 ? kAlone : 1);
  // What a block loads of a stage itself, and what it gets.
  const double line = static_cast<double>(config.k) * problem.element_bytes;
  const double loaded = (static_cast<double>(config.m) / config.cluster_columns +
                         static_cast<double>(config.n) / config.cluster_rows) *
                        line;
  const double received = (config.m + config.n) * line;
  const double stage = std::max(multiply + kStageCycles,
                                std::max(loaded / kBytesPerCycle, received / kBytesToOnePerCycle) *
                                    config.stages / (config.stages - kStagesInUse));
  const int64_t clusters = clusters_of(config, device), blocks = ceil_div(problem.k, config.k);
  // Groups end anywhere: the last tile of each is half full on average.
  const int64_t height = int64_t{config.m} * config.cluster_rows;
  GemmProblem padded = problem;
  if (problem.ends_inside) {
    padded.m = problem.batches * problem.m + problem.batches * height / 2;
    padded.batches = 1;
  }
  const int64_t tiles = config.tiles(padded);
  const double rounds = static_cast<double>(ceil_div(tiles, clusters));
  const double depth = static_cast<double>(ceil_div(blocks, config.split));
  // Stages of a block, in all of its tiles, and what it takes to bring sums together.
  const double stages = config.stream_k ? static_cast<double>(tiles * blocks) /
                                              static_cast<double>(sharers(tiles, blocks, clusters))
                                        : rounds * depth;
  const double sums = static_cast<double>(config.m) * config.columns();
  const double exchange =
      config.stream_k ? kExchangeCycles + kExchangeCyclesOfSum * sums
      : config.split == 1
          ? 0
          : rounds * (kExchangeCycles + kExchangeCyclesOfSum * sums * (config.split - 1));
  const double work = kFillCycles + (config.cluster() > 1 ? kMeetCycles : 0) + stages * stage +
                      (config.ping_pong ? 1 : rounds) *
                          (kTileCycles + (problem.fused ? kEpilogueCyclesOfSum * sums : 0)) +
                      exchange;
  const double macs = static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                      static_cast<double>(problem.k) * static_cast<double>(problem.batches);
  const double share = config.ping_pong ? kShareOfTurns : 1;
  const double loads =
      loaded / problem.element_bytes / (static_cast<double>(config.m) * config.n * config.k);
  const double by_power = macs * problem.element_bytes / kMacsPerCycle / device.sm_count *
                          (kPowerCycles + kPowerCyclesOfLoad * loads) * share;
  const double by_l2 =
      static_cast<double>(tiles * config.cluster()) * depth * loaded / kAllBytesPerCycle * share;
  const double waits =
      config.cluster_columns > 1 ? stages * kSharedRowsCycles * line / kLineBytes : 0;
  const double bytes =
      static_cast<double>(problem.batches) *
      (static_cast<double>(problem.k) * static_cast<double>(problem.m + problem.n) *
           problem.element_bytes +
       static_cast<double>(problem.m) * static_cast<double>(problem.n) * problem.result_bytes);
  // Where each block has one tile, blocks are not all loading all the time.
  const double limit = std::max(
      {work, by_power, rounds > 1 ? by_l2 : 0, kFillCycles + bytes / kMemoryBytesPerCycle});
  return limit + waits + kHiddenWork * (work + by_l2);
}

namespace {

// The one of some configurations that the model expects to be the fastest.
template <class Counts>
std::optional<GemmConfig> fastest(const GemmProblem& problem, const runtime::DeviceInfo& device,
                                  const Counts& counts) {
  std::optional<GemmConfig> best;
  double least = 0;
  for (const GemmConfig& config : gemm_configs(problem, device)) {
    if (config.band != 8 || config.keeps_band || !counts(config)) continue;
    const double cycles = expected_cycles(config, problem, device);
    if (best && cycles >= least) continue;
    least = cycles;
    best = config;
  }
  return best;
}

}  // namespace

GemmConfig choose_gemm(const GemmProblem& problem, const runtime::DeviceInfo& device) {
  // The others by gemm_bench --tune alone, until they are measured. Blocks of a cluster whose warpgroups take turns
  // wait for each other's: without clusters they are 1 to 3 % faster. An epilogue that reads a matrix waits for each
  // part of it (20 % slower).
  const bool may_take_turns =
      problem.stores_boxes && !problem.ends_inside && !problem.reads_matrices;
  return *fastest(problem, device, [&](const GemmConfig& config) {
    return config.split == 1 && !config.stream_k &&
           (!config.ping_pong || (may_take_turns && config.cluster() == 1));
  });
}

GemmConfig tuned_gemm(const GemmProblem& problem, const runtime::DeviceInfo& device) {
  // Those with stream_k take a workspace, which gemm() has none of.
  static const runtime::Tunable<GemmProblem, GemmConfig> tunable(
      "gemm",
      [](const GemmProblem& x, const runtime::DeviceInfo& on) {
        std::vector<GemmConfig> configs = gemm_configs(x, on);
        configs.erase(std::remove_if(configs.begin(), configs.end(),
                                     [](const GemmConfig& config) { return config.stream_k; }),
                      configs.end());
        return configs;
      },
      choose_gemm);
  return tunable.choose(problem, device);
}

std::optional<GemmConfig> choose_stream_k(const GemmProblem& problem,
                                          const runtime::DeviceInfo& device) {
  return fastest(problem, device, [](const GemmConfig& config) { return config.stream_k; });
}

}  // namespace heddle::kernels
