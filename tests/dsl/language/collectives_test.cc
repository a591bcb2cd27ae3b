// Collectives but reductions and scans of warps and blocks: compaction, broadcast, all-gather, reduce-scatter, the greatest
// and its place, scans of clusters, and what a grid does together.
#include <algorithm>
#include <cmath>
#include <random>

#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

constexpr int kBlocks[] = {32, 64, 96, 256, 1024, 20, 40, 100, 33, 993};

// Whether an element is kept, as host and kernel have it.
int kept(int x, int trip) { return x * 7 % 5 < 2 + trip; }
Bool kept(const Int& x, const Int& trip) { return x * 7 % 5 < 2 + trip; }

// Twice in a loop, over groups of `each` threads.
template <class Compact>
void check_compact(const LaunchShape& shape, int threads, int each, Compact compact) {
  SCOPED_TRACE(testing::Message() << each << " of " << threads);
  for (const bool count : {false, true}) {
    const auto got = run("compact", shape, threads, [&](auto x, auto y) {
      const Int i = block_idx.x * block_dim.x + thread_idx.x;
      y(i) = For(range(2), Int(0), [&](const Int& trip, const Int& so_far) {
        const Compacted to = compact(kept(x(i), trip));
        return so_far * 10000 + (count ? to.count : to.place);
      });
    });
    ASSERT_THAT(got, IsOk());
    for (int i = 0; i < threads; ++i) {
      int expected = 0;
      for (int trip = 0; trip < 2; ++trip) {
        const int first = i / each * each, last = std::min(first + each, threads);
        int of = 0;
        for (int j = first; j < (count ? last : i); ++j) of += kept(j, trip);
        expected = expected * 10000 + of;
      }
      ASSERT_EQ((*got)[static_cast<size_t>(i)], expected) << i;
    }
  }
}
TEST(Collectives, Compact) {
  check_compact({.block = 64}, 64, 32, [](const Bool& keep) { return warp_compact(keep); });
  for (const int threads : kBlocks) {
    check_compact({.grid = 2, .block = threads}, 2 * threads, threads,
                  [](const Bool& keep) { return block_compact(keep); });
  }
  if (!has_clusters()) GTEST_SKIP() << "the device has no clusters";
  for (const int blocks : {1, 2, 3, 8}) {
    for (const int threads : {32, 40, 256}) {
      check_compact({.grid = 2 * blocks, .block = threads, .cluster = blocks}, 2 * blocks * threads,
                    blocks * threads, [](const Bool& keep) { return cluster_compact(keep); });
    }
  }
}

struct Ends {
  Int first, last;
};
Ends join(const Ends& a, const Ends& b) { return {a.first, b.last}; }

// Sums, and what is associative and not commutative, twice in a loop.
TEST(Collectives, ScanClusters) {
  if (!has_clusters()) GTEST_SKIP() << "the device has no clusters";
  for (const int blocks : {1, 2, 3, 8}) {
    for (const int threads : {32, 64, 256, 20, 3, 100}) {
      SCOPED_TRACE(testing::Message() << blocks << " blocks of " << threads);
      const int each = blocks * threads, all = 2 * each;
      const LaunchShape shape{.grid = 2 * blocks, .block = threads, .cluster = blocks};
      for (const int what : {0, 1, 2, 3}) {
        const auto got = run("scan", shape, all, [&](auto x, auto y) {
          const Int i = block_idx.x * threads + thread_idx.x;
          y(i) = For(range(2), Int(0), [&](const Int& trip, const Int& so_far) {
            const Int v = x(i) + trip;
            const Int result =
                what == 0   ? cluster_scan(v, plus())
                : what == 1 ? cluster_scan_exclusive(v, Int(100), plus())
                : what == 2
                    ? cluster_scan(Ends{v, v}, join).first * 3 + cluster_scan(Ends{v, v}, join).last
                    : cluster_scan_exclusive(Ends{v, v}, Ends{Int(-7), Int(-7)}, join).last;
            return so_far * 3 + result;
          });
        });
        ASSERT_THAT(got, IsOk());
        for (int i = 0; i < all; ++i) {
          int expected = 0;
          for (int trip = 0; trip < 2; ++trip) {
            const int first = i / each * each;
            int sum = 0;
            for (int j = first; j < i; ++j) sum += j + trip;
            const int v = i + trip;
            expected = expected * 3 + (what == 0    ? sum + v
                                       : what == 1  ? sum + 100
                                       : what == 2  ? (first + trip) * 3 + v
                                       : i == first ? -7
                                                    : v - 1);
          }
          ASSERT_EQ((*got)[static_cast<size_t>(i)], expected) << what << ", " << i;
        }
      }
    }
  }
}

