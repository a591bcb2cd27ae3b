// The kernels of products in registers: what ptxas makes of the largest tiles. It reports wgmmas that it
// serialises and registers that it spills, which are errors of the kernel.
#include <string>

#include "gtest/gtest.h"
#include "heddle/kernels/gemm/grouped.h"
#include "heddle/kernels/gemm/scaled.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using kernels::BatchTiles;
using kernels::GemmConfig;
using kernels::GroupTiles;
using kernels::PlainLoop;
using kernels::PlainSums;
using kernels::RowsInOneMatrix;
using kernels::ScaledLoop;

ArgumentSpec matrix() {
  constexpr int64_t kExtent = 4096;
  return tensor({kExtent, kExtent, 8}).strides({kExtent, 1, kExtent * kExtent}).aligned(16);
}

template <class Kernel>
Status assembled(const Kernel& kernel, const GemmConfig& config, const Signature& signature) {
  CompileOptions options;
  options.target = "sm_90a";
  options.block = {(1 + config.groups) * 128, 1, 1};
  options.cluster = {config.cluster(), 1, 1};
  return kernel.compile(signature, options).status();
}

TEST(GemmRegisters, AreEnoughForTheLargestTiles) {
  for (const auto& [m, n, stages] : {std::tuple(128, 256, 4), {256, 128, 4}, {128, 192, 4}}) {
    const GemmConfig config{.m = m, .n = n, .stages = stages};
    EXPECT_THAT(
        assembled(kernels::hopper_gemm<BatchTiles, PlainLoop, half, half, PlainSums>(config),
                  config, {matrix(), matrix(), matrix()}),
        IsOk())
        << config.to_string();
  }
}

TEST(GemmRegisters, AreEnoughForGroups) {
  const GemmConfig config;
  EXPECT_THAT(assembled(kernels::hopper_gemm<GroupTiles<RowsInOneMatrix>, PlainLoop, bfloat16,
                                             bfloat16, PlainSums>(config),
                        config, {matrix(), matrix(), matrix(), tensor({8})}),
              IsOk());
}

TEST(GemmRegisters, AreEnoughForTwoSums) {
  const GemmConfig config{.m = 128, .n = 128, .k = 128, .stages = 6};
  const ArgumentSpec factors = tensor({kAny, 32, 8});
  EXPECT_THAT(assembled(kernels::hopper_gemm<GroupTiles<RowsInOneMatrix>, ScaledLoop, float8_e4m3,
                                             bfloat16, PlainSums>(config),
                        config, {matrix(), matrix(), matrix(), tensor({8}), factors, factors}),
              IsOk());
}

TEST(GemmRegisters, AreEnoughForSharedDepths) {
  const GemmConfig config{
      .m = 128, .n = 128, .stages = 4, .cluster_rows = 1, .split = 4, .store_columns = 32};
  EXPECT_THAT(assembled(kernels::hopper_gemm<BatchTiles, PlainLoop, half, half, PlainSums>(config),
                        config, {matrix(), matrix(), matrix()}),
              IsOk());
}

}  // namespace
}  // namespace heddle
