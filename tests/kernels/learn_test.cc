// The programs of kernels/learn on sizes that are no multiple of anything, against plain loops on
// the host: exactly where integers are computed, within the float functions' errors otherwise.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "heddle/kernels/learn/01_saxpy.h"
#include "heddle/kernels/learn/02_transpose.h"
#include "heddle/kernels/learn/03_histogram.h"
#include "heddle/kernels/learn/07_bitonic_sort.h"
#include "heddle/kernels/learn/08_scan.h"
#include "heddle/kernels/learn/09_spmv.h"
#include "heddle/kernels/learn/10_pi.h"
#include "heddle/kernels/learn/12_cluster_histogram.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle::learn {
namespace {

template <class T>
Buffer on_device(const std::vector<T>& values) {
  return test_device().upload(absl::MakeConstSpan(values)).value();
}

std::vector<float> random_floats(int64_t count, float low, float high) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::uniform_real_distribution<float> uniform(low, high);
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random);
  return values;
}

std::vector<uint32_t> random_words(int64_t count) {
  std::mt19937 random(static_cast<unsigned>(count));
  std::vector<uint32_t> values(count);
  for (uint32_t& value : values) value = random();
  return values;
}

class LearnTest : public testing::Test {
 protected:
  const Stream stream = test_device().create_stream().value();
};

TEST_F(LearnTest, Saxpy) {
  for (const int64_t n : {1, 255, 256, 257, 10001}) {
    const std::vector<float> x = random_floats(n, -1, 1), y = random_floats(n, -2, 2);
    const Buffer x_memory = on_device(x), y_memory = on_device(y);
    ASSERT_THAT(saxpy.launch(stream, saxpy_shape(n), 2.5f, as_tensor<const float>(x_memory, {n}),
                             as_tensor<float>(y_memory, {n})),
                IsOk());
    const std::vector<float> got = y_memory.download<float>(stream).value();
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(got[i], std::fma(2.5f, x[i], y[i])) << i;
  }
}

TEST_F(LearnTest, Transpose) {
  const int64_t shapes[][2] = {{1, 1}, {32, 32}, {33, 31}, {1, 100}, {100, 1}, {70, 129}};
  for (const auto& shape : shapes) {
    const int64_t rows = shape[0], columns = shape[1];
    const std::vector<float> x = random_floats(rows * columns, -1, 1);
    const Buffer x_memory = on_device(x), y_memory = on_device(std::vector<float>(x.size()));
    ASSERT_THAT(transpose.launch(stream, transpose_shape(rows, columns),
                                 as_tensor<const float>(x_memory, {rows, columns}),
                                 as_tensor<float>(y_memory, {columns, rows})),
                IsOk());
    const std::vector<float> got = y_memory.download<float>(stream).value();
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) ASSERT_EQ(got[j * rows + i], x[i * columns + j]);
    }
  }
}

TEST_F(LearnTest, Histogram) {
  for (const int64_t n : {1, 255, 1000, 5003}) {
    std::vector<uint32_t> words = random_words(n);
    for (int64_t i = 0; i < n / 2; ++i) words[i] = 0x07070707;  // many threads, one counter
    std::vector<uint32_t> expected(kBins);
    for (const uint32_t word : words) {
      for (int shift = 0; shift < 32; shift += 8) ++expected[(word >> shift) & 0xFF];
    }
    const Buffer words_memory = on_device(words);
    const Buffer bins = on_device(std::vector<uint32_t>(kBins));
    ASSERT_THAT(
        histogram.launch(stream, histogram_shape(3), as_tensor<const uint32_t>(words_memory, {n}),
                         as_tensor<uint32_t>(bins, {kBins})),
        IsOk());
    EXPECT_EQ(bins.download<uint32_t>(stream).value(), expected);
  }
}

