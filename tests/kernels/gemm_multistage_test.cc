// gemm_multistage against double precision: element types, odd shapes, depths that end inside of a block.
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/disassemble.h"
#include "heddle/kernels/gemm/multistage.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/operation/dry_run.h"
#include "heddle/runtime/specialize.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

template <class T>
constexpr double kUnit = std::is_same_v<T, half> ? 0x1p-11 : 0x1p-8;

using kernels::MultistageConfig;

// Smaller than those of a GPU, so that the interpreter has many tiles and stages in a product.
constexpr MultistageConfig kByAtoms[] = {
    {.m = 64, .n = 64, .k = 32, .stages = 3},
    {.tma = true, .m = 64, .n = 64, .k = 32, .stages = 3},
    {.wgmma = true, .m = 64, .n = 64, .k = 64, .stages = 3, .rows = 4, .columns = 1},
    {.wgmma = true, .m = 128, .n = 64, .k = 64, .stages = 3, .rows = 8, .columns = 1},
    {.tma = true, .wgmma = true, .m = 128, .n = 64, .k = 32, .stages = 4, .rows = 8, .columns = 1},
};

template <class T>
void check_gemm(const MultistageConfig& config, int64_t m, int64_t n, int64_t k) {
  SCOPED_TRACE(testing::Message() << config.to_string() << " of " << m << " x " << n << " x " << k);
  std::mt19937 random(static_cast<unsigned>(m * 31 + n * 7 + k));
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto numbers = [&](int64_t count) {
    std::vector<T> values;
    for (int64_t i = 0; i < count; ++i) values.emplace_back(uniform(random));
    return values;
  };
  const std::vector<T> a = numbers(m * k), b = numbers(n * k);
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer a_memory = device.upload<T>(a).value();
  const Buffer b_memory = device.upload<T>(b).value();
  // A row more, which stays as it is.
  const Buffer d_memory =
      device.upload<T>(std::vector<T>(static_cast<size_t>((m + 1) * n), T(77.0f))).value();
  ASSERT_THAT(kernels::gemm_multistage_by(stream, config, as_tensor<const T>(a_memory, {m, k}),
                                          as_tensor<const T>(b_memory, {n, k}),
                                          as_tensor<T>(d_memory, {m, n})),
              IsOk());
  const std::vector<T> d = d_memory.download<T>(stream).value();
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double product = double{a[row * k + i].to_float()} * b[column * k + i].to_float();
        sum += product;
        magnitude += std::abs(product);
      }
      // The tensor cores add with fewer bits than f32 has.
      ASSERT_NEAR(d[row * n + column].to_float(), sum,
                  kUnit<T> * std::abs(sum) + magnitude * 0x1p-20 + 1e-30)
          << row << " " << column;
    }
  }
  for (int64_t column = 0; column < n; ++column) ASSERT_EQ(d[m * n + column].to_float(), 77.0f);
}

TEST(GemmMultistage, MultipliesTilesAndWhatIsLeft) {
  const MultistageConfig chosen = kernels::choose_multistage(test_device().info());
  check_gemm<bfloat16>(chosen, 128, 128, 32);
  check_gemm<half>(chosen, 256, 128, 200);
  check_gemm<bfloat16>(chosen, 100, 72, 40);
  check_gemm<bfloat16>(chosen, 1, 3, 8);
  check_gemm<half>(chosen, 131, 257, 136);
  check_gemm<half>(chosen, 7, 5, 24);
}

// One body: whatever copies, and whatever multiplies.
TEST(GemmMultistage, SwapsItsAtoms) {
  for (const MultistageConfig& config : kByAtoms) {
    if (!kernels::check_multistage(config, test_device().info()).ok()) continue;
    check_gemm<half>(config, 128, 64, 64);
    check_gemm<bfloat16>(config, 100, 72, 40);
    check_gemm<half>(config, 131, 200, 8);
    check_gemm<bfloat16>(config, 33, 130, 32 * 11 + 8);
  }
}

TEST(GemmMultistage, OfManyTilesInStrips) {
  if (test_device().name() == "interp") GTEST_SKIP() << "for a GPU";
  for (const MultistageConfig& config : kByAtoms) {
    if (!kernels::check_multistage(config, test_device().info()).ok()) continue;
    check_gemm<bfloat16>(config, 2056, 1100, 64);
  }
}

TEST(GemmMultistage, SaysWhatDoesNotFit) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer memory = device.upload<half>(std::vector<half>(4096, half(1.0f))).value();
  const auto refusal = [&](int64_t m, int64_t n, int64_t k, int64_t n_of_d) {
    return std::string(kernels::gemm_multistage(stream, as_tensor<const half>(memory, {m, k}),
                                                as_tensor<const half>(memory, {n, k}),
                                                as_tensor<half>(memory, {m, n_of_d}))
                           .message());
  };
  EXPECT_THAT(refusal(8, 16, 8, 8),
              HasSubstr("gemm_multistage: a is 8 x 8, b 16 x 8 and d 8 x 8; a takes m x k, "
                        "b n x k and d m x n, with k above 0"));
  EXPECT_THAT(refusal(8, 8, 9, 8), HasSubstr("and k, which is 9, is a multiple of 8"));
  EXPECT_EQ(refusal(0, 8, 8, 8), "");
}

