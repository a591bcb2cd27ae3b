// segmented_scan against double precision, and i32 exactly: rows of lanes, of a block, of many blocks; segments of every
// length; alignments of elements and of flags; exclusive.
#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/kernels/scan/scan.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using kernels::Prefix;

// Rows, and where x, heads and y begin: an offset and what the pitch has beyond the columns.
struct Places {
  int64_t rows, columns, offset = 0, beyond = 0, heads_offset = 0, heads_beyond = 0;
};

// `of`: a segment begins at one place in so many, at random; 0: nowhere.
std::vector<uint8_t> flags(size_t count, int of) {
  std::mt19937 random(5);
  std::vector<uint8_t> all(count);
  for (uint8_t& flag : all)
    flag = of > 0 && random() % of == 0 ? static_cast<uint8_t>(random() | 4) : 0;
  return all;
}

// What the elements of y are, row after row.
template <class T>
std::vector<T> scanned(const Places& at, Prefix prefix, const std::vector<T>& x,
                       const std::vector<uint8_t>& heads) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer from = device.upload(absl::MakeConstSpan(x)).value(),
               to = device.upload(absl::MakeConstSpan(x)).value(),
               begins = device.upload(absl::MakeConstSpan(heads)).value();
  const auto matrix = [&]<class E>(const Buffer& buffer, int64_t offset, int64_t beyond) {
    return TensorRef<E, 2>(reinterpret_cast<E*>(buffer.address()) + offset, {at.rows, at.columns},
                           {at.columns + beyond, 1});
  };
  EXPECT_THAT(
      kernels::segmented_scan<T>(
          stream, prefix, matrix.template operator()<const T>(from, at.offset, at.beyond),
          matrix.template operator()<const uint8_t>(begins, at.heads_offset, at.heads_beyond),
          matrix.template operator()<T>(to, at.offset, at.beyond)),
      IsOk());
  const std::vector<T> y = to.template download<T>(stream).value();
  std::vector<T> result;
  for (int64_t r = 0; r < at.rows; ++r) {
    const auto row = y.begin() + at.offset + r * (at.columns + at.beyond);
    result.insert(result.end(), row, row + at.columns);
  }
  return result;
}

template <class T>
void check(const Places& at) {
  const int64_t count = at.offset + at.rows * (at.columns + at.beyond) + 1,
                flag_count = at.heads_offset + at.rows * (at.columns + at.heads_beyond) + 1;
  const auto x = random_elements<T>(count, 0.01f, 0.1f, 1);
  for (const int of : {0, 1, 3, 200}) {
    const auto heads = flags(static_cast<size_t>(flag_count), of);
    for (const Prefix prefix : {Prefix::kInclusive, Prefix::kExclusive}) {
      const bool inclusive = prefix == Prefix::kInclusive;
      SCOPED_TRACE(testing::Message() << at.rows << " x " << at.columns << ", one in " << of
                                      << (inclusive ? "" : ", exclusive"));
      const auto y = scanned<T>(at, prefix, x, heads);
      const double steps = (64 + static_cast<double>(at.columns) / (1 << 19)) * 0x1p-24;
      for (int64_t r = 0; r < at.rows; ++r) {
        double sum = 0, magnitude = 0;
        for (int64_t c = 0; c < at.columns; ++c) {
          if (heads[at.heads_offset + r * (at.columns + at.heads_beyond) + c] != 0) {
            sum = magnitude = 0;
          }
          const double before = sum, magnitude_before = magnitude;
          const double v = static_cast<float>(x[at.offset + r * (at.columns + at.beyond) + c]);
          sum += v, magnitude += std::abs(v);
          const double exact = inclusive ? sum : before,
                       error = steps * (inclusive ? magnitude : magnitude_before);
          ASSERT_NEAR(static_cast<float>(y[r * at.columns + c]), exact,
                      error + (std::abs(exact) + error) * kStep<T> + kLeast<T>)
              << r << ", " << c;
        }
      }
    }
  }
}

template <class T>
class SegmentedScans : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(SegmentedScans, Types);

TYPED_TEST(SegmentedScans, OfRowsOfEveryLength) {
  for (const Places& at :
       {Places{0, 5}, Places{5, 0}, Places{1, 1}, Places{300, 1}, Places{129, 3}, Places{65, 32},
        Places{7, 33}, Places{9, 127}, Places{2, 512}, Places{3, 1023}, Places{2, 4096},
        Places{2, 8193}, Places{1, 16385}, Places{3, 70001}}) {
    check<TypeParam>(at);
  }
}
TYPED_TEST(SegmentedScans, OfRowsThatAreNotAligned) {
  check<TypeParam>({4, 1000, 0, 1, 0, 1});
  check<TypeParam>({4, 1000, 1, 24, 1, 24});
  check<TypeParam>({4, 1000, 0, 0, 3, 0});
  check<TypeParam>({2, 20000, 5, 1, 5, 1});
  check<TypeParam>({2, 20000, 0, 0, 0, 7});
}

// Several groups of tiles, and segments longer than these.
TEST(SegmentedScan, OfIntegersIsExact) {
  constexpr int64_t kColumns = 8192 * 70 + 13;
  std::vector<int32_t> x;
  std::mt19937 random(1);
  for (int64_t i = 0; i < 2 * kColumns; ++i) x.push_back(static_cast<int32_t>(random()));
  for (const int of : {0, 7, 5000, 200000}) {
    const auto heads = flags(x.size(), of);
    for (const Prefix prefix : {Prefix::kInclusive, Prefix::kExclusive}) {
      const auto y = scanned<int32_t>({2, kColumns}, prefix, x, heads);
      uint32_t sum = 0;
      for (int64_t i = 0; i < 2 * kColumns; ++i) {
        if (i % kColumns == 0 || heads[static_cast<size_t>(i)] != 0) sum = 0;
        const uint32_t before = sum;
        sum += static_cast<uint32_t>(x[static_cast<size_t>(i)]);
        ASSERT_EQ(static_cast<uint32_t>(y[static_cast<size_t>(i)]),
                  prefix == Prefix::kInclusive ? sum : before)
            << i << ", one in " << of;
      }
    }
  }
}

TEST(SegmentedScan, SaysWhatDoesNotFit) {
  const Stream stream = test_device().create_stream().value();
  const Buffer memory = test_device().allocate(4096).value();
  const auto x = as_tensor<const float>(memory, {4, 8});
  EXPECT_THAT(kernels::segmented_scan<float>(stream, Prefix::kInclusive, x,
                                             as_tensor<const uint8_t>(memory, {4, 7}),
                                             as_tensor<float>(memory, {4, 8})),
              Fails(StatusCode::kInvalidArgument,
                    "segmented_scan: x is 4 × 8 and heads 4 × 7; both need the same extents"));
  EXPECT_THAT(kernels::segmented_scan<float>(stream, Prefix::kInclusive, x,
                                             as_tensor<const uint8_t>(memory, {4, 8}),
                                             as_tensor<float>(memory, {3, 8})),
              Fails(StatusCode::kInvalidArgument, "segmented_scan: x is 4 × 8 and y 3 × 8"));
}

}  // namespace
}  // namespace heddle
