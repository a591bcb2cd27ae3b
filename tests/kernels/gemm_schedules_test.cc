// How gemm's kernels share the work: depths of tiles by stream-K, tiles in turns by ping-pong, and
// configurations that do not fit.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/gemm/gemm_stream_k.h"
#include "heddle/kernels/gemm/grouped.h"
#include "kernels/gemm_check.h"

namespace heddle {
namespace {

using kernels::GemmConfig;
using kernels::GemmProblem;
using kernels::GemmWorkspace;
using kernels::PlainSums;
using ::testing::HasSubstr;

// A device with so few multiprocessors that few clusters run.
runtime::DeviceInfo with_processors(int count) {
  runtime::DeviceInfo device = test_device().info();
  device.sm_count = count;
  return device;
}
const auto kSum = [](double sum, int64_t, int64_t, int64_t) { return sum; };

// Multiplies by a configuration with stream_k, on so many multiprocessors.
template <class T, class D>
void check_stream_k(const GemmCase& c, const GemmConfig& config, int processors,
                    bool together = false) {
  SCOPED_TRACE(absl::StrCat(config.to_string(), ", processors ", processors));
  const Stream stream = test_device().create_stream().value();
  const GemmWorkspace workspace = kernels::gemm_workspace(stream).value();
  const GemmProblem problem{.m = c.m, .n = c.n, .k = c.k, .batches = c.batches};
  LaunchShape shape = kernels::gemm_shape(config, problem, with_processors(processors));
  // The interpreter then runs all clusters in turns, and not one after the other.
  shape.cooperative = together;
  if (together) shape.programmatic = false;
  check_product<T, D>(
      c, kSums,
      [&](const Stream& on, const auto& a, const auto& b, const auto& d) {
        using kernels::detail::in_batches;
        return kernels::detail::launch_stream_k(on, workspace, config, shape, PlainSums(),
                                                in_batches(a), in_batches(b), in_batches(d));
      },
      kSum);
  // All flags are down again, for the next product.
  const std::vector<uint32_t> flags = workspace.flags.download<uint32_t>(stream).value();
  EXPECT_EQ(flags, std::vector<uint32_t>(flags.size()));
}

// Small tiles, whose depths are shared like those of large ones.
GemmConfig small(int groups, int rows, int columns) {
  return {.m = 64 * groups,
          .n = 64,
          .stages = 3,
          .groups = groups,
          .cluster_rows = rows,
          .cluster_columns = columns,
          .stream_k = true,
          .store_columns = 32};
}

TEST(GemmStreamK, SharesDepthsOfTilesThatFillNoWave) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  for (const bool together : {false, true}) {
    // One tile; fewer tiles than multiprocessors; 1.3 waves; two tiles too short to share; and one block.
    check_stream_k<half, half>({50, 40, 64 * 17}, small(1, 1, 1), 4, together);
    check_stream_k<half, half>({100, 136, 64 * 9 + 8}, small(1, 1, 1), 7, together);
    check_stream_k<half, half>({250, 200, 64 * 5}, small(1, 1, 1), 12, together);
    check_stream_k<half, half>({64, 128, 64 * 3}, small(1, 1, 1), 7, together);
    check_stream_k<half, half>({64, 192, 64 * 2}, small(1, 1, 1), 1, together);
  }
}

TEST(GemmStreamK, OfClustersWarpgroupsAndTypes) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  check_stream_k<half, half>({250, 200, 64 * 5}, small(2, 2, 1), 6, true);
  check_stream_k<bfloat16, float>({130, 256, 64 * 6 + 8}, small(1, 1, 2), 6);
  check_stream_k<half, float>({130, 64, 64 * 9, true, true, 2}, small(1, 1, 1), 4, true);
  // Results that the copy engine cannot store.
  GemmConfig by_threads = small(1, 1, 1);
  by_threads.stores_boxes = false;
  check_stream_k<half, half>({70, 70, 64 * 9}, by_threads, 3);
}

