// Products of groups against double precision: groups that are empty, begin anywhere, and end inside of
// tiles; what lies behind them is left alone.
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/gemm/grouped.h"
#include "kernels/gemm_operands.h"
#include "support/matchers.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

// The element of a product in double precision, and the sum of the magnitudes.
struct Exact {
  double sum = 0, magnitude = 0;
};
template <class T>
Exact exact(const Matrices<T>& a, int64_t a_batch, int64_t row, const Matrices<T>& b, int64_t group,
            int64_t column) {
  Exact found;
  for (int64_t k = 0; k < a.columns; ++k) {
    const double product = a.at(a_batch, row, k) * b.at(group, column, k);
    found.sum += product;
    found.magnitude += std::abs(product);
  }
  return found;
}

struct Case {
  std::vector<int32_t> heights;
  int64_t n, k;
  int64_t behind = 0;  // rows that belong to no group
  bool b_along_k = true;
};

int64_t sum_of(const std::vector<int32_t>& heights) {
  int64_t sum = 0;
  for (const int32_t height : heights) sum += height;
  return sum;
}

template <class T, class D>
void check_grouped(const Case& c, double precision = kSums) {
  const auto groups = static_cast<int64_t>(c.heights.size());
  SCOPED_TRACE(testing::Message() << groups << " groups, " << c.n << " x " << c.k);
  const int64_t m = sum_of(c.heights) + c.behind;
  const Matrices<T> a(1, m, c.k, true, 1), b(groups, c.n, c.k, c.b_along_k, 2);
  const Matrices<D> d(1, m, c.n, true, 3);
  std::vector<int32_t> ends;
  for (const int32_t height : c.heights) ends.push_back((ends.empty() ? 0 : ends.back()) + height);
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer ends_memory = device.upload<int32_t>(ends).value();
  ASSERT_THAT(kernels::gemm_grouped(stream, TensorRef<const T, 2>(matrix(a.ref())),
                                    TensorRef<const T, 3>(b.ref()), matrix(d.ref()),
                                    as_tensor<const int32_t>(ends_memory, {groups})),
              IsOk());
  const std::vector<D> got = d.memory.template download<D>(stream).value();
  int64_t group = 0;
  for (int64_t row = 0; row < m; ++row) {
    while (group < groups && row >= ends[static_cast<size_t>(group)]) ++group;
    for (int64_t column = 0; column < d.row; ++column) {
      const double found = number(got[static_cast<size_t>(row * d.row + column)]);
      if (group == groups || column >= c.n) {
        ASSERT_EQ(found, d.at(0, row, column)) << row << " " << column;
        continue;
      }
      const Exact wanted = exact(a, 0, row, b, group, column);
      ASSERT_NEAR(found, wanted.sum,
                  unit<D>() * std::abs(wanted.sum) + wanted.magnitude * precision + 1e-30)
          << row << " of group " << group << ", " << column;
    }
  }
}

template <class T, class D>
void check_masked(const Case& c, int64_t most, double precision = kSums) {
  const auto groups = static_cast<int64_t>(c.heights.size());
  SCOPED_TRACE(testing::Message() << groups << " groups, " << c.n << " x " << c.k);
  const Matrices<T> a(groups, most, c.k, true, 1), b(groups, c.n, c.k, c.b_along_k, 2);
  const Matrices<D> d(groups, most, c.n, true, 3);
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer rows = device.upload<int32_t>(c.heights).value();
  ASSERT_THAT(
      kernels::gemm_masked(stream, TensorRef<const T, 3>(a.ref()), TensorRef<const T, 3>(b.ref()),
                           d.ref(), as_tensor<const int32_t>(rows, {groups})),
      IsOk());
  const std::vector<D> got = d.memory.template download<D>(stream).value();
  for (int64_t group = 0; group < groups; ++group) {
    for (int64_t row = 0; row < most; ++row) {
      for (int64_t column = 0; column < d.row; ++column) {
        const double found =
            number(got[static_cast<size_t>(group * d.batch + row * d.row + column)]);
        if (row >= c.heights[static_cast<size_t>(group)] || column >= c.n) {
          ASSERT_EQ(found, d.at(group, row, column)) << group << " " << row << " " << column;
          continue;
        }
        const Exact wanted = exact(a, group, row, b, group, column);
        ASSERT_NEAR(found, wanted.sum,
                    unit<D>() * std::abs(wanted.sum) + wanted.magnitude * precision + 1e-30)
            << group << " " << row << " " << column;
      }
    }
  }
}

TEST(GroupedGemm, OfGroupsBehindEachOther) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  check_grouped<bfloat16, bfloat16>({{128, 128}, 64, 64});
  check_grouped<half, half>({{100, 0, 7, 161, 1, 0, 30}, 136, 72});
  check_grouped<bfloat16, bfloat16>({{0, 0, 5}, 40, 24, 9});
  check_grouped<half, half>({{65, 64, 3}, 77, 40, 1, false});  // rows of d that no box can store
  check_grouped<float8_e4m3, bfloat16>({{70, 190, 16}, 256, 144}, kFloat8Sums);
}

// More groups than a warp has lanes.
TEST(GroupedGemm, OfManyGroups) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  std::vector<int32_t> heights;
  for (int i = 0; i < 40; ++i) heights.push_back(i * 7 % 19);
  check_grouped<half, half>({heights, 24, 32});
  check_masked<half, half>({heights, 24, 32}, 20);
}

