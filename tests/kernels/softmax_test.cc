// softmax and log_softmax against double precision: element types, shapes from nothing to rows of several clusters'
// registers, alignments, extreme values.
#include "heddle/kernels/softmax/softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/rows/deal.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A matrix in memory: elements before the first, and from row to row.
struct Place {
  int64_t pitch = 0;  // 0: as many as columns
  int64_t offset = 0;
};
struct Shape {
  int64_t rows, columns;
  Place in = {}, out = {};
};

template <class T>
double wide(T value) {
  return static_cast<double>(static_cast<float>(value));
}

// The most that rounding to T changes a number, relatively.
template <class T>
constexpr double kStep = std::is_same_v<T, float>  ? 0x1p-24
                         : std::is_same_v<T, half> ? 0x1p-11
                                                   : 0x1p-8;

// What a row becomes, and how far off it may be: a weight e^d by (4 + 2.5 |d|) 2^-23, as in the operation's
// reference, a sum of weights by the largest of these that counts and its roundings, and the last rounding.
void check_row(bool is_log, const std::vector<double>& x, const std::vector<double>& y,
               double step) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0, error = 0;
  for (const double v : x) {
    sum += std::exp(v - largest);
    error += std::exp(v - largest) * (4 + 2.5 * (largest - v)) * 0x1p-23;
  }
  error = error / sum + (64 + static_cast<double>(x.size()) / 32768) * 0x1p-24;
  for (size_t c = 0; c < x.size(); ++c) {
    const double d = x[c] - largest;
    const double exact = is_log ? d - std::log(sum) : std::exp(d) / sum;
    const double computed = is_log ? error + (std::abs(d) + 4 * std::log(sum)) * 0x1p-23
                                   : exact * ((8 + 2.5 * std::abs(d)) * 0x1p-23 + error);
    const double least = step == 0x1p-11 ? 0x1p-25 : 0x1p-126;  // half of f16's smallest number
    ASSERT_NEAR(y[c], exact, computed + (std::abs(exact) + computed) * step + least)
        << "column " << c;
  }
}

template <class T>
void check_softmax(const Shape& shape, float spread = 4) {
  SCOPED_TRACE(testing::Message() << shape.rows << "x" << shape.columns << " pitches "
                                  << shape.in.pitch << ", " << shape.out.pitch << " offsets "
                                  << shape.in.offset << ", " << shape.out.offset);
  const auto pitch = [&](const Place& place) {
    return place.pitch == 0 ? shape.columns : place.pitch;
  };
  const auto size = [&](const Place& place) {
    return static_cast<size_t>(place.offset + shape.rows * pitch(place) + 1);
  };
  std::mt19937 random(static_cast<unsigned>(shape.rows * 31 + shape.columns));
  std::normal_distribution<float> normal(0, spread);
  // What lies outside the rows is NaN: reading it shows; and so does writing it.
  std::vector<T> host(size(shape.in), T(kNan)), clean(size(shape.out), T(-2.0f));
  for (int64_t row = 0; row < shape.rows; ++row) {
    for (int64_t c = 0; c < shape.columns; ++c)
      host[shape.in.offset + row * pitch(shape.in) + c] = T(normal(random));
  }
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer in = device.upload(absl::MakeConstSpan(host)).value();
  const TensorRef<const T, 2> x(reinterpret_cast<const T*>(in.address()) + shape.in.offset,
                                {shape.rows, shape.columns}, {pitch(shape.in), 1});
  for (const bool is_log : {false, true}) {
    const Buffer out = device.upload(absl::MakeConstSpan(clean)).value();
    const TensorRef<T, 2> y(reinterpret_cast<T*>(out.address()) + shape.out.offset,
                            {shape.rows, shape.columns}, {pitch(shape.out), 1});
    ASSERT_THAT(is_log ? kernels::log_softmax(stream, x, y) : kernels::softmax(stream, x, y),
                IsOk());
    std::vector<T> got = out.download<T>(stream).value();
    for (int64_t row = 0; row < shape.rows; ++row) {
      std::vector<double> from, to;
      for (int64_t c = 0; c < shape.columns; ++c) {
        from.push_back(wide(host[shape.in.offset + row * pitch(shape.in) + c]));
        T& place = got[shape.out.offset + row * pitch(shape.out) + c];
        to.push_back(wide(place));
        place = T(-2.0f);
      }
      if (shape.columns == 0) continue;

      ASSERT_NO_FATAL_FAILURE(check_row(is_log, from, to, kStep<T>)) << "row " << row;
    }
    for (const T& value : got) ASSERT_EQ(wide(value), -2) << "written outside the rows";
  }
}