// The configurations that a device is offered, the smallest of those that share depths.
TEST(GemmStreamK, OfItsConfigurations) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const GemmCase shape{136, 264, 64 * 9};
  const runtime::DeviceInfo device = with_processors(7);
  const GemmProblem problem{.m = shape.m, .n = shape.n, .k = shape.k};
  int count = 0;
  for (const GemmConfig& config : kernels::gemm_configs(problem, device)) {
    if (!config.stream_k) continue;
    ++count;
    EXPECT_THAT(kernels::check_config(config, problem, device), IsOk());
    if (config.cluster() == 1) check_stream_k<half, half>(shape, config, 7);
  }
  EXPECT_GE(count, 8);
  EXPECT_TRUE(kernels::choose_stream_k(problem, device)->stream_k);
  EXPECT_FALSE(kernels::choose_gemm(problem, device).stream_k);
  // A depth of seven blocks is too short for two shares of four.
  EXPECT_FALSE(kernels::choose_stream_k({.m = 128, .n = 256, .k = 64 * 7}, device).has_value());
  EXPECT_TRUE(kernels::choose_stream_k({.m = 128, .n = 256, .k = 64 * 8}, device).has_value());
  // Tiles that fill whole waves have the same work already.
  EXPECT_FALSE(
      kernels::choose_stream_k({.m = 7 * 256, .n = 768, .k = 512}, with_processors(1)).has_value());
}

struct Halved {
  Fragment<float> operator()(const kernels::GemmPart& part, const Fragment<float>& sums,
                             Tensor<const float, 1> bias) const {
    return sums * 0.5f + part.by_column(bias);
  }
};

TEST(GemmStreamK, PassesResultsThroughEpilogues) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const GemmCase shape{100, 72, 64 * 9};
  const Matrices<float> bias(1, 1, shape.n, true, 5);
  const Stream made_on = test_device().create_stream().value();
  const GemmWorkspace workspace = kernels::gemm_workspace(made_on).value();
  check_product<half, half>(
      shape, kSums,
      [&](const Stream& stream, const auto& a, const auto& b, const auto& d) {
        return kernels::gemm_stream_k_with(stream, workspace, Halved(), a, b, d,
                                           TensorRef<const float, 1>(bias.ref().data, {shape.n}));
      },
      [&](double sum, int64_t, int64_t, int64_t column) {
        return sum * 0.5 + bias.at(0, 0, column);
      });
}

// 306 tiles of 128 x 256, which are 2.3 waves of an H200; twice, in one workspace.
TEST(GemmStreamK, OfManyTilesForEachMultiprocessor) {
  if (!has_wgmma() || test_device().name() == "interp") GTEST_SKIP() << "for a GPU of sm_90a";
  const Stream made_on = test_device().create_stream().value();
  const GemmWorkspace workspace = kernels::gemm_workspace(made_on).value();
  std::vector<uint16_t> first;
  check_product<half, half>(
      {2304, 4104, 200}, kSums,
      [&](const Stream& stream, const auto& a, const auto& b, const auto& d) {
        for (int i = 0; i < 2; ++i) {
          const Status launched =
              kernels::gemm_stream_k_with(stream, workspace, PlainSums(), a, b, d);
          if (!launched.ok()) return launched;
          std::vector<uint16_t> bits(static_cast<size_t>(d.extents[1] * d.extents[2]));
          const Status copied =
              stream.copy_to_host(bits.data(), reinterpret_cast<uint64_t>(d.data), 2 * bits.size());
          if (!copied.ok()) return copied;
          if (const Status s = stream.synchronize(); !s.ok()) return s;
          if (first.empty()) first = bits;
          EXPECT_EQ(bits, first);
        }
        return OkStatus();
      },
      kSum);
}

// Whenever copies complete, and clusters one after the other or together: the same bits, and nothing that
// the interpreter says against it.
TEST(GemmStreamK, ComputesTheSameBitsEachTime) {
  const Device device = Device::open_private_interp(with_processors(6));
  const Stream stream = device.create_stream().value();
  constexpr int64_t kRows = 100, kColumns = 136, kDepth = 64 * 9 + 8;
  const Buffer a = device.upload<half>(random_numbers<half>(kRows * kDepth, 1)).value();
  const Buffer b = device.upload<half>(random_numbers<half>(kColumns * kDepth, 2)).value();
  const Buffer d = device.allocate(kRows * kColumns * sizeof(half)).value();
  const GemmWorkspace workspace = kernels::gemm_workspace(stream).value();
  const GemmConfig config = small(1, 2, 1);
  const GemmProblem problem{.m = kRows, .n = kColumns, .k = kDepth};
  std::vector<uint16_t> first;
  for (const char* const when : {"early", "late", "seed:1", "seed:2"}) {
    for (const bool together : {false, true}) {
      SCOPED_TRACE(when);
      ASSERT_THAT(device.set_completion(when), IsOk());
      LaunchShape shape = kernels::gemm_shape(config, problem, device.info());
      shape.cooperative = together;
      using kernels::detail::in_batches;
      ASSERT_THAT(
          kernels::detail::launch_stream_k(stream, workspace, config, shape, PlainSums(),
                                           in_batches(as_tensor<const half>(a, {kRows, kDepth})),
                                           in_batches(as_tensor<const half>(b, {kColumns, kDepth})),
                                           in_batches(as_tensor<half>(d, {kRows, kColumns}))),
          IsOk());
      const std::vector<uint16_t> got = d.download<uint16_t>(stream).value();
      if (first.empty()) first = got;
      EXPECT_EQ(got, first);
    }
  }
}