TEST(Collectives, BroadcastAndGather) {
  for (const int threads : kBlocks) {
    SCOPED_TRACE(threads);
    const auto got = run("gather", {.block = threads}, threads, [&](auto x, auto y) {
      const Int i = thread_idx.x;
      y(i) = For(range(2), Int(0), [&](const Int& trip, const Int& so_far) {
        const Gathered<Ends> all = block_all_gather(Ends{x(i) + trip, x(i) * 2});
        const Ends other = all(threads - 1 - i);
        const Int of_one = block_broadcast(x(i) * 3, threads - 1 - trip);
        // What it gives is known to be the same for the block.
        If(of_one > 0, [&] { sync_threads(); });
        return so_far + other.first * 100 + other.last + of_one;
      });
    });
    ASSERT_THAT(got, IsOk());
    for (int i = 0; i < threads; ++i) {
      const int other = threads - 1 - i;
      ASSERT_EQ((*got)[static_cast<size_t>(i)],
                (2 * other + 1) * 100 + 4 * other + 3 * (2 * threads - 3))
          << i;
    }
  }
  const auto got = run("warp", {.block = 64}, 64, [&](auto x, auto y) {
    const std::vector<Int> all = warp_all_gather(x(thread_idx.x), 8);
    Var<int32_t> digits(0);
    for (const Int& one : all) digits = digits * 2 + (one & 1) + one / 8;
    y(thread_idx.x) = digits;
  });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ((*got)[static_cast<size_t>(i)], 0b01010101 + 255 * (i / 8)) << i;
  }
}
TEST(Collectives, BroadcastAndGatherInClusters) {
  if (!has_clusters()) GTEST_SKIP() << "the device has no clusters";
  for (const int blocks : {1, 2, 3, 8}) {
    for (const int threads : {32, 40, 256}) {
      SCOPED_TRACE(testing::Message() << blocks << " blocks of " << threads);
      const int each = blocks * threads, all = 2 * each;
      const auto got =
          run("gather", {.grid = 2 * blocks, .block = threads, .cluster = blocks}, all,
              [&](auto x, auto y) {
                const Int i = block_idx.x * threads + thread_idx.x, in_cluster = i % each;
                y(i) = For(range(2), Int(0), [&](const Int& trip, const Int& so_far) {
                  const Int other = cluster_all_gather(x(i) + trip)(each - 1 - in_cluster);
                  const Int of_one = cluster_broadcast(x(i), blocks - 1, trip);
                  If(of_one > 0, [&] { sync_threads(); });
                  return so_far + other * 10 + of_one;
                });
              });
      ASSERT_THAT(got, IsOk());
      for (int i = 0; i < all; ++i) {
        const int first = i / each * each, other = first + each - 1 - i % each,
                  one = first + each - threads;
        ASSERT_EQ((*got)[static_cast<size_t>(i)], (2 * other + 1) * 10 + 2 * one + 1) << i;
      }
    }
  }
}

TEST(Collectives, ReduceAndScatter) {
  for (const int count : {1, 2, 8, 32}) {
    const auto got = run("warp", {.block = 64}, 64, [&](auto x, auto y) {
      std::vector<Int> values;
      for (int k = 0; k < count; ++k) values.push_back(x(thread_idx.x) * (k + 1));
      y(thread_idx.x) = warp_reduce_scatter(values, plus());
    });
    ASSERT_THAT(got, IsOk());
    for (int i = 0; i < 64; ++i) {
      const int sum = 496 + i / 32 * 1024;
      EXPECT_EQ((*got)[static_cast<size_t>(i)], sum * (i % count + 1)) << count << ", " << i;
    }
  }
  for (const int threads : {32, 64, 96, 1024}) {
    for (const int count : {1, 5, 31, 32}) {
      const auto got = run("block", {.block = threads}, threads, [&](auto x, auto y) {
        y(thread_idx.x) = For(range(2), Int(0), [&](const Int& trip, const Int& so_far) {
          std::vector<Int> values;
          for (int k = 0; k < count; ++k) values.push_back(x(thread_idx.x) % 50 * (k + 1) + trip);
          return so_far + block_reduce_scatter(values, plus());
        });
      });
      ASSERT_THAT(got, IsOk());
      int sum = 0;
      for (int i = 0; i < threads; ++i) sum += i % 50;
      for (int i = 0; i < threads; ++i) {
        EXPECT_EQ((*got)[static_cast<size_t>(i)], 2 * sum * (std::min(i, count - 1) + 1) + threads)
            << count << " by " << threads << ", " << i;
      }
    }
  }
}

