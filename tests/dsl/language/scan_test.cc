// warp_scan from lambda to result, on whatever device the tests run on.
#include <algorithm>
#include <random>

#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

struct Pair {
  Int first, last;
};

TEST(ScanTest, SumsMaximaAndPairsInTheOrderOfTheLanes) {
  const auto kernel = define_kernel("scans(x, sum, peak, first, last)", [](Tensor<const int32_t, 1>
                                                                               x,
                                                                           Tensor<int32_t, 1> sum,
                                                                           Tensor<int32_t, 1> peak,
                                                                           Tensor<int32_t, 1> first,
                                                                           Tensor<int32_t, 1>
                                                                               last) {
    Int i = thread_idx.x, value = x(i);
    sum(i) = warp_scan(value, plus());
    peak(i) = warp_scan(x(i), maximum());
    // Associative, and not commutative: only the right order gives the right ends.
    Pair ends = warp_scan(Pair{value, value}, [](Pair a, Pair b) { return Pair{a.first, b.last}; });
    first(i) = ends.first;
    last(i) = ends.last;
  });
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  std::mt19937 random(1);
  std::vector<int32_t> x(64);
  for (int32_t& value : x) value = static_cast<int32_t>(random() % 2001) - 1000;
  const Buffer in = device.upload(absl::MakeConstSpan(x)).value();
  std::vector<Buffer> out;
  for (int i = 0; i < 4; ++i) out.push_back(device.allocate(64 * sizeof(int32_t)).value());
  ASSERT_THAT(kernel.launch(stream, {.block = 64}, as_tensor<const int32_t>(in, {64}),
                            as_tensor<int32_t>(out[0], {64}), as_tensor<int32_t>(out[1], {64}),
                            as_tensor<int32_t>(out[2], {64}), as_tensor<int32_t>(out[3], {64})),
              IsOk());
  std::vector<std::vector<int32_t>> got;
  for (const Buffer& buffer : out) got.push_back(buffer.download<int32_t>(stream).value());
  for (int i = 0; i < 64; ++i) {
    const int32_t* const warp = x.data() + i / 32 * 32;
    int32_t sum = 0, peak = warp[0];
    for (int lane = 0; lane <= i % 32; ++lane) {
      sum += warp[lane];
      peak = std::max(peak, warp[lane]);
    }
    EXPECT_EQ(got[0][i], sum) << i;
    EXPECT_EQ(got[1][i], peak) << i;
    EXPECT_EQ(got[2][i], warp[0]) << i;
    EXPECT_EQ(got[3][i], x[i]) << i;
  }
}

TEST(ScanTest, OfSegments) {
  const auto kernel =
      define_kernel("scans(x, y)", [](Tensor<const int32_t, 1> x, Tensor<int32_t, 2> y) {
        const Int i = thread_idx.x;
        for (int k = 0, width = 1; width <= 32; ++k, width *= 2) {
          y(k, i) = warp_scan(x(i), plus(), width);
        }
      });
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<int32_t> x(64);
  for (int i = 0; i < 64; ++i) x[i] = i * i + 1;
  const Buffer in = device.upload(absl::MakeConstSpan(x)).value(),
               out = device.allocate(6 * 64 * sizeof(int32_t)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 64}, as_tensor<const int32_t>(in, {64}),
                            as_tensor<int32_t>(out, {6, 64})),
              IsOk());
  const std::vector<int32_t> y = out.download<int32_t>(stream).value();
  for (int k = 0, width = 1; width <= 32; ++k, width *= 2) {
    for (int i = 0, sum = 0; i < 64; ++i) {
      sum = i % width == 0 ? x[i] : sum + x[i];
      EXPECT_EQ(y[k * 64 + i], sum) << "lane " << i << " of segments of " << width;
    }
  }
}

// Sums, and what is associative and not commutative, over blocks with and without whole warps, twice in a loop.
TEST(ScanTest, OfBlocks) {
  const auto kernel = define_kernel("scans(x, y)", [](Tensor<const int32_t, 1> x,
                                                      Tensor<int32_t, 3> y) {
    const Int i = thread_idx.x + thread_idx.y * block_dim.x;
    For(range(2), [&](const Int& trip) {
      const Int value = x(i) + trip;
      const auto ends = [](const Pair& a, const Pair& b) { return Pair{a.first, b.last}; };
      const Pair up_to = block_scan(Pair{value, value}, ends);
      const Pair before = block_scan_exclusive(Pair{value, value}, Pair{Int(-7), Int(-7)}, ends);
      const Int results[] = {block_scan(value, plus()),
                             block_scan_exclusive(value, Int(100), plus()),
                             up_to.first,
                             up_to.last,
                             before.first,
                             before.last,
                             warp_scan_exclusive(value, Int(5), plus(), 8)};
      for (int k = 0; k < 7; ++k) y(trip, k, i) = results[k];
    });
  });
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  for (const Dim3& block : {Dim3{1, 1, 1}, Dim3{31, 1, 1}, Dim3{32, 1, 1}, Dim3{33, 1, 1},
                            Dim3{64, 1, 1}, Dim3{20, 5, 1}, Dim3{48, 4, 1}, Dim3{1024, 1, 1}}) {
    const auto threads = static_cast<int64_t>(block.count());
    std::vector<int32_t> x(static_cast<size_t>(threads));
    for (int i = 0; i < threads; ++i) x[i] = i * i % 97 + 1;
    const Buffer in = device.upload(absl::MakeConstSpan(x)).value(),
                 out = device.allocate(static_cast<size_t>(2 * 7 * threads) * sizeof(int32_t))
                           .value();
    ASSERT_THAT(kernel.launch(stream, {.block = block}, as_tensor<const int32_t>(in, {threads}),
                              as_tensor<int32_t>(out, {2, 7, threads})),
                IsOk());
    const std::vector<int32_t> y = out.download<int32_t>(stream).value();
    for (int trip = 0; trip < 2; ++trip) {
      int32_t sum = 0, of_eight = 0;
      for (int i = 0; i < threads; ++i) {
        const int32_t value = x[i] + trip;
        if (i % 8 == 0) of_eight = 5;
        const int32_t expected[] = {sum + value, sum + 100, x[0] + trip,
                                    value,       -7,        i == 0 ? -7 : x[i - 1] + trip,
                                    of_eight};
        for (int k = 0; k < 7; ++k) {
          ASSERT_EQ(y[(trip * 7 + k) * threads + i], expected[k])
              << "result " << k << " of thread " << i << " of " << threads << ", trip " << trip;
        }
        sum += value;
        of_eight += value;
      }
    }
  }
}

// Trips have no barrier but the scan's own.
TEST(ScanTest, OfBlocksInLoops) {
  constexpr int kThreads = 256, kTrips = 3;
  const auto kernel = define_kernel("scans(y)", [](Tensor<int32_t, 1> y) {
    const Int i = thread_idx.x;
    y(i) = For(range(kTrips), Int(0), [&](const Int& trip, const Int& sum) {
      return sum + block_scan(i * (trip + 1), plus());
    });
  });
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer out = device.allocate(kThreads * sizeof(int32_t)).value();
  ASSERT_THAT(kernel.launch(stream, {.block = kThreads}, as_tensor<int32_t>(out, {kThreads})),
              IsOk());
  const std::vector<int32_t> y = out.download<int32_t>(stream).value();
  for (int i = 0; i < kThreads; ++i) EXPECT_EQ(y[i], (1 + 2 + 3) * i * (i + 1) / 2) << i;
}

}  // namespace
}  // namespace heddle