// --- Ping-pong ---

template <class T, class D, class Epilogue = PlainSums, class Wanted = decltype(kSum)>
void check_ping_pong(const GemmCase& c, const GemmConfig& config, int processors,
                     const Epilogue& epilogue = {}, const Wanted& wanted = kSum) {
  SCOPED_TRACE(absl::StrCat(config.to_string(), ", processors ", processors));
  const GemmProblem problem{.m = c.m, .n = c.n, .k = c.k, .batches = c.batches};
  check_product<T, D>(
      c, kSums,
      [&](const Stream& stream, const auto& a, const auto& b, const auto& d) {
        using kernels::detail::in_batches;
        return kernels::detail::launch_config<kernels::BatchTiles, kernels::PlainLoop>(
            stream, config, kernels::gemm_shape(config, problem, with_processors(processors)),
            epilogue, in_batches(a), in_batches(b), in_batches(d));
      },
      wanted);
}
GemmConfig in_turns(int m, int stages, int rows) {
  return {.m = m,
          .n = 64,
          .stages = stages,
          .cluster_rows = rows,
          .ping_pong = true,
          .store_columns = 32};
}

// One tile, two, three and more for a block; depths of one block, and of more than there are stages.
TEST(GemmPingPong, TakesTilesInTurns) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  check_ping_pong<half, half>({64, 64, 64}, in_turns(64, 3, 1), 1);
  check_ping_pong<half, half>({100, 64, 72}, in_turns(64, 3, 1), 1);
  check_ping_pong<half, half>({100, 136, 64 * 5}, in_turns(64, 3, 1), 2);
  check_ping_pong<bfloat16, float>({250, 136, 64 * 4 + 8}, in_turns(128, 2, 1), 1);
  check_ping_pong<half, half>({250, 136, 64 * 3}, in_turns(64, 4, 2), 2);
  GemmConfig by_threads = in_turns(64, 3, 1);
  by_threads.stores_boxes = false;
  check_ping_pong<half, half>({70, 70, 64 * 3}, by_threads, 1);
}

// Each 64 rows of 32 columns pass through the epilogue on their own.
TEST(GemmPingPong, PassesPartsThroughEpilogues) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const auto slanted = [](const kernels::GemmPart& part, const Fragment<float>& sums) {
    return sums + cast<float>(part.row() + part.column());
  };
  const auto wanted = [](double sum, int64_t, int64_t row, int64_t column) {
    return sum + static_cast<double>(row / 64 * 64 + column / 32 * 32);
  };
  check_ping_pong<half, half>({250, 136, 64 * 3}, in_turns(128, 3, 1), 2, slanted, wanted);
  check_ping_pong<bfloat16, float>({250, 136, 64 * 3}, in_turns(64, 3, 1), 2, slanted, wanted);
}

TEST(GemmPingPong, OfItsConfigurations) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const runtime::DeviceInfo device = with_processors(2);
  const GemmProblem problem{.m = 136, .n = 520, .k = 200};
  int count = 0;
  for (const GemmConfig& config : kernels::gemm_configs(problem, device)) {
    if (!config.ping_pong || config.band != 8 || config.keeps_band) continue;
    ++count;
    EXPECT_THAT(kernels::check_config(config, problem, device), IsOk());
    check_ping_pong<half, half>({problem.m, problem.n, problem.k}, config, 2);
  }
  EXPECT_GE(count, 6);
}

// And the interpreter has nothing to say against it.
TEST(GemmPingPong, ComputesTheSameWheneverItsCopiesComplete) {
  const Device device = Device::open_private_interp(with_processors(2));
  const Stream stream = device.create_stream().value();
  constexpr int64_t kRows = 250, kColumns = 136, kDepth = 64 * 3 + 8;
  const Buffer a = device.upload<half>(random_numbers<half>(kRows * kDepth, 1)).value();
  const Buffer b = device.upload<half>(random_numbers<half>(kColumns * kDepth, 2)).value();
  const Buffer d = device.allocate(kRows * kColumns * sizeof(half)).value();
  std::vector<uint16_t> first;
  for (const char* const when : {"early", "late", "seed:1", "seed:2"}) {
    SCOPED_TRACE(when);
    ASSERT_THAT(device.set_completion(when), IsOk());
    ASSERT_THAT(kernels::gemm_by(stream, in_turns(64, 3, 1), PlainSums(),
                                 as_tensor<const half>(a, {kRows, kDepth}),
                                 as_tensor<const half>(b, {kColumns, kDepth}),
                                 as_tensor<half>(d, {kRows, kColumns})),
                IsOk());
    const std::vector<uint16_t> got = d.download<uint16_t>(stream).value();
    if (first.empty()) first = got;
    EXPECT_EQ(got, first);
  }
}

