// Norms in 8 bits against double precision: rows of lanes, a block and a cluster; alignments; zeros, NaNs, infinities.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/norm/quantized.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

enum class Norm { kRms, kLayer, kAddRms };

// Rows of x, where they begin in memory, in elements: an offset and a pitch; and those of y.
struct Places {
  int64_t rows, columns, offset = 0, pitch = 0, y_offset = 0, y_pitch = 0;
};

template <class T>
struct Quantised {
  std::vector<double> x;  // what is normalised
  std::vector<double> y;  // as numbers
  std::vector<float> scales;
  std::vector<T> sum;
};

template <class T>
Quantised<T> quantised(Norm norm, Places at, const std::vector<T>& x, const std::vector<T>& w,
                       const std::vector<T>& b, float eps) {
  if (at.pitch == 0) at.pitch = at.columns;
  if (at.y_pitch == 0) at.y_pitch = at.columns;
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto matrix = [&](const Buffer& buffer, int64_t offset, int64_t pitch) {
    return TensorRef<T, 2>(reinterpret_cast<T*>(buffer.address()) + offset, {at.rows, at.columns},
                           {pitch, 1});
  };
  std::vector<T> laid(static_cast<size_t>(at.offset + at.rows * at.pitch + 1), T(0.0f));
  for (int64_t r = 0; r < at.rows; ++r) {
    for (int64_t c = 0; c < at.columns; ++c)
      laid[at.offset + r * at.pitch + c] = x[r * at.columns + c];
  }
  const std::vector<T> more = random_elements<T>(static_cast<int64_t>(laid.size()), 0, 1, 9);
  std::vector<float8_e4m3> filled(static_cast<size_t>(at.y_offset + at.rows * at.y_pitch + 1),
                                  float8_e4m3(3.0));
  const Buffer in = device.upload(absl::MakeConstSpan(laid)).value(),
               residual = device.upload(absl::MakeConstSpan(more)).value(),
               weight = device.upload(absl::MakeConstSpan(w)).value(),
               bias = device.upload(absl::MakeConstSpan(b)).value(),
               out = device.upload(absl::MakeConstSpan(filled)).value(),
               sum = device.upload(absl::MakeConstSpan(laid)).value(),
               scales = device
                            .upload(absl::MakeConstSpan(
                                std::vector<float>(static_cast<size_t>(at.rows) + 1, 7.0f)))
                            .value();
  const TensorRef<const T, 2> from(reinterpret_cast<const T*>(in.address()) + at.offset,
                                   {at.rows, at.columns}, {at.pitch, 1}),
      add(reinterpret_cast<const T*>(residual.address()) + at.offset, {at.rows, at.columns},
          {at.pitch, 1});
  const TensorRef<float8_e4m3, 2> to(reinterpret_cast<float8_e4m3*>(out.address()) + at.y_offset,
                                     {at.rows, at.columns}, {at.y_pitch, 1});
  const auto of = as_tensor<const T>(weight, {at.columns}),
             behind = as_tensor<const T>(bias, {at.columns});
  const auto by = as_tensor<float>(scales, {at.rows});
  const Status done =
      norm == Norm::kRms ? kernels::rms_norm_quantized<T>(stream, from, of, to, by, eps)
      : norm == Norm::kLayer
          ? kernels::layer_norm_quantized<T>(stream, from, of, behind, to, by, eps)
          : kernels::add_rms_norm_quantized<T>(stream, from, add, of, to, by,
                                               matrix(sum, at.offset, at.pitch), eps);
  EXPECT_THAT(done, IsOk());
  Quantised<T> all;
  const auto y = out.download<float8_e4m3>(stream).value();
  const auto sums = sum.download<T>(stream).value();
  all.scales = scales.download<float>(stream).value();
  EXPECT_EQ(all.scales.back(), 7.0f);
  for (int64_t r = 0; r < at.rows; ++r) {
    for (int64_t c = 0; c < at.columns; ++c) {
      const int64_t from_place = at.offset + r * at.pitch + c;
      all.y.push_back(static_cast<float>(y[at.y_offset + r * at.y_pitch + c]));
      const float first = static_cast<float>(laid[from_place]),
                  second = static_cast<float>(more[from_place]);
      const T added(first + second);
      all.x.push_back(norm == Norm::kAddRms ? static_cast<float>(added) : first);
      if (norm == Norm::kAddRms) {
        EXPECT_EQ(static_cast<float>(sums[from_place]), static_cast<float>(added))
            << r << ", " << c;
      }
    }
  }
  // What lies around the rows stays as it is.
  for (size_t i = 0; i < y.size(); ++i) {
    const int64_t behind_offset = static_cast<int64_t>(i) - at.y_offset;
    if (behind_offset >= 0 && behind_offset / at.y_pitch < at.rows &&
        behind_offset % at.y_pitch < at.columns) {
      continue;
    }
    EXPECT_EQ(static_cast<float>(y[i]), 3.0f) << i;
  }
  return all;
}

// The norm of a row in double precision, without bounds: f32's are far below e4m3's.
std::vector<double> exact_norm(const double* x, int64_t columns, bool centred, float eps,
                               const std::vector<double>& w, const std::vector<double>& b) {
  double mean = 0, squares = 0;
  for (int64_t c = 0; centred && c < columns; ++c) mean += x[c] / static_cast<double>(columns);
  for (int64_t c = 0; c < columns; ++c) {
    squares += (x[c] - mean) * (x[c] - mean) / static_cast<double>(columns);
  }
  std::vector<double> all;
  for (int64_t c = 0; c < columns; ++c) {
    all.push_back((x[c] - mean) / std::sqrt(squares + eps) * w[c] + (centred ? b[c] : 0));
  }
  return all;
}

