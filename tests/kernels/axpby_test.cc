// axpby against double precision: element types, odd extents, alignments, strides, beta = 0.
#include "heddle/kernels/axpby.h"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
double number(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else {
    return value.to_float();
  }
}

// Half of the distance between neighbours, relative to the number.
template <class T>
constexpr double kUnit = std::is_same_v<T, float>  ? 0x1p-24
                         : std::is_same_v<T, half> ? 0x1p-11
                                                   : 0x1p-8;

struct Layout1 {
  int64_t count;
  int64_t x_offset = 0, y_offset = 0;  // elements before the first
  int64_t x_stride = 1, y_stride = 1;
};

template <class T>
void check_axpby(const Layout1& layout, float alpha, float beta) {
  SCOPED_TRACE(testing::Message() << layout.count << " elements, offsets " << layout.x_offset
                                  << " and " << layout.y_offset << ", strides " << layout.x_stride
                                  << " and " << layout.y_stride << ", alpha " << alpha << ", beta "
                                  << beta);
  std::mt19937 random(static_cast<unsigned>(layout.count));
  std::uniform_real_distribution<float> uniform(-1, 1);
  // What lies outside is NaN: reading it shows, and so does writing it.
  std::vector<T> x(layout.x_offset + layout.count * layout.x_stride + 8, T(kNan));
  std::vector<T> y(layout.y_offset + layout.count * layout.y_stride + 8, T(kNan));
  const auto x_at = [&](int64_t i) -> T& { return x[layout.x_offset + i * layout.x_stride]; };
  const auto y_at = [&](std::vector<T>& v, int64_t i) -> T& {
    return v[layout.y_offset + i * layout.y_stride];
  };
  for (int64_t i = 0; i < layout.count; ++i) {
    x_at(i) = T(uniform(random));
    if (beta != 0) y_at(y, i) = T(uniform(random));
  }
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x_buffer = device.upload(absl::MakeConstSpan(x)).value();
  const Buffer y_buffer = device.upload(absl::MakeConstSpan(y)).value();
  const TensorRef<const T, 1> x_ref(
      reinterpret_cast<const T*>(x_buffer.address()) + layout.x_offset, {layout.count},
      {layout.x_stride});
  const TensorRef<T, 1> y_ref(reinterpret_cast<T*>(y_buffer.address()) + layout.y_offset,
                              {layout.count}, {layout.y_stride});
  ASSERT_THAT(kernels::axpby(stream, alpha, x_ref, beta, y_ref), IsOk());
  std::vector<T> result = y_buffer.template download<T>(stream).value();
  for (int64_t i = 0; i < layout.count; ++i) {
    const double a = alpha * number(x_at(i));
    const double b = beta == 0 ? 0 : beta * number(y_at(y, i));
    ASSERT_NEAR(number(y_at(result, i)), a + b, (std::abs(a) + std::abs(b)) * (0x1p-23 + kUnit<T>))
        << i;
    y_at(result, i) = T(kNan);
  }
  for (const T& untouched : result) ASSERT_TRUE(std::isnan(number(untouched)));
}

template <class T>
class Axpby : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(Axpby, Types);

TYPED_TEST(Axpby, ExtentsFromNothingToSeveralTiles) {
  for (const int64_t count : {0, 1, 31, 256, 4095, 4096, 4097, 8192, 20001}) {
    check_axpby<TypeParam>({count}, 2.5f, -0.75f);
  }
}

TYPED_TEST(Axpby, WhereBetaIsZeroYIsNotRead) {
  check_axpby<TypeParam>({8193}, 1.5f, 0.0f);
  check_axpby<TypeParam>({8193}, 1.5f, -0.0f);
}

TYPED_TEST(Axpby, OffsetsAndStrides) {
  check_axpby<TypeParam>({9000, 1, 0}, 1, 1);
  check_axpby<TypeParam>({9000, 0, 1}, 1, 1);
  check_axpby<TypeParam>({9000, 2, 4}, 1, 1);
  check_axpby<TypeParam>({9000, 0, 0, 3, 2}, 1, 1);
}

