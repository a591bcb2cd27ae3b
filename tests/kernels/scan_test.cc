// scan against double precision, and i32 exactly: rows of lanes, of a block, of many blocks; alignments; exclusive.
#include "heddle/kernels/scan/scan.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using kernels::Prefix;

template <class T>
void check_scan(const RowsAt& shape, float mean = 0.25f, float spread = 1) {
  for (const Prefix prefix : {Prefix::kInclusive, Prefix::kExclusive}) {
    SCOPED_TRACE(prefix == Prefix::kInclusive ? "inclusive" : "exclusive");
    check_rows<T>(
        shape, mean, spread,
        [&](const Stream& stream, const auto& x, const auto& y) {
          return kernels::scan<T>(stream, prefix, x, y);
        },
        [&](const std::vector<double>& x, const std::vector<double>& y) {
          double sum = 0, magnitude = 0;
          // Roundings on the way of a term: in a vector, to a lane, a warp, a tile, a group of tiles, over groups.
          const double steps = (64 + static_cast<double>(x.size()) / (1 << 19)) * 0x1p-24;
          for (size_t c = 0; c < x.size(); ++c) {
            const double before = sum, magnitude_before = magnitude;
            sum += x[c], magnitude += std::abs(x[c]);
            const bool inclusive = prefix == Prefix::kInclusive;
            const double exact = inclusive ? sum : before,
                         error = steps * (inclusive ? magnitude : magnitude_before);
            ASSERT_NEAR(y[c], exact, error + (std::abs(exact) + error) * kStep<T> + kLeast<T>)
                << "column " << c;
          }
        });
  }
}

template <class T>
class Scans : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(Scans, Types);

TYPED_TEST(Scans, OfRowsOfEveryLength) {
  for (const RowsAt& shape :
       {RowsAt{0, 5}, RowsAt{5, 0}, RowsAt{1, 1}, RowsAt{300, 1}, RowsAt{129, 3}, RowsAt{3, 31},
        RowsAt{65, 32}, RowsAt{7, 33}, RowsAt{9, 127}, RowsAt{2, 512}, RowsAt{5, 513},
        RowsAt{2, 1000}, RowsAt{3, 1023}, RowsAt{2, 4096}, RowsAt{3, 8191}, RowsAt{2, 8193},
        RowsAt{1, 16385}, RowsAt{3, 70001}}) {
    check_scan<TypeParam>(shape, 0.01f, 0.1f);
  }
}

TYPED_TEST(Scans, OfRowsThatAreNotAligned) {
  check_scan<TypeParam>({4, 1000, {1001}, {1001}}, 0.01f, 0.1f);
  check_scan<TypeParam>({4, 1000, {1008, 1}, {1016, 1}}, 0.01f, 0.1f);
  check_scan<TypeParam>({4, 1000, {1001}, {1000}}, 0.01f, 0.1f);
  check_scan<TypeParam>({2, 20000, {20001}, {20008}}, 0.01f, 0.1f);
  check_scan<TypeParam>({5, 17, {17}, {32, 1}}, 0.01f, 0.1f);
  check_scan<TypeParam>({5, 20, {24}, {40}}, 0.01f, 0.1f);
}

std::vector<int32_t> scanned(const std::vector<int32_t>& x, int64_t rows, int64_t columns,
                             Prefix prefix, bool in_place) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer from = device.upload(absl::MakeConstSpan(x)).value(),
               to = device.allocate(x.size() * sizeof(int32_t)).value();
  const Buffer& out = in_place ? from : to;
  EXPECT_THAT(
      kernels::scan<int32_t>(stream, prefix, as_tensor<const int32_t>(from, {rows, columns}),
                             as_tensor<int32_t>(out, {rows, columns})),
      IsOk());
  return out.download<int32_t>(stream).value();
}

