// row_sum against a sum in double precision: element types, odd shapes, alignments, extreme values.
#include "heddle/kernels/row_sum.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

template <class T>
float to_float(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return value.to_float();
  }
}

struct Shape {
  int64_t rows;
  int64_t columns;
  int64_t pitch = 0;   // distance between rows; 0: as many as columns
  int64_t offset = 0;  // elements before the first
};

template <class T>
void check_sums(const Shape& shape, float magnitude = 1.0f) {
  SCOPED_TRACE(testing::Message() << shape.rows << "x" << shape.columns << " pitch " << shape.pitch
                                  << " offset " << shape.offset);
  const int64_t pitch = shape.pitch == 0 ? shape.columns : shape.pitch;
  std::mt19937 random(static_cast<unsigned>(shape.rows * 31 + shape.columns));
  std::uniform_real_distribution<float> uniform(-magnitude, magnitude);
  // What lies outside the rows is NaN: reading it shows.
  std::vector<T> host(shape.offset + shape.rows * pitch + 1,
                      T(std::numeric_limits<float>::quiet_NaN()));
  std::vector<double> expected, tolerance;
  for (int64_t row = 0; row < shape.rows; ++row) {
    double sum = 0, total = 0;
    for (int64_t column = 0; column < shape.columns; ++column) {
      const T value = T(uniform(random));
      host[shape.offset + row * pitch + column] = value;
      sum += to_float(value);
      total += std::abs(to_float(value));
    }
    expected.push_back(sum);
    tolerance.push_back(total * 0x1p-24 * (64 + static_cast<double>(shape.columns) / 64));
  }

  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer input = device.upload(absl::MakeConstSpan(host)).value();
  Buffer output = device.allocate(std::max<int64_t>(1, shape.rows) * sizeof(float)).value();
  ASSERT_THAT(output.fill(stream, 0xFF), IsOk());
  const TensorRef<const T, 2> x(reinterpret_cast<const T*>(input.address()) + shape.offset,
                                {shape.rows, shape.columns}, {pitch, 1});
  ASSERT_THAT(kernels::row_sum(stream, x, as_tensor<float>(output, {shape.rows})), IsOk());
  const std::vector<float> sums = output.download<float>(stream).value();
  for (int64_t row = 0; row < shape.rows; ++row) {
    ASSERT_NEAR(sums[row], expected[row], tolerance[row]) << "row " << row;
  }
}

template <class T>
class RowSum : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(RowSum, Types);

TYPED_TEST(RowSum, ShapesFromNothingToLong) {
  for (const Shape shape : {Shape{0, 5}, Shape{5, 0}, Shape{1, 1}, Shape{1, 31}, Shape{3, 32},
                            Shape{7, 33}, Shape{9, 127}, Shape{2, 1000}, Shape{17, 1024},
                            Shape{3, 4099}, Shape{2, 8192}, Shape{1, 16384}, Shape{1, 65537}}) {
    check_sums<TypeParam>(shape);
  }
}

TYPED_TEST(RowSum, RowsThatAreNotAligned) {
  check_sums<TypeParam>({4, 1000, 1001});
  check_sums<TypeParam>({4, 1000, 1008, 1});
  check_sums<TypeParam>({4, 1000, 1002, 2});
  check_sums<TypeParam>({2, 5000, 5004, 4});
}

TYPED_TEST(RowSum, TheSameInputGivesTheSameBits) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<TypeParam> host(3 * 5001);
  for (TypeParam& value : host) value = TypeParam(uniform(random));
  const Buffer input = device.upload(absl::MakeConstSpan(host)).value();
  std::vector<std::vector<float>> results;
  for (int i = 0; i < 3; ++i) {
    const Buffer output = device.allocate(3 * sizeof(float)).value();
    ASSERT_THAT(kernels::row_sum(stream, as_tensor<const TypeParam>(input, {3, 5001}),
                                 as_tensor<float>(output, {3})),
                IsOk());
    results.push_back(output.download<float>(stream).value());
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(RowSumTest, HugeTinyNanAndInfinity) {
  const float inf = std::numeric_limits<float>::infinity();
  const float max = std::numeric_limits<float>::max();
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer input = device
                           .upload<float>({1e-45f, 1e-45f,
                                           0,      0,  // subnormals add up
                                           max,    -max,
                                           1,      0,  //
                                           inf,    1,
                                           2,      3,  //
                                           inf,    -inf,
                                           0,      0,  // NaN
                                           1,      std::nanf(""),
                                           2,      3})
                           .value();
  const Buffer output = device.allocate(5 * sizeof(float)).value();
  ASSERT_THAT(kernels::row_sum(stream, as_tensor<const float>(input, {5, 4}),
                               as_tensor<float>(output, {5})),
              IsOk());
  const std::vector<float> sums = output.download<float>(stream).value();
  EXPECT_EQ(sums[0], 2 * 1e-45f);
  EXPECT_EQ(sums[1], 1.0f);
  EXPECT_EQ(sums[2], inf);
  EXPECT_TRUE(std::isnan(sums[3]));
  EXPECT_TRUE(std::isnan(sums[4]));
}

// Offsets beyond 2^31 elements, without touching the gigabytes between: two rows, far apart.
TEST(RowSumTest, RowsFurtherApartThan2To31Elements) {
  const int64_t pitch = (int64_t{1} << 31) + 16;
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  Buffer input = device.allocate((pitch + 8) * sizeof(float)).value();
  const std::vector<float> first = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<float> second = {10, 20, 30, 40, 50, 60, 70, 80};
  ASSERT_THAT(input.copy_from_host(stream, first.data(), 32, 0), IsOk());
  ASSERT_THAT(input.copy_from_host(stream, second.data(), 32, pitch * sizeof(float)), IsOk());
  const Buffer output = device.allocate(2 * sizeof(float)).value();
  const TensorRef<const float, 2> x(reinterpret_cast<const float*>(input.address()), {2, 8},
                                    {pitch, 1});
  ASSERT_THAT(kernels::row_sum(stream, x, as_tensor<float>(output, {2})), IsOk());
  EXPECT_EQ(output.download<float>(stream).value(), (std::vector<float>{36, 360}));
}

TEST(RowSumTest, ARowOfMoreThan2To31Elements) {
  HEDDLE_SKIP_WITHOUT_GPU();
  const int64_t columns = (int64_t{1} << 31) + 5;
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  Buffer input = device.allocate(columns * sizeof(bfloat16)).value();
  ASSERT_THAT(input.fill(stream, 0), IsOk());
  const std::vector<bfloat16> tail(5, bfloat16(1.5));
  ASSERT_THAT(input.copy_from_host(stream, tail.data(), 10, (columns - 5) * sizeof(bfloat16)),
              IsOk());
  const Buffer output = device.allocate(sizeof(float)).value();
  ASSERT_THAT(kernels::row_sum(stream, as_tensor<const bfloat16>(input, {1, columns}),
                               as_tensor<float>(output, {1})),
              IsOk());
  EXPECT_EQ(output.download<float>(stream).value()[0], 7.5f);
}

TEST(RowSumTest, MismatchedOutputIsRefused) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer memory = device.allocate(64).value();
  EXPECT_THAT(kernels::row_sum(stream, as_tensor<const float>(memory, {2, 4}),
                               as_tensor<float>(memory, {3})),
              Fails(StatusCode::kInvalidArgument, "x has 2 rows and y 3 elements"));
}

}  // namespace
}  // namespace heddle
