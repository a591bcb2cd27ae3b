#include "heddle/runtime/launch_limits.h"

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "gtest/gtest.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/interp_backend.h"

namespace heddle::runtime {
namespace {

const LaunchSite& site() {
  static const LaunchSite& site = *new LaunchSite("row_sum", "row_sum.cc", 14);
  return site;
}

std::string check(const LaunchShape& shape) {
  const Status status = check_launch_limits(InterpBackend::default_info(), shape, site());
  if (status.ok()) return "";
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  const std::string message(status.message());
  const std::string prefix = "kernel 'row_sum' (row_sum.cc:14) cannot launch: ";
  EXPECT_EQ(message.substr(0, prefix.size()), prefix);
  return message.substr(prefix.size());
}

TEST(Dim3Test, KeepsWhatWasSaid) {
  EXPECT_EQ(Dim3(), Dim3(1, 1, 1));
  EXPECT_EQ(Dim3(size_t{7}, int64_t{8}), Dim3(7, 8, 1));
  EXPECT_EQ(Dim3(-3).x, -3);
  EXPECT_EQ(Dim3(std::numeric_limits<uint64_t>::max()).x, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Dim3(2147483647, 65535, 65535).count(), int64_t{2147483647} * 65535 * 65535);
  enum { kThreads = 96 };
  EXPECT_EQ(Dim3(kThreads, uint8_t{2}), Dim3(96, 2));
  static_assert(!std::is_constructible_v<Dim3, double>, "a number of blocks is whole");
  EXPECT_EQ(Dim3(4, 5, 6)[0], 4);
  EXPECT_EQ(Dim3(4, 5, 6)[2], 6);
  const size_t rows = 5;
  const LaunchShape shape{.grid = rows, .block = {32, 4}};
  EXPECT_EQ(shape.grid, Dim3(5));
  EXPECT_EQ(shape.block, Dim3(32, 4));
  EXPECT_EQ(to_string(shape.block), "32x4x1");
}

TEST(LaunchLimitsTest, AcceptsTheLargest) {
  EXPECT_EQ(check({.grid = {2147483647, 65535, 65535}, .block = {1024}}), "");
  EXPECT_EQ(check({.grid = 1, .block = {1, 1, 64}}), "");
  EXPECT_EQ(check({.grid = 32, .block = 128, .cluster = 16}), "");
  EXPECT_EQ(check({.grid = 1, .block = 1, .shared_bytes = 232448}), "");
}

TEST(LaunchLimitsTest, SaysValueAndLimit) {
  EXPECT_EQ(check({.block = 1}), "no grid is given; fix: set .grid");
  EXPECT_EQ(check({.grid = 0, .block = 1}),
            "grid.x is 0, but must be from 1 to 2147483647; fix: launch nothing where there is "
            "nothing to do");
  EXPECT_EQ(check({.grid = -5, .block = 1}),
            "grid.x is -5, but must be from 1 to 2147483647; fix: launch nothing where there is "
            "nothing to do");
  EXPECT_EQ(check({.grid = int64_t{1} << 32, .block = 1}),
            "grid.x is 4294967296, but must be from 1 to 2147483647; fix: use fewer blocks that "
            "each do more");
  EXPECT_EQ(
      check({.grid = {1, 65536}, .block = 1}),
      "grid.y is 65536, but must be from 1 to 65535; fix: use fewer blocks that each do more");
  EXPECT_EQ(
      check({.grid = {1, 1, 65536}, .block = 1}),
      "grid.z is 65536, but must be from 1 to 65535; fix: use fewer blocks that each do more");
  EXPECT_EQ(check({.grid = 1, .block = 0}),
            "block.x is 0, but must be from 1 to 1024; fix: a block needs at least one thread");
  EXPECT_EQ(
      check({.grid = 1, .block = 1025}),
      "block.x is 1025, but must be from 1 to 1024; fix: use smaller blocks and more of them");
  EXPECT_EQ(check({.grid = 1, .block = {1, 1, 65}}),
            "block.z is 65, but must be from 1 to 64; fix: use smaller blocks and more of them");
  EXPECT_EQ(check({.grid = 1, .block = {64, 32}}),
            "block 64x32x1 has 2048 threads, but a block has at most 1024; fix: use smaller blocks "
            "and more of them");
  EXPECT_EQ(
      check({.grid = 1, .block = 1, .shared_bytes = 232449}),
      "shared_bytes is 232449, but must be from 0 to 232448; fix: let each block work on less "
      "at a time");
  EXPECT_EQ(check({.grid = 1, .block = 1, .shared_bytes = -1}),
            "shared_bytes is -1, but must be from 0 to 232448; fix: leave it out where the kernel "
            "needs none");
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(
      check({.grid = 1, .block = 1, .shared_bytes = huge}),
      "shared_bytes is 9223372036854775807, but must be from 0 to 232448; fix: let each block "
      "work on less at a time");
  EXPECT_EQ(check({.grid = {1, huge, huge}, .block = {huge, huge, huge}}),
            "grid.y is 9223372036854775807, but must be from 1 to 65535; fix: use fewer blocks "
            "that each do more");
  EXPECT_EQ(check({.grid = 1, .block = 1, .cluster = 0}),
            "cluster.x is 0, but must be from 1 to 16; fix: a cluster needs at least one block");
  EXPECT_EQ(check({.grid = 34, .block = 1, .cluster = 17}),
            "cluster.x is 17, but must be from 1 to 16; fix: use smaller clusters");
  EXPECT_EQ(check({.grid = {8, 8}, .block = 1, .cluster = {8, 4}}),
            "cluster 8x4x1 has 32 blocks, but a cluster has at most 16; fix: use smaller clusters");
  EXPECT_EQ(check({.grid = {8, 3}, .block = 1, .cluster = {2, 2}}),
            "grid 8x3x1 is not a multiple of cluster 2x2x1 in every direction; fix: round the grid "
            "up, and let blocks outside do nothing");
}

TEST(LaunchLimitsTest, ClustersNeedADeviceThatHasThem) {
  DeviceInfo info = InterpBackend::default_info();
  info.name = "Old GPU";
  info.compute_major = 8;
  info.compute_minor = 6;
  info.cluster_launch = false;
  EXPECT_EQ(
      check_launch_limits(info, {.grid = 2, .block = 1, .cluster = 2}, site()).message(),
      "kernel 'row_sum' (row_sum.cc:14) cannot launch: cluster 2x1x1 needs compute capability "
      "9.0, but Old GPU has 8.6; fix: launch it without .cluster");
  EXPECT_TRUE(check_launch_limits(info, {.grid = 2, .block = 1}, site()).ok());
}

TEST(LaunchShapeTest, DescribesWhatMatters) {
  EXPECT_EQ(describe(LaunchShape{.grid = 8, .block = 256}), "grid 8x1x1, block 256x1x1");
  EXPECT_EQ(describe(LaunchShape{.grid = 8, .block = 256, .cluster = 2, .shared_bytes = 100}),
            "grid 8x1x1, block 256x1x1, cluster 2x1x1, 100 bytes of dynamic shared memory");
}

TEST(LaunchSiteTest, IsKeptOnceAsAWord) {
  EXPECT_EQ(site().describe(), "kernel 'row_sum' (row_sum.cc:14)");
  EXPECT_EQ(LaunchSite("k", "", 0).describe(), "kernel 'k'");
  uint64_t word = 0;
  {
    const LaunchSite gone(std::string(300, 'k'), std::string(300, 'f'), 1);
    word = gone.word();
    EXPECT_EQ(LaunchSite(std::string(300, 'k'), std::string(300, 'f'), 1).word(), word);
  }
  EXPECT_EQ(LaunchSite::of_word(word).describe(),
            "kernel '" + std::string(300, 'k') + "' (" + std::string(300, 'f') + ":1)");
  EXPECT_NE(LaunchSite(std::string(300, 'k'), std::string(300, 'f'), 2).word(), word);
}

}  // namespace
}  // namespace heddle::runtime
