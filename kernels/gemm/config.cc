#include "heddle/kernels/gemm/config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/runtime/tuning/tunable.h"

namespace heddle::kernels {
namespace {

constexpr int kGroupThreads = 128;
constexpr int kLineBytes = 128;  // of a swizzled line: the depth of a stage is one or two
constexpr int kMostStages = 8;
constexpr int64_t kBarrierBytes = 1024, kSumBytes = 4;

// What the model takes of a multiprocessor of an H200, by measurements (gemm_bench --tune).
constexpr double kMacsPerCycle = 4096;  // of elements of one byte, by the tensor cores
constexpr double kBytesPerCycle = 96;   // that L2 brings to one multiprocessor
// A stage takes at least so many cycles, and more for each byte of its depth, and more where blocks of a
// cluster wait for each other.
constexpr double kStageCycles = 60, kStageCyclesOfByte = 1.5, kClusterCycles = 50;
constexpr double kTileCycles = 700;  // between two tiles
// To add up the parts of a depth: once, and for each sum that comes from another block. Not measured.
constexpr double kExchangeCycles = 1500, kExchangeCyclesOfSum = 0.1;
constexpr double kFillCycles = 5000;  // until the first stage is there, and after the last one
constexpr double kMemoryBytesPerCycle = 2500;  // of the whole device
// What power allows: so many cycles for each that the tensor cores multiply in, and more for each element
// that is loaded for a multiplication.
constexpr double kPowerCycles = 0.91, kPowerCyclesOfLoad = 22.5;
// Of two that memory or power limits, the one with less work for a multiprocessor is the faster.
constexpr double kHiddenWork = 0.05;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// A tile, the warpgroups that multiply it, and lines of a stage's depth.
struct Shape {
  int m, n, groups, lines;
};
constexpr Shape kShapes[] = {{128, 256, 2, 1}, {256, 128, 2, 1}, {128, 192, 2, 1}, {128, 128, 2, 1},
                             {128, 64, 2, 1},  {128, 64, 2, 2},  {64, 256, 1, 1},  {64, 128, 1, 1},
                             {64, 128, 1, 2},  {64, 32, 1, 2},   {64, 64, 1, 2},   {64, 64, 1, 1}};
// Whether a tile's columns share the factors of b, and a stage is of one block with factors; and registers
// are enough for two sums.
constexpr int kFactorColumns = 128;
constexpr bool takes_factors(const Shape& x) {
  return x.n <= kFactorColumns && x.lines == 1 && x.m / x.groups == 64;
}
// Blocks of a cluster, by the mode that their tiles share, and of one tile.
// Whether registers are left for an epilogue, beside the sums and its results.
constexpr bool takes_epilogue(const Shape& x, const GemmProblem& problem) {
  return x.m / x.groups == 64 &&
         x.n <= (problem.result_bytes > 2 || problem.ends_inside ? 128 : 256);
}
struct Cluster {
  int rows, columns, split;
};
constexpr Cluster kClusters[] = {{2, 1, 1}, {1, 2, 1}, {1, 1, 1}, {1, 1, 2}, {1, 1, 4}, {1, 1, 8}};
// Rows of a that a copy loads, in multiples; columns that a block has of a shared tile, which are those of
// a reduction (reductions.h); and its blocks along k.
constexpr int kRowsOfCopy = 8, kLeastColumns = 32, kLeastBlocks = 2;
// Elements of the largest tile whose depth is shared: larger ones are for results of many tiles.
constexpr int kMostSplit = 128 * 128;

// Whether the blocks of a cluster have tiles inside of the result, and shares of the depth.
bool fits(const Shape& shape, const Cluster& cluster, int k, const GemmProblem& problem) {
  return int64_t{cluster.rows - 1} * shape.m < problem.m &&
         int64_t{cluster.columns - 1} * shape.n < problem.n &&
         (cluster.split == 1 ||
          (shape.m * shape.n <= kMostSplit && shape.n / cluster.split >= kLeastColumns &&
           ceil_div(problem.k, k) >= cluster.split * kLeastBlocks));
}
// Columns of a result that are stored at once: of at most a line.
int store_columns_of(int columns, int result_bytes) {
  return std::min(columns & -columns, kLineBytes / result_bytes);
}

}  // namespace

std::string GemmProblem::to_string() const {
  std::string text =
      absl::StrCat(m, "x", n, "x", k, batches == 1 ? "" : absl::StrCat(" x ", batches), " ",
                   a == Major::k ? "t" : "n", b == Major::k ? "n" : "t", ", ", element_bytes,
                   " into ", result_bytes, " bytes");
  const std::pair<bool, const char*> more[] = {{!stores_boxes, ", stored by threads"},
                                               {fused, ", fused"},
                                               {scaled, ", scaled"},
                                               {ends_inside, ", ends inside"},
                                               {unknown_rows, ", rows unknown"}};
  for (const auto& [is_so, what] : more) {
    if (is_so) text += what;
  }
  return text;
}

std::string GemmConfig::to_string() const {
  return absl::StrCat(m, "x", n, "x", k, " ", stages, " stages, ", groups, " warpgroups, cluster ",
                      cluster_rows, "x", cluster_columns, ", band ", band,
                      keeps_band ? " kept" : "", ", store ", store_columns, "x", store_buffers,
                      split == 1 ? "" : absl::StrCat(", depth in ", split));
}

int64_t GemmConfig::shared_bytes(const GemmProblem& problem) const {
  return int64_t{stages} * (m + n) * k * problem.element_bytes +
         int64_t{store_buffers} * m * store_columns * problem.result_bytes +
         int64_t{split - 1} * m * columns() * kSumBytes + kBarrierBytes;
}

int64_t GemmConfig::tiles(const GemmProblem& problem) const {
  return ceil_div(problem.m, int64_t{m} * cluster_rows) *
         ceil_div(problem.n, int64_t{n} * cluster_columns) * problem.batches;
}

std::vector<GemmConfig> gemm_configs(const GemmProblem& problem,
                                     const runtime::DeviceInfo& device) {
  std::vector<GemmConfig> configs;
  for (const Shape& shape : kShapes) {
    if (problem.scaled && !takes_factors(shape)) continue;
    if (problem.fused && !takes_epilogue(shape, problem)) continue;
    for (const Cluster& cluster : kClusters) {
      const int k = shape.lines * kLineBytes / problem.element_bytes;
      if (!fits(shape, cluster, k, problem)) continue;
      GemmConfig config{
          .m = shape.m,
          .n = shape.n,
          .k = k,
          .stages = kMostStages,
          .groups = shape.groups,
          .cluster_rows = cluster.rows,
          .cluster_columns = cluster.columns,
          .split = cluster.split,
          .store_columns = store_columns_of(shape.n / cluster.split, problem.result_bytes),
          .stores_boxes = problem.stores_boxes,
          .a = problem.a,
          .b = problem.b};
      if (problem.m < shape.m && !problem.unknown_rows && problem.a == Major::k &&
          cluster.columns == 1) {
        config.a_rows = static_cast<int>(ceil_div(problem.m, kRowsOfCopy)) * kRowsOfCopy;
        if (config.a_rows == shape.m) config.a_rows = 0;
      }
      while (config.shared_bytes(problem) > device.limits.max_shared_per_block) --config.stages;
      for (const int band : {4, 8, 16}) {
        for (const bool keeps : {false, true}) {
          config.band = band;
          config.keeps_band = keeps;
          if ((band == 8 && !keeps) || shape.m * shape.n > kMostSplit) configs.push_back(config);
        }
      }
    }
  }
  return configs;
}

double expected_cycles(const GemmConfig& config, const GemmProblem& problem,
                       const runtime::DeviceInfo& device) {
  const double multiply =
      static_cast<double>(config.m) * config.n * config.k * problem.element_bytes / kMacsPerCycle;
  // What a block loads of a stage itself, and what it gets.
  const double loaded = (static_cast<double>(config.m) / config.cluster_columns +
                         static_cast<double>(config.n) / config.cluster_rows) *
                        config.k * problem.element_bytes;
  const double stage =
      std::max({multiply, loaded / kBytesPerCycle,
                kStageCycles + kStageCyclesOfByte * config.k * problem.element_bytes}) +
      (config.cluster() > 1 ? kClusterCycles : 0);
  const int64_t clusters = std::max(device.sm_count / config.cluster(), 1);
  const double rounds = static_cast<double>(ceil_div(config.tiles(problem), clusters));
  const double depth = static_cast<double>(ceil_div(ceil_div(problem.k, config.k), config.split));
  const double exchange = config.split == 1
                              ? 0
                              : kExchangeCycles + kExchangeCyclesOfSum * config.m *
                                                      config.columns() * (config.split - 1);
  const double work = kFillCycles + rounds * (depth * stage + kTileCycles + exchange);
  const double macs = static_cast<double>(problem.m) * static_cast<double>(problem.n) *
                      static_cast<double>(problem.k) * static_cast<double>(problem.batches);
  const double loads =
      loaded / problem.element_bytes / (static_cast<double>(config.m) * config.n * config.k);
  const double by_power = macs * problem.element_bytes / kMacsPerCycle / device.sm_count *
                          (kPowerCycles + kPowerCyclesOfLoad * loads);
  const double bytes =
      static_cast<double>(problem.batches) *
      (static_cast<double>(problem.k) * static_cast<double>(problem.m + problem.n) *
           problem.element_bytes +
       static_cast<double>(problem.m) * static_cast<double>(problem.n) * problem.result_bytes);
  return std::max({work, by_power, kFillCycles + bytes / kMemoryBytesPerCycle}) +
         kHiddenWork * work;
}

GemmConfig choose_gemm(const GemmProblem& problem, const runtime::DeviceInfo& device) {
  GemmConfig best;
  double least = 0;
  for (const GemmConfig& config : gemm_configs(problem, device)) {
    if (config.band != 8 || config.keeps_band) continue;
    if (config.split != 1) continue;  // by gemm_bench --tune alone, until it is measured
    const double cycles = expected_cycles(config, problem, device);
    if (least != 0 && cycles >= least) continue;
    least = cycles;
    best = config;
  }
  return best;
}

GemmConfig tuned_gemm(const GemmProblem& problem, const runtime::DeviceInfo& device) {
  static const runtime::Tunable<GemmProblem, GemmConfig> tunable("gemm", gemm_configs, choose_gemm);
  return tunable.choose(problem, device);
}

LaunchShape gemm_shape(const GemmConfig& config, const GemmProblem& problem,
                       const runtime::DeviceInfo& device) {
  GemmProblem most = problem;
  if (problem.unknown_rows) most.m += int64_t{config.m} * config.cluster_rows;
  const int64_t clusters =
      std::min<int64_t>(config.tiles(most), std::max(device.sm_count / config.cluster(), 1));
  return {.grid = clusters * config.cluster(),
          .block = (1 + config.groups) * kGroupThreads,
          .cluster = config.cluster(),
          .programmatic = true};
}

}  // namespace heddle::kernels