// What thread t of block b gets of `count` values that so many blocks share out.
int share_of(int count, int blocks, int b, int t) {
  const int each = (count + blocks - 1) / blocks;
  return std::min(b * each + std::min(t, each - 1), count - 1);
}
TEST(Collectives, ReduceAndScatterInClusters) {
  if (!has_clusters()) GTEST_SKIP() << "the device has no clusters";
  for (const int blocks : {1, 2, 3, 8}) {
    for (const int threads : {32, 96}) {
      for (const int count : {1, 2, 5, 32, 33}) {
        if (count > blocks * threads) continue;
        const int each = blocks * threads, all = 2 * each;
        const auto got = run("cluster", {.grid = 2 * blocks, .block = threads, .cluster = blocks},
                             all, [&](auto x, auto y) {
                               const Int i = block_idx.x * threads + thread_idx.x;
                               y(i) =
                                   For(range(2), Int(0), [&](const Int& trip, const Int& so_far) {
                                     std::vector<Int> values;
                                     for (int k = 0; k < count; ++k)
                                       values.push_back(x(i) % 50 * (k + 1) + trip);
                                     return so_far + cluster_reduce_scatter(values, plus());
                                   });
                             });
        ASSERT_THAT(got, IsOk());
        for (int i = 0; i < all; ++i) {
          const int first = i / each * each, block = i % each / threads;
          int sum = 0;
          for (int j = first; j < first + each; ++j) sum += j % 50;
          ASSERT_EQ((*got)[static_cast<size_t>(i)],
                    2 * sum * (share_of(count, blocks, block, i % threads) + 1) + each)
              << count << " values, " << blocks << " blocks of " << threads << ", " << i;
        }
      }
    }
  }
}

// Equal ones, NaNs among numbers, NaNs alone: the lowest index wherever the threads stand.
TEST(Collectives, FindExtremesAndTheirPlaces) {
  for (const int threads : kBlocks) {
    for (const int which : {0, 1, 2}) {
      const auto got = run("extremes", {.block = threads}, threads, [&](auto x, auto y) {
        const Int i = thread_idx.x;
        const Float number = cast<float>(x(i) * 7 % 11),
                    v = which == 0   ? number
                        : which == 1 ? select(x(i) % 3 == 0, Float(std::nanf("")), number)
                                     : Float(std::nanf(""));
        const ValueAt<float> most = block_reduce(ValueAt<float>{v, i}, argmax()),
                             least = block_reduce(ValueAt<float>{v, i}, argmin());
        y(i) = most.index * 2000 + least.index;
      });
      ASSERT_THAT(got, IsOk());
      int most = -1, least = -1;
      for (int i = 0; i < threads; ++i) {
        if (which == 2 || (which == 1 && i % 3 == 0)) continue;
        if (most < 0 || i * 7 % 11 > most * 7 % 11) most = i;
        if (least < 0 || i * 7 % 11 < least * 7 % 11) least = i;
      }
      EXPECT_THAT(*got, Each(std::max(most, 0) * 2000 + std::max(least, 0))) << threads;
    }
  }
  const auto got = run("ints", {.block = 64}, 64, [&](auto x, auto y) {
    const ValueAt<int32_t> best =
        warp_reduce(ValueAt<int32_t>{x(thread_idx.x) / 4 % 3, x(thread_idx.x)}, argmax());
    y(thread_idx.x) = best.index;
  });
  ASSERT_THAT(got, IsOk());
  for (int i = 0; i < 64; ++i) EXPECT_EQ((*got)[static_cast<size_t>(i)], i < 32 ? 8 : 32) << i;
}

