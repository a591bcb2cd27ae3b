// Products of scaled 8-bit floats against double precision: factors for rows and columns, and for blocks;
// blocks that end inside of a tile; groups.
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/gemm/scaled.h"
#include "kernels/gemm_operands.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kBlock = 128;

int64_t blocks_of(int64_t extent) { return (extent + kBlock - 1) / kBlock; }

// Operands with factors for blocks: `a_along_k` and so on say along which mode factors are contiguous.
struct Scaled {
  Scaled(int64_t batches, int64_t matrices, int64_t m, int64_t n, int64_t k, bool a_along_k,
         bool b_along_k)
      : a(batches, m, k, true, 1),
        b(matrices, n, k, true, 2),
        a_scale(batches, m, blocks_of(k), a_along_k, 3),
        b_scale(matrices, blocks_of(n), blocks_of(k), b_along_k, 4) {}

  // An element in double precision is within `*tolerance` of what this gives.
  double element(int64_t batch, int64_t group, int64_t row, int64_t column,
                 double* tolerance) const {
    double sum = 0;
    *tolerance = 1e-30;
    for (int64_t k = 0; k < a.columns; ++k) {
      const double factor =
          a_scale.at(batch, row, k / kBlock) * b_scale.at(group, column / kBlock, k / kBlock);
      const double product = a.at(batch, row, k) * b.at(group, column, k) * factor;
      sum += product;
      *tolerance += std::abs(product) * kFloat8Sums;
    }
    return sum;
  }

  Matrices<float8_e4m3> a, b;
  Matrices<float> a_scale, b_scale;
};

template <class D>
void check_blocks(int64_t m, int64_t n, int64_t k, bool a_along_k, bool b_along_k) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
  const Scaled x(1, 1, m, n, k, a_along_k, b_along_k);
  const Matrices<D> d(1, m, n, true, 5);
  const Stream stream = test_device().create_stream().value();
  ASSERT_THAT(
      kernels::gemm_scaled(stream, TensorRef<const float8_e4m3, 2>(matrix(x.a.ref())),
                           TensorRef<const float8_e4m3, 2>(matrix(x.b.ref())), matrix(d.ref()),
                           TensorRef<const float, 2>(matrix(x.a_scale.ref())),
                           TensorRef<const float, 2>(matrix(x.b_scale.ref()))),
      IsOk());
  const std::vector<D> got = d.memory.template download<D>(stream).value();
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      double tolerance;
      const double wanted = x.element(0, 0, row, column, &tolerance);
      ASSERT_NEAR(number(got[static_cast<size_t>(row * d.row + column)]), wanted,
                  tolerance + unit<D>() * std::abs(wanted))
          << row << " " << column;
    }
  }
}

TEST(ScaledGemm, OfBlocks) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  check_blocks<bfloat16>(128, 128, 128, true, true);
  check_blocks<float>(150, 200, 400, false, true);
  check_blocks<half>(70, 264, 1040, true, false);
  check_blocks<bfloat16>(1, 8, 16, false, false);
}

// So few multiprocessors that each cluster has several tiles, in every configuration.
TEST(ScaledGemm, OfEveryConfiguration) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  constexpr int64_t kM = 270, kN = 328, kK = 272;
  const Scaled x(1, 1, kM, kN, kK, true, true);
  const kernels::GemmProblem problem{.m = kM, .n = kN, .k = kK, .element_bytes = 1, .scaled = true};
  runtime::DeviceInfo device = test_device().info();
  device.sm_count = 2;
  const Stream stream = test_device().create_stream().value();
  std::vector<kernels::GemmConfig> configs = kernels::gemm_configs(problem, device);
  EXPECT_GE(configs.size(), 6u);
  for (const kernels::GemmConfig& config : configs) {
    SCOPED_TRACE(config.to_string());
    const Matrices<bfloat16> d(1, kM, kN, true, 5);
    const auto& kernel = kernels::hopper_gemm<kernels::BatchTiles, kernels::ScaledLoop, float8_e4m3,
                                              bfloat16, kernels::PlainSums>(config);
    ASSERT_THAT(
        kernel.launch(stream, kernels::gemm_shape(config, problem, device),
                      kernels::detail::in_batches(TensorRef<const float8_e4m3, 3>(x.a.ref())),
                      kernels::detail::in_batches(TensorRef<const float8_e4m3, 3>(x.b.ref())),
                      kernels::detail::in_batches(d.ref()),
                      kernels::detail::in_batches(TensorRef<const float, 3>(x.a_scale.ref())),
                      kernels::detail::in_batches(TensorRef<const float, 3>(x.b_scale.ref()))),
        IsOk());
    const std::vector<bfloat16> got = d.memory.download<bfloat16>(stream).value();
    for (int64_t row = 0; row < kM; row += 7) {
      for (int64_t column = 0; column < kN; ++column) {
        double tolerance;
        const double wanted = x.element(0, 0, row, column, &tolerance);
        ASSERT_NEAR(number(got[static_cast<size_t>(row * d.row + column)]), wanted,
                    tolerance + unit<bfloat16>() * std::abs(wanted))
            << row << " " << column;
      }
    }
  }
}