TYPED_TEST(Axpby, LongOnesThatAreEquallyFarFromAnAlignedAddress) {
  check_axpby<TypeParam>({(1 << 16) + 3, 1, 1}, 1, 1);
  check_axpby<TypeParam>({1 << 16, 3, 3}, 1, 0);
  check_axpby<TypeParam>({1 << 16, 1, 3}, 1, 1);
  check_axpby<TypeParam>({1 << 16, 1, 1, 1, 2}, 1, 1);
}

TEST(AxpbyTest, ATensorThatIsLongerThanItsMemoryIsRefused) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.allocate(4 << 16).value();
  TensorRef<float, 1> y = as_tensor<float>(x, {1 << 16});
  y.data += 1;
  y.capacity_bytes -= 4;
  const Status status = kernels::axpby(stream, 1, y, 1, y);
  EXPECT_THAT(status,
              Fails(StatusCode::kInvalidArgument, "reaches 262144 bytes into a buffer of 262140"));
}

TEST(AxpbyTest, XAndYMayBeOneTensor) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer buffer = device.upload<float>(std::vector<float>(5000, 2.0f)).value();
  ASSERT_THAT(kernels::axpby(stream, 3, as_tensor<const float>(buffer, {5000}), 0.5f,
                             as_tensor<float>(buffer, {5000})),
              IsOk());
  EXPECT_EQ(buffer.download<float>(stream).value(), std::vector<float>(5000, 7.0f));
}

TEST(AxpbyTest, NansAndInfinitiesComeThrough) {
  const float inf = std::numeric_limits<float>::infinity();
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.upload<float>({inf, kNan, 0, 1}).value();
  const Buffer y = device.upload<float>({-inf, 1, kNan, inf}).value();
  ASSERT_THAT(
      kernels::axpby(stream, 1, as_tensor<const float>(x, {4}), 1, as_tensor<float>(y, {4})),
      IsOk());
  const std::vector<float> sums = y.download<float>(stream).value();
  EXPECT_TRUE(std::isnan(sums[0]));
  EXPECT_TRUE(std::isnan(sums[1]));
  EXPECT_TRUE(std::isnan(sums[2]));
  EXPECT_EQ(sums[3], inf);
}

class AxpbyOfMany : public testing::TestWithParam<int64_t> {};
// As many as 32 bits count, where the last tile's end is beyond them, and more.
INSTANTIATE_TEST_SUITE_P(Around2To31, AxpbyOfMany,
                         testing::Values((int64_t{1} << 31) - 1, (int64_t{1} << 31) + 5));

TEST_P(AxpbyOfMany, Elements) {
  HEDDLE_SKIP_WITHOUT_GPU();
  const int64_t count = GetParam();
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  Buffer x = device.allocate(count * sizeof(bfloat16)).value();
  ASSERT_THAT(x.fill(stream, 0), IsOk());
  const std::vector<bfloat16> tail(5, bfloat16(1.5));
  ASSERT_THAT(x.copy_from_host(stream, tail.data(), 10, (count - 5) * sizeof(bfloat16)), IsOk());
  const auto y = as_tensor<bfloat16>(x, {count});
  ASSERT_THAT(kernels::axpby(stream, 2, as_tensor<const bfloat16>(x, {count}), 1, y), IsOk());
  std::vector<bfloat16> last(6);
  ASSERT_THAT(x.copy_to_host(stream, last.data(), 12, (count - 6) * sizeof(bfloat16)), IsOk());
  ASSERT_THAT(stream.synchronize(), IsOk());
  EXPECT_EQ(last[0].to_float(), 0);
  for (int i = 1; i < 6; ++i) EXPECT_EQ(last[i].to_float(), 4.5f);
}

TEST(AxpbyTest, ExtentsMustAgree) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.allocate(16).value();
  const Status status =
      kernels::axpby(stream, 1, as_tensor<const float>(x, {4}), 1, as_tensor<float>(x, {3}));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "axpby: x has 4 elements and y 3; both need the same number");
}

}  // namespace
}  // namespace heddle