// Several groups of tiles, whose sums wrap around.
TEST(Scan, OfIntegersIsExact) {
  constexpr int64_t kColumns = 8192 * 70 + 13;
  for (const int64_t rows : {1, 3}) {
    for (const Prefix prefix : {Prefix::kInclusive, Prefix::kExclusive}) {
      std::vector<int32_t> x;
      uint32_t state = 1;
      for (int64_t i = 0; i < rows * kColumns; ++i) {
        state = state * 1664525u + 1013904223u;
        x.push_back(static_cast<int32_t>(state));
      }
      for (const bool in_place : {false, true}) {
        const std::vector<int32_t> y = scanned(x, rows, kColumns, prefix, in_place);
        for (int64_t r = 0; r < rows; ++r) {
          uint32_t sum = 0;
          for (int64_t c = 0; c < kColumns; ++c) {
            const uint32_t before = sum;
            sum += static_cast<uint32_t>(x[r * kColumns + c]);
            ASSERT_EQ(static_cast<uint32_t>(y[r * kColumns + c]),
                      prefix == Prefix::kInclusive ? sum : before)
                << r << ", " << c;
          }
        }
      }
    }
  }
}

// Where tiles are many, who is done first does not change a bit.
TEST(Scan, GivesTheSameBitsAgain) {
  constexpr int64_t kColumns = 8192 * 300;
  const auto x = random_elements<float>(kColumns, 0, 1000, 1);
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer from = device.upload(absl::MakeConstSpan(x)).value(),
               to = device.allocate(x.size() * sizeof(float)).value();
  std::vector<float> first;
  for (int i = 0; i < (on_gpu() ? 20 : 2); ++i) {
    ASSERT_THAT(kernels::scan<float>(stream, Prefix::kInclusive,
                                     as_tensor<const float>(from, {int64_t{1}, kColumns}),
                                     as_tensor<float>(to, {int64_t{1}, kColumns})),
                IsOk());
    const std::vector<float> y = to.download<float>(stream).value();
    if (first.empty()) first = y;
    ASSERT_EQ(y, first);
  }
}

TEST(Scan, KeepsWhatIsNoNumberBehindItsPlace) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<float> x(100, 1.0f);
  x[40] = std::numeric_limits<float>::infinity();
  x[70] = -std::numeric_limits<float>::infinity();
  const Buffer from = device.upload(absl::MakeConstSpan(x)).value(),
               to = device.allocate(x.size() * sizeof(float)).value();
  ASSERT_THAT(kernels::scan<float>(stream, Prefix::kInclusive,
                                   as_tensor<const float>(from, {int64_t{1}, int64_t{100}}),
                                   as_tensor<float>(to, {int64_t{1}, int64_t{100}})),
              IsOk());
  const std::vector<float> y = to.download<float>(stream).value();
  for (int i = 0; i < 100; ++i) {
    const float to_here =
        i < 40 ? static_cast<float>(i + 1) : std::numeric_limits<float>::infinity();
    if (i < 70) {
      ASSERT_EQ(y[i], to_here);
    } else {
      ASSERT_TRUE(std::isnan(y[i]));
    }
  }
}

TEST(Scan, SaysWhatDoesNotFit) {
  const Stream stream = test_device().create_stream().value();
  const Buffer memory = test_device().allocate(4096).value();
  EXPECT_THAT(
      kernels::scan<float>(stream, Prefix::kInclusive, as_tensor<const float>(memory, {4, 8}),
                           as_tensor<float>(memory, {4, 7})),
      Fails(StatusCode::kInvalidArgument, "scan: x is 4 × 8 and y 4 × 7"));
  constexpr int64_t kRows = int64_t{1} << 31;
  EXPECT_THAT(kernels::scan<float>(stream, Prefix::kInclusive, {nullptr, {kRows, 1}, {1, 1}},
                                   {nullptr, {kRows, 1}, {1, 1}}),
              Fails(StatusCode::kInvalidArgument, "scan: 2147483648 rows; it takes 0 to"));
}

}  // namespace
}  // namespace heddle
