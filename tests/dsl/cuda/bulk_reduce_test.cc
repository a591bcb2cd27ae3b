// Bulk reductions of every operation and type, in global and in other blocks' shared memory.
#include <vector>

#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

constexpr int kCount = 64, kBlocks = 3;

template <class T>
auto number_of(T value) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>) {
    return value.to_float();
  } else {
    return value;
  }
}

// Small integers, which every type holds and adds without rounding.
template <class T>
std::vector<T> numbers(int from, int factor) {
  std::vector<T> values;
  for (int i = 0; i < kCount; ++i) {
    values.push_back(static_cast<T>((from + i * factor) % 97));
  }
  return values;
}

// What y becomes where kBlocks blocks reduce x into it.
template <class T, class Reduce>
StatusOr<std::vector<T>> reduced(const std::vector<T>& x, const std::vector<T>& y, Reduce reduce) {
  const Stream stream = test_device().create_stream().value();
  const auto kernel = local_kernel("reduce", [&](Tensor<const T, 1> in, Tensor<T, 1> out) {
    const Shared<T> tile(kCount);
    const Int t = thread_idx.x;
    tile(t) = in(t);
    fence_async();
    sync_threads();
    If(t == 0, [&] {
      reduce(out.at(0), tile.at(0), kCount);
      bulk_commit();
      bulk_wait();
    });
  });
  const Buffer in = test_device().upload(absl::MakeConstSpan(x)).value();
  const Buffer out = test_device().upload(absl::MakeConstSpan(y)).value();
  Status status = kernel.launch(stream, {.grid = kBlocks, .block = kCount},
                                as_tensor<const T>(in, {kCount}), as_tensor<T>(out, {kCount}));
  if (status.ok()) status = stream.synchronize();
  if (!status.ok()) return status;
  return out.download<T>(stream);
}

