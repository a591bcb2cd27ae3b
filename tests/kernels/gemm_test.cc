// gemm against double precision: element types, odd shapes, K that ends inside of a block.
#include "heddle/kernels/gemm.h"

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

bool has_wgmma() {
  const DeviceInfo& info = test_device().info();
  return info.cluster_launch && (info.compute_major == 9 || test_device().name() == "interp");
}

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
  const Buffer d_memory = device.allocate(static_cast<size_t>(m * n) * sizeof(T)).value();
  const auto run = [&] {
    return kernels::gemm(stream, as_tensor<const T>(a_memory, {m, k}),
                         as_tensor<const T>(b_memory, {n, k}), as_tensor<T>(d_memory, {m, n}));
  };
  ASSERT_THAT(run(), IsOk());
  const std::vector<T> d = d_memory.download<T>(stream).value();
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      double sum = 0, magnitude = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double product = double{a[row * k + i].to_float()} * b[column * k + i].to_float();
        sum += product;
        magnitude += std::abs(product);
      }
      const double got = d[row * n + column].to_float();
      // The tensor cores add with fewer bits than f32 has.
      ASSERT_NEAR(got, sum, kUnit<T> * std::abs(sum) + magnitude * 0x1p-20 + 1e-30)
          << row << " " << column;
    }
  }
}

TEST(Gemm, MultipliesTilesAndWhatIsLeft) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  check_gemm<bfloat16>(256, 256, 64);
  check_gemm<half>(256, 256, 192);
  check_gemm<bfloat16>(100, 72, 40);
  check_gemm<bfloat16>(1, 8, 8);
  check_gemm<half>(300, 520, 136);
}

TEST(Gemm, RunsThroughTheStagesSeveralTimes) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  check_gemm<bfloat16>(130, 264, 64 * 8 + 8);
}

// And the interpreter has nothing to say against it.
TEST(Gemm, ComputesTheSameWheneverItsCopiesComplete) {
  const Device device = Device::open_private_interp(Device::open("interp").value().info());
  const Stream stream = device.create_stream().value();
  constexpr int64_t kRows = 300, kColumns = 264, kDepth = 64 * 7 + 8;
  std::vector<half> a, b;
  for (int64_t i = 0; i < kRows * kDepth; ++i) a.emplace_back(static_cast<float>(i % 13) - 6);
  for (int64_t i = 0; i < kColumns * kDepth; ++i) b.emplace_back(static_cast<float>(i % 11) - 5);
  const Buffer a_memory = device.upload<half>(a).value();
  const Buffer b_memory = device.upload<half>(b).value();
  const Buffer d_memory = device.allocate(kRows * kColumns * sizeof(half)).value();
  std::vector<uint16_t> first;
  for (const char* const when : {"early", "late", "seed:1", "seed:2", "seed:3"}) {
    SCOPED_TRACE(when);
    ASSERT_THAT(device.set_completion(when), IsOk());
    ASSERT_THAT(kernels::gemm(stream, as_tensor<const half>(a_memory, {kRows, kDepth}),
                              as_tensor<const half>(b_memory, {kColumns, kDepth}),
                              as_tensor<half>(d_memory, {kRows, kColumns})),
                IsOk());
    const std::vector<uint16_t> d = d_memory.download<uint16_t>(stream).value();
    if (first.empty()) first = d;
    EXPECT_EQ(d, first);
  }
}

TEST(Gemm, OfManyTilesForEachCluster) {
  if (!has_wgmma() || test_device().name() == "interp") GTEST_SKIP() << "for a GPU of sm_90a";
  check_gemm<bfloat16>(4096, 8192, 64);
  check_gemm<half>(2304, 4104, 200);
}

TEST(Gemm, SaysWhatDoesNotFit) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer memory = device.upload<half>(std::vector<half>(4096, half(1.0f))).value();
  const auto refusal = [&](int64_t m, int64_t n, int64_t k, int64_t n_of_d) {
    return std::string(kernels::gemm(stream, as_tensor<const half>(memory, {m, k}),
                                     as_tensor<const half>(memory, {n, k}),
                                     as_tensor<half>(memory, {m, n_of_d}))
                           .message());
  };
  EXPECT_THAT(refusal(8, 16, 8, 8),
              HasSubstr("gemm: a is 8 x 8, b 16 x 8 and d 8 x 8; a takes m x k, "
                        "b n x k and d m x n, with k above 0"));
  EXPECT_THAT(refusal(8, 8, 9, 8), HasSubstr("the tensor map of 'a' needs strides of a positive "
                                             "multiple of 16 bytes"));
  EXPECT_EQ(refusal(0, 8, 8, 8), "");
}

}  // namespace
}  // namespace heddle