template <class T>
class Softmax : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(Softmax, Types);

TYPED_TEST(Softmax, OfRowsThatLanesShare) {
  for (const Shape& shape :
       {Shape{0, 5}, Shape{5, 0}, Shape{1, 1}, Shape{300, 1}, Shape{129, 3}, Shape{3, 31},
        Shape{65, 32}, Shape{7, 33}, Shape{9, 127}, Shape{2, 512}}) {
    check_softmax<TypeParam>(shape);
  }
}

TYPED_TEST(Softmax, OfRowsThatABlockHas) {
  for (const Shape& shape :
       {Shape{2, 1000}, Shape{3, 1023}, Shape{2, 4096}, Shape{1, 5001}, Shape{1, 16384}}) {
    check_softmax<TypeParam>(shape);
  }
}

TYPED_TEST(Softmax, OfRowsThatAClusterHas) {
  check_softmax<TypeParam>({1, 65536});
  check_softmax<TypeParam>({2, 70001});
}

// More rows than clusters are resident: each has several, one after the other.
TYPED_TEST(Softmax, OfRowsThatAreCopiedAhead) {
  const DeviceInfo& device = test_device().info();
  const int bytes = sizeof(TypeParam);
  const int64_t columns = (int64_t{1} << 17) / bytes;
  for (const int64_t odd : {0, 5}) {
    const kernels::RowsOf rows{
        .columns = columns + odd, .element_bytes = bytes, .aligned = odd == 0, .alike = true};
    const kernels::RowDeal deal = kernels::deal_rows(rows, device);
    const int64_t clusters = kernels::row_shape(deal, 1 << 30, device).grid.x / deal.blocks;
    ASSERT_EQ(deal.copied, device.cluster_launch);
    check_softmax<TypeParam>({std::min<int64_t>(2 * clusters, 64) + 1, columns + odd});
  }
}

TYPED_TEST(Softmax, OfRowsInParts) {
  check_softmax<TypeParam>({1, 600000});
  check_softmax<TypeParam>({1, 524389});
}

TYPED_TEST(Softmax, OfRowsThatAreNotAligned) {
  check_softmax<TypeParam>({4, 1000, {1001}, {1001}});
  check_softmax<TypeParam>({4, 1000, {1008, 1}, {1016, 1}});
  check_softmax<TypeParam>({3, 100, {101, 3}, {117, 3}});
  // Apart from each other: no vector is aligned in both.
  check_softmax<TypeParam>({4, 1000, {1001}, {1000}});
  check_softmax<TypeParam>({2, 5000, {5008, 1}, {5008, 2}});
  check_softmax<TypeParam>({5, 17, {17}, {32, 1}});
}

TYPED_TEST(Softmax, OfFarApartAndEqualNumbers) {
  check_softmax<TypeParam>({3, 777}, 40);
  check_softmax<TypeParam>({3, 777}, 0);
}

template <class T>
std::vector<float> run(const std::vector<float>& values, int64_t columns, bool is_log = false) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const std::vector<T> host(values.begin(), values.end());
  const Buffer x = device.upload(absl::MakeConstSpan(host)).value();
  const int64_t rows = static_cast<int64_t>(host.size()) / columns;
  // In place.
  const auto in = as_tensor<const T>(x, {rows, columns});
  const auto out = as_tensor<T>(x, {rows, columns});
  EXPECT_THAT(is_log ? kernels::log_softmax(stream, in, out) : kernels::softmax(stream, in, out),
              IsOk());
  const std::vector<T> got = x.download<T>(stream).value();
  std::vector<float> result;
  for (const T value : got) result.push_back(static_cast<float>(value));
  return result;
}

