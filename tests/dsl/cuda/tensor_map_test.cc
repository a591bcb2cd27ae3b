// Boxes of tensors by the copy engine, from lambda to result on whatever device the tests run on.
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

// y[r][c] = x[r + 4][c - 4] + 1 by boxes, with zeros outside of x.
const auto shift = define_kernel("shift(x, y)", [](Tensor<const float, 2> x, Tensor<float, 2> y) {
  const TensorMap from(x, {8, 32});
  const TensorMap to(y, {8, 32});
  const Shared<float, 2> tile({8, 32});
  const Mbarrier full(1);
  const Int row = 8 * block_idx.y, column = 32 * block_idx.x;
  const Bool leads = thread_idx.x == 0;
  If(leads, [&] {
    from.prefetch();
    full.init(0, 1);
    fence_mbarrier_init();
  });
  sync_threads();
  If(leads, [&] {
    full.expect_tx(0, from.bytes());
    tma_prefetch(from, {row + 4, column - 4});
    tma_load(tile.at(0, 0), from, {row + 4, column - 4}, full, 0);
  });
  full.wait(0, 0u);
  for (int r = 0; r < 8; ++r) tile(r, thread_idx.x) += 1.0f;
  fence_async();
  sync_threads();
  If(leads, [&] {
    tma_store(to, {row, column}, tile.at(0, 0));
    bulk_commit();
    bulk_wait();
  });
});

std::vector<float> iota(size_t count) {
  std::vector<float> numbers(count);
  for (size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(i);
  return numbers;
}

TEST(TensorMap, MovesBoxesAcrossTheEdges) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  constexpr int kRows = 21, kColumns = 44;
  const Buffer x = device.upload<float>(iota(kRows * kColumns)).value();
  const Buffer y = device.allocate(kRows * kColumns * sizeof(float)).value();
  ASSERT_THAT(shift.launch(stream, {.grid = {2, 3, 1}, .block = 32},
                           as_tensor<const float>(x, {kRows, kColumns}),
                           as_tensor<float>(y, {kRows, kColumns})),
              IsOk());
  const std::vector<float> got = y.download<float>(stream).value();
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) {
      const bool inside = r + 4 < kRows && c >= 4;
      const float wanted = inside ? static_cast<float>((r + 4) * kColumns + c - 4) + 1 : 1.0f;
      ASSERT_EQ(got[static_cast<size_t>(r * kColumns + c)], wanted) << r << " " << c;
    }
  }
}

// Prefetches change nothing, wherever the box is.
void check_prefetch(const char* what, bool map, bool box, int row, int column) {
  SCOPED_TRACE(what);
  const auto kernel =
      define_kernel("prefetch(x, y)", [=](Tensor<const float, 2> x, Tensor<float, 1> y) {
        const TensorMap from(x, {8, 32});
        If(thread_idx.x == 0, [&] {
          if (map) from.prefetch();
          if (box) tma_prefetch(from, {row, column});
        });
        y(thread_idx.x) = x(0, thread_idx.x);
      });
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.upload<float>(iota(20 * 44)).value();
  const Buffer y = device.allocate(32 * sizeof(float)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = 1, .block = 32}, as_tensor<const float>(x, {20, 44}),
                            as_tensor<float>(y, {32})),
              IsOk());
  ASSERT_THAT(stream.synchronize(), IsOk());
  EXPECT_EQ(y.download<float>(stream).value(), iota(32));
}

TEST(TensorMap, PrefetchesMaps) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  check_prefetch("of the map", true, false, 0, 0);
}
TEST(TensorMap, PrefetchesBoxes) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  check_prefetch("of a box", false, true, 0, 0);
}
TEST(TensorMap, PrefetchesBoxesBeyondTheEnd) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  check_prefetch("of a box that reaches beyond the end", false, true, 16, 24);
  check_prefetch("of a box that lies beyond the end", false, true, 20, 44);
  check_prefetch("of a box that begins before the tensor", false, true, -1, -4);
}

// A launch is told what the map cannot take.
TEST(TensorMap, ArgumentsThatHaveNoMapAreRefused) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.upload<float>(iota(4096)).value();
  const Buffer y = device.allocate(4096 * sizeof(float)).value();
  const auto launch = [&](const auto& in) {
    return std::string(
        shift.launch(stream, {.grid = 1, .block = 32}, in, as_tensor<float>(y, {8, 32})).message());
  };
  const std::string odd_pitch = launch(as_tensor<const float>(x, {8, 33}));
  EXPECT_THAT(odd_pitch,
              HasSubstr("the tensor map of 'x' needs strides of a positive multiple of 16 "
                        "bytes below 2^40, and mode 0 has 132 bytes ("));
  EXPECT_THAT(odd_pitch, HasSubstr("; fix: pad the rows, or copy without a tensor map"));
  const auto strided = [&](int64_t rows, int64_t columns) {
    TensorRef<const float, 2> tensor = as_tensor<const float>(x, {8, 32});
    tensor.strides[0] = rows;
    tensor.strides[1] = columns;
    return tensor;
  };
  EXPECT_THAT(launch(strided(64, 2)),
              HasSubstr("needs mode 1 to be contiguous, and its stride is 2"));
  // The other mode may be the contiguous one.
  EXPECT_EQ(launch(strided(1, 8)), "");
}

