// embedding bit by bit, and its gradient against double precision: rows of every length, at odd places, ids of both types.
#include "heddle/kernels/embedding/embedding.h"

#include <cstring>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

struct Case {
  int64_t rows, columns, ids;
  Place table = {}, y = {};
};
const Case kCases[] = {{1, 1, 1},
                       {7, 3, 20},
                       {5, 8, 33},
                       {9, 129, 6},
                       {4, 1024, 5},
                       {3, 5000, 4},
                       {6, 64, 0},
                       {6, 0, 4},
                       {5, 40, 9, {48}, {40, 1}},
                       {5, 40, 9, {41}, {48}},
                       {5, 36, 9, {40, 2}, {44, 4}}};

template <class Id>
std::vector<Id> ids_of(const Case& c) {
  std::vector<Id> ids;
  for (int64_t i = 0; i < c.ids; ++i) ids.push_back(static_cast<Id>(i * 7 % c.rows));
  return ids;
}

template <class T>
class Embeddings : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(Embeddings, Types);

template <class T, class Id>
void check_gather(const Case& c) {
  const RowsAt table_at{c.rows, c.columns, c.table}, y_at{c.ids, c.columns, c.y};
  const auto table = random_elements<T>(size_of(table_at, c.table), 0, 1, 3);
  const std::vector<T> clean(static_cast<size_t>(size_of(y_at, c.y)), T(-2.0f));
  const std::vector<Id> ids = ids_of<Id>(c);
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer from = device.upload(absl::MakeConstSpan(table)).value(),
               rows = device.upload(absl::MakeConstSpan(ids)).value(),
               to = device.upload(absl::MakeConstSpan(clean)).value();
  ASSERT_THAT(
      (kernels::embedding<T, Id>(stream, matrix_in<const T>(from, table_at, c.table),
                                 as_tensor<const Id>(rows, {c.ids}), matrix_in<T>(to, y_at, c.y))),
      IsOk());
  std::vector<T> expected = clean;
  for (int64_t i = 0; i < c.ids; ++i) {
    std::copy_n(table.begin() + c.table.offset + ids[i] * pitch_of(table_at, c.table), c.columns,
                expected.begin() + c.y.offset + i * pitch_of(y_at, c.y));
  }
  const std::vector<T> got = to.template download<T>(stream).value();
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), expected.size() * sizeof(T)), 0);
}

template <class T, class Id>
void check_scatter(const Case& c) {
  const RowsAt table_at{c.rows, c.columns, c.table}, dy_at{c.ids, c.columns, c.y};
  const auto dy = random_elements<T>(size_of(dy_at, c.y), 0, 1, 5);
  const auto before = random_elements<float>(size_of(table_at, c.table), 0, 1, 6);
  const std::vector<Id> ids = ids_of<Id>(c);
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer from = device.upload(absl::MakeConstSpan(dy)).value(),
               rows = device.upload(absl::MakeConstSpan(ids)).value(),
               to = device.upload(absl::MakeConstSpan(before)).value();
  ASSERT_THAT((kernels::embedding_backward<T, Id>(stream, as_tensor<const Id>(rows, {c.ids}),
                                                  matrix_in<const T>(from, dy_at, c.y),
                                                  matrix_in<float>(to, table_at, c.table))),
              IsOk());
  std::vector<double> sums(before.begin(), before.end()), magnitudes;
  for (const float value : before) magnitudes.push_back(std::abs(value));
  for (int64_t i = 0; i < c.ids; ++i) {
    for (int64_t column = 0; column < c.columns; ++column) {
      const double term = wide(dy[c.y.offset + i * pitch_of(dy_at, c.y) + column]);
      const int64_t at = c.table.offset + ids[i] * pitch_of(table_at, c.table) + column;
      sums[at] += term;
      magnitudes[at] += std::abs(term);
    }
  }
  const std::vector<float> got = to.download<float>(stream).value();
  // Each term is rounded as often as there are terms, at most.
  const double steps = static_cast<double>(c.ids + 1) * 0x1p-24;
  for (size_t i = 0; i < sums.size(); ++i) ASSERT_NEAR(got[i], sums[i], steps * magnitudes[i]) << i;
}

TYPED_TEST(Embeddings, TakeRows) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.rows << " x " << c.columns << ", " << c.ids << " ids");
    check_gather<TypeParam, int32_t>(c);
    check_gather<TypeParam, int64_t>(c);
  }
}
TYPED_TEST(Embeddings, AddGradients) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << c.rows << " x " << c.columns << ", " << c.ids << " ids");
    check_scatter<TypeParam, int32_t>(c);
    check_scatter<TypeParam, int64_t>(c);
  }
}

TEST(EmbeddingTest, SaysWhatDoesNotFit) {
  const Stream stream = test_device().create_stream().value();
  const auto call = [&](int64_t ids, int64_t rows_of_y, int64_t columns_of_y) {
    return kernels::embedding<float, int32_t>(
        stream, {nullptr, {5, 8}, {8, 1}}, {nullptr, {ids}, {1}},
        {nullptr, {rows_of_y, columns_of_y}, {columns_of_y, 1}});
  };
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  EXPECT_THAT(call(3, 4, 8), Fails(kInvalid, "embedding: 3 ids, and y has 4 rows"));
  EXPECT_THAT(call(3, 3, 7), Fails(kInvalid,
                                   "embedding: rows of table have 8 elements, and those "
                                   "of y 7"));
}

// Where the interpreter runs it, an id that is no row is reported.
TEST(EmbeddingTest, ReportsRowsThatAreNotThere) {
  if (on_gpu()) GTEST_SKIP() << "a GPU checks no access";
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer table = device.upload<float>(std::vector<float>(40)).value(),
               ids = device.upload<int32_t>({0, 5}).value(), y = device.allocate(64).value();
  Status status = kernels::embedding<float, int32_t>(stream, as_tensor<const float>(table, {5, 8}),
                                                     as_tensor<const int32_t>(ids, {2}),
                                                     as_tensor<float>(y, {2, 8}));
  if (status.ok()) status = stream.synchronize();
  EXPECT_THAT(status, Fails(StatusCode::kFailedPrecondition,
                            "4 elements of table(5, 0), outside its extents (5, 8)"));
}

TEST(EmbeddingTest, ReportsRowsBeyond32Bits) {
  if (on_gpu()) GTEST_SKIP() << "a GPU checks no access";
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer table = device.upload<float>(std::vector<float>(40)).value(),
               ids = device.upload<int64_t>({1, (int64_t{1} << 32) + 2}).value(),
               y = device.allocate(64).value();
  Status status = kernels::embedding<float, int64_t>(stream, as_tensor<const float>(table, {5, 8}),
                                                     as_tensor<const int64_t>(ids, {2}),
                                                     as_tensor<float>(y, {2, 8}));
  if (status.ok()) status = stream.synchronize();
  EXPECT_THAT(status, Fails(StatusCode::kFailedPrecondition, "elements of table(-1, 0)"));
}

}  // namespace
}  // namespace heddle
