#include "heddle/kernels/gemm/config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/pipeline/stream_k.h"
#include "heddle/kernels/gemm/model_internal.h"

namespace heddle::kernels {

using gemm_model::ceil_div;
using gemm_model::clusters_of;
using gemm_model::kLineBytes;
using gemm_model::sharers;

namespace {

constexpr int kMostStages = 8;
constexpr int64_t kBarrierBytes = 1024, kSumBytes = 4;

// A tile, the warpgroups that multiply, together or (ping-pong) a tile each, and lines of a stage's depth.
struct Shape {
  int m, n, groups, lines;
  bool ping_pong = false;

  constexpr int rows_of_group() const { return ping_pong ? m : m / groups; }
};
constexpr Shape kShapes[] = {{128, 256, 2, 1},      {256, 128, 2, 1},      {128, 192, 2, 1},
                             {128, 128, 2, 1},      {128, 64, 2, 1},       {128, 64, 2, 2},
                             {64, 256, 1, 1},       {64, 128, 1, 1},       {64, 128, 1, 2},
                             {128, 144, 2, 1},      {128, 160, 2, 1},      {64, 32, 1, 2},
                             {64, 64, 1, 2},        {64, 64, 1, 1},        {128, 224, 2, 1},
                             {64, 112, 1, 1},       {64, 112, 1, 2},       {128, 128, 2, 1, true},
                             {64, 256, 2, 1, true}, {64, 128, 2, 1, true}, {128, 192, 2, 1, true}};
// Columns that a block has of a shared tile, and that an epilogue gets: those of a reduction (reductions.h).
constexpr int kLeastColumns = 32;
// Whether a tile's columns share the factors of b, and a stage is of one block with factors; and registers
// are enough for two sums.
constexpr int kFactorColumns = 128;
constexpr bool takes_factors(const Shape& x) {
  return kFactorColumns % x.n == 0 && x.lines == 1 && x.rows_of_group() == kProductRows &&
         !x.ping_pong;
}
// Whether registers are left for an epilogue, beside the sums and its results; those of a warpgroup's own tile leave
// as they are computed.
constexpr bool takes_epilogue(const Shape& x, const GemmProblem& problem) {
  if (x.n % kLeastColumns != 0) return false;
  const bool leaves_at_once = x.ping_pong && problem.stores_boxes && !problem.ends_inside;
  return (x.rows_of_group() == kProductRows || leaves_at_once) &&
         x.n <= (problem.result_bytes > 2 || problem.ends_inside || x.ping_pong ? 128 : 256);
}
// Blocks of a cluster, by the mode that their tiles share, and of one tile.
struct Cluster {
  int rows, columns, split;
};
constexpr Cluster kClusters[] = {{2, 1, 1}, {1, 2, 1}, {1, 1, 1}, {1, 1, 2}, {1, 1, 4}, {1, 1, 8}};
// Rows of a that a copy loads, in multiples; and blocks along k of a block that shares a tile.
constexpr int kRowsOfCopy = 8, kLeastBlocks = 2;
// Elements of the largest tile whose depth a cluster shares: larger ones are for results of many tiles.
// And of the smallest one whose depth clusters share.
constexpr int kMostSplit = 128 * 128, kLeastStreamK = 128 * 128;

// Whether the blocks of a cluster have tiles inside of the result, and shares of the depth.
bool fits(const Shape& shape, const Cluster& cluster, int k, const GemmProblem& problem) {
  return int64_t{cluster.rows - 1} * shape.m < problem.m &&
         int64_t{cluster.columns - 1} * shape.n < problem.n &&
         (cluster.split == 1 || (!shape.ping_pong && shape.m * shape.n <= kMostSplit &&
                                 shape.n % (cluster.split * kLeastColumns) == 0 &&
                                 ceil_div(problem.k, k) >= cluster.split * kLeastBlocks));
}
// Whether clusters may share the depths of tiles, which then have the same work.
bool may_share(const GemmConfig& config, const GemmProblem& problem,
               const runtime::DeviceInfo& device) {
  const int64_t tiles = config.tiles(problem), clusters = clusters_of(config, device);
  return config.split == 1 && !config.ping_pong && config.m * config.n >= kLeastStreamK &&
         config.n % kLeastColumns == 0 && !problem.ends_inside && !problem.scaled &&
         tiles % clusters != 0 &&
         sharers(tiles, ceil_div(problem.k, config.k), clusters) > std::min(tiles, clusters - 1);
}
// Columns of a result that are stored at once: of at most a line; of two tiles at one time, few, so that more stages
// fit beside them.
int store_columns_of(int columns, const Shape& shape, int result_bytes) {
  return std::min(columns & -columns, shape.ping_pong ? kLeastColumns : kLineBytes / result_bytes);
}

}  // namespace

std::string GemmProblem::to_string() const {
  std::string text =
      absl::StrCat(m, "x", n, "x", k, batches == 1 ? "" : absl::StrCat(" x ", batches), " ",
                   a == Major::k ? "t" : "n", b == Major::k ? "n" : "t", ", ", element_bytes,
                   " into ", result_bytes, " bytes");
  const std::pair<bool, const char*> more[] = {
      {!stores_boxes, ", stored by threads"}, {fused, ", fused"},
      {reads_matrices, ", with matrices"},    {scaled, ", scaled"},
      {ends_inside, ", ends inside"},         {unknown_rows, ", rows unknown"}};
  for (const auto& [is_so, what] : more) {
    if (is_so) text += what;
  }
  return text;
}

std::string GemmConfig::to_string() const {
  return absl::StrCat(m, "x", n, "x", k, " ", stages, " stages, ", groups, " warpgroups, cluster ",
                      cluster_rows, "x", cluster_columns, ", band ", band,
                      keeps_band ? " kept" : "", ", store ", store_columns, "x", store_buffers,
                      split == 1 ? "" : absl::StrCat(", depth in ", split),
                      stream_k ? ", stream-k" : "", ping_pong ? ", ping-pong" : "");
}

GemmConfig::Registers GemmConfig::registers(int accumulators, bool has_epilogue) const {
  if (groups == 3) return {32, 160};
  const int elements = accumulators * rows_of_group() / kProductRows * n / 2;
  if (groups != 2 || elements <= (has_epilogue && !ping_pong ? 32 : 64)) return {0, 0};
  return ping_pong ? Registers{24, 240} : Registers{40, 232};
}

int64_t GemmConfig::shared_bytes(const GemmProblem& problem) const {
  return int64_t{stages} * (m + n) * k * problem.element_bytes +
         int64_t{store_buffers} * result_rows() * store_columns * problem.result_bytes +
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
          .ping_pong = shape.ping_pong,
          .store_columns = store_columns_of(shape.n / cluster.split, shape, problem.result_bytes),
          .store_buffers = shape.ping_pong ? 1 : 2,
          .stores_boxes = problem.stores_boxes,
          .a = problem.a,
          .b = problem.b};
      if (problem.m < shape.m && !problem.unknown_rows && problem.a == Major::k &&
          cluster.columns == 1) {
        config.a_rows = static_cast<int>(ceil_div(problem.m, kRowsOfCopy)) * kRowsOfCopy;
        if (config.a_rows == shape.m) config.a_rows = 0;
      }
      while (config.shared_bytes(problem) > device.limits.max_shared_per_block) --config.stages;
      // Who has one tile has no turns.
      if (config.ping_pong && config.tiles(problem) <= clusters_of(config, device)) continue;
      for (const int band : {4, 8, 16}) {
        for (const bool keeps : {false, true}) {
          config.band = band;
          config.keeps_band = keeps;
          if ((band == 8 && !keeps) || shape.m * shape.n > kMostSplit) configs.push_back(config);
        }
      }
      if (!may_share(config, problem, device)) continue;
      config.band = 8;
      config.keeps_band = false;
      config.stream_k = true;
      configs.push_back(config);
    }
  }
  return configs;
}

