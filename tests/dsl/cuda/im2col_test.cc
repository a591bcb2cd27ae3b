// Boxes of im2col maps, from lambda to result on whatever device the tests run on.
#include <cstdint>
#include <vector>

#include "dsl/language/run_ints.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

constexpr int kImages = 2, kHeight = 5, kWidth = 6, kChannels = 8;
constexpr int kPixels = kImages * kHeight * kWidth;
constexpr int kFilter = 3, kPadding = 1;

// A block for each element (r, s) of a 3 x 3 filter: what it is multiplied with at every pixel, as a matrix of
// pixels and channels. Only half the channels are copied, the second one.
const auto unfold = define_kernel("unfold(x, y)", [](Tensor<const float, 4> x, Tensor<float, 3> y) {
  constexpr int kEnd = kPadding - (kFilter - 1);
  const Im2colMap map(x, {.pixels = kPixels, .channels = kChannels / 2}, {-kPadding, -kPadding},
                      {kEnd, kEnd});
  const Shared<float, 2> tile({kPixels, kChannels / 2});
  const Mbarrier full(1);
  const Int r = block_idx.x / kFilter, s = block_idx.x % kFilter;
  If(thread_idx.x == 0, [&] {
    map.prefetch();
    full.init(0, 1);
    fence_mbarrier_init();
    full.expect_tx(0, map.bytes());
    tma_load(tile.at(0, 0), map, {0, -kPadding, -kPadding, kChannels / 2}, {r, s}, full, 0);
  });
  sync_threads();
  full.wait(0, 0u);
  If(thread_idx.x < kPixels, [&] {
    for (int c = 0; c < kChannels / 2; ++c) {
      y(block_idx.x, thread_idx.x, c) = tile(thread_idx.x, c);
    }
  });
});

TEST(Im2col, UnfoldsImages) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<float> numbers(kPixels * kChannels);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i + 1);
  const Buffer x = device.upload(absl::MakeConstSpan(numbers)).value();
  const Buffer y =
      device.allocate(kFilter * kFilter * kPixels * kChannels / 2 * sizeof(float)).value();
  ASSERT_THAT(unfold.launch(stream, {.grid = kFilter * kFilter, .block = 64},
                            as_tensor<const float>(x, {kImages, kHeight, kWidth, kChannels}),
                            as_tensor<float>(y, {kFilter * kFilter, kPixels, kChannels / 2})),
              IsOk());
  const std::vector<float> got = y.download<float>(stream).value();
  size_t at = 0;
  for (int tap = 0; tap < kFilter * kFilter; ++tap) {
    for (int pixel = 0; pixel < kPixels; ++pixel) {
      const int image = pixel / (kHeight * kWidth);
      const int row = pixel / kWidth % kHeight + tap / kFilter - kPadding;
      const int column = pixel % kWidth + tap % kFilter - kPadding;
      const bool inside = row >= 0 && row < kHeight && column >= 0 && column < kWidth;
      for (int c = kChannels / 2; c < kChannels; ++c, ++at) {
        const int place = ((image * kHeight + row) * kWidth + column) * kChannels + c;
        const float wanted = inside ? static_cast<float>(place + 1) : 0.0f;
        ASSERT_EQ(got[at], wanted)
            << "filter's " << tap << ", pixel " << pixel << ", channel " << c;
      }
    }
  }
}

}  // namespace
}  // namespace heddle
