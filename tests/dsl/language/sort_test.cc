// Sorts of warps, blocks and clusters from lambda to result, on whatever device the tests run on.
#include <algorithm>
#include <random>

#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

// Keys of which several are equal, with what they come with: whole elements move.
TEST(SortTest, OfAnyNumberOfElements) {
  constexpr int kMost = 300;
  const auto kernel = define_kernel(
      "sort(x, y, count)", [](Tensor<const uint64_t, 1> x, Tensor<uint64_t, 1> y, Int count) {
        Shared<uint64_t> keys(kMost);
        for (const Int i : range(thread_idx.x, count, block_dim.x)) keys(i) = x(i);
        block_sort(keys, count, [](const UInt64& a, const UInt64& b) { return a > b; });
        for (const Int i : range(thread_idx.x, count, block_dim.x)) y(i) = keys(i);
      });
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  std::mt19937 random(1);
  for (const int count : {0, 1, 2, 3, 5, 7, 8, 31, 32, 33, 64, 100, 129, 255, 256, 257, 300}) {
    std::vector<uint64_t> x(kMost);
    for (uint64_t& key : x) key = uint64_t{random() % 50} << 40 | random() % 3;
    const Buffer in = device.upload(absl::MakeConstSpan(x)).value(),
                 out = device.upload(absl::MakeConstSpan(x)).value();
    for (const int threads : {32, 40, 96, 256}) {
      ASSERT_THAT(kernel.launch(stream, {.block = threads}, as_tensor<const uint64_t>(in, {kMost}),
                                as_tensor<uint64_t>(out, {kMost}), count),
                  IsOk());
      std::vector<uint64_t> expected = x;
      std::sort(expected.begin(), expected.begin() + count, std::greater<>());
      EXPECT_EQ(out.download<uint64_t>(stream).value(), expected) << count << " by " << threads;
    }
  }
}

// A block that only the launch knows: all steps are alike.
TEST(SortTest, OfBlocksThatLaunchesSay) {
  const auto kernel = define_kernel("sort(x)", [](Tensor<int32_t, 1> x) {
    const Shared<int32_t> keys(70);
    for (const Int i : range(thread_idx.x, 70, block_dim.x)) keys(i) = x(i);
    block_sort(keys, 70, [](const Int& a, const Int& b) { return a < b; });
    for (const Int i : range(thread_idx.x, 70, block_dim.x)) x(i) = keys(i);
  });
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto compiled = kernel.compile(
      Signature{tensor({kAny})}, CompileOptions{.stage = on_gpu() ? Stage::kCubin : Stage::kIr});
  ASSERT_THAT(compiled, IsOk());
  std::vector<int32_t> x(70), expected;
  for (int i = 0; i < 70; ++i) x[static_cast<size_t>(i)] = i * 37 % 71;
  expected = x;
  std::sort(expected.begin(), expected.end());
  const Buffer in = device.upload(absl::MakeConstSpan(x)).value();
  ASSERT_THAT(compiled->launch(stream, {.block = 64}, as_tensor<int32_t>(in, {70})), IsOk());
  EXPECT_EQ(in.download<int32_t>(stream).value(), expected);
}

struct Small {
  UInt8 key;
  Int from;
};

// Small integers, which C++ would promote, alone and in structs.
TEST(SortTest, OfSmallIntegersAndStructs) {
  const auto got = run("small", {.block = 64}, 64, [](auto x, auto y) {
    const Int i = thread_idx.x;
    const UInt8 key = cast<uint8_t>(x(i) * 37 % 64);
    const Shared<uint8_t> keys(64);
    keys(i) = key;
    block_sort(keys, 64, [](const UInt8& a, const UInt8& b) { return a < b; });
    const Shared<Small> all(64);
    all(i) = Small{key, x(i)};
    block_sort(all, 64, [](const Small& a, const Small& b) { return a.key > b.key; });
    const Small here = all(63 - i);
    const UInt8 of_warp = warp_sort(key, [](const UInt8& a, const UInt8& b) { return a > b; });
    y(i) = cast<int32_t>(UInt8(keys(i))) * 1000000 + cast<int32_t>(here.key) * 1000 +
           here.from * 37 % 64 + select(of_warp > 200, 1, 0);
  });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 64; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], i * 1001001);
}

// What a thread has at its number: some are equal.
int scattered(int i) { return i * 37 % 101 - 50; }
Int scattered(const Int& i) { return i * 37 % 101 - 50; }

struct Keyed {
  Int key, from;
};
Bool by_key(const Keyed& a, const Keyed& b) { return a.key < b.key; }

