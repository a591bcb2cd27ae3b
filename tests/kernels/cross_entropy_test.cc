// cross_entropy against double precision: element types, types of targets, shapes, alignments, ignored rows.
#include "heddle/kernels/cross_entropy/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

template <class Types>
class CrossEntropy : public testing::Test {};
using Types = testing::Types<std::tuple<float, int64_t>, std::tuple<half, int32_t>,
                             std::tuple<bfloat16, int64_t>, std::tuple<float, int32_t>>;
TYPED_TEST_SUITE(CrossEntropy, Types);

template <class T, class Index>
std::vector<float> losses(const std::vector<T>& x, const RowsAt& shape,
                          const std::vector<Index>& target) {
  const int64_t pitch = shape.in.pitch == 0 ? shape.columns : shape.in.pitch;
  std::vector<T> host(static_cast<size_t>(shape.rows * pitch + 1),
                      T(std::numeric_limits<float>::quiet_NaN()));
  for (int64_t row = 0; row < shape.rows; ++row) {
    std::copy_n(x.begin() + row * shape.columns, shape.columns, host.begin() + row * pitch);
  }
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer in = device.upload(absl::MakeConstSpan(host)).value(),
               of = device.upload(absl::MakeConstSpan(target)).value(),
               out = device.upload(absl::MakeConstSpan(std::vector<float>(target.size() + 1, -7)))
                         .value();
  EXPECT_THAT(kernels::cross_entropy(
                  stream, as_tensor<const T>(in, {shape.rows, shape.columns}, {pitch, 1}),
                  as_tensor<const Index>(of, {shape.rows}), as_tensor<float>(out, {shape.rows})),
              IsOk());
  std::vector<float> got = out.download<float>(stream).value();
  EXPECT_EQ(got.back(), -7);
  got.pop_back();
  return got;
}

TYPED_TEST(CrossEntropy, OfRowsOfEveryLength) {
  using T = std::tuple_element_t<0, TypeParam>;
  using Index = std::tuple_element_t<1, TypeParam>;
  for (const RowsAt& shape :
       {RowsAt{0, 5}, RowsAt{300, 1}, RowsAt{129, 3}, RowsAt{65, 32}, RowsAt{7, 33}, RowsAt{9, 127},
        RowsAt{2, 1000}, RowsAt{3, 1023}, RowsAt{4, 1000, {1001}}, RowsAt{1, 16384},
        RowsAt{2, 70001}, RowsAt{1, 65536}, RowsAt{1, 524389}}) {
    SCOPED_TRACE(testing::Message() << shape);
    const auto x =
        random_elements<T>(shape.rows * shape.columns, 0, 4, static_cast<unsigned>(shape.columns));
    std::vector<Index> target;
    for (int64_t row = 0; row < shape.rows; ++row) {
      target.push_back(static_cast<Index>(
          row % 5 == 3 ? -100 : (row * 7919 + shape.columns - 1) % shape.columns));
    }
    const std::vector<float> got = losses(x, shape, target);
    for (int64_t row = 0; row < shape.rows; ++row) {
      if (target[row] < 0) {
        EXPECT_EQ(got[row], 0) << row;
        continue;
      }
      const auto first = x.begin() + row * shape.columns, end = first + shape.columns;
      double largest = -HUGE_VAL, sum = 0, error = 0;
      std::for_each(first, end, [&](T v) { largest = std::max(largest, wide(v)); });
      std::for_each(first, end, [&](T v) {
        const double d = wide(v) - largest;
        sum += std::exp(d);
        error += std::exp(d) * (4 - 2.5 * d) * 0x1p-23;
      });
      const double d = wide(first[target[row]]) - largest, exact = std::log(sum) - d;
      const double steps = 64 + static_cast<double>(shape.columns) / 32768;
      EXPECT_NEAR(
          got[row], exact,
          error / sum + (steps + 8 * std::log(sum) + std::abs(d) + std::abs(exact)) * 0x1p-24)
          << row;
    }
  }
}

TEST(CrossEntropyTest, ExtremeValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {-infinity, 0,     -infinity,  //
                                -infinity, 0,     -infinity,  //
                                infinity,  0,     1,          //
                                3e38f,     3e38f, -3e38f};
  const std::vector<float> got = losses<float, int32_t>(x, {4, 3}, {1, 0, 1, 2});
  EXPECT_EQ(got[0], 0);
  EXPECT_EQ(got[1], infinity);
  EXPECT_TRUE(std::isnan(got[2]));
  EXPECT_EQ(got[3], infinity);  // farther apart than f32's numbers go
}

TEST(CrossEntropyTest, RefusesOtherExtents) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.allocate(64).value(), y = device.allocate(64).value(),
               z = device.allocate(64).value();
  const auto message = [&](int64_t columns, int64_t targets, int64_t results) {
    return std::string(kernels::cross_entropy(stream, as_tensor<const float>(x, {2, columns}),
                                              as_tensor<const int32_t>(y, {targets}),
                                              as_tensor<float>(z, {results}))
                           .message());
  };
  EXPECT_THAT(
      message(8, 3, 2),
      HasSubstr(
          "cross_entropy: x has 2 rows and target 3 elements; target takes one element a row"));
  EXPECT_THAT(message(8, 2, 1),
              HasSubstr("x has 2 rows and loss 1 elements; loss takes one element a row"));
  EXPECT_THAT(message(0, 2, 2), HasSubstr("x has rows and no columns, so that no class is right"));
}

}  // namespace
}  // namespace heddle