// --- Configurations of the caller's ---

TEST(GemmConfigs, AreRefusedWhereTheyDoNotFit) {
  const Device device = Device::open_private_interp(Device::open("interp").value().info());
  const Stream stream = device.create_stream().value();
  const Buffer memory = device.upload<half>(std::vector<half>(8192, half(1.0f))).value();
  const Buffer results = device.allocate(8192 * sizeof(half)).value();
  const GemmWorkspace workspace = kernels::gemm_workspace(stream).value();
  const auto refusal = [&](const GemmConfig& config, bool stream_k = false) {
    const auto a = as_tensor<const half>(memory, {64, 64});
    const auto d = as_tensor<half>(results, {64, 64});
    const Status s =
        stream_k ? kernels::gemm_stream_k_by(stream, workspace, config, PlainSums(), a, a, d)
                 : kernels::gemm_by(stream, config, PlainSums(), a, a, d);
    return std::string(s.message());
  };
  const GemmConfig fits{.m = 64, .n = 64, .groups = 1, .cluster_rows = 1, .store_columns = 32};
  const auto but = [&](auto change) {
    GemmConfig config = fits;
    change(config);
    return config;
  };
  EXPECT_THAT(
      refusal(but([](GemmConfig& c) { c.split = 2; })),
      HasSubstr("depth in 2 does not fit: k = 64 has 1 block of 64 for 2 blocks of a cluster "
                "that share them, and each takes one at least; gemm_configs() has those "
                "that do"));
  EXPECT_THAT(
      refusal(but([](GemmConfig& c) { c.k = 16, c.split = 4; })),
      HasSubstr("blocks that share a depth have 32 columns of the tile each, or a multiple"));
  EXPECT_THAT(
      refusal(but([](GemmConfig& c) { c.n = 112, c.k = 16, c.split = 2; })),
      HasSubstr("blocks that share a depth have 32 columns of the tile each, or a multiple"));
  const auto fused = kernels::gemm_by(
      stream, but([](GemmConfig& c) { c.n = 48; }),
      [](const kernels::GemmPart&, const Fragment<float>& sums) { return sums; },
      as_tensor<const half>(memory, {64, 64}), as_tensor<const half>(memory, {64, 64}),
      as_tensor<half>(results, {64, 64}));
  EXPECT_THAT(std::string(fused.message()),
              HasSubstr("an epilogue gets 32 columns of a tile at a time, and it has 48"));
  EXPECT_THAT(refusal(but([](GemmConfig& c) { c.stages = 1; })),
              HasSubstr("products read one stage while another is filled"));
  EXPECT_THAT(refusal(but([](GemmConfig& c) { c.groups = 2; })),
              HasSubstr("each warpgroup has 64 rows of a tile, or a multiple"));
  EXPECT_THAT(refusal(but([](GemmConfig& c) { c.ping_pong = true; })),
              HasSubstr("ping_pong takes two warpgroups or more"));
  EXPECT_THAT(refusal(but([](GemmConfig& c) { c.stages = 20; })),
              HasSubstr("it takes 336896 bytes of shared memory, and a block has 232448 at most"));
  EXPECT_THAT(refusal(but([](GemmConfig& c) { c.stream_k = true, c.split = 2; })),
              HasSubstr("split, stream_k and ping_pong exclude each other"));
  EXPECT_THAT(
      refusal(but([](GemmConfig& c) { c.stream_k = true; })),
      HasSubstr("stream-k brings sums together in a workspace; gemm_stream_k_by() takes one"));
  EXPECT_THAT(refusal(fits, true),
              HasSubstr("shares no depths by stream_k; gemm_by() takes it, without a workspace"));
  EXPECT_THAT(refusal(but([](GemmConfig& c) { c.n = 48, c.stream_k = true; }), true),
              HasSubstr("stream_k gets 32 columns of a tile at a time, and it has 48"));
  GemmConfig large{.m = 256, .n = 256, .stages = 2, .stream_k = true};
  EXPECT_THAT(refusal(large, true),
              HasSubstr("has 65536 sums of 8 warps; a workspace has room for 32768 of 8"));
}

}  // namespace
}  // namespace heddle
