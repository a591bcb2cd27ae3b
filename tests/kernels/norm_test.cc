// rms_norm and layer_norm against double precision: element types, shapes from nothing to rows of several clusters'
// registers, alignments, means far from zero.
#include "heddle/kernels/norm/norm.h"

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

struct Norm {
  bool centred;
  float eps;
};

// Within what the operation's reference allows: a mean is off by the roundings on the way of each term, and so is the
// scale, relatively.
template <class T>
void check_row(const Norm& norm, const std::vector<double>& x, const std::vector<T>& w,
               const std::vector<T>& b, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  const double steps = (128 + n / 8192) * 0x1p-24;
  double mean = 0, magnitude = 0, squares = 0;
  for (const double v : x) mean += v / n, magnitude += std::abs(v) / n;
  if (!norm.centred) mean = 0;
  for (const double v : x) squares += (v - mean) * (v - mean) / n;
  const double mean_error = norm.centred ? steps * magnitude : 0;
  const double scale = 1 / std::sqrt(squares + norm.eps);
  const double apart = mean_error * (2 * std::sqrt(squares) + mean_error);
  const double scale_error = (steps * squares + apart) / (squares + norm.eps) + 6 * 0x1p-24;
  for (size_t c = 0; c < x.size(); ++c) {
    const double factor = scale * wide(w[c]), product = (x[c] - mean) * factor;
    const double exact = product + (norm.centred ? wide(b[c]) : 0);
    const double error = mean_error * std::abs(factor) +
                         std::abs(product) * (scale_error + 0x1p-22) + std::abs(exact) * 0x1p-24;
    ASSERT_NEAR(y[c], exact, error + (std::abs(exact) + error) * kStep<T> + kLeast<T>)
        << "column " << c;
  }
}

// `offset`: elements in front of w and b.
template <class T>
void check_norms(const RowsAt& shape, float mean = 0.5f, float spread = 2, float eps = 1e-5f,
                 int offset = 0) {
  const auto w = random_elements<T>(shape.columns + 1, 1, 0.5f, 3),
             b = random_elements<T>(shape.columns + 1, 0, 1, 4);
  const Device& device = test_device();
  const Buffer weight = device.upload(absl::MakeConstSpan(w)).value(),
               bias = device.upload(absl::MakeConstSpan(b)).value();
  const auto columns_of = [&](const Buffer& buffer) {
    return TensorRef<const T, 1>(reinterpret_cast<const T*>(buffer.address()) + offset,
                                 {shape.columns}, {1});
  };
  const auto of = columns_of(weight), behind = columns_of(bias);
  const std::vector<T> by(w.begin() + offset, w.end()), plus(b.begin() + offset, b.end());
  for (const bool centred : {false, true}) {
    if (!centred && mean > 1e18f) continue;  // squares that f32 does not hold
    check_rows<T>(
        shape, mean, spread,
        [&](const Stream& stream, const auto& x, const auto& y) {
          return centred ? kernels::layer_norm(stream, x, of, behind, y, eps)
                         : kernels::rms_norm(stream, x, of, y, eps);
        },
        [&](const auto& x, const auto& y) {
          check_row<T>({centred, eps}, x, by, plus, y);
        });
  }
}

template <class T>
class Norms : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(Norms, Types);

TYPED_TEST(Norms, OfRowsOfEveryLength) {
  for (const RowsAt& shape :
       {RowsAt{0, 5}, RowsAt{5, 0}, RowsAt{1, 1}, RowsAt{300, 1}, RowsAt{129, 3}, RowsAt{3, 31},
        RowsAt{65, 32}, RowsAt{7, 33}, RowsAt{9, 127}, RowsAt{2, 512}, RowsAt{2, 1000},
        RowsAt{3, 1023}, RowsAt{2, 4096}, RowsAt{1, 16384}, RowsAt{1, 65536}, RowsAt{2, 70001},
        RowsAt{1, 524389}}) {
    check_norms<TypeParam>(shape);
  }
}

TYPED_TEST(Norms, OfRowsThatAreNotAligned) {
  check_norms<TypeParam>({4, 1000, {1001}, {1001}});
  check_norms<TypeParam>({4, 1000, {1008, 1}, {1016, 1}});
  check_norms<TypeParam>({4, 1000, {1001}, {1000}});
  check_norms<TypeParam>({5, 17, {17}, {32, 1}});
}

TYPED_TEST(Norms, OfColumnsThatAreNotAligned) {
  check_norms<TypeParam>({3, 1024}, 0.5f, 2, 1e-5f, 1);
  check_norms<TypeParam>({3, 40}, 0.5f, 2, 1e-5f, 1);
}

// Threads without elements must not make the variance of equal ones infinite.
TYPED_TEST(Norms, OfHugeEqualElements) {
  const float huge = std::is_same_v<TypeParam, half> ? 6e4f : 1e20f;
  check_norms<TypeParam>({3, 40, {41}, {41}}, huge, 0);
  check_norms<TypeParam>({1, 65540}, huge, 0);
}

// A mean that is many standard deviations away: the squares' sums would lose the variance.
TYPED_TEST(Norms, OfMeansFarFromZero) {
  check_norms<TypeParam>({3, 777}, 1000, 3);
  check_norms<TypeParam>({2, 5000}, -200, 1);
}

// Where all elements are equal, what is added under the root decides.
TYPED_TEST(Norms, OfEqualElements) { check_norms<TypeParam>({2, 300}, 1, 0, 1e-2f); }

TEST(NormTest, RefusesOtherExtents) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.allocate(64).value(), y = device.allocate(64).value(),
               w = device.allocate(64).value();
  const auto in = as_tensor<const float>(x, {2, 8});
  const auto message = [&](const TensorRef<const float, 1>& weight,
                           const TensorRef<const float, 1>& bias, const TensorRef<float, 2>& out) {
    return std::string(kernels::layer_norm(stream, in, weight, bias, out, 1e-5f).message());
  };
  const auto right = as_tensor<const float>(w, {8}), wrong = as_tensor<const float>(w, {7});
  EXPECT_THAT(message(right, right, as_tensor<float>(y, {8, 2})),
              HasSubstr("layer_norm: x is 2 × 8 and y 8 × 2; both need the same extents"));
  EXPECT_THAT(
      message(wrong, right, as_tensor<float>(y, {2, 8})),
      HasSubstr("layer_norm: w has 7 elements and x 8 columns; w takes one element a column"));
  EXPECT_THAT(
      message(right, wrong, as_tensor<float>(y, {2, 8})),
      HasSubstr("layer_norm: b has 7 elements and x 8 columns; b takes one element a column"));
}

}  // namespace
}  // namespace heddle
