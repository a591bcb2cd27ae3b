#include "heddle/kernels/gemm/config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace heddle::kernels {
namespace {

constexpr int kGroupThreads = 128;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::string GemmConfig::to_string() const {
  return absl::StrCat(m, "x", n, "x", k, " ", stages, " stages, ", groups, " warpgroups, cluster ",
                      cluster_rows, "x", cluster_columns, ", band ", band,
                      keeps_band ? " kept" : "", ", store ", store_columns, "x", store_buffers);
}

int64_t GemmConfig::shared_bytes(const GemmProblem& problem) const {
  constexpr int64_t kBarriers = 1024;
  return int64_t{stages} * (m + n) * k * problem.element_bytes +
         int64_t{store_buffers} * m * store_columns * problem.result_bytes + kBarriers;
}

int64_t GemmConfig::tiles(const GemmProblem& problem) const {
  return ceil_div(problem.m, int64_t{m} * cluster_rows) *
         ceil_div(problem.n, int64_t{n} * cluster_columns) * problem.batches;
}

std::vector<GemmConfig> gemm_configs(const GemmProblem& problem,
                                     const runtime::DeviceInfo& device) {
  // Tiles, and the warpgroups that multiply them.
  constexpr int kTiles[][3] = {{128, 256, 2}, {256, 128, 2}, {256, 192, 2}, {128, 192, 2},
                               {128, 128, 2}, {192, 128, 3}, {128, 64, 2},  {64, 256, 1},
                               {64, 128, 1},  {64, 64, 1}};
  constexpr int kClusters[][2] = {{2, 1}, {1, 2}, {1, 1}};
  constexpr int kStores[][2] = {{64, 2}};
  std::vector<GemmConfig> configs;
  for (const auto& tile : kTiles) {
    for (const auto& cluster : kClusters) {
      for (const auto& store : kStores) {
        GemmConfig config{.m = tile[0],
                          .n = tile[1],
                          .k = 128 / problem.element_bytes,
                          .stages = 8,
                          .groups = tile[2],
                          .cluster_rows = cluster[0],
                          .cluster_columns = cluster[1],
                          .store_columns = store[0],
                          .store_buffers = store[1]};
        while (config.shared_bytes(problem) > device.limits.max_shared_per_block) --config.stages;
        if (config.stages < 3) continue;
        for (const int band : {4, 8, 16}) {
          for (const bool keeps : {false, true}) {
            config.band = band;
            config.keeps_band = keeps;
            if ((band == 8 && !keeps) || tile[0] * tile[1] > 128 * 128) configs.push_back(config);
          }
        }
      }
    }
  }
  return configs;
}

GemmConfig choose_gemm(const GemmProblem&, const runtime::DeviceInfo&) { return {}; }

LaunchShape gemm_shape(const GemmConfig& config, const GemmProblem& problem,
                       const runtime::DeviceInfo& device) {
  const int64_t clusters =
      std::min<int64_t>(config.tiles(problem), std::max(device.sm_count / config.cluster(), 1));
  return {.grid = clusters * config.cluster(),
          .block = (1 + config.groups) * kGroupThreads,
          .cluster = config.cluster(),
          .programmatic = true};
}

}  // namespace heddle::kernels
