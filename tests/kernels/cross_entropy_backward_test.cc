// cross_entropy_backward against double precision: element types, types of targets, shapes, alignments, ignored rows.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/cross_entropy/cross_entropy.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

template <class Types>
class CrossEntropyBackward : public testing::Test {};
using Types = testing::Types<std::tuple<float, int64_t>, std::tuple<half, int32_t>,
                             std::tuple<bfloat16, int64_t>, std::tuple<float, int32_t>>;
TYPED_TEST_SUITE(CrossEntropyBackward, Types);

// A row's gradient in double precision, each weight being within (4 - 2.5 d) 2^-23 of its own.
template <class T>
void check_gradient(const std::vector<double>& x, int64_t target, double dloss,
                    const std::vector<double>& dx) {
  if (target < 0) {
    EXPECT_THAT(dx, Each(0.0));
    return;
  }
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0, error = 0;
  for (const double v : x) {
    const double d = v - largest, weight = std::exp(d);
    sum += weight, error += weight * (4 - 2.5 * d) * 0x1p-23;
  }
  error = error / sum + (64 + static_cast<double>(x.size()) / 32768) * 0x1p-24;
  for (size_t c = 0; c < x.size(); ++c) {
    const double d = x[c] - largest, weight = std::exp(d) / sum;
    const double distance = weight - (static_cast<int64_t>(c) == target ? 1 : 0);
    const double computed =
        std::abs(dloss) * (weight * ((4 - 2.5 * d) * 0x1p-23 + error + 0x1p-22) +
                           std::abs(distance) * 0x1p-23 + 0x1p-126);
    const double exact = dloss * distance;
    ASSERT_NEAR(dx[c], exact, computed + (std::abs(exact) + computed) * kStep<T> + kLeast<T>)
        << "column " << c << " of target " << target;
  }
}

TYPED_TEST(CrossEntropyBackward, OfRowsOfEveryLength) {
  using T = std::tuple_element_t<0, TypeParam>;
  using Index = std::tuple_element_t<1, TypeParam>;
  for (const RowsAt& shape :
       {RowsAt{0, 5}, RowsAt{300, 1}, RowsAt{129, 3}, RowsAt{65, 32}, RowsAt{9, 127},
        RowsAt{5, 1000, {1008, 1}, {1016, 1}}, RowsAt{5, 1000, {1001}, {1000}}, RowsAt{3, 1023},
        RowsAt{2, 16384}, RowsAt{2, 70001}, RowsAt{1, 65536}, RowsAt{1, 524389}}) {
    std::vector<Index> target;
    std::vector<float> dloss;
    for (int64_t row = 0; row < shape.rows; ++row) {
      // The first and the last column among them.
      target.push_back(static_cast<Index>(
          row % 5 == 3 ? -100 : (row * 7919 + shape.columns - 1) % shape.columns));
      dloss.push_back(1.5f - static_cast<float>(row % 7));
    }
    const Buffer of = test_device().upload(absl::MakeConstSpan(target)).value(),
                 by = test_device().upload(absl::MakeConstSpan(dloss)).value();
    size_t row = 0;
    check_rows<T>(
        shape, 0, 4,
        [&](const Stream& stream, const auto& x, const auto& dx) {
          return kernels::cross_entropy_backward(stream, x,
                                                 as_tensor<const Index>(of, {shape.rows}),
                                                 as_tensor<const float>(by, {shape.rows}), dx);
        },
        [&](const auto& x, const auto& dx) {
          check_gradient<T>(x, target[row], dloss[row], dx);
          ++row;
        });
  }
}

std::vector<float> gradients(const std::vector<float>& x, const std::vector<int32_t>& target,
                             const std::vector<float>& dloss) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const int64_t rows = static_cast<int64_t>(target.size()),
                columns = static_cast<int64_t>(x.size()) / rows;
  const Buffer in = device.upload(absl::MakeConstSpan(x)).value(),
               of = device.upload(absl::MakeConstSpan(target)).value(),
               by = device.upload(absl::MakeConstSpan(dloss)).value();
  // In place.
  EXPECT_THAT(kernels::cross_entropy_backward(stream, as_tensor<const float>(in, {rows, columns}),
                                              as_tensor<const int32_t>(of, {rows}),
                                              as_tensor<const float>(by, {rows}),
                                              as_tensor<float>(in, {rows, columns})),
              IsOk());
  return in.download<float>(stream).value();
}

TEST(CrossEntropyBackwardTest, ExtremeValues) {
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> got = gradients({-infinity, 0, -infinity,  // certain and right
                                            -infinity, 0, -infinity,  // certain and wrong
                                            nan, infinity, 1,         // has no part
                                            infinity, 0, 1,           //
                                            3e38f, -3e38f, 3e38f},
                                           {1, 0, -1, 1, 2}, {2, 2, 2, 2, -2});
  const std::vector<float> known(got.begin(), got.begin() + 9);
  EXPECT_EQ(known, (std::vector<float>{0, 0, 0, -2, 2, 0, 0, 0, 0}));
  for (int i = 9; i < 12; ++i) EXPECT_TRUE(std::isnan(got[i])) << i;
  EXPECT_EQ(std::vector<float>(got.begin() + 12, got.end()), (std::vector<float>{-1, 0, 1}));
}

TEST(CrossEntropyBackwardTest, RefusesOtherExtents) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.allocate(64).value(), y = device.allocate(64).value(),
               z = device.allocate(64).value(), dx = device.allocate(64).value();
  const auto message = [&](int64_t columns, int64_t targets, int64_t losses, int64_t results) {
    return std::string(kernels::cross_entropy_backward(
                           stream, as_tensor<const float>(x, {2, columns}),
                           as_tensor<const int32_t>(y, {targets}),
                           as_tensor<const float>(z, {losses}), as_tensor<float>(dx, {2, results}))
                           .message());
  };
  EXPECT_THAT(message(8, 3, 2, 8), HasSubstr("cross_entropy_backward: x has 2 rows and target 3 "
                                             "elements; target takes one element a row"));
  EXPECT_THAT(message(8, 2, 1, 8),
              HasSubstr("x has 2 rows and dloss 1 elements; dloss takes one element a row"));
  EXPECT_THAT(message(8, 2, 2, 7),
              HasSubstr("x is 2 × 8 and dx 2 × 7; both need the same extents"));
  EXPECT_THAT(message(0, 2, 2, 0),
              HasSubstr("x has rows and no columns, so that no class is right"));
}

}  // namespace
}  // namespace heddle