TEST_F(LearnTest, ClusterHistogram) {
  if (!test_device().info().cluster_launch) GTEST_SKIP() << "this device has no clusters";
  for (const int64_t n : {1, 1000, 5003}) {
    std::vector<uint32_t> words = random_words(n);
    for (int64_t i = 0; i < n / 2; ++i) words[i] = 0xFFFF0007;  // many threads, two counters
    std::vector<uint32_t> expected(kValues);
    for (const uint32_t word : words) {
      ++expected[word & 0xFFFF];
      ++expected[word >> 16];
    }
    const Buffer words_memory = on_device(words);
    const Buffer bins = on_device(std::vector<uint32_t>(kValues));
    ASSERT_THAT(cluster_histogram.launch(stream, cluster_histogram_shape(2),
                                         as_tensor<const uint32_t>(words_memory, {n}),
                                         as_tensor<uint32_t>(bins, {kValues})),
                IsOk());
    EXPECT_EQ(bins.download<uint32_t>(stream).value(), expected);
  }
}

TEST_F(LearnTest, BitonicSort) {
  for (const int64_t n : {1024, 2048, 16384}) {
    std::vector<uint32_t> keys = random_words(n);
    for (int64_t i = 0; i < n / 4; ++i) keys[i * 3] = 0xFFFFFFFF;  // equal ones, and the greatest
    const Buffer memory = on_device(keys);
    ASSERT_THAT(bitonic_sort(stream, as_tensor<uint32_t>(memory, {n})), IsOk());
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(memory.download<uint32_t>(stream).value(), keys);
  }
}

TEST_F(LearnTest, BitonicSortRefusesWhatIsNoPowerOfTwo) {
  const Buffer memory = on_device(std::vector<uint32_t>(4096));
  for (const int64_t n : {0, 512, 3072}) {
    EXPECT_THAT(bitonic_sort(stream, as_tensor<uint32_t>(memory, {n})),
                Fails(StatusCode::kInvalidArgument, "a power of two"));
  }
}

TEST_F(LearnTest, Scan) {
  // Within one tile, at its ends, and over more tiles than a warp has lanes.
  for (const int64_t n : {4, 1000, 4096, 4100, 40 * 4096, 70 * 4096 + 12}) {
    const std::vector<uint32_t> x = random_words(n);
    std::vector<uint32_t> expected(n);
    std::partial_sum(x.begin(), x.end(), expected.begin());  // modulo 2^32
    const Buffer x_memory = on_device(x), y_memory = on_device(std::vector<uint32_t>(n));
    const int64_t words = scan_tiles(n) + 1;
    const Buffer progress = on_device(std::vector<uint64_t>(words));
    ASSERT_THAT(
        scan.launch(stream, scan_shape(n), as_tensor<const uint32_t>(x_memory, {n}),
                    as_tensor<uint32_t>(y_memory, {n}), as_tensor<uint64_t>(progress, {words})),
        IsOk());
    EXPECT_EQ(y_memory.download<uint32_t>(stream).value(), expected) << n;
  }
}

// Whatever the tiles before have published: their own sums, or some of them sums to their ends. The
// lanes that have no tile count nothing.
TEST_F(LearnTest, ScanLooksBackOverEachTileOnce) {
  const auto kernel = define_kernel("look_back(progress, tile, y)",
                                    [](Progress progress, Int tile, Tensor<uint32_t, 1> y) {
                                      UInt sum = sum_before(progress, tile);
                                      If(lane_id() == 0, [&] { y(0) = sum; });
                                    });
  const Buffer y = on_device(std::vector<uint32_t>(1));
  for (const int tile : {0, 1, 3, 31, 32, 33, 64, 70}) {
    for (const int end : {-1, 0, 2, 40}) {
      std::vector<uint64_t> progress(tile + 1);
      uint32_t sum = 0;
      for (int i = 0; i < tile; ++i) {
        const uint32_t own = 1000003u * (i + 1);
        sum += own;
        progress[i + 1] = i == end ? kSumToEnd | sum : kOwnSum | own;
      }
      const Buffer memory = on_device(progress);
      ASSERT_THAT(
          kernel.launch(stream, {.grid = 1, .block = 32}, as_tensor<uint64_t>(memory, {tile + 1}),
                        tile, as_tensor<uint32_t>(y, {1})),
          IsOk());
      EXPECT_EQ(y.download<uint32_t>(stream).value()[0], sum) << tile << ", " << end;
    }
  }
}

