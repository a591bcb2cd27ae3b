// What warps and blocks compute together is the same for all of them, and known to be: barriers may
// stand under a condition on it.
#include <cmath>

#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using ::testing::Each;

// Blocks of one warp, of whole warps (a power of two of them, or not), and of a part of one more,
// with more lanes than there are warps or fewer.
constexpr int kBlocks[] = {32, 64, 96, 128, 256, 1024, 20, 40, 100, 33, 65, 70, 102, 993, 1006};

TEST(CollectiveResults, ABlockReducesUnderWhatItReduced) {
  for (const int threads : kBlocks) {
    const auto got = run("under", {.block = threads}, threads, [](auto x, auto y) {
      const Int i = thread_idx.x;
      const Int most = block_reduce(x(i), maximum());
      If(most > 5, [&] { y(i) = block_reduce(x(i) * 2, plus()); });
    });
    ASSERT_THAT(got, IsOk()) << threads;
    EXPECT_THAT(*got, Each(threads * (threads - 1))) << threads;
  }
}

TEST(CollectiveResults, OfFloatsOfEachOperator) {
  const auto got = run("floats", {.block = 256}, 256, [](auto x, auto y) {
    const Float v = cast<float>(x(thread_idx.x)) + 0.1f;
    Var<int32_t> count(0);
    const auto note = [&](const Bool& condition) {
      If(condition, [&] {
        sync_threads();
        count += 1;
      });
    };
    note(block_reduce(v, plus()) > 0.0f);
    note(block_reduce(v, minimum()) > 0.0f);
    note(block_reduce(v, maximum()) > 0.0f);
    note(block_reduce(cast<half>(v), plus()) > half(0.0f));
    note(block_reduce(cast<int8_t>(x(thread_idx.x)), maximum()) > 0);
    note(block_reduce(cast<uint32_t>(x(thread_idx.x)), bitwise_or()) > 0u);
    note(block_reduce(cast<int64_t>(x(thread_idx.x)), plus()) > 0);
    note(block_reduce(v, [](const Float& a, const Float& b) { return a * b + a + b; }) > 0.0f);
    y(thread_idx.x) = count;
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_THAT(*got, Each(8));
}

TEST(CollectiveResults, AWarpShufflesUnderWhatItReduced) {
  const auto got = run("warp", {.block = 96}, 96, [](auto x, auto y) {
    const Int v = x(thread_idx.x);
    const Float f = cast<float>(v);
    Var<int32_t> count(0);
    const auto note = [&](const Bool& condition) {
      If(condition, [&] { count += shfl(Int(1), 3) + cast<int>(vote_all(v >= 0)); });
    };
    note(warp_reduce(f, maximum()) > 1.0f);
    note(warp_reduce(v, plus()) > 1);
    note(vote_any(v > 1));
    note(ballot(v > 1) != 0u);
    note(match_all(v) == 0u);
    note(redux_max(v) > 1);
    note(shfl(v, 7) > 1);
    note(warp_reduce(f, [](const Float& a, const Float& b) { return select(a > b, a, b); }) > 1.0f);
    y(thread_idx.x) = count;
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_THAT(*got, Each(16));
}

// Halves the largest of a block's values until it is small: the trips depend on the data.
TEST(CollectiveResults, ALoopUntilTheBlockIsDone) {
  for (const int threads : kBlocks) {
    const auto got = run("converge", {.block = threads}, threads, [](auto x, auto y) {
      const Int i = thread_idx.x;
      Var<float> value(cast<float>(x(i)));
      Var<float> worst(block_reduce(value, maximum()));
      Var<int32_t> trips(0);
      While([&] { return worst > 1.0f; },
            [&] {
              If(value > 1.0f, [&] { value = value * 0.5f; });
              worst = block_reduce(value, maximum());
              trips += 1;
            });
      y(i) = trips;
    });
    ASSERT_THAT(got, IsOk()) << threads;
    EXPECT_THAT(*got, Each(std::ceil(std::log2(threads - 1)))) << threads;
  }
}

// Atomics in a loop may order single threads; the reduction in it is the block's all the same.
TEST(CollectiveResults, ALoopWithAtomicsUntilTheBlockIsDone) {
  const auto got = run("rounds", {.block = 128}, 128, [](auto, auto y) {
    const Int i = thread_idx.x;
    y(i) = 0;
    sync_threads();
    Var<int32_t> left(i);
    Var<int32_t> most(block_reduce(left, maximum()));
    While([&] { return most > 0; },
          [&] {
            atomic_add(y(left / 2), 1);
            left = left / 2;
            most = block_reduce(left, maximum());
          });
    sync_threads();
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ((*got)[63], 2);
}

// A function that prefers one of two equals by their order: all threads get the same one.
TEST(CollectiveResults, TiesAreBrokenAlike) {
  struct MaxAt {
    Int value;
    Int index;
  };
  const auto later = [](const MaxAt& a, const MaxAt& b) { return select(b.value > a.value, b, a); };
  for (const int threads : kBlocks) {
    const auto got = run("ties", {.block = threads}, threads, [&](auto x, auto y) {
      const Int i = thread_idx.x;
      y(i) = block_reduce(MaxAt{x(i) * 0 + 7, i}, later).index;
    });
    ASSERT_THAT(got, IsOk()) << threads;
    EXPECT_THAT(*got, Each(got->front())) << threads;
  }
  const auto got = run("ties_in_segments", {.block = 32}, 32, [&](auto x, auto y) {
    const Int i = thread_idx.x;
    y(i) = warp_reduce(MaxAt{x(i) * 0 + 7, i}, later, 8).index / 8;
    If(i % 8 == 0, [&] { y(i) = y(i) + 0; });
  });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 32; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], i / 8);
}

// A value, and where it was.
struct At {
  Int value, index;
};

TEST(CollectiveResults, AClusterReduces) {
  if (!has_clusters()) GTEST_SKIP() << "the device has no clusters";
  for (const int blocks : {1, 2, 3, 8}) {
    for (const int threads : {32, 64, 256, 20, 40, 100}) {
      SCOPED_TRACE(testing::Message() << blocks << " blocks of " << threads);
      const int each = blocks * threads, clusters = 2;
      const LaunchShape shape{.grid = clusters * blocks, .block = threads, .cluster = blocks};
      // Trip after trip into the same slots; the index of the largest, the first of equals.
      const auto got = run("cluster", shape, clusters * each, [&](auto x, auto y) {
        const Int i = block_idx.x * threads + thread_idx.x;
        const Int sum = For(range(3), Int(0), [&](Int k, Int so_far) {
          return so_far + cluster_reduce(x(i) * (k + 1), plus());
        });
        const At last = cluster_reduce(At{x(i) / 2, i}, [](const At& a, const At& b) {
          return select(b.value > a.value || (b.value == a.value && b.index < a.index), b, a);
        });
        // What it gives is known to be the same for the block.
        If(sum > 5, [&] {
          sync_threads();
          y(i) = sum + last.index;
        });
      });
      ASSERT_THAT(got, IsOk());
      for (int c = 0; c < clusters; ++c) {
        const int first = c * each, end = first + each;
        const int sum = (end * (end - 1) - first * (first - 1)) / 2;
        for (int i = first; i < end; ++i) ASSERT_EQ((*got)[i], 6 * sum + (end - 1) / 2 * 2) << i;
      }
    }
  }
}

// Values below 4 bytes go to the other blocks by stores and a barrier of the cluster.
TEST(CollectiveResults, AClusterReducesSmallValues) {
  if (!has_clusters()) GTEST_SKIP() << "the device has no clusters";
  const auto got = run("small", {.grid = 8, .block = 64, .cluster = 4}, 512, [](auto x, auto y) {
    const Int i = block_idx.x * 64 + thread_idx.x;
    y(i) = For(range(3), Int(0), [&](Int k, Int so_far) {
      const Bool any = cluster_reduce(x(i) == 300 + k, bitwise_or());
      const Int8 most = cluster_reduce(cast<int8_t>(x(i) % 100 + k), maximum());
      return so_far + select(any, 1000, 0) + cast<int32_t>(most);
    });
  });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 512; ++i) EXPECT_EQ((*got)[i], 3 * 99 + 3 + (i < 256 ? 0 : 3000)) << i;
}

// The largest, and how many there are.
struct Most {
  Int value, count;
};
struct MergeMost {
  int* together_calls;
  Most operator()(const Most& a, const Most& b) const {
    const Int most = max(a.value, b.value);
    return {most, select(a.value == most, a.count, 0) + select(b.value == most, b.count, 0)};
  }
  template <class Group>
  Most together(const Most& mine, const Group& group) const {
    ++*together_calls;
    const Int most = group(mine.value, maximum());
    return {most, group(select(mine.value == most, mine.count, 0), plus())};
  }
};

TEST(CollectiveResults, AFunctorMayCombineAGroupAtOnce) {
  int calls = 0;
  const MergeMost merge{&calls};
  const auto last_digit = [](const Int& i) { return Most{i % 10, 1}; };
  const auto got = run("warp", {.block = 64}, 64, [&](auto, auto y) {
    const Most all = warp_reduce(last_digit(thread_idx.x), merge);
    const Most few = warp_reduce(last_digit(thread_idx.x), merge, 8);
    y(thread_idx.x) = all.value * 1000 + all.count * 100 + few.value * 10 + few.count;
  });
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(calls, 2);
  for (int i = 0; i < 64; ++i) {  // of each warp three end with 9
    const int first = i / 8 * 8, most = first % 10 > 2 ? 9 : first % 10 + 7;
    EXPECT_EQ((*got)[i], 9000 + 3 * 100 + most * 10 + 1) << i;
  }
  for (const int threads : kBlocks) {
    const auto of_block = run("block", {.block = threads}, threads, [&](auto, auto y) {
      const Most all = block_reduce(last_digit(thread_idx.x), merge);
      y(thread_idx.x) = all.value * 1000 + all.count;
    });
    ASSERT_THAT(of_block, IsOk()) << threads;
    EXPECT_THAT(*of_block, Each(9000 + threads / 10)) << threads;
  }
  if (!has_clusters()) return;
  for (const int threads : {32, 96, 256, 40}) {
    const LaunchShape shape{.grid = 8, .block = threads, .cluster = 8};
    const auto of_cluster = run("cluster", shape, 8 * threads, [&](auto, auto y) {
      const Int i = block_idx.x * threads + thread_idx.x;
      const Most all = cluster_reduce(last_digit(i), merge);
      y(i) = all.value * 1000 + all.count;
    });
    ASSERT_THAT(of_cluster, IsOk()) << threads;
    EXPECT_THAT(*of_cluster, Each(9000 + 8 * threads / 10)) << threads;
  }
}

}  // namespace
}  // namespace heddle