TEST(ScaledGemm, OfRowsAndColumns) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  constexpr int64_t kM = 140, kN = 72, kK = 144;
  const Matrices<float8_e4m3> a(1, kM, kK, true, 1), b(1, kN, kK, true, 2);
  const Matrices<float> rows(1, 1, kM, true, 3), columns(1, 1, kN, true, 4);
  const Matrices<float> d(1, kM, kN, true, 5);
  const Stream stream = test_device().create_stream().value();
  ASSERT_THAT(
      kernels::gemm_scaled(stream, TensorRef<const float8_e4m3, 2>(matrix(a.ref())),
                           TensorRef<const float8_e4m3, 2>(matrix(b.ref())), matrix(d.ref()),
                           TensorRef<const float, 1>(rows.ref().data, {kM}),
                           TensorRef<const float, 1>(columns.ref().data, {kN})),
      IsOk());
  const std::vector<float> got = d.memory.download<float>(stream).value();
  for (int64_t row = 0; row < kM; ++row) {
    for (int64_t column = 0; column < kN; ++column) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < kK; ++k) {
        const double product = a.at(0, row, k) * b.at(0, column, k);
        sum += product;
        magnitude += std::abs(product);
      }
      const double factor = rows.at(0, 0, row) * columns.at(0, 0, column);
      ASSERT_NEAR(got[static_cast<size_t>(row * d.row + column)], sum * factor,
                  magnitude * std::abs(factor) * kFloat8Sums + 1e-30)
          << row << " " << column;
    }
  }
}

TEST(ScaledGemm, OfGroups) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  constexpr int64_t kGroups = 3, kM = 150, kN = 136, kK = 272;
  const Stream stream = test_device().create_stream().value();
  const std::vector<int32_t> ends = {33, 33, 145}, heights = {33, 0, 150};
  const Buffer ends_memory = test_device().upload<int32_t>(ends).value();
  const Buffer heights_memory = test_device().upload<int32_t>(heights).value();
  double tolerance;
  {
    const Scaled x(1, kGroups, kM, kN, kK, false, true);
    const Matrices<bfloat16> d(1, kM, kN, true, 5);
    ASSERT_THAT(
        kernels::gemm_grouped_scaled(stream, TensorRef<const float8_e4m3, 2>(matrix(x.a.ref())),
                                     TensorRef<const float8_e4m3, 3>(x.b.ref()), matrix(d.ref()),
                                     as_tensor<const int32_t>(ends_memory, {kGroups}),
                                     TensorRef<const float, 2>(matrix(x.a_scale.ref())),
                                     TensorRef<const float, 3>(x.b_scale.ref())),
        IsOk());
    const std::vector<bfloat16> got = d.memory.download<bfloat16>(stream).value();
    size_t group = 0;
    for (int64_t row = 0; row < kM; ++row) {
      while (group < ends.size() && row >= ends[group]) ++group;
      for (int64_t column = 0; column < kN; ++column) {
        const double found = number(got[static_cast<size_t>(row * d.row + column)]);
        if (group == ends.size()) {
          ASSERT_EQ(found, d.at(0, row, column));
          continue;
        }
        const double wanted = x.element(0, static_cast<int64_t>(group), row, column, &tolerance);
        ASSERT_NEAR(found, wanted, tolerance + unit<bfloat16>() * std::abs(wanted))
            << row << " " << column;
      }
    }
  }
  const Scaled x(kGroups, kGroups, kM, kN, kK, true, false);
  const Matrices<float> d(kGroups, kM, kN, true, 5);
  ASSERT_THAT(kernels::gemm_masked_scaled(stream, TensorRef<const float8_e4m3, 3>(x.a.ref()),
                                          TensorRef<const float8_e4m3, 3>(x.b.ref()), d.ref(),
                                          as_tensor<const int32_t>(heights_memory, {kGroups}),
                                          TensorRef<const float, 3>(x.a_scale.ref()),
                                          TensorRef<const float, 3>(x.b_scale.ref())),
              IsOk());
  const std::vector<float> got = d.memory.download<float>(stream).value();
  for (int64_t group = 0; group < kGroups; ++group) {
    for (int64_t row = 0; row < kM; ++row) {
      for (int64_t column = 0; column < kN; ++column) {
        const double found = got[static_cast<size_t>(group * d.batch + row * d.row + column)];
        if (row >= heights[static_cast<size_t>(group)]) {
          ASSERT_EQ(found, d.at(group, row, column));
          continue;
        }
        const double wanted = x.element(group, group, row, column, &tolerance);
        ASSERT_NEAR(found, wanted, tolerance) << group << " " << row << " " << column;
      }
    }
  }
}

TEST(ScaledGemm, SaysWhatDoesNotFit) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer memory = device.allocate(1 << 16).value();
  const auto a = as_tensor<const float8_e4m3>(memory, {8, 144});
  const Buffer results = device.allocate(1 << 10).value();
  const auto d = as_tensor<bfloat16>(results, {8, 8});
  const auto factors = [&](int64_t rows, int64_t columns) {
    return as_tensor<const float>(memory, {rows, columns});
  };
  const auto refusal = [](const Status& status) { return std::string(status.message()); };
  EXPECT_EQ(
      refusal(kernels::gemm_scaled(stream, a, a, d, factors(8, 2), factors(8, 2))),
      "gemm: a_scale is 8 x 2 and b_scale 8 x 2; for blocks of 128 along k, and of 128 rows of "
      "b, they are 8 x 2 and 1 x 2");
  EXPECT_EQ(
      refusal(kernels::gemm_scaled(stream, a, a, d, factors(8, 1), factors(1, 2))),
      "gemm: a_scale is 8 x 1 and b_scale 1 x 2; for blocks of 128 along k, and of 128 rows of "
      "b, they are 8 x 2 and 1 x 2");
  EXPECT_EQ(refusal(kernels::gemm_scaled(stream, a, a, d, as_tensor<const float>(memory, {9}),
                                         as_tensor<const float>(memory, {8}))),
            "gemm: a_scale has 9 elements and b_scale 8; one for each row of d and one for each "
            "column are 8 and 8");
}

}  // namespace
}  // namespace heddle