#define HEDDLE_EXPECT_REDUCED(T, name, expression)                                          \
  do {                                                                                      \
    SCOPED_TRACE(#T " " #name);                                                             \
    const std::vector<T> xs = numbers<T>(3, 7), ys = numbers<T>(50, 11);                    \
    const auto got = reduced<T>(                                                            \
        xs, ys, [](const auto& to, const auto& from, int n) { bulk_##name(to, from, n); }); \
    ASSERT_THAT(got, IsOk());                                                               \
    for (size_t i = 0; i < xs.size(); ++i) {                                                \
      const auto x = number_of(xs[i]);                                                      \
      auto y = number_of(ys[i]);                                                            \
      for (int block = 0; block < kBlocks; ++block) y = expression;                         \
      EXPECT_EQ(number_of((*got)[i]), y) << i;                                              \
    }                                                                                       \
  } while (false)

class BulkReduction : public testing::Test {
 protected:
  void SetUp() override {
    if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  }
};

TEST_F(BulkReduction, Adds) {
  HEDDLE_EXPECT_REDUCED(int32_t, add, y + x);
  HEDDLE_EXPECT_REDUCED(uint32_t, add, y + x);
  HEDDLE_EXPECT_REDUCED(int64_t, add, y + x);
  HEDDLE_EXPECT_REDUCED(uint64_t, add, y + x);
  HEDDLE_EXPECT_REDUCED(float, add, y + x);
  HEDDLE_EXPECT_REDUCED(double, add, y + x);
  HEDDLE_EXPECT_REDUCED(half, add, y + x);
}

// 8 bits of a bfloat16 hold sums up to 256.
TEST_F(BulkReduction, AddsBfloat16) {
  const std::vector<bfloat16> xs(kCount, bfloat16(5.0));
  const auto got =
      reduced<bfloat16>(xs, numbers<bfloat16>(0, 1),
                        [](const auto& to, const auto& from, int n) { bulk_add(to, from, n); });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ((*got)[static_cast<size_t>(i)].to_float(), static_cast<float>(i + 15)) << i;
  }
}

TEST_F(BulkReduction, TakesTheSmallerAndTheLarger) {
  HEDDLE_EXPECT_REDUCED(int32_t, min, std::min(x, y));
  HEDDLE_EXPECT_REDUCED(uint32_t, max, std::max(x, y));
  HEDDLE_EXPECT_REDUCED(int64_t, max, std::max(x, y));
  HEDDLE_EXPECT_REDUCED(uint64_t, min, std::min(x, y));
  HEDDLE_EXPECT_REDUCED(half, min, std::min(x, y));
  HEDDLE_EXPECT_REDUCED(bfloat16, max, std::max(x, y));
}

TEST_F(BulkReduction, CombinesBits) {
  HEDDLE_EXPECT_REDUCED(int32_t, and, y & x);
  HEDDLE_EXPECT_REDUCED(uint32_t, or, y | x);
  HEDDLE_EXPECT_REDUCED(int32_t, xor, y ^ x);
  HEDDLE_EXPECT_REDUCED(uint64_t, and, y & x);
  HEDDLE_EXPECT_REDUCED(int64_t, or, y | x);
  HEDDLE_EXPECT_REDUCED(uint64_t, xor, y ^ x);
}

TEST_F(BulkReduction, CountsUpAndDown) {
  HEDDLE_EXPECT_REDUCED(uint32_t, inc, y >= x ? 0 : y + 1);
  HEDDLE_EXPECT_REDUCED(uint32_t, dec, y == 0 || y > x ? x : y - 1);
}

// The blocks of a cluster add into the first one's bins.
TEST_F(BulkReduction, ReachesOtherBlocksSharedMemory) {
  const auto got = run("collect", {.grid = 8, .block = 64, .cluster = 4}, 512,
                       [](Tensor<const int32_t, 1> x, Tensor<int32_t, 1> y) {
                         const Shared<int32_t> bins(64);
                         const Mbarrier full(1);
                         const Int t = thread_idx.x, place = block_idx.x * 64 + t;
                         bins(t) = x(place);
                         const Bool first = cluster_rank() == 0;
                         If(t == 0, [&] {
                           full.init(0, 1);
                           fence_mbarrier_init();
                           If(first, [&] { full.expect_tx(0, 3 * 64 * 4); });
                         });
                         fence_async();
                         sync_cluster();
                         If((t == 0) & !first, [&] {
                           bulk_add(map_shared(bins, 0).at(0), bins.at(0), 64,
                                    Mbarrier(map_shared(full.words(), 0)), 0);
                         });
                         If(first, [&] { full.wait(0, 0u); });
                         y(place) = bins(t);
                         sync_cluster();
                       });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 512; ++i) {
    const bool first = i / 64 % 4 == 0;
    EXPECT_EQ((*got)[static_cast<size_t>(i)], first ? 4 * i + 64 * 6 : i) << i;
  }
}

TEST_F(BulkReduction, WhatNoGpuHasIsRefused) {
  const auto message = [](auto reduce) {
    return std::string(
        reduced<float>(numbers<float>(0, 1), numbers<float>(0, 1), reduce).status().message());
  };
  EXPECT_THAT(message([](const auto& to, const auto& from, int n) { bulk_min(to, from, n); }),
              HasSubstr("a bulk reduction by min in global memory takes i32, u32, i64, u64, f16, "
                        "bf16, not f32"));
  EXPECT_THAT(message([](const auto& to, const auto& from, int n) {
                const Mbarrier bar(1);
                bulk_add(to, from, n, bar, 0);
              }),
              HasSubstr("a bulk reduction in global memory tells no mbarrier"));
  EXPECT_THAT(message([](const auto&, const auto& from, int n) { bulk_add(from, from, n); }),
              HasSubstr("a bulk reduction in shared memory tells an mbarrier, and there is none"));
}

}  // namespace
}  // namespace heddle
