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
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// What a row becomes, and how far off it may be: a weight e^d by (4 + 2.5 |d|) 2^-23, as in the operation's
// reference, a sum of weights by the largest of these that counts and its roundings, and the last rounding.
template <class T>
void check_row(bool is_log, const std::vector<double>& x, const std::vector<double>& y) {
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
    ASSERT_NEAR(y[c], exact, computed + (std::abs(exact) + computed) * kStep<T> + kLeast<T>)
        << "column " << c;
  }
}

template <class T>
void check_softmax(const RowsAt& shape, float spread = 4) {
  for (const bool is_log : {false, true}) {
    check_rows<T>(
        shape, 0, spread,
        [&](const Stream& stream, const auto& x, const auto& y) {
          return is_log ? kernels::log_softmax(stream, x, y) : kernels::softmax(stream, x, y);
        },
        [&](const auto& x, const auto& y) { check_row<T>(is_log, x, y); });
  }
}

template <class T>
class Softmax : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(Softmax, Types);

TYPED_TEST(Softmax, OfRowsThatLanesShare) {
  for (const RowsAt& shape :
       {RowsAt{0, 5}, RowsAt{5, 0}, RowsAt{1, 1}, RowsAt{300, 1}, RowsAt{129, 3}, RowsAt{3, 31},
        RowsAt{65, 32}, RowsAt{7, 33}, RowsAt{9, 127}, RowsAt{2, 512}}) {
    check_softmax<TypeParam>(shape);
  }
}

TYPED_TEST(Softmax, OfRowsThatABlockHas) {
  for (const RowsAt& shape :
       {RowsAt{2, 1000}, RowsAt{3, 1023}, RowsAt{2, 4096}, RowsAt{1, 5001}, RowsAt{1, 16384}}) {
    check_softmax<TypeParam>(shape);
  }
}

TYPED_TEST(Softmax, OfRowsThatAClusterHas) {
  check_softmax<TypeParam>({1, 65536});
  check_softmax<TypeParam>({2, 70001});
  // Almost all shared memory of a cluster of 16.
  check_softmax<TypeParam>({1, std::is_same_v<TypeParam, float> ? 890000 : 1790000});
}

TYPED_TEST(Softmax, OfRowsInParts) {
  check_softmax<TypeParam>({1, 600000});
  check_softmax<TypeParam>({1, 524389});
  check_softmax<TypeParam>({1, 70001, {70001, 1}, {70001}});  // single elements
}

TYPED_TEST(Softmax, OfRowsThatAreNotAligned) {
  check_softmax<TypeParam>({4, 1000, {1001}, {1001}});
  check_softmax<TypeParam>({4, 1000, {1008, 1}, {1016, 1}});
  check_softmax<TypeParam>({3, 100, {101, 3}, {117, 3}});
  check_softmax<TypeParam>({3, 1001, {1008}, {1024}});
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

// The elements at a row's edges, which stand beside its vectors, count once.
TYPED_TEST(Softmax, OfEdgesThatAreLarge) {
  for (const int64_t columns : {33, 1023, 9001, 70001}) {
    std::vector<float> values(static_cast<size_t>(2 * columns), 0.0f);
    for (const int64_t row : {int64_t{0}, columns}) values[row] = values[row + columns - 1] = 25;
    const std::vector<float> y = run<TypeParam>(values, columns);
    for (const int64_t row : {int64_t{0}, columns}) {
      EXPECT_NEAR(y[row], 0.5, 1e-3) << columns;
      EXPECT_NEAR(y[row + columns - 1], 0.5, 1e-3) << columns;
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
              HasSubstr("softmax: x is 2 × 8 and y 8 × 2; both need the same extents"));
}

TEST(SoftmaxTest, RefusesRowsThatAreTooLong) {
  const Stream stream = test_device().create_stream().value();
  const int64_t columns = (int64_t{1} << 31) - 65535;
  const TensorRef<const float, 2> x(nullptr, {1, columns}, {columns, 1});
  const TensorRef<float, 2> y(nullptr, {1, columns}, {columns, 1});
  EXPECT_THAT(std::string(kernels::softmax(stream, x, y).message()),
              HasSubstr("rows of 2147418113 elements; kernels of rows take at most 2147418112"));
}

// Every element has a thread, and no limit of a device is passed: of sm_90, of one without clusters, of one with less
// shared memory.
TEST(RowDeal, HoldsEveryRow) {
  DeviceInfo devices[3];
  devices[1].cluster_launch = false;
  devices[2].limits.max_shared_per_block = 101376;
  devices[2].shared_per_sm = 102400;
  for (const DeviceInfo& device : devices) {
    for (const int bytes : {1, 2, 4}) {
      for (const auto& [aligned, alike] : {std::pair(true, true), {false, true}, {false, false}}) {
        for (int64_t columns = 1; columns < int64_t{1} << 31; columns += columns / 7 + 1) {
          // The last ones need almost all shared memory that a cluster of 16 has.
          for (const int64_t n :
               {columns, columns / 16 * 16 + 16, int64_t{890000}, int64_t{1790001}}) {
            const kernels::RowsOf rows{.columns = n,
                                       .element_bytes = bytes,
                                       .aligned = aligned,
                                       .alike = alike,
                                       .inputs = 1 + static_cast<int>(columns % 2)};
            const kernels::RowDeal deal = kernels::deal_rows(rows, device);
            SCOPED_TRACE(testing::Message()
                         << n << " of " << bytes << " bytes, aligned " << aligned << ", alike "
                         << alike << ", clusters " << device.cluster_launch);
            const int64_t vectors = int64_t{deal.threads} * deal.vectors * std::max(deal.kept, 1),
                          held = vectors * deal.blocks * deal.width;
            ASSERT_TRUE(deal.in_parts || held >= n);
            ASSERT_EQ(deal.whole && !deal.in_parts, !deal.peeled && held == n);
            ASSERT_LE(deal.threads * deal.rows, 1024);
            ASSERT_LE(deal.blocks, device.cluster_launch ? 16 : 1);
            ASSERT_TRUE(deal.threads % 32 == 0 || 32 % deal.threads == 0);
            ASSERT_TRUE(!deal.peeled || deal.threads >= 2 * deal.width - 2);
            ASSERT_TRUE(deal.rows == 1 || deal.threads <= 32);
            ASSERT_TRUE(alike || aligned || deal.width == 1);
            ASSERT_TRUE(n % deal.width == 0 || deal.peeled);
            if (deal.kept > 0) {
              ASSERT_LE(kernels::shared_bytes(deal, rows.inputs),
                        device.limits.max_shared_per_block);
              // A block's sums of the cluster's warps, of up to 16 bytes.
              ASSERT_LE(deal.blocks * deal.threads / 32 * 16 + 8, 8192);
            }
            const int64_t terabytes = std::min<int64_t>(int64_t{1} << 30, (int64_t{1} << 40) / n);
            ASSERT_LE(kernels::row_shape(deal, terabytes).grid.x, device.limits.max_grid_x);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace heddle