TYPED_TEST(Softmax, ExtremeValues) {
  const float most = static_cast<float>(std::numeric_limits<float>::max()) /
                     (std::is_same_v<TypeParam, half> ? 0x1p113f : 2);
  const std::vector<float> got =
      run<TypeParam>({-kInfinity, -kInfinity, 3,          -kInfinity,  // all weight on one
                      most,       -most,      most,       -kInfinity,  // the largest that there are
                      -most,      -most,      -most,      -most,       //
                      -kInfinity, -kInfinity, -kInfinity, -kInfinity,  // not a number
                      kInfinity,  0,          1,          2,           // not a number
                      kNan,       -kInfinity, -kInfinity, 1,           // not a number
                      0,          -100,       -200,       1e-30f},
                     4);
  const auto row = [&](int r) {
    return std::vector<float>(got.begin() + 4 * r, got.begin() + 4 * r + 4);
  };
  EXPECT_THAT(row(0), testing::ElementsAre(0, 0, 1, 0));
  EXPECT_THAT(row(1), testing::ElementsAre(0.5f, 0, 0.5f, 0));
  EXPECT_THAT(row(2), testing::Each(0.25f));
  for (const int r : {3, 4, 5}) EXPECT_THAT(row(r), testing::Each(testing::IsNan())) << r;
  EXPECT_THAT(row(6), testing::ElementsAre(0.5f, testing::Le(1e-30f), testing::Le(1e-30f), 0.5f));
  EXPECT_THAT(run<TypeParam>({-kInfinity, 0, -kInfinity, 0}, 4, true)[0], -kInfinity);
}

// A NaN in a row of which all else is -∞, wherever it stands among the threads.
TYPED_TEST(Softmax, ANanIsNeverLost) {
  for (const int64_t columns : {40, 5001}) {
    for (const int64_t at : {int64_t{0}, int64_t{13}, columns - 1}) {
      std::vector<float> values(static_cast<size_t>(columns), -kInfinity);
      values[at] = kNan;
      EXPECT_THAT(run<TypeParam>(values, columns), testing::Each(testing::IsNan()))
          << columns << ", " << at;
    }
  }
}

TYPED_TEST(Softmax, TheSameInputGivesTheSameBits) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(3 * 40001);
  for (float& value : values) value = normal(random);
  const std::vector<float> first = run<TypeParam>(values, 40001);
  EXPECT_EQ(first, run<TypeParam>(values, 40001));
}

TEST(SoftmaxTest, RefusesOtherExtents) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.allocate(64).value(), y = device.allocate(64).value();
  const Status status =
      kernels::softmax(stream, as_tensor<const float>(x, {2, 8}), as_tensor<float>(y, {8, 2}));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("softmax(x, y): x is 2 × 8 and y 8 × 2; both need the same extents"));
}

// Every element has a thread, and no limit of a device is passed.
TEST(RowDeal, HoldsEveryRow) {
  const DeviceInfo& device = test_device().info();
  for (const int bytes : {1, 2, 4}) {
    for (const bool aligned : {false, true}) {
      for (int64_t columns = 1; columns < int64_t{1} << 31; columns += columns / 7 + 1) {
        for (const int64_t n : {columns, columns / 16 * 16 + 16}) {
          const kernels::RowsOf rows{
              .columns = n, .element_bytes = bytes, .aligned = aligned, .alike = true};
          const kernels::RowDeal deal = kernels::deal_rows(rows, device);
          SCOPED_TRACE(testing::Message() << n << " of " << bytes << " bytes, aligned " << aligned);
          const int64_t held = int64_t{deal.threads} * deal.blocks * deal.vectors * deal.width;
          ASSERT_TRUE(deal.in_parts || held >= n);
          ASSERT_EQ(deal.whole && !deal.in_parts, !deal.peeled && held == n);
          ASSERT_LE(deal.threads * deal.rows, 1024);
          ASSERT_LE(deal.blocks, 8);
          ASSERT_TRUE(deal.threads % 32 == 0 || 32 % deal.threads == 0);
          ASSERT_TRUE(!deal.peeled || deal.threads >= 2 * deal.width - 2);
          ASSERT_TRUE(deal.rows == 1 || deal.threads <= 32);
          ASSERT_EQ(n % deal.width == 0 || deal.peeled, true);
        }
      }
    }
  }
}

}  // namespace
}  // namespace heddle
