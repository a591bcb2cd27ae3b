// block_sort from lambda to result, on whatever device the tests run on.
#include <algorithm>
#include <random>

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
  for (const int count : {0, 1, 2, 3, 5, 7, 8, 31, 33, 64, 100, 129, 255, 256, 257, 300}) {
    std::vector<uint64_t> x(kMost);
    for (uint64_t& key : x) key = uint64_t{random() % 50} << 40 | random() % 3;
    const Buffer in = device.upload(absl::MakeConstSpan(x)).value(),
                 out = device.upload(absl::MakeConstSpan(x)).value();
    for (const int threads : {32, 96, 256}) {
      ASSERT_THAT(kernel.launch(stream, {.block = threads}, as_tensor<const uint64_t>(in, {kMost}),
                                as_tensor<uint64_t>(out, {kMost}), count),
                  IsOk());
      std::vector<uint64_t> expected = x;
      std::sort(expected.begin(), expected.begin() + count, std::greater<>());
      EXPECT_EQ(out.download<uint64_t>(stream).value(), expected) << count << " by " << threads;
    }
  }
}

}  // namespace
}  // namespace heddle