TEST(GemmMultistage, TakesAtomsThatADeviceHas) {
  runtime::DeviceInfo device;
  EXPECT_TRUE(kernels::choose_multistage(device).tma);
  EXPECT_EQ(kernels::choose_multistage(device).n, 256);
  device.limits.max_shared_per_block = 101376;  // as of an sm_120
  EXPECT_TRUE(kernels::choose_multistage(device).tma);
  EXPECT_EQ(kernels::choose_multistage(device).n, 128);
  device.compute_major = 8;
  EXPECT_EQ(kernels::choose_multistage(device), MultistageConfig());
}

// On GPUs that have no wgmma and no copy engine: in the loop over k copies, ldmatrix and mma, and nothing spilled,
// which would be an error.
TEST(GemmMultistage, IsAssembledForGpusBeforeHopper) {
  HEDDLE_NEEDS_TOOL(kNvdisasm);
  for (const auto& [target, minor] : {std::pair("sm_80", 0), {"sm_86", 6}, {"sm_89", 9}}) {
    runtime::DeviceInfo info = Device::open("interp")->info();
    info.compute_major = 8, info.compute_minor = minor;
    info.cluster_launch = false;
    info.limits.max_shared_per_block = 101376;
    int launches = 0;
    const Device dry = open_dry_run(info, [&, name = target](const DryLaunch& launch) -> Status {
      const auto facts =
          runtime::specialize(*launch.source, launch.arguments, *ir::find_target(name));
      CompileOptions options;
      options.target = name;
      options.block = launch.shape.block;
      const auto made = runtime::compile_source(*launch.source, facts, options);
      if (!made.ok()) return made.status();
      EXPECT_EQ((*made)->assembly.entries.at(0).spill_store_bytes, 0);
      const std::string sass = codegen::disassemble((*made)->assembly.cubin).value();
      for (const char* const opcode : {"LDGSTS.E.BYPASS.128", "LDSM.16.M88.4", "HMMA.16816.F32"}) {
        EXPECT_THAT(sass, HasSubstr(opcode)) << name;
      }
      ++launches;
      return OkStatus();
    });
    const auto at = [](uint64_t number) { return reinterpret_cast<half*>(number << 40); };
    constexpr int64_t kExtent = 4096;
    const TensorRef<const half, 2> a(at(1), {kExtent, kExtent}, {kExtent, 1}),
        b(at(2), {kExtent, kExtent}, {kExtent, 1});
    const TensorRef<half, 2> d(at(3), {kExtent, kExtent}, {kExtent, 1});
    EXPECT_THAT(kernels::gemm_multistage(dry.default_stream(), a, b, d), IsOk()) << target;
    EXPECT_EQ(launches, 1);
  }
}

TEST(GemmMultistage, SaysWhyAConfigurationDoesNotFit) {
  runtime::DeviceInfo device;
  const auto refusal = [&](const MultistageConfig& config) {
    return std::string(kernels::check_multistage(config, device).message());
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_THAT(
      refusal({.rows = 3}),
      HasSubstr(
          "gemm_multistage: the configuration cp.async + mma.sync, 128x128x32, 4 "
          "stages, 3x2 warps, band 8 does not fit: warps are 4 or a multiple, and a block has "
          "1024 threads at most"));
  EXPECT_THAT(refusal({.rows = 8, .columns = 8}), HasSubstr("1024 threads at most"));
  EXPECT_THAT(refusal({.wgmma = true, .rows = 4, .columns = 1}),
              HasSubstr("each warp of wgmma has 16 rows of the tile, and all of its columns"));
  EXPECT_THAT(refusal({.n = 72}), HasSubstr("multiples of 16 rows and 16 columns of the tile"));
  EXPECT_THAT(refusal({.k = 48}), HasSubstr("k is a power of two from 32 to 1024"));
  EXPECT_THAT(refusal({.k = 2048}), HasSubstr("k is a power of two from 32 to 1024"));
  EXPECT_THAT(refusal({.band = 0}), HasSubstr("a band has as many tiles"));
  EXPECT_THAT(refusal({.m = 0}), HasSubstr("tiles are of 1 to 1024 rows and columns"));
  EXPECT_THAT(refusal({.rows = 65536, .columns = 65536}), HasSubstr("1024 threads at most"));
  EXPECT_THAT(refusal({.m = 256, .n = 256}),
              HasSubstr("a thread has 255 registers, and 512 of the tile's sums"));
  EXPECT_THAT(refusal({.tma = true, .wgmma = true, .m = 256, .n = 256, .rows = 16, .columns = 1}),
              HasSubstr("a thread has 128 registers, and 128 of the tile's sums"));
  EXPECT_THAT(refusal({.m = 80, .n = 64, .k = 32, .rows = 5, .columns = 4}),
              HasSubstr("the threads of a block copy 160 rows of k elements at a time"));
  EXPECT_THAT(refusal({.stages = 2}), HasSubstr("stages are 3 to 9"));
  EXPECT_THAT(refusal({.k = 128}), HasSubstr("its stages take 262144 bytes of shared memory"));
  device.compute_major = 10;
  EXPECT_THAT(refusal({.wgmma = true}), HasSubstr("leave .wgmma out, for mma.sync"));
  device.compute_major = 8;
  EXPECT_THAT(refusal({.tma = true}), HasSubstr("leave .tma out, for cp.async"));
}

}  // namespace
}  // namespace heddle
