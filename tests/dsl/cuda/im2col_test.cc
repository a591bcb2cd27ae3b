// Boxes of im2col maps, from lambda to result on whatever device the tests run on.
#include <cstdint>
#include <string>
#include <vector>

#include "dsl/language/compile_error.h"
#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

constexpr int kImages = 2, kHeight = 5, kWidth = 6, kChannels = 8;
constexpr int kPixels = kImages * kHeight * kWidth;
constexpr int kFilter = 3, kPadding = 1;
constexpr int kTilePixels = 64;

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

// The same by an atom, into the second of two tiles.
const auto unfold_by_atom =
    define_kernel("unfold_by_atom(x, y)", [](Tensor<const float, 4> x, Tensor<float, 3> y) {
      constexpr int kEnd = kPadding - (kFilter - 1);
      const auto tiles =
          make_smem_tensor<float>(make_layout({kTilePixels, 4, 2}, {4, 1, kTilePixels * 4}));
      const auto load = make_im2col_atom(x, tiles(_, _, 1), {-kPadding, -kPadding}, {kEnd, kEnd});
      EXPECT_EQ(load.bytes(), kTilePixels * 16);
      EXPECT_EQ(load.box(0), kTilePixels);
      EXPECT_EQ(load.box(1), 4);
      const Mbarrier full(1);
      const Int r = block_idx.x / kFilter, s = block_idx.x % kFilter;
      If(thread_idx.x == 0, [&] {
        load.prefetch();
        full.init(0, 1);
        fence_mbarrier_init();
        full.expect_tx(0, load.bytes());
        copy(load.with(full, 0), load.at({0, -kPadding, -kPadding, kChannels / 2}, {r, s}),
             tiles(_, _, 1));
      });
      sync_threads();
      full.wait(0, 0u);
      If(thread_idx.x < kPixels, [&] {
        for (int c = 0; c < kChannels / 2; ++c) {
          y(block_idx.x, thread_idx.x, c) = tiles(thread_idx.x, c, 1);
        }
      });
    });

void check_unfolded(const auto& kernel) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<float> numbers(kPixels * kChannels);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i + 1);
  const Buffer x = device.upload(absl::MakeConstSpan(numbers)).value();
  const Buffer y =
      device.allocate(kFilter * kFilter * kPixels * kChannels / 2 * sizeof(float)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = kFilter * kFilter, .block = 64},
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

TEST(Im2col, UnfoldsImages) { check_unfolded(unfold); }
TEST(Im2col, UnfoldsImagesByAnAtom) { check_unfolded(unfold_by_atom); }

// Channels of a swizzled tile, in boxes of as many as the swizzle is wide: y(p, c) = x(p, c).
TEST(Im2col, FillsSwizzledTilesBoxByBox) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  constexpr int kWide = 64, kMany = 16;
  const auto kernel =
      define_kernel("pixels(x, y)", [](Tensor<const float, 3> x, Tensor<float, 2> y) {
        const auto tile = make_smem_tensor<float>(make_smem_layout<float>({kMany, kWide}));
        const auto load = make_im2col_atom(x, tile, {0}, {0});
        EXPECT_EQ(load.box(1), 32);
        const Mbarrier full(1);
        If(thread_idx.x == 0, [&] {
          full.init(0, 1);
          fence_mbarrier_init();
          full.expect_tx(0, load.bytes());
          copy(load.with(full, 0), load.at({0, 0, 0}, {0}), tile);
        });
        sync_threads();
        full.wait(0, 0u);
        for (int p = 0; p < kMany; ++p) y(p, thread_idx.x) = tile(p, thread_idx.x);
      });
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<float> numbers(kMany * kWide);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const Buffer x = device.upload(absl::MakeConstSpan(numbers)).value();
  const Buffer y = device.allocate(numbers.size() * sizeof(float)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = 1, .block = kWide},
                            as_tensor<const float>(x, {2, kMany / 2, kWide}),
                            as_tensor<float>(y, {kMany, kWide})),
              IsOk());
  EXPECT_EQ(y.download<float>(stream).value(), numbers);
}

template <class T>
std::string mistake(const Layout& layout) {
  const auto kernel = local_kernel("mistake", [&](Tensor<const half, 4> x) {
    make_im2col_atom(x, make_smem_tensor<T>(layout), {0, 0}, {0, 0});
  });
  return compile_error(kernel, {tensor({kAny, kAny, kAny, kAny})});
}

TEST(Im2col, SaysWhatNoBoxesFill) {
  using ::testing::HasSubstr;
  EXPECT_THAT(mistake<half>(make_layout({4, 8, 16}, {128, 16, 1})),
              HasSubstr("is no tile of pixels and channels"));
  EXPECT_THAT(mistake<float>(make_smem_layout<float>({64, 32})),
              HasSubstr("has elements of another type than the images"));
  EXPECT_THAT(mistake<half>(make_smem_layout<half>({64, 64}, Major::mn)),
              HasSubstr("is contiguous along its pixels"));
  EXPECT_THAT(mistake<half>(make_smem_layout<half>({512, 64})),
              HasSubstr("has more pixels than a box\n  fix: take tiles of at most 256 pixels"));
}

}  // namespace
}  // namespace heddle
