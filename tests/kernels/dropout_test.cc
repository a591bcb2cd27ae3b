// dropout: which elements stay, by the words that any machine computes; every type, rows of any length and place.
#include "heddle/kernels/dropout/dropout.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/kernels/dropout/philox.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

constexpr uint64_t kSeed = 0x123456789abcdefULL;

template <class T>
class Dropouts : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(Dropouts, Types);

template <class T>
void check_dropout(int64_t rows, int64_t columns, float probability, Place from = {},
                   Place to = {}) {
  SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", probability " << probability);
  const RowsAt x_at{rows, columns, from}, y_at{rows, columns, to};
  const auto x = random_elements<T>(size_of(x_at, from), 0, 1, 3);
  const std::vector<T> clean(static_cast<size_t>(size_of(y_at, to)), T(-7.0f));
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer in = device.upload(absl::MakeConstSpan(x)).value(),
               out = device.upload(absl::MakeConstSpan(clean)).value();
  ASSERT_THAT(kernels::dropout<T>(stream, matrix_in<const T>(in, x_at, from), probability, kSeed,
                                  matrix_in<T>(out, y_at, to)),
              IsOk());
  std::vector<T> expected = clean;
  const float scale = 1 / (1 - probability);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const bool stays = kernels::dropout_keeps(probability, kSeed, static_cast<uint32_t>(r),
                                                static_cast<uint32_t>(c));
      const float element =
          static_cast<float>(x[static_cast<size_t>(from.offset + r * pitch_of(x_at, from) + c)]);
      expected[static_cast<size_t>(to.offset + r * pitch_of(y_at, to) + c)] =
          stays ? T(element * scale) : T(0.0f);
    }
  }
  const std::vector<T> got = out.template download<T>(stream).value();
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), expected.size() * sizeof(T)), 0);
}

TYPED_TEST(Dropouts, DropWhatPlaceAndSeedSay) {
  for (const int64_t columns : {1, 3, 4, 8, 12, 100, 129, 1000}) {
    check_dropout<TypeParam>(7, columns, 0.25f);
  }
  check_dropout<TypeParam>(300, 64, 0.5f);
  check_dropout<TypeParam>(5, 64, 0);
  check_dropout<TypeParam>(5, 64, 0.9999999f);
  check_dropout<TypeParam>(0, 64, 0.5f);
  check_dropout<TypeParam>(5, 0, 0.5f);
}
TYPED_TEST(Dropouts, TakeRowsAtAnyPlace) {
  check_dropout<TypeParam>(5, 40, 0.5f, {48}, {40, 1});
  check_dropout<TypeParam>(5, 40, 0.5f, {41}, {48});
}

// The first known answers of Salmon's implementation, and the share of elements that stay.
TEST(DropoutTest, HasPhilox) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto kernel = define_kernel("words(y)", [](Tensor<uint32_t, 2> y) {
    const auto store = [&](int row, const std::array<UInt, 4>& words) {
      for (int i = 0; i < 4; ++i) y(row, i) = words[static_cast<size_t>(i)];
    };
    store(0, kernels::philox({0u, 0u, 0u, 0u}, {0u, 0u}));
    store(1, kernels::philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}));
    store(2, kernels::philox({0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
                             {0xa4093822u, 0x299f31d0u}));
  });
  const Buffer y = device.allocate(3 * 4 * sizeof(uint32_t)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = 1, .block = 1}, as_tensor<uint32_t>(y, {3, 4})),
              IsOk());
  EXPECT_THAT(y.download<uint32_t>(stream).value(),
              testing::ElementsAre(0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u, 0x408f276du,
                                   0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu, 0xd16cfe09u, 0x94fdccebu,
                                   0x5001e420u, 0x24126ea1u));
}
TEST(DropoutTest, DropsAsOftenAsTheProbabilitySays) {
  for (const float probability : {0.1f, 0.5f, 0.9f}) {
    int kept = 0;
    constexpr int kCount = 100000;
    for (uint32_t i = 0; i < kCount; ++i) {
      kept += kernels::dropout_keeps(probability, kSeed, i / 1000, i % 1000);
    }
    // Five standard deviations.
    const double share = 1 - static_cast<double>(probability),
                 deviation = std::sqrt(share * (1 - share) / kCount);
    EXPECT_NEAR(kept / static_cast<double>(kCount), share, 5 * deviation);
  }
}

TEST(DropoutTest, SaysWhatDoesNotFit) {
  const Stream stream = test_device().create_stream().value();
  const auto call = [&](float probability, int64_t columns) {
    return kernels::dropout<float>(stream, {nullptr, {5, 8}, {8, 1}}, probability, 1,
                                   {nullptr, {5, columns}, {columns, 1}});
  };
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  EXPECT_THAT(call(1, 8),
              Fails(kInvalid, "dropout: a probability of 1; it is at least 0 and below 1"));
  EXPECT_THAT(call(-0.1f, 8), Fails(kInvalid, "dropout: a probability of -0.1"));
  EXPECT_THAT(call(std::nanf(""), 8), Fails(kInvalid, "dropout: a probability of nan"));
  EXPECT_THAT(call(0.5f, 9), Fails(kInvalid, "dropout: x is 5 × 8 and y 5 × 9"));
}

}  // namespace
}  // namespace heddle