template <class T>
std::vector<double> wide(const std::vector<T>& values) {
  std::vector<double> all;
  for (const T& v : values) all.push_back(static_cast<float>(v));
  return all;
}

template <class T>
void check(const Places& at) {
  constexpr float kEps = 1e-5f;
  const auto x = random_elements<T>(std::max<int64_t>(at.rows * at.columns, 1), 0.5f, 2, 1),
             w = random_elements<T>(at.columns + 1, 1, 0.5f, 2),
             b = random_elements<T>(at.columns + 1, 0, 1, 3);
  for (const Norm norm : {Norm::kRms, Norm::kLayer, Norm::kAddRms}) {
    SCOPED_TRACE(testing::Message() << static_cast<int>(norm) << ": " << at.rows << " x "
                                    << at.columns << " at " << at.offset << ", " << at.y_offset);
    const auto got = quantised<T>(norm, at, x, w, b, kEps);
    for (int64_t r = 0; r < at.rows; ++r) {
      const auto exact = exact_norm(&got.x[r * at.columns], at.columns, norm == Norm::kLayer, kEps,
                                    wide(w), wide(b));
      double peak = 0x1p-100;
      for (const double v : exact) peak = std::max(peak, std::abs(v));
      ASSERT_NEAR(got.scales[r], peak / 448, peak / 448 * 1e-5) << r;
      for (int64_t c = 0; c < at.columns; ++c) {
        const double y = exact[c] * 448 / peak;
        ASSERT_NEAR(got.y[r * at.columns + c], y,
                    std::max(std::abs(y) * 0x1p-4, 0x1p-10) + 1e-4 * (1 + std::abs(y)))
            << r << ", " << c;
      }
    }
  }
}

template <class T>
class NormsQuantized : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(NormsQuantized, Types);

TYPED_TEST(NormsQuantized, OfRowsOfEveryLength) {
  for (const Places& at :
       {Places{0, 5}, Places{1, 1}, Places{300, 1}, Places{129, 3}, Places{3, 31}, Places{65, 32},
        Places{9, 127}, Places{2, 512}, Places{3, 1023}, Places{2, 4096}, Places{2, 8193},
        Places{1, 40000}, Places{1, 200001}}) {
    check<TypeParam>(at);
  }
}
TYPED_TEST(NormsQuantized, OfRowsThatAreNotAligned) {
  check<TypeParam>({4, 1000, 0, 1001, 0, 1001});
  check<TypeParam>({4, 1000, 3, 1008, 3, 1024});
  check<TypeParam>({4, 1000, 1, 1008, 2, 1008});
  check<TypeParam>({4, 1000, 0, 1008, 0, 1001});
  check<TypeParam>({5, 17, 0, 17, 1, 32});
  check<TypeParam>({2, 20000, 5, 20001, 5, 20009});
}

// Rows of zeros, and of what has no scale.
TEST(NormQuantized, OfZerosNansAndInfinities) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN(),
                  kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {0, 0, 0, 0, 1, kNan, 2, 3, 1, -2, 3, 4}, b(4, 0.0f);
  const auto of_ones = quantised<float>(Norm::kRms, {3, 4}, x, {1, 1, 1, 1}, b, 1e-5f);
  EXPECT_FLOAT_EQ(of_ones.scales[0], 0x1p-100f / 448);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(of_ones.y[i], 0) << i;
  for (int i = 4; i < 8; ++i) EXPECT_TRUE(std::isnan(of_ones.y[i])) << i;
  EXPECT_FLOAT_EQ(of_ones.scales[1], 0x1p-100f / 448);
  EXPECT_EQ(of_ones.y[11], 448);
  // A weight that is infinite: the others are nothing beside it.
  const auto of_inf = quantised<float>(Norm::kRms, {3, 4}, x, {1, kInf, 1, 1}, b, 1e-5f);
  EXPECT_EQ(of_inf.scales[2], kInf);
  EXPECT_EQ(of_inf.y[8], 0);
  EXPECT_TRUE(std::isnan(of_inf.y[9]));
  EXPECT_EQ(of_inf.y[11], 0);
}

// Whatever a scale is, the greatest of a row is 448.
TEST(NormQuantized, OfHugeAndTinyNorms) {
  for (const float weight : {1e38f, 1e-20f, 1e-25f}) {
    const auto got = quantised<float>(Norm::kRms, {1, 4}, {1, -2, 3, 4},
                                      std::vector<float>(4, weight), {0, 0, 0, 0}, 1e-5f);
    EXPECT_EQ(got.y[3], 448) << weight;
    EXPECT_EQ(got.y[0], 112) << weight;
    EXPECT_NEAR(got.scales[0] / weight, 4 / std::sqrt(7.5) / 448, 1e-6) << weight;
  }
}

TEST(NormQuantized, SaysWhatDoesNotFit) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer memory = device.allocate(4096).value();
  const auto x = as_tensor<const float>(memory, {4, 8});
  const auto w = as_tensor<const float>(memory, {8});
  const auto said = [&](int64_t rows, int64_t columns, int64_t scales) {
    return std::string(kernels::rms_norm_quantized<float>(
                           stream, x, w, as_tensor<float8_e4m3>(memory, {rows, columns}),
                           as_tensor<float>(memory, {scales}), 1e-6f)
                           .message());
  };
  EXPECT_EQ(
      said(4, 8, 3),
      "rms_norm_quantized: scales has 3 elements and x 4 rows; scales takes one element a row");
  EXPECT_THAT(said(4, 7, 4), HasSubstr("rms_norm_quantized: x is 4 × 8 and y 4 × 7"));
}

}  // namespace
}  // namespace heddle