TEST(GroupedGemm, OfTheFirstRowsOfMatrices) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  check_masked<bfloat16, bfloat16>({{128, 0, 1, 77}, 64, 64}, 128);
  check_masked<half, half>({{200, 33}, 77, 40, 0, false}, 200);
  check_masked<float8_e4m3, bfloat16>({{3, 150}, 136, 144}, 160, kFloat8Sums);
}

// Ends that fall, or lie behind the matrix, leave rows out and touch no other memory.
TEST(GroupedGemm, OfEndsThatAreWrong) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  constexpr int64_t kGroups = 3, kRows = 95, kColumns = 40, kDepth = 32;
  const std::vector<int32_t> ends = {50, 30, 200};
  const Matrices<half> a(1, kRows, kDepth, true, 1), b(kGroups, kColumns, kDepth, true, 2);
  const Matrices<half> d(1, kRows, kColumns, true, 3);
  const Stream stream = test_device().create_stream().value();
  const Buffer ends_memory = test_device().upload<int32_t>(ends).value();
  ASSERT_THAT(kernels::gemm_grouped(stream, TensorRef<const half, 2>(matrix(a.ref())),
                                    TensorRef<const half, 3>(b.ref()), matrix(d.ref()),
                                    as_tensor<const int32_t>(ends_memory, {kGroups})),
              IsOk());
  const std::vector<half> got = d.memory.download<half>(stream).value();
  for (int64_t row = 50; row < kRows; ++row) {
    for (int64_t column = 0; column < kColumns; ++column) {
      const Exact wanted = exact(a, 0, row, b, 2, column);
      ASSERT_NEAR(number(got[static_cast<size_t>(row * d.row + column)]), wanted.sum,
                  unit<half>() * std::abs(wanted.sum) + wanted.magnitude * kSums);
    }
  }
}

TEST(GroupedGemm, OfNoRowsAtAll) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  check_grouped<half, half>({{0, 0, 0}, 16, 16, 5});
  check_masked<half, half>({{0, 0}, 16, 16}, 3);
}

// A vector for each group, and one with a stride.
TEST(GroupedGemm, EpiloguesGetTheirGroup) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  const std::vector<int32_t> ends = {30, 30, 90};
  constexpr int64_t kGroups = 3, kRows = 95, kColumns = 40, kDepth = 32;
  const Matrices<half> a(1, kRows, kDepth, true, 1), b(kGroups, kColumns, kDepth, true, 2);
  const Matrices<float> d(1, kRows, kColumns, true, 3), bias(1, kGroups, kColumns, true, 4),
      scale(1, kRows, 4, true, 5);
  const auto epilogue = [](const kernels::GemmPart& part, const Fragment<float>& sums,
                           Tensor<const float, 2> of_group, Tensor<const float, 1> of_row) {
    return (sums + part.by_column(of_group)) * part.by_row(of_row);
  };
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer ends_memory = device.upload<int32_t>(ends).value();
  ASSERT_THAT(
      kernels::gemm_grouped_with(stream, epilogue, TensorRef<const half, 2>(matrix(a.ref())),
                                 TensorRef<const half, 3>(b.ref()), matrix(d.ref()),
                                 as_tensor<const int32_t>(ends_memory, {kGroups}),
                                 TensorRef<const float, 2>(matrix(bias.ref())),
                                 TensorRef<const float, 1>(scale.ref().data, {kRows}, {scale.row})),
      IsOk());
  const std::vector<float> got = d.memory.download<float>(stream).value();
  int64_t group = 0;
  for (int64_t row = 90; row < kRows; ++row) {
    EXPECT_EQ(got[static_cast<size_t>(row * d.row)], d.at(0, row, 0)) << "row of no group: " << row;
  }
  for (int64_t row = 0; row < 90; ++row) {
    while (row >= ends[static_cast<size_t>(group)]) ++group;
    for (int64_t column = 0; column < kColumns; ++column) {
      const Exact product = exact(a, 0, row, b, group, column);
      const double wanted = (product.sum + bias.at(0, group, column)) * scale.at(0, row, 0);
      ASSERT_NEAR(got[static_cast<size_t>(row * d.row + column)], wanted,
                  0x1p-22 * std::abs(wanted) + product.magnitude * kSums)
          << row << " " << column;
    }
  }
}

TEST(GroupedGemm, SaysWhatDoesNotFit) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer memory = device.allocate(4096).value();
  const auto counts = [&](int64_t n) { return as_tensor<const int32_t>(memory, {n}); };
  const Status grouped = kernels::gemm_grouped(stream, as_tensor<const half>(memory, {8, 16}),
                                               as_tensor<const half>(memory, {3, 8, 16}),
                                               as_tensor<half>(memory, {8, 8}), counts(2));
  EXPECT_THAT(
      std::string(grouped.message()),
      HasSubstr("gemm of groups: a is 8 x 16, b 8 x 16 (3 of them) and d 8 x 8, and 2 groups "
                "are told of; b takes n x k for each group, a m x k and d m x n, with k above "
                "0"));
  const Status masked = kernels::gemm_masked(stream, as_tensor<const half>(memory, {2, 8, 16}),
                                             as_tensor<const half>(memory, {2, 8, 16}),
                                             as_tensor<half>(memory, {2, 8, 9}), counts(2));
  EXPECT_THAT(std::string(masked.message()),
              HasSubstr("b takes n x k for each group, and so does a m x k and d m x n"));
}

}  // namespace
}  // namespace heddle