Status check_config(const GemmConfig& config, const GemmProblem& problem,
                    const runtime::DeviceInfo& device) {
  const auto refused = [&](auto... why) {
    return InvalidArgumentError(absl::StrCat("gemm: the configuration ", config.to_string(),
                                             " does not fit: ", why...,
                                             "; gemm_configs() has those that do"));
  };
  if (config.groups < 1 || config.rows_of_group() % kProductRows != 0) {
    return refused("each warpgroup has ", kProductRows, " rows of a tile, or a multiple");
  }
  if ((config.split > 1) + int{config.stream_k} + int{config.ping_pong} > 1) {
    return refused("split, stream_k and ping_pong exclude each other");
  }
  if (config.ping_pong && config.groups < 2) {
    return refused("ping_pong takes two warpgroups or more");
  }
  const int64_t blocks = ceil_div(problem.k, config.k);
  if (config.split > blocks) {
    return refused("k = ", problem.k, " has ", blocks, blocks == 1 ? " block" : " blocks", " of ",
                   config.k, " for ", config.split,
                   " blocks of a cluster that share them, and each takes one at least");
  }
  if (config.split > 1 && config.n % (config.split * kLeastColumns) != 0) {
    return refused("blocks that share a depth have ", kLeastColumns,
                   " columns of the tile each, or a multiple");
  }
  if ((problem.fused || config.stream_k) && config.n % kLeastColumns != 0) {
    return refused(problem.fused ? "an epilogue" : "stream_k", " gets ", kLeastColumns,
                   " columns of a tile at a time, and it has ", config.n);
  }
  // Of one stage, products would wait for the stage that they have not given back yet.
  if (config.stages < 2) return refused("products read one stage while another is filled");
  const int64_t bytes = config.shared_bytes(problem), most = device.limits.max_shared_per_block;
  if (bytes > most) {
    return refused("it takes ", bytes, " bytes of shared memory, and a block has ", most,
                   " at most");
  }
  return OkStatus();
}

LaunchShape gemm_shape(const GemmConfig& config, const GemmProblem& problem,
                       const runtime::DeviceInfo& device) {
  GemmProblem most = problem;
  if (problem.unknown_rows) most.m += int64_t{config.m} * config.cluster_rows;
  const int64_t fit = clusters_of(config, device), tiles = config.tiles(most);
  const int64_t clusters =
      config.stream_k ? sharers(tiles, ceil_div(problem.k, config.k), fit) : std::min(tiles, fit);
  return {.grid = clusters * config.cluster(),
          .block = (1 + config.groups) * kWarpGroupSize,
          .cluster = config.cluster(),
          .programmatic = true};
}

}  // namespace heddle::kernels
