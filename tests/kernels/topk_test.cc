// topk against sorted rows: short and long rows, few and many; ties, NaN, zeros of either sign; odd places; the least.
#include "heddle/kernels/topk/topk.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/runtime/interp_backend.h"
#include "heddle/runtime/operation/dry_run.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using kernels::Extreme;

// The columns of a row's k best elements.
template <class T>
std::vector<int64_t> best_of(const T* row, int64_t columns, int64_t k, Extreme which) {
  std::vector<int64_t> order(static_cast<size_t>(columns));
  std::iota(order.begin(), order.end(), 0);
  const auto above = [&](int64_t a, int64_t b) {
    const auto number = [&](int64_t c) {
      if constexpr (std::is_integral_v<T>) {
        return static_cast<double>(row[c]);
      } else {
        return wide(row[c]);
      }
    };
    const double x = number(a), y = number(b);
    return std::isnan(x) ? !std::isnan(y) : x > y;
  };
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return which == Extreme::kGreatest ? above(a, b) : above(b, a);
  });
  order.resize(static_cast<size_t>(k));
  return order;
}

template <class T>
struct Found {
  std::vector<T> values;
  std::vector<int64_t> indices;
};

// Of rows with a pitch and an offset in memory, between which there are the greatest elements of all.
template <class T>
void check_topk(const std::vector<T>& x, int64_t rows, int64_t columns, int64_t k,
                const Place& place = {}) {
  for (const Extreme which : {Extreme::kGreatest, Extreme::kLeast}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << columns << ", k = " << k
                                    << (which == Extreme::kLeast ? ", the least" : ""));
    const RowsAt at{rows, columns, place};
    std::vector<T> memory(static_cast<size_t>(size_of(at, place)),
                          std::numeric_limits<T>::has_infinity
                              ? T(std::numeric_limits<float>::quiet_NaN())
                              : T(which == Extreme::kLeast ? std::numeric_limits<int32_t>::min()
                                                           : std::numeric_limits<int32_t>::max()));
    for (int64_t r = 0; r < rows; ++r) {
      std::copy_n(x.begin() + r * columns, columns,
                  memory.begin() + place.offset + r * pitch_of(at, place));
    }
    const Device& device = test_device();
    const Stream stream = device.create_stream().value();
    const Buffer in = device.upload(absl::MakeConstSpan(memory)).value(),
                 values = device.allocate(static_cast<size_t>(rows * k) * sizeof(T)).value(),
                 indices = device.allocate(static_cast<size_t>(rows * k) * sizeof(int64_t)).value();
    ASSERT_THAT(
        kernels::topk<T>(stream, which, matrix_in<const T>(in, at, place),
                         as_tensor<T>(values, {rows, k}), as_tensor<int64_t>(indices, {rows, k})),
        IsOk());
    const std::vector<T> got = values.template download<T>(stream).value();
    const std::vector<int64_t> where = indices.download<int64_t>(stream).value();
    for (int64_t r = 0; r < rows; ++r) {
      const T* const row = x.data() + r * columns;
      const std::vector<int64_t> expected = best_of(row, columns, k, which);
      for (int64_t i = 0; i < k; ++i) {
        ASSERT_EQ(where[r * k + i], expected[i]) << "row " << r << ", place " << i;
        ASSERT_EQ(std::memcmp(&got[r * k + i], row + expected[i], sizeof(T)), 0)
            << "row " << r << ", place " << i;
      }
    }
  }
}

template <class T>
std::vector<T> elements(int64_t count, unsigned seed) {
  if constexpr (std::is_integral_v<T>) {
    std::mt19937 random(seed);
    std::vector<T> values;
    for (int64_t i = 0; i < count; ++i) values.push_back(static_cast<T>(random()));
    return values;
  } else {
    return random_elements<T>(count, 0, 3, seed);
  }
}

template <class T>
class TopK : public testing::Test {};
using Types = testing::Types<float, half, bfloat16, int32_t>;
TYPED_TEST_SUITE(TopK, Types);

TYPED_TEST(TopK, OfRowsOfEveryLength) {
  struct Case {
    int64_t rows, columns, k;
  };
  for (const auto& [rows, columns, k] :
       {Case{1, 1, 1}, Case{5, 3, 2}, Case{7, 31, 31}, Case{9, 64, 8}, Case{3, 100, 32},
        Case{3, 100, 33}, Case{2, 512, 8}, Case{2, 513, 8}, Case{3, 2048, 1}, Case{2, 2049, 128},
        Case{2, 5000, 129}, Case{1, 3000, 300}, Case{1, 9000, 1024}, Case{1, 40000, 8}}) {
    check_topk<TypeParam>(elements<TypeParam>(rows * columns, 7), rows, columns, k);
  }
}

TYPED_TEST(TopK, OfRowsAtOddPlaces) {
  check_topk<TypeParam>(elements<TypeParam>(3 * 3001, 7), 3, 3001, 5, {3003, 1});
  check_topk<TypeParam>(elements<TypeParam>(4 * 700, 8), 4, 700, 9, {701});
  check_topk<TypeParam>(elements<TypeParam>(40001, 9), 1, 40001, 200, {40001, 3});
}

