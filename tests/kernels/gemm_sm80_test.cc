// gemm_sm80 against double precision: element types, odd shapes, depths that end inside of a block.
#include "heddle/kernels/gemm_sm80.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

template <class T>
constexpr double kUnit = std::is_same_v<T, half> ? 0x1p-11 : 0x1p-8;

template <class T>
void check_gemm(int64_t m, int64_t n, int64_t k) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
  std::mt19937 random(static_cast<unsigned>(m * 31 + n * 7 + k));
  std::uniform_real_distribution<float> uniform(-1, 1);
  const auto numbers = [&](int64_t count) {
    std::vector<T> values;
    for (int64_t i = 0; i < count; ++i) values.emplace_back(uniform(random));
    return values;
  };
  const std::vector<T> a = numbers(m * k), b = numbers(n * k);
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer a_memory = device.upload<T>(a).value();
  const Buffer b_memory = device.upload<T>(b).value();
  // A row more, which stays as it is.
  const Buffer d_memory =
      device.upload<T>(std::vector<T>(static_cast<size_t>((m + 1) * n), T(77.0f))).value();
  ASSERT_THAT(
      kernels::gemm_sm80(stream, as_tensor<const T>(a_memory, {m, k}),
                         as_tensor<const T>(b_memory, {n, k}), as_tensor<T>(d_memory, {m, n})),
      IsOk());
  const std::vector<T> d = d_memory.download<T>(stream).value();
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double product = double{a[row * k + i].to_float()} * b[column * k + i].to_float();
        sum += product;
        magnitude += std::abs(product);
      }
      // The tensor cores add with fewer bits than f32 has.
      ASSERT_NEAR(d[row * n + column].to_float(), sum,
                  kUnit<T> * std::abs(sum) + magnitude * 0x1p-20 + 1e-30)
          << row << " " << column;
    }
  }
  for (int64_t column = 0; column < n; ++column) ASSERT_EQ(d[m * n + column].to_float(), 77.0f);
}

TEST(GemmSm80, MultipliesTilesAndWhatIsLeft) {
  check_gemm<bfloat16>(128, 128, 32);
  check_gemm<half>(256, 128, 200);
  check_gemm<bfloat16>(100, 72, 40);
  check_gemm<bfloat16>(1, 3, 8);
  check_gemm<half>(131, 257, 136);
  check_gemm<half>(7, 5, 24);
}

TEST(GemmSm80, RunsThroughTheStagesSeveralTimes) { check_gemm<bfloat16>(33, 130, 32 * 11 + 8); }

TEST(GemmSm80, OfManyTilesInStrips) {
  if (test_device().name() == "interp") GTEST_SKIP() << "for a GPU";
  check_gemm<bfloat16>(2056, 1100, 64);
}

TEST(GemmSm80, SaysWhatDoesNotFit) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer memory = device.upload<half>(std::vector<half>(4096, half(1.0f))).value();
  const auto refusal = [&](int64_t m, int64_t n, int64_t k, int64_t n_of_d) {
    return std::string(kernels::gemm_sm80(stream, as_tensor<const half>(memory, {m, k}),
                                          as_tensor<const half>(memory, {n, k}),
                                          as_tensor<half>(memory, {m, n_of_d}))
                           .message());
  };
  EXPECT_THAT(refusal(8, 16, 8, 8),
              HasSubstr("gemm_sm80: a is 8 x 8, b 16 x 8 and d 8 x 8; a takes m x k, "
                        "b n x k and d m x n, with k above 0"));
  EXPECT_THAT(refusal(8, 8, 9, 8), HasSubstr("and k, which is 9, is a multiple of 8"));
  EXPECT_EQ(refusal(0, 8, 8, 8), "");
}

}  // namespace
}  // namespace heddle