TEST(Collectives, OfGrids) {
  for (const int threads : {32, 100, 256}) {
    for (const Dim3& grid : {Dim3{1}, Dim3{5}, Dim3{3, 2, 4}, Dim3{60}}) {
      const int all = static_cast<int>(grid.count()) * threads;
      const auto kernel = local_kernel(
          "grid", [&](Tensor<float, 1> y, Tensor<float, 1> partials, Tensor<uint32_t, 1> words) {
            const Int block = block_idx.x + grid_dim.x * (block_idx.y + grid_dim.y * block_idx.z),
                      i = block * threads + thread_idx.x;
            const Float total = grid_reduce(cast<float>(i % 17), plus(), partials, words(0));
            y(i) = total;
            // And by whoever is last, twice: the word is zero again.
            for (int round = 0; round < 2; ++round) {
              sync_grid(words(0));
              If(thread_idx.x == 0, [&] { partials(block) = cast<float>(block + round); });
              If(is_last_block(words(1)), [&] {
                const Float sum =
                    For(range(grid_dim.x * grid_dim.y * grid_dim.z), Float(0),
                        [&](const Int& b, const Float& so_far) { return so_far + partials(b); });
                If(thread_idx.x == 0, [&] { words(2 + round) = cast<uint32_t>(sum); });
              });
            }
          });
      const Device& device = test_device();
      const Stream stream = device.create_stream().value();
      const Buffer y = device.allocate(static_cast<size_t>(all) * 4).value(),
                   partials = device.allocate(static_cast<size_t>(grid.count()) * 4).value(),
                   words = device.upload(absl::MakeConstSpan(std::vector<uint32_t>(4))).value();
      ASSERT_THAT(
          kernel.launch(stream, {.grid = grid, .block = threads, .cooperative = true},
                        as_tensor<float>(y, {all}), as_tensor<float>(partials, {grid.count()}),
                        as_tensor<uint32_t>(words, {4})),
          IsOk());
      float total = 0;
      for (int i = 0; i < all; ++i) total += static_cast<float>(i % 17);
      EXPECT_THAT(y.download<float>(stream).value(), Each(total)) << all;
      const auto got = words.download<uint32_t>(stream).value();
      const auto blocks = static_cast<uint32_t>(grid.count());
      EXPECT_EQ(got[1], 0u);
      EXPECT_EQ(got[2], blocks * (blocks - 1) / 2);
      EXPECT_EQ(got[3], blocks * (blocks + 1) / 2);
    }
  }
}

// What body(i, y, memory, more, words) gives for the threads of a cooperative grid, of numbers i; `memory` and `more` have as
// many elements as `partials` says.
template <class Body>
std::vector<int32_t> run_grid(const Dim3& grid, int threads, int partials, Body body) {
  const int all = static_cast<int>(grid.count()) * threads;
  const auto kernel = local_kernel("grid", [&](Tensor<int32_t, 1> y, Tensor<int32_t, 1> memory,
                                               Tensor<int32_t, 1> more, Tensor<uint32_t, 1> words) {
    const Int block = block_idx.x + grid_dim.x * (block_idx.y + grid_dim.y * block_idx.z);
    body(block * threads + thread_idx.x, y, memory, more, words);
  });
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer y = device.allocate(static_cast<size_t>(all) * 4).value(),
               memory = device.allocate(static_cast<size_t>(partials) * 4).value(),
               more = device.allocate(static_cast<size_t>(partials) * 4).value(),
               words = device.upload(absl::MakeConstSpan(std::vector<uint32_t>(1))).value();
  EXPECT_THAT(kernel.launch(stream, {.grid = grid, .block = threads, .cooperative = true},
                            as_tensor<int32_t>(y, {all}), as_tensor<int32_t>(memory, {partials}),
                            as_tensor<int32_t>(more, {partials}), as_tensor<uint32_t>(words, {1})),
              IsOk());
  return y.download<int32_t>(stream).value();
}
TEST(Collectives, ScansAndCompactsOfGrids) {
  for (const int threads : {32, 100, 20}) {
    for (const Dim3& grid : {Dim3{1}, Dim3{5}, Dim3{3, 2, 4}, Dim3{60}}) {
      const auto blocks = static_cast<int>(grid.count()), all = blocks * threads;
      for (const int what : {0, 1, 2, 3}) {
        const auto got = run_grid(
            grid, threads, blocks,
            [&](const Int& i, const auto& y, const auto& memory, const auto& more,
                const auto& words) {
              const Compacted kept_ones = grid_compact(kept(i, 1), more, words(0));
              const Int result =
                  what == 0   ? grid_scan(i % 7, plus(), memory, words(0))
                  : what == 1 ? grid_scan_exclusive(i % 7, Int(5), plus(), memory, words(0))
                  : what == 2
                      // The last one so far that is a multiple of 7: not commutative.
                      ? grid_scan(
                            select(i % 7 == 0, i, Int(-1)),
                            [](const Int& a, const Int& b) { return select(b < 0, a, b); }, memory,
                            words(0))
                      : kept_ones.count;
              y(i) = result * 10000 + kept_ones.place;
            });
        int sum = 0, place = 0, count = 0;
        for (int i = 0; i < all; ++i) count += kept(i, 1);
        for (int i = 0; i < all; ++i) {
          const int result = what == 0   ? sum + i % 7
                             : what == 1 ? sum + 5
                             : what == 2 ? i / 7 * 7
                                         : count;
          ASSERT_EQ(got[static_cast<size_t>(i)], result * 10000 + place)
              << what << ", " << i << " of " << blocks << " blocks of " << threads;
          sum += i % 7;
          place += kept(i, 1);
        }
      }
    }
  }
}