// In stretches of which the later ones' elements are combined by further launches.
TYPED_TEST(TopK, OfFewLongRows) {
  check_topk<TypeParam>(elements<TypeParam>(300000, 7), 1, 300000, 20);
  check_topk<TypeParam>(elements<TypeParam>(2 * 100001, 7), 2, 100001, 200);
}

// Sorted either way, all equal, of few values.
TYPED_TEST(TopK, OfRowsThatAreNotRandom) {
  constexpr int64_t kColumns = 20000;
  std::vector<TypeParam> rising, falling, equal(kColumns, TypeParam(3)), few;
  for (int64_t i = 0; i < kColumns; ++i) {
    rising.push_back(static_cast<TypeParam>(static_cast<float>(i)));
    few.push_back(static_cast<TypeParam>(static_cast<float>(i * 7919 % 3)));
  }
  falling.assign(rising.rbegin(), rising.rend());
  for (const auto& x : {rising, falling, equal, few}) {
    check_topk<TypeParam>(x, 1, kColumns, 8);
    check_topk<TypeParam>(x, 4, kColumns / 4, 100);
    check_topk<TypeParam>(x, 40, kColumns / 40, 5);
  }
}

TEST(TopKTest, OfNaNsInfinitiesAndZeros) {
  constexpr float kInf = std::numeric_limits<float>::infinity(),
                  kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t columns : {40, 700, 5000}) {
    std::vector<float> x(static_cast<size_t>(columns), -1.0f), mostly_nan(x.size(), kNaN);
    const float special[] = {-0.0f, 0.0f, kInf, -kNaN, -kInf, kNaN, 1e-45f, -1e-45f, -0.0f};
    for (size_t i = 0; i < 9; ++i) x[i * 4 + 1] = mostly_nan[i * 4 + 1] = special[i];
    for (const int64_t k : {1, 4, 12, 32}) {
      check_topk<float>(x, 1, columns, k);
      check_topk<float>(mostly_nan, 1, columns, k);
    }
  }
  for (const size_t columns : {40, 3000}) {
    for (const int32_t end :
         {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()}) {
      check_topk<int32_t>(std::vector<int32_t>(columns, end), 1, static_cast<int64_t>(columns), 9);
    }
  }
}

// A block's entries fit what a GPU has of shared memory.
TEST(TopKTest, TakesFewerThreadsWhereMemoryIsShort) {
  for (const auto& [bytes, threads] : {std::pair(int64_t{232448}, 1024), {int64_t{101376}, 512}}) {
    runtime::DeviceInfo info = runtime::InterpBackend::default_info();
    info.limits.max_shared_per_block = bytes;
    int64_t launched = 0;
    const Device device = runtime::open_dry_run(info, [&](const runtime::DryLaunch& launch) {
      launched = launch.shape.block.x;
      return OkStatus();
    });
    const Stream stream = device.create_stream().value();
    constexpr int64_t kRows = 2000, kColumns = 9000, kTop = 1024;
    const Buffer x = device.allocate(kRows * kColumns * sizeof(float)).value(),
                 values = device.allocate(kRows * kTop * sizeof(float)).value(),
                 indices = device.allocate(kRows * kTop * sizeof(int64_t)).value();
    ASSERT_THAT(kernels::topk<float>(stream, Extreme::kGreatest,
                                     as_tensor<const float>(x, {kRows, kColumns}),
                                     as_tensor<float>(values, {kRows, kTop}),
                                     as_tensor<int64_t>(indices, {kRows, kTop})),
                IsOk());
    EXPECT_EQ(launched, threads);
  }
}

TEST(TopKTest, SaysWhatDoesNotFit) {
  const Stream stream = test_device().create_stream().value();
  const auto call = [&](int64_t rows, int64_t columns, int64_t k, int64_t rows_of_values,
                        int64_t k_of_indices) {
    return kernels::topk<float>(stream, Extreme::kGreatest,
                                {nullptr, {rows, columns}, {columns, 1}},
                                {nullptr, {rows_of_values, k}, {k, 1}},
                                {nullptr, {rows_of_values, k_of_indices}, {k_of_indices, 1}});
  };
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  EXPECT_THAT(
      call(3, 10, 2, 3, 3),
      Fails(kInvalid, "topk: values is 3 × 2 and indices 3 × 3; both need the same extents"));
  EXPECT_THAT(call(3, 10, 2, 4, 2), Fails(kInvalid, "topk: x has 3 rows and values 4"));
  EXPECT_THAT(call(3, 10, 11, 3, 11),
              Fails(kInvalid, "topk: k is 11 and rows have 10 elements; fix: a k of at most 10"));
  EXPECT_THAT(
      call(3, 9000, 1025, 3, 1025),
      Fails(kInvalid, "topk: k is 1025 and rows have 9000 elements; fix: a k of at most 1024"));
  EXPECT_THAT(call(1, int64_t{1} << 31, 4, 1, 4), Fails(kInvalid, "topk: rows of 2147483648"));
  EXPECT_THAT(call(0, 10, 2, 0, 2), IsOk());
  EXPECT_THAT(call(3, 10, 0, 3, 0), IsOk());
}

}  // namespace
}  // namespace heddle
