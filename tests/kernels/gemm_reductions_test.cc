// Reductions of a product's rows and columns in its epilogue, against the product itself.
#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/kernels/gemm/fused.h"
#include "heddle/kernels/gemm/reductions.h"
#include "kernels/gemm_operands.h"
#include "support/matchers.h"

namespace heddle {
namespace {

TEST(GemmReductions, OfRowsAndColumns) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  constexpr int64_t kDepth = 40;
  // Rows and columns that end inside of a part.
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>(150, 140), {64, 256}, {5, 20}}) {
    SCOPED_TRACE(testing::Message() << m << " x " << n);
    const Matrices<half> a(1, m, kDepth, true, 1), b(1, n, kDepth, true, 2);
    const int64_t row_parts = (n + 31) / 32, column_parts = (m + 15) / 16;
    const Matrices<float> d(1, m, n, true, 3), sums(1, m, row_parts, true, 4),
        peaks(1, column_parts, n, true, 5);
    const auto epilogue = [](const kernels::GemmPart& part, const Fragment<float>& product,
                             Tensor<float, 2> of_rows, Tensor<float, 2> of_columns) {
      // Elements outside of the result are not those of an empty product.
      const Fragment<float> linear = product + 1.0f;
      kernels::reduce_rows(part, linear, of_rows, plus(), 0.0f);
      kernels::reduce_columns(part, abs(linear), of_columns, maximum(), 0.0f);
      return linear;
    };
    const Stream stream = test_device().create_stream().value();
    ASSERT_THAT(kernels::gemm_with(stream, epilogue, TensorRef<const half, 2>(matrix(a.ref())),
                                   TensorRef<const half, 2>(matrix(b.ref())), matrix(d.ref()),
                                   matrix(sums.ref()), matrix(peaks.ref())),
                IsOk());
    const std::vector<float> got = d.memory.download<float>(stream).value();
    const auto element = [&](int64_t row, int64_t column) {
      return static_cast<double>(got[static_cast<size_t>(row * d.row + column)]);
    };
    const std::vector<float> got_sums = sums.memory.download<float>(stream).value();
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t i = 0; i < sums.row; ++i) {
        const float found = got_sums[static_cast<size_t>(row * sums.row + i)];
        if (i >= row_parts) {
          ASSERT_EQ(found, sums.at(0, row, i)) << row << " " << i;
          continue;
        }
        double sum = 0, magnitude = 0;
        for (int64_t column = 32 * i; column < std::min(32 * i + 32, n); ++column) {
          sum += element(row, column);
          magnitude += std::abs(element(row, column));
        }
        ASSERT_NEAR(found, sum, magnitude * 0x1p-21) << row << " " << i;
      }
    }
    const std::vector<float> got_peaks = peaks.memory.download<float>(stream).value();
    for (int64_t i = 0; i < column_parts; ++i) {
      for (int64_t column = 0; column < n; ++column) {
        double peak = 0;
        for (int64_t row = 16 * i; row < std::min(16 * i + 16, m); ++row) {
          peak = std::max(peak, std::abs(element(row, column)));
        }
        ASSERT_EQ(got_peaks[static_cast<size_t>(i * peaks.row + column)], peak)
            << i << " " << column;
      }
    }
  }
}

}  // namespace
}  // namespace heddle
