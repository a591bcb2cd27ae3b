// Configurations and problems as text: tuned choices are kept by it.
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/kernels/gemm/config.h"
#include "heddle/runtime/heddle.h"

namespace heddle::kernels {
namespace {

// Those that differ in one thing each.
std::vector<GemmProblem> problems() {
  const GemmProblem first{.m = 512, .n = 768, .k = 1024, .batches = 2};
  std::vector<GemmProblem> all(14, first);
  all[1].m = 16;
  all[2].n = 512;
  all[3].k = 512;
  all[4].batches = 1;
  all[5].a = Major::mn;
  all[6].b = Major::mn;
  all[7].element_bytes = 4;
  all[8].result_bytes = 4;
  all[9].stores_boxes = false;
  all[10].fused = true;
  all[11].ends_inside = true;
  all[12].unknown_rows = true;
  all[13].fused = all[13].reads_matrices = true;
  GemmProblem scaled = first;
  scaled.element_bytes = 1;
  all.push_back(scaled);
  scaled.scaled = true;
  all.push_back(scaled);
  return all;
}

TEST(GemmConfig, ItsTextTellsTheCandidatesOfAProblemApart) {
  for (const GemmProblem& problem : problems()) {
    std::set<std::string> names;
    const std::vector<GemmConfig> configs = gemm_configs(problem, {});
    for (const GemmConfig& config : configs) names.insert(config.to_string());
    EXPECT_EQ(names.size(), configs.size()) << problem.to_string();
    EXPECT_EQ(names.count(choose_gemm(problem, {}).to_string()), 1u) << problem.to_string();
  }
}

TEST(GemmConfig, TheTextOfAProblemHasEverythingThatCounts) {
  std::set<std::string> names;
  for (const GemmProblem& problem : problems()) names.insert(problem.to_string());
  EXPECT_EQ(names.size(), problems().size());
  EXPECT_EQ(problems()[0].to_string(), "512x768x1024 x 2 tn, 2 into 2 bytes");
  EXPECT_EQ(problems().back().to_string(), "512x768x1024 x 2 tn, 1 into 2 bytes, scaled");
}

// Every multiprocessor has a tile, and none has two.
TEST(GemmConfig, OfAProductThatOneTileEachFits) {
  const runtime::DeviceInfo h200 = Device::open("interp").value().info();
  const GemmProblem problem{.m = 1536, .n = 1536, .k = 1536};
  const GemmConfig config = choose_gemm(problem, h200);
  EXPECT_EQ(config.tiles(problem), h200.sm_count) << config.to_string();
}

// Tiles of 112 and 224 columns divide 14336 so that no multiprocessor is left over.
TEST(GemmConfig, OfColumnsThatFillTheDevice) {
  const runtime::DeviceInfo h200 = Device::open("interp").value().info();
  EXPECT_EQ(choose_gemm({.m = 64, .n = 14336, .k = 4096}, h200).n, 112);
  EXPECT_EQ(choose_gemm({.m = 256, .n = 14336, .k = 4096}, h200).n, 224);
}

// Results leave while the other warpgroup multiplies, unless power decides, or a round of larger tiles fewer weighs more.
TEST(GemmConfig, OfProductsOfManyTiles) {
  const runtime::DeviceInfo h200 = Device::open("interp").value().info();
  const GemmConfig config = choose_gemm({.m = 8192, .n = 8192, .k = 1024}, h200);
  EXPECT_TRUE(config.ping_pong) << config.to_string();
  EXPECT_EQ(config.cluster(), 1);
  EXPECT_FALSE(choose_gemm({.m = 16384, .n = 16384, .k = 16384}, h200).ping_pong);
  EXPECT_FALSE(choose_gemm({.m = 4096, .n = 4096, .k = 4096}, h200).ping_pong);
  // What an epilogue reads of a matrix is waited for.
  GemmProblem fused{.m = 8192, .n = 8192, .k = 1024, .fused = true};
  fused.reads_matrices = true;
  EXPECT_FALSE(choose_gemm(fused, h200).ping_pong);
  EXPECT_FALSE(
      choose_gemm({.m = 1024, .n = 8192, .k = 1024, .batches = 8, .ends_inside = true}, h200)
          .ping_pong);
}

// Where groups end nobody knows: with few rows each, the tiles of a cluster do not stand below each other.
TEST(GemmConfig, OfGroupsWhoseLastTilesAreHalfFull) {
  const runtime::DeviceInfo h200 = Device::open("interp").value().info();
  GemmProblem problem{.m = 256, .n = 4096, .k = 7168, .batches = 32};
  EXPECT_EQ(choose_gemm(problem, h200).cluster_rows, 2);
  problem.ends_inside = true;
  EXPECT_EQ(choose_gemm(problem, h200).cluster_rows, 1);
}

}  // namespace
}  // namespace heddle::kernels
