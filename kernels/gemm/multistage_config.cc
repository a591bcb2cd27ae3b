#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/gemm/multistage.h"
#include "heddle/kernels/gemm/tiles.h"

namespace heddle::kernels {
namespace {

constexpr int kVector = MultistageConfig::kVector, kColumns = MultistageConfig::kColumns;
constexpr int kMostWarps = 32, kMostExtent = 1024;
// Of a thread: all registers, and those that hold no sums.
constexpr int kMostRegisters = 255, kOtherRegisters = 40;
constexpr int64_t kBarrierBytes = 1024;

}  // namespace

std::string MultistageConfig::atoms() const {
  return absl::StrCat(tma ? "tma" : "cp.async", " + ", wgmma ? "wgmma" : "mma.sync");
}

std::string MultistageConfig::to_string() const {
  return absl::StrCat(atoms(), ", ", m, "x", n, "x", k, ", ", stages, " stages, ", rows, "x",
                      columns, " warps, band ", band);
}

Status check_multistage(const MultistageConfig& c, const runtime::DeviceInfo& device) {
  const auto refused = [&](auto... why) {
    return InvalidArgumentError(absl::StrCat("gemm_multistage: the configuration ", c.to_string(),
                                             " does not fit: ", why...));
  };
  if (c.wgmma && device.compute_major != 9) {
    return refused("wgmma is an instruction of sm_90a; leave .wgmma out, for mma.sync");
  }
  if (c.tma && device.compute_major < 9) {
    return refused("the copy engine is there from sm_90 on; leave .tma out, for cp.async");
  }
  const auto is_among = [](int number, int most) { return number >= 1 && number <= most; };
  if (!is_among(c.rows, kMostWarps) || !is_among(c.columns, kMostWarps) ||
      c.threads() % kWarpGroupSize != 0 || c.threads() > device.limits.max_threads_per_block) {
    return refused("warps are 4 or a multiple, and a block has ",
                   device.limits.max_threads_per_block, " threads at most");
  }
  if (!is_among(c.m, kMostExtent) || !is_among(c.n, kMostExtent) ||
      !is_among(c.band, kMostExtent)) {
    return refused("tiles are of 1 to ", kMostExtent,
                   " rows and columns, and a band has as many tiles");
  }
  if (c.wgmma && (c.columns != 1 || c.m != kWarpRows * c.rows || c.n % 8 != 0 || c.n > 256)) {
    return refused("each warp of wgmma has ", kWarpRows,
                   " rows of the tile, and all of its columns, a multiple of 8 up to 256");
  }
  if (!c.wgmma && (c.m % (kWarpRows * c.rows) != 0 || c.n % (kColumns * c.columns) != 0)) {
    return refused("each warp of mma.sync has multiples of ", kWarpRows, " rows and ", kColumns,
                   " columns of the tile");
  }
  const int sums = c.m * c.n / c.threads();
  const int registers = std::min(kMostRegisters, device.registers_per_sm / c.threads());
  if (sums + kOtherRegisters > registers) {
    return refused("a thread has ", registers, " registers, and ", sums,
                   " of the tile's sums; take more warps or a smaller tile");
  }
  // Rows of stages are of 64, 128 or multiples of 128 bytes.
  if (!is_among(c.k, kMostExtent) || c.k < 32 || (c.k & (c.k - 1)) != 0) {
    return refused("k is a power of two from 32 to ", kMostExtent);
  }
  const int together = c.threads() * kVector / c.k;
  if (!c.tma && (together == 0 || c.m % together != 0 || c.n % together != 0)) {
    return refused("the threads of a block copy ", together,
                   " rows of k elements at a time, and the tile is no multiple of that");
  }
  if (c.stages < 3 || c.stages > 9) return refused("stages are 3 to 9");
  if (c.shared_bytes() + kBarrierBytes > device.limits.max_shared_per_block) {
    return refused("its stages take ", c.shared_bytes(),
                   " bytes of shared memory, and a block has ", device.limits.max_shared_per_block,
                   " at most");
  }
  return OkStatus();
}

MultistageConfig choose_multistage(const runtime::DeviceInfo& device) {
  // By the time that 8192³ takes on an H200.
  constexpr MultistageConfig kFastestFirst[] = {
      {.tma = true, .m = 128, .n = 256, .k = 64, .stages = 4, .rows = 2, .columns = 4},
      {.tma = true, .m = 128, .n = 128, .k = 64, .stages = 3, .rows = 2, .columns = 2},
  };
  for (const MultistageConfig& config : kFastestFirst) {
    if (check_multistage(config, device).ok()) return config;
  }
  return {};
}

}  // namespace heddle::kernels