TEST(Collectives, BroadcastGatherAndScatterOfGrids) {
  for (const int threads : {32, 96}) {
    for (const Dim3& grid : {Dim3{1}, Dim3{5}, Dim3{3, 2, 4}}) {
      const auto blocks = static_cast<int>(grid.count()), all = blocks * threads;
      for (const int count : {1, 5, 32}) {
        const auto got = run_grid(
            grid, threads, std::max(blocks * count, all),
            [&](const Int& i, const auto& y, const auto& memory, const auto& more,
                const auto& words) {
              grid_all_gather(i * 3, memory, words(0));
              const Int other = memory(all - 1 - i);
              const Int of_one = grid_broadcast(i, Int(blocks - 1), Int(1), more, words(0));
              // What it gives is known to be the same for the block.
              If(of_one > 0, [&] { sync_threads(); });
              sync_grid(words(0));
              std::vector<Int> values;
              for (int k = 0; k < count; ++k) values.push_back(i % 50 * (k + 1));
              y(i) = grid_reduce_scatter(values, plus(), memory, words(0)) + other + of_one;
            });
        int sum = 0;
        for (int i = 0; i < all; ++i) sum += i % 50;
        for (int i = 0; i < all; ++i) {
          ASSERT_EQ(got[static_cast<size_t>(i)],
                    sum * (share_of(count, blocks, i / threads, i % threads) + 1) +
                        3 * (all - 1 - i) + (blocks - 1) * threads + 1)
              << count << " values, " << blocks << " blocks of " << threads << ", " << i;
        }
      }
    }
  }
}

TEST(Collectives, SayWhatTheyDoNotTake) {
  const auto said = [](int threads, auto body) {
    return std::string(run("wrong", {.block = threads}, threads,
                           [&](auto x, auto y) { y(thread_idx.x) = body(x); })
                           .status()
                           .message());
  };
  const auto values = [](auto x, int count) {
    std::vector<Int> all;
    for (int k = 0; k < count; ++k) all.push_back(x(k));
    return all;
  };
  EXPECT_THAT(
      said(32, [&](auto x) { return warp_reduce_scatter(values(x, 3), plus()); }),
      HasSubstr("warp_reduce_scatter() of a number of values that is no power of two from 1 "
                "to 32\n  fix: pass 1, 2, 4, 8, 16 or 32 values"));
  EXPECT_THAT(said(40, [&](auto x) { return block_reduce_scatter(values(x, 3), plus()); }),
              HasSubstr("block_reduce_scatter() in a block without a thread for each value, or not "
                        "of whole warps"));
  EXPECT_THAT(said(32, [&](auto x) { return block_reduce_scatter(values(x, 33), plus()); }),
              HasSubstr("block_reduce_scatter() in a block without a thread for each value"));
  EXPECT_THAT(said(32, [&](auto x) { return warp_all_gather(x(0), 5)[0]; }),
              HasSubstr("warp_all_gather() over a width that is no power of two from 1 to 32"));
}

}  // namespace
}  // namespace heddle
