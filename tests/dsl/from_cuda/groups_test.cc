// Cooperative groups, and kernels that find their own work, in dsl/FROM_CUDA.md: compiled, and run
// on the test device. What stands in the page's Heddle column stands here between the marks.
#include <numeric>

#include "dsl/from_cuda/compile.h"
#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::Each;

TEST(FromCudaGroups, BlocksAndTiles) {
  const auto got = run("groups", {.grid = 2, .block = 64}, 128, [](auto x, auto y) {
    const Int v = x(block_idx.x * 64 + thread_idx.x);
    // <page>
    Int rank = warp_id() * kWarpSize + lane_id();
    Int threads = threads_per_block();
    Int thread_of_grid = block_idx.x * threads_per_block() + rank;
    sync_threads();

    Int tile_rank = lane_id() % 16;
    Int tile = rank / 16;
    Int first = shfl(v, 0, 16);
    Int total = warp_reduce(v, plus(), 16);
    UInt of_tile = ballot(v % 5 == 0) >> cast<uint32_t>(lane_id() / 16 * 16) & 0xffffu;
    Bool any = of_tile != 0u;
    sync_warp();
    // </page>
    const Int expected = first * 16 + 120;
    y(thread_of_grid) = select(total == expected && first % 16 == 0 && v - first == tile_rank &&
                                   any && popc(of_tile) >= 3 && tile == rank / 16 && threads == 64,
                               thread_of_grid, -1);
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(*got, counting(128));
}

// One addition for all lanes that take part: each gets a place of its own.
TEST(FromCudaGroups, CoalescedThreads) {
  const auto got = run("compact", {.block = 64}, 64, [](auto x, auto y) {
    const Int v = x(thread_idx.x);
    y(thread_idx.x) = 0;
    sync_threads();
    // <page>
    UInt mask = ballot(v % 3 == 0);
    If(v % 3 == 0, [&] {
      Int size = popc(mask);
      Int rank = popc(mask & ((1u << cast<uint32_t>(lane_id())) - 1u));
      Int leader = ffs(mask) - 1;
      Var<int32_t> base(0);
      If(rank == 0, [&] { base = atomic_add(y(0), size); });
      Int place = shfl(Int(base), leader, 32, mask) + rank;
      y(place + 1) = v;
    });
    // </page>
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ((*got)[0], 22);
  std::vector<int32_t> values(got->begin() + 1, got->begin() + 23);
  std::sort(values.begin(), values.end());
  for (int i = 0; i < 22; ++i) EXPECT_EQ(values[static_cast<size_t>(i)], 3 * i);
}

TEST(FromCudaGroups, LabeledPartitions) {
  const auto got = run("labels", {.block = 64}, 64, [](auto x, auto y) {
    const Int v = x(thread_idx.x);
    const Int label = v % 4;
    // <page>
    UInt peers = match_any(label);
    Bool even = v % 2 == 0;
    UInt alike = select(even, ballot(even), ballot(!even));
    // </page>
    y(thread_idx.x) = popc(peers) * 100 + popc(alike);
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_THAT(*got, Each(816));
}

// What a kernel would launch, it takes from a queue that it adds to.
TEST(FromCudaGroups, WorkThatMakesWork) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel =
      define_kernel("tree(queue, head)", [](Tensor<int32_t, 1> queue, Tensor<int32_t, 1> head) {
        // <page>
        Var<int32_t> at(atomic_add(head(0), 1));
        While([&] { return at < atomic_load(head(1)); },
              [&] {
                Int task = queue(at);
                If(task > 1, [&] {
                  Int place = atomic_add(head(1), 2);
                  queue(place) = task / 2;
                  queue(place + 1) = task - task / 2;
                });
                at = atomic_add(head(0), 1);
              });
        // </page>
      });
  expect_compiles(kernel, {tensor({kAny}), tensor({2})});
  std::vector<int32_t> tasks(64);
  tasks[0] = 20;
  const Buffer queue = device.upload(absl::MakeConstSpan(tasks)).value();
  const Buffer head = device.upload<int32_t>({0, 1}).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 1}, as_tensor<int32_t>(queue, {64}),
                            as_tensor<int32_t>(head, {2})),
              IsOk());
  // 20 leaves, and a node for each pair that was joined.
  EXPECT_EQ(head.download<int32_t>(stream).value()[1], 39);
}

TEST(FromCudaGroups, ShapesOfLaunches) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("shape(y)", [](Tensor<int32_t, 1> y) {
    If(thread_idx.x + thread_idx.y + block_idx.x + block_idx.y == 0,
       [&] { y(0) = grid_dim.y * 1000 + block_dim.y; });
  });
  const Buffer out = device.upload<int32_t>({0}).value();
  const auto y = as_tensor<int32_t>(out, {1});
  // <page>
  Status launched = kernel.launch(stream, {.grid = {4, 2}, .block = {32, 8}}, y);
  int multiprocessors = device.info().sm_count;
  size_t free_bytes = device.memory_usage().value().free_bytes;
  bool idle = stream.done().value();
  // </page>
  ASSERT_THAT(launched, IsOk());
  EXPECT_EQ(out.download<int32_t>(stream).value()[0], 2008);
  EXPECT_GE(multiprocessors, 0);
  EXPECT_GT(free_bytes, 0u);
  static_cast<void>(idle);
}

// <page>
template <class T>
T halve_sum(const T& a, const T& b) {
  return (a + b) * 0.5f;
}
// </page>

TEST(FromCudaGroups, FunctionsOfHostAndDevice) {
  EXPECT_EQ(halve_sum(1.0f, 2.0f), 1.5f);
  const auto kernel =
      define_kernel("both(y, a)", [](Tensor<float, 1> y, Float a) { y(0) = halve_sum(a, a); });
  expect_compiles(kernel, {tensor({1}), scalar()});
}

}  // namespace
}  // namespace heddle
