// Grids whose blocks wait for each other.
#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

// In each round every block reads what the last block but itself wrote in the one before.
template <int kThreads>
void exchange_between_blocks() {
  static constexpr int kBlocks = 24, kCount = kBlocks * kThreads, kRounds = 5;
  const auto kernel = define_kernel(
      "rounds(x, y, arrived)",
      [](Tensor<int32_t, 1> x, Tensor<int32_t, 1> y, Tensor<uint32_t, 1> arrived) {
        const Int block = (block_idx.z * grid_dim.y + block_idx.y) * grid_dim.x + block_idx.x;
        const Int i = block * kThreads + thread_idx.x;
        For(range(kRounds), [&](const Int&) {
          y(i) = x(kCount - 1 - i) + 1;
          sync_grid(arrived(0));
          x(i) = y(kCount - 1 - i);
          sync_grid(arrived(0));
        });
      });
  const Stream stream = test_device().create_stream().value();
  const auto values = counting(kCount);
  const Buffer x = test_device().upload(absl::MakeConstSpan(values)).value();
  const Buffer y = test_device().allocate(kCount * sizeof(int32_t)).value();
  const std::vector<uint32_t> zero(1);
  const Buffer arrived = test_device().upload(absl::MakeConstSpan(zero)).value();
  for (int launch = 0; launch < 2; ++launch) {
    ASSERT_THAT(kernel.launch(stream, {.grid = {2, 3, 4}, .block = kThreads, .cooperative = true},
                              as_tensor<int32_t>(x, {kCount}), as_tensor<int32_t>(y, {kCount}),
                              as_tensor<uint32_t>(arrived, {1})),
                IsOk());
  }
  const auto got = x.download<int32_t>(stream);
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < kCount; ++i) {
    ASSERT_EQ((*got)[static_cast<size_t>(i)], i + 2 * kRounds) << i;
  }
}

TEST(SyncGrid, MakesWritesOfAllBlocksVisible) { exchange_between_blocks<96>(); }
// Nobody else of the block runs while it waits.
TEST(SyncGrid, BlocksOfOneWarpToo) { exchange_between_blocks<32>(); }

TEST(SyncGrid, ClustersAreTogetherToo) {
  if (!has_clusters()) GTEST_SKIP() << "this device has no clusters";
  const auto kernel = define_kernel(
      std::string("pairs(y, arrived)"), [](Tensor<int32_t, 1> y, Tensor<uint32_t, 1> arrived) {
        Shared<int32_t> box(1);
        If(thread_idx.x == 0, [&] { box(0) = block_idx.x + 1; });
        sync_grid(arrived(0));
        If(thread_idx.x == 0, [&] { y(block_idx.x) = map_shared(box, cluster_rank() ^ 1)(0); });
        sync_cluster();
      });
  const Stream stream = test_device().create_stream().value();
  const Buffer y = test_device().allocate(8 * sizeof(int32_t)).value();
  const std::vector<uint32_t> zero(1);
  const Buffer arrived = test_device().upload(absl::MakeConstSpan(zero)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = 8, .block = 32, .cluster = 2, .cooperative = true},
                            as_tensor<int32_t>(y, {8}), as_tensor<uint32_t>(arrived, {1})),
              IsOk());
  const auto got = y.download<int32_t>(stream);
  ASSERT_THAT(got, IsOk());
  EXPECT_THAT(*got, ::testing::ElementsAre(2, 1, 4, 3, 6, 5, 8, 7));
}

// The line is the caller's.
TEST(SyncGrid, NeedsAWord) {
  if (test_device_name() != "interp") GTEST_SKIP() << "checks are the interpreter's";
  const auto kernel =
      define_kernel("none(arrived)", [](Tensor<uint32_t, 1> arrived) { sync_grid(arrived(0)); });
  const Stream stream = test_device().create_stream().value();
  const Buffer arrived = test_device().allocate(4).value();
  Status status =
      kernel.launch(stream, {.block = 32, .cooperative = true}, as_tensor<uint32_t>(arrived, {0}));
  EXPECT_THAT(std::string(status.message()), HasSubstr("grid_sync_test.cc"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("atomically updates arrived(0), outside"));
}

TEST(SyncGrid, MoreBlocksThanFitAreRefused) {
  const auto got = run("crowd", {.grid = 100000, .block = 1024, .cooperative = true}, 4,
                       [](Tensor<const int32_t, 1>, Tensor<int32_t, 1> y) { y(0) = 1; });
  EXPECT_THAT(std::string(got.status().message()),
              HasSubstr("a cooperative grid 100000x1x1 has 100000 blocks, but only "));
}

}  // namespace
}  // namespace heddle