TEST_F(LearnTest, Spmv) {
  // Rows of 0, 1, 2 … elements, so that some have none and some more than a warp takes at once.
  const int rows = 101, columns = 77;
  std::vector<int32_t> start = {0}, column;
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < row; ++k) column.push_back((row * 31 + k * 7) % columns);
    start.push_back(static_cast<int32_t>(column.size()));
  }
  const int64_t count = static_cast<int64_t>(column.size());
  const std::vector<float> value = random_floats(count, -1, 1), x = random_floats(columns, -1, 1);
  const Buffer memory[] = {on_device(start), on_device(column), on_device(value), on_device(x),
                           on_device(std::vector<float>(rows))};
  ASSERT_THAT(spmv.launch(stream, spmv_shape(rows), as_tensor<const int32_t>(memory[0], {rows + 1}),
                          as_tensor<const int32_t>(memory[1], {count}),
                          as_tensor<const float>(memory[2], {count}),
                          as_tensor<const float>(memory[3], {columns}),
                          as_tensor<float>(memory[4], {rows})),
              IsOk());
  const std::vector<float> got = memory[4].download<float>(stream).value();
  for (int row = 0; row < rows; ++row) {
    double sum = 0, magnitude = 0;
    for (int i = start[row]; i < start[row + 1]; ++i) {
      sum += double{value[i]} * x[column[i]];
      magnitude += std::abs(double{value[i]} * x[column[i]]);
    }
    EXPECT_NEAR(got[row], sum, 16 * 0x1p-24 * magnitude) << row;
  }
}

using Words = std::array<uint32_t, 4>;

Words philox_on_host(Words c, uint32_t k0, uint32_t k1) {
  for (int round = 0; round < 10; ++round, k0 += 0x9E3779B9, k1 += 0xBB67AE85) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(a)};
  }
  return c;
}

// The known answer of the generator's authors for counter and key 0.
TEST_F(LearnTest, Philox) {
  const auto kernel = define_kernel("words(y)", [](Tensor<uint32_t, 1> y) {
    const Word4 words = philox(0, 0);
    for (int i = 0; i < 4; ++i) y(i) = words[i];
  });
  const Buffer memory = on_device(std::vector<uint32_t>(4));
  ASSERT_THAT(kernel.launch(stream, {}, as_tensor<uint32_t>(memory, {4})), IsOk());
  EXPECT_THAT(memory.download<uint32_t>(stream).value(),
              testing::ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
}

TEST_F(LearnTest, MonteCarloPi) {
  for (const int n : {1, 1000, 70001}) {
    const Buffer hits = on_device(std::vector<uint64_t>(1));
    ASSERT_THAT(monte_carlo_pi.launch(stream, pi_shape(3), as_tensor<uint64_t>(hits, {1}), n, 42u),
                IsOk());
    uint64_t expected = 0;
    for (int i = 0; i < n; ++i) {
      const Words w = philox_on_host({static_cast<uint32_t>(i), 0, 0, 0}, 42, 0);
      for (int pair = 0; pair < 4; pair += 2) {
        const float x = std::fma(static_cast<float>(w[pair]), 0x1p-32f, 0x1p-33f);
        const float y = std::fma(static_cast<float>(w[pair + 1]), 0x1p-32f, 0x1p-33f);
        expected += std::fma(x, x, y * y) < 1.0f ? 1 : 0;
      }
    }
    const uint64_t got = hits.download<uint64_t>(stream).value()[0];
    EXPECT_EQ(got, expected);
    if (n == 70001) {
      EXPECT_NEAR(2.0 * static_cast<double>(got) / n, 3.14159, 0.02);
    }
  }
}

}  // namespace
}  // namespace heddle::learn
