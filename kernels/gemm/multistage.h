// Matrix multiplication with its atoms swapped: d = a * b^T by mma.sync or wgmma, of stages that
// cp.async or the copy engine fills. One body, from sm_80 on.
//
//   Status s = kernels::gemm_multistage(stream, a, b, d);      // a: m × k, b: n × k, d: m × n
//
// Elements of f16 or bf16 are multiplied exactly, summed in f32 in the order of k, and rounded once. Any m
// and n; k is a multiple of 8, and rows of a and b start at multiples of 16 bytes. gemm.h has the faster
// kernels of Hopper, with other layouts, element types and epilogues.
#pragma once

#include <string>

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// The atoms of a kernel and how it cuts a product into tiles. A block computes one tile of m x n; its
// warps fill the stages, and multiply what they filled.
struct MultistageConfig {
  // Elements of a copy by cp.async; and columns of a warp's products by mma.sync, two beside each other by one
  // ldmatrix.
  static constexpr int kVector = 8, kColumns = 16;

  bool tma = false;              // the copy engine fills the stages (sm_90), else cp.async
  bool wgmma = false;            // by wgmma (sm_90a), else by mma.sync
  int m = 128, n = 128, k = 32;  // a tile, and the depth of a stage
  int stages = 4;                // of a and b in shared memory
  int rows = 2, columns = 2;     // warps below and beside each other; with wgmma 4, 8, … and 1
  int band = 8;                  // tiles below each other before the next column of tiles

  friend bool operator==(const MultistageConfig&, const MultistageConfig&) = default;

  // "tma + mma.sync", and "tma + mma.sync, 128x256x32, 4 stages, 2x4 warps, band 8".
  std::string atoms() const;
  std::string to_string() const;
  // Threads of a block, and bytes of its stages.
  int threads() const { return rows * columns * kWarpSize; }
  int64_t shared_bytes() const { return int64_t{2} * stages * (m + n) * k; }
};

// kInvalidArgument where a configuration has no kernel on a device: it lacks the atoms or the shared
// memory, or warps and tiles do not divide each other.
Status check_multistage(const MultistageConfig& config, const runtime::DeviceInfo& device);

// The configuration with mma.sync, of those that a device has, that is fastest on an H200.
MultistageConfig choose_multistage(const runtime::DeviceInfo& device);

// Multiplies a, (m, k), by the transpose of b, (n, k), into d, (m, n), by mma.sync, or as a
// configuration says. One launch on the stream; none where m or n is 0. kInvalidArgument where the extents
// do not fit each other, k is 0 or no multiple of 8, rows of a or b do not start at multiples of 16 bytes,
// or check_multistage() refuses the configuration.
Status gemm_multistage(const Stream& stream, const TensorRef<const half, 2>& a,
                       const TensorRef<const half, 2>& b, const TensorRef<half, 2>& d);
Status gemm_multistage(const Stream& stream, const TensorRef<const bfloat16, 2>& a,
                       const TensorRef<const bfloat16, 2>& b, const TensorRef<bfloat16, 2>& d);
Status gemm_multistage_by(const Stream& stream, const MultistageConfig& config,
                          const TensorRef<const half, 2>& a, const TensorRef<const half, 2>& b,
                          const TensorRef<half, 2>& d);
Status gemm_multistage_by(const Stream& stream, const MultistageConfig& config,
                          const TensorRef<const bfloat16, 2>& a,
                          const TensorRef<const bfloat16, 2>& b, const TensorRef<bfloat16, 2>& d);

}  // namespace heddle::kernels
