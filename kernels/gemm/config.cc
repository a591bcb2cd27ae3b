#include "heddle/kernels/gemm/config.h"

#include <algorithm>

namespace heddle::kernels {
namespace {

constexpr int kGroupThreads = 128;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

int64_t GemmConfig::shared_bytes(const GemmProblem& problem) const {
  constexpr int64_t kBarriers = 1024;
  return int64_t{stages} * (m + n) * k * problem.element_bytes +
         int64_t{store_buffers} * m * store_columns * problem.result_bytes + kBarriers;
}

int64_t GemmConfig::tiles(const GemmProblem& problem) const {
  return ceil_div(problem.m, int64_t{m} * cluster_rows) *
         ceil_div(problem.n, int64_t{n} * cluster_columns) * problem.batches;
}

GemmConfig choose_gemm(const GemmProblem&, const runtime::DeviceInfo&) { return {}; }

LaunchShape gemm_shape(const GemmConfig& config, const GemmProblem& problem,
                       const runtime::DeviceInfo& device) {
  const int64_t clusters =
      std::min<int64_t>(config.tiles(problem), std::max(device.sm_count / config.cluster(), 1));
  return {.grid = clusters * config.cluster(),
          .block = (1 + config.groups) * kGroupThreads,
          .cluster = config.cluster()};
}

}  // namespace heddle::kernels