// y += the sum over blocks of their number.
TEST(TensorMap, Reduces) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  const auto kernel = define_kernel("reduce(y)", [](Tensor<int32_t, 1> y) {
    const TensorMap map(y, {32});
    const Shared<int32_t> tile(32);
    tile(thread_idx.x) = block_idx.x;
    fence_async();
    sync_threads();
    If(thread_idx.x == 0, [&] {
      tma_add(map, {8}, tile.at(0));
      bulk_commit();
      bulk_wait();
    });
  });
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer y = device.upload<int32_t>(std::vector<int32_t>(36, 5)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = 5, .block = 32}, as_tensor<int32_t>(y, {36})), IsOk());
  const std::vector<int32_t> got = y.download<int32_t>(stream).value();
  for (size_t i = 0; i < 36; ++i) EXPECT_EQ(got[i], i < 8 ? 5 : 15) << i;
}

// Parts of the rows of a matrix. Rows that end inside of 16 bytes would be stored over what follows.
TEST(TensorMap, StoresNothingBehindTheEnd) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  const auto kernel = define_kernel("store(y)", [](Tensor<half, 2> y) {
    const TensorMap map(y, {8, 64});
    const Shared<half, 2> tile({8, 64});
    for (int r = 0; r < 8; ++r) tile(r, thread_idx.x) = cast<half>(thread_idx.x + 1);
    fence_async();
    sync_threads();
    If(thread_idx.x == 0, [&] {
      tma_store(map, {0, 0}, tile.at(0, 0));
      bulk_commit();
      bulk_wait();
    });
  });
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  constexpr int kPitch = 64;
  for (int columns = 1; columns <= kPitch; ++columns) {
    const Buffer y =
        device.upload<half>(std::vector<half>(size_t{8} * kPitch, half(-1.0f))).value();
    TensorRef<half, 2> part(reinterpret_cast<half*>(y.address()), {8, columns}, {kPitch, 1});
    const Status launched = kernel.launch(stream, {.grid = 1, .block = 64}, part);
    if (columns % 8 != 0) {
      if (device.name() != "interp") continue;
      EXPECT_THAT(std::string(launched.message()),
                  HasSubstr(absl::StrCat(
                      "a copy of a box of 'y' at (0, 0) is stored over what lies behind the rows, "
                      "which have ",
                      2 * columns, " bytes: the copy engine writes whole 16")));
      continue;
    }
    ASSERT_THAT(launched, IsOk());
    const std::vector<half> got = y.download<half>(stream).value();
    for (int i = 0; i < 8 * kPitch; ++i) {
      const int column = i % kPitch;
      ASSERT_EQ(static_cast<float>(got[static_cast<size_t>(i)]),
                column < columns ? static_cast<float>(column + 1) : -1.0f)
          << columns << " columns, row " << i / kPitch << ", column " << column;
    }
  }
}

// What a swizzled box looks like in shared memory, read through the layout of the same swizzle.
TEST(TensorMap, SwizzlesAsLayoutsDo) {
  if (!has_clusters()) GTEST_SKIP() << "this device is none of sm_90";
  const auto kernel =
      define_kernel("swizzle(x, y)", [](Tensor<const half, 2> x, Tensor<half, 2> y) {
        const TensorMap map(x, {16, 64}, {.swizzle = 128});
        const auto tile =
            make_smem_tensor<half>(composition(Swizzle(3, 3, 3), make_layout({16, 64}, {64, 1})));
        const Mbarrier full(1);
        If(thread_idx.x == 0, [&] {
          full.init(0, 1);
          fence_mbarrier_init();
        });
        sync_threads();
        If(thread_idx.x == 0, [&] {
          full.expect_tx(0, map.bytes());
          tma_load(tile.at({0, 0}), map, {0, 0}, full, 0);
        });
        full.wait(0, 0u);
        for (int r = 0; r < 16; ++r) y(r, thread_idx.x) = tile(r, thread_idx.x);
      });
  const Device device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<half> numbers;
  for (int i = 0; i < 16 * 64; ++i) numbers.emplace_back(static_cast<float>(i));
  const Buffer x = device.upload<half>(numbers).value();
  const Buffer y = device.allocate(numbers.size() * sizeof(half)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = 1, .block = 64}, as_tensor<const half>(x, {16, 64}),
                            as_tensor<half>(y, {16, 64})),
              IsOk());
  const std::vector<half> got = y.download<half>(stream).value();
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(static_cast<float>(got[i]), static_cast<float>(i)) << i;
  }
}

}  // namespace
}  // namespace heddle