// Segments of warps; equal keys keep what they came with, in any order.
TEST(SortTest, OfTheLanesOfWarps) {
  for (const int width : {1, 2, 4, 8, 16, 32}) {
    for (const int what : {0, 1}) {
      const auto got = run("lanes", {.block = 64}, 64, [&](auto x, auto y) {
        const Int i = thread_idx.x;
        const Keyed sorted = warp_sort(Keyed{scattered(x(i)) / 4, x(i)}, by_key, width);
        y(i) = what == 0 ? sorted.key : sorted.from;
      });
      ASSERT_THAT(got, IsOk());
      for (int first = 0; first < 64; first += width) {
        std::vector<int> here(got->begin() + first, got->begin() + first + width), expected;
        for (int i = first; i < first + width; ++i) {
          expected.push_back(what == 0 ? scattered(i) / 4 : i);
        }
        if (what == 1) {
          EXPECT_TRUE(std::is_sorted(here.begin(), here.end(), [](int a, int b) {
            return scattered(a) / 4 < scattered(b) / 4;
          })) << width;
          std::sort(here.begin(), here.end());
        }
        std::sort(expected.begin(), expected.end());
        EXPECT_EQ(here, expected) << what << ", segments of " << width;
      }
    }
  }
}

// Several values of each lane, in a loop, the greatest first.
TEST(SortTest, OfSeveralValuesOfEachLane) {
  for (const int each : {1, 2, 4, 8}) {
    for (int which = 0; which < each; ++which) {
      const auto got = run("values", {.block = 32}, 32, [&](auto x, auto y) {
        y(thread_idx.x) = For(range(2), Int(0), [&](const Int& trip, const Int& so_far) {
          std::vector<Int> values;
          for (int i = 0; i < each; ++i) {
            values.push_back(scattered(x(thread_idx.x) * each + i) + trip);
          }
          const std::vector<Int> sorted =
              warp_sort(values, [](const Int& a, const Int& b) { return a > b; });
          return so_far + sorted[static_cast<size_t>(which)];
        });
      });
      ASSERT_THAT(got, IsOk());
      std::vector<int> expected;
      for (int i = 0; i < 32 * each; ++i) expected.push_back(2 * scattered(i) + 1);
      std::sort(expected.begin(), expected.end(), std::greater<>());
      for (int lane = 0; lane < 32; ++lane) {
        EXPECT_EQ((*got)[static_cast<size_t>(lane)],
                  expected[static_cast<size_t>(lane * each + which)])
            << each << " values, lane " << lane;
      }
    }
  }
}

// Arrays of powers of two, whose steps stay within them, and others; sorted twice.
TEST(SortTest, OfClusters) {
  if (!has_clusters()) GTEST_SKIP() << "the device has no clusters";
  for (const int blocks : {1, 2, 3, 8}) {
    for (const int each : {1, 2, 33, 64, 96}) {
      for (const int threads : {32, 64}) {
        const int all = blocks * each;
        for (const int count : {1, each, all / 2 + 1, all - 1, all}) {
          if (count < 1) continue;
          const auto got = run(
              "cluster", {.grid = blocks, .block = threads, .cluster = blocks}, all,
              [&](auto x, auto y) {
                Shared<int32_t> keys(each);
                const Int first = cluster_rank() * each;
                for (const Int i : range(thread_idx.x, each, threads)) {
                  keys(i) = scattered(x(first + i));
                }
                cluster_sort(keys, Int(count), [](const Int& a, const Int& b) { return a > b; });
                cluster_sort(keys, Int(count), [](const Int& a, const Int& b) { return a < b; });
                for (const Int i : range(thread_idx.x, each, threads)) y(first + i) = keys(i);
              });
          ASSERT_THAT(got, IsOk());
          std::vector<int> expected;
          for (int i = 0; i < all; ++i) expected.push_back(scattered(i));
          std::sort(expected.begin(), expected.begin() + count);
          EXPECT_EQ(*got, expected) << count << " of " << blocks << " times " << each;
        }
      }
    }
  }
}

TEST(SortTest, SaysWhatWarpsDoNotSort) {
  const auto said = [](auto body) {
    return std::string(run("wrong", {.block = 32}, 32,
                           [&](auto x, auto y) { y(thread_idx.x) = body(x(thread_idx.x)); })
                           .status()
                           .message());
  };
  const auto less = [](const Int& a, const Int& b) { return a < b; };
  EXPECT_THAT(said([&](const Int& x) { return warp_sort(x, less, 5); }),
              testing::HasSubstr("warp_sort() over a width that is no power of two from 1 to 32\n"
                                 "  fix: sort over 1, 2, 4, 8, 16 or 32 lanes"));
  EXPECT_THAT(said([&](const Int& x) {
                return warp_sort(std::vector<Int>{x, x, x}, less)[0];
              }),
              testing::HasSubstr("warp_sort() of a number of values that is no power of two"));
}

}  // namespace
}  // namespace heddle
