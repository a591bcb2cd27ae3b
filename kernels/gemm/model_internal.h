// What the choice of configurations (config.cc) and the model of their time (model.cc) both count.
#pragma once

#include <cstdint>

#include "heddle/kernels/gemm/config.h"

namespace heddle::kernels::gemm_model {

constexpr int kLineBytes = 128;  // of a swizzled line: the depth of a stage is one or two

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Clusters that run at the same time.
int clusters_of(const GemmConfig& config, const runtime::DeviceInfo& device);
// Of so many clusters, those that have a share where they share the depths of tiles, each of so many blocks.
int64_t sharers(int64_t tiles, int64_t blocks, int64_t clusters);

}  // namespace heddle::kernels::gemm_model
