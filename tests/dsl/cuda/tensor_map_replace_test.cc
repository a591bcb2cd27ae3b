// Tensor maps that a kernel makes, from lambda to result on whatever device the tests run on.
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

constexpr int kBoxRows = 8, kColumns = 32, kUsed = 20, kGroupsOfBlock = 3, kWords = 16;

// Maps made by kernels are there on the targets of suffix a.
bool has_map_updates() {
  const DeviceInfo& info = test_device().info();
  return info.cluster_launch && (info.compute_major == 9 || test_device().name() == "interp");
}

// Of each group of rows, y = x + 1 in its first 20 columns, by boxes that are larger than the group. A block
// has several groups, and makes the maps of each in the same places.
const auto add_one = define_kernel(
    "add_one(x, y, first, maps)", [](Tensor<const float, 2> x, Tensor<float, 2> y,
                                     Tensor<const int32_t, 1> first, Tensor<uint64_t, 2> maps) {
      const TensorMap from(x, {kBoxRows, kColumns});
      const TensorMap to(y, {kBoxRows, kColumns});
      const Shared<uint64_t, 2> staging({2, kWords});
      const Shared<float, 2> tile({kBoxRows, kColumns});
      const Mbarrier full(1);
      const Bool leads = thread_idx.x == 0;
      If(leads, [&] {
        full.init(0, 1);
        fence_mbarrier_init();
      });
      sync_threads();
      For(range(kGroupsOfBlock), [&](const Int& i) {
        const Int group = block_idx.x * kGroupsOfBlock + i;
        const Int row = first(group);
        const Int64 rows = cast<int64_t>(first(group + 1) - row);
        const TensorMap source = from.replace(staging.at(0, 0), maps.at(2 * block_idx.x, 0),
                                              x.at(row, 0), {rows, kUsed}, {kColumns, 1});
        const TensorMap target = to.replace(staging.at(1, 0), maps.at(2 * block_idx.x + 1, 0),
                                            y.at(row, 0), {rows, kUsed}, {kColumns, 1});
        If(leads, [&] {
          full.expect_tx(0, source.bytes());
          tma_load(tile.at(0, 0), source, {0, 0}, full, 0);
        });
        full.wait(0, cast<uint32_t>(i) & 1u);
        for (int r = 0; r < kBoxRows; ++r) tile(r, thread_idx.x) += 1.0f;
        fence_async();
        sync_threads();
        If(leads, [&] {
          tma_store(target, {0, 0}, tile.at(0, 0));
          bulk_commit();
          bulk_wait();
        });
        sync_threads();
      });
    });

TEST(TensorMapReplace, WorksOnGroupsOfRows) {
  if (!has_map_updates()) GTEST_SKIP() << "this device is none of sm_90a";
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const std::vector<int32_t> first = {0, 8, 9, 16, 21, 22, 28};
  const auto groups = static_cast<int64_t>(first.size()) - 1;
  const int64_t rows = first.back();
  std::vector<float> numbers(static_cast<size_t>(rows * kColumns));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const Buffer x = device.upload(absl::MakeConstSpan(numbers)).value();
  const Buffer y =
      device.upload(absl::MakeConstSpan(std::vector<float>(numbers.size(), -1))).value();
  const Buffer starts = device.upload(absl::MakeConstSpan(first)).value();
  const Buffer maps = device.allocate(static_cast<size_t>(groups) * 2 * 128).value();
  ASSERT_THAT(add_one.launch(stream, {.grid = groups / kGroupsOfBlock, .block = 32},
                             as_tensor<const float>(x, {rows, kColumns}),
                             as_tensor<float>(y, {rows, kColumns}),
                             as_tensor<const int32_t>(starts, {groups + 1}),
                             as_tensor<uint64_t>(maps, {groups * 2, kWords})),
              IsOk());
  const std::vector<float> got = y.download<float>(stream).value();
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], i % kColumns < kUsed ? numbers[i] + 1 : -1.0f) << i;
  }
}

// What no map can describe is reported where the map is made.
TEST(TensorMapReplace, ReportsAGroupWithoutRows) {
  if (test_device().name() != "interp") GTEST_SKIP() << "the interpreter reports it";
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.upload(absl::MakeConstSpan(std::vector<float>(8 * kColumns))).value();
  const Buffer y = device.upload(absl::MakeConstSpan(std::vector<float>(8 * kColumns))).value();
  const Buffer starts = device.upload<int32_t>({0, 4, 4, 8}).value();
  const Buffer maps = device.allocate(6 * 128).value();
  const Status status =
      add_one.launch(stream, {.grid = 1, .block = 32}, as_tensor<const float>(x, {8, kColumns}),
                     as_tensor<float>(y, {8, kColumns}), as_tensor<const int32_t>(starts, {4}),
                     as_tensor<uint64_t>(maps, {6, kWords}));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the new tensor map of 'x' has 0 elements along dimension 1"));
}

}  // namespace
}  // namespace heddle
