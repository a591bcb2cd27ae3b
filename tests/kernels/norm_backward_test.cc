// Gradients of rms_norm and layer_norm against double precision, by every deal of rows: rows that a block or a cluster holds,
// in vectors and one by one, several rows of a block, rows that no block holds; alignments.
#include <algorithm>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/kernels/norm/norm.h"
#include "heddle/kernels/norm/reference_internal.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"
#include "support/tuning_candidates.h"

namespace heddle {
namespace {

std::vector<double> doubles(const auto& values, const RowsAt& shape, const Place& place) {
  const int64_t pitch = place.pitch == 0 ? shape.columns : place.pitch;
  std::vector<double> out;
  for (int64_t r = 0; r < shape.rows; ++r) {
    for (int64_t c = 0; c < shape.columns; ++c)
      out.push_back(wide(values[place.offset + r * pitch + c]));
  }
  return out;
}

// Both norms' gradients of rows at places of their own, by every deal; `in` is x's and dy's, `out` dx's. Nothing else may be
// written.
template <class T>
void check_backward(const RowsAt& shape, float mean = 0.5f, float spread = 2, float eps = 1e-5f) {
  SCOPED_TRACE(testing::Message() << shape);
  // Interpreting takes its time.
  const int most = shape.rows * shape.columns < 20000 ? 3 : 1;
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto x = random_elements<T>(size_of(shape, shape.in), mean, spread, 1),
             dy = random_elements<T>(size_of(shape, shape.in), 0.25f, 1, 2),
             w = random_elements<T>(shape.columns, 1, 0.5f, 3);
  const std::vector<T> clean(static_cast<size_t>(size_of(shape, shape.out)), T(-2.0f)),
      clean_row(static_cast<size_t>(shape.columns + 1), T(-2.0f));
  const auto upload = [&](const std::vector<T>& values) {
    return device.upload(absl::MakeConstSpan(values)).value();
  };
  const Buffer xs = upload(x), dys = upload(dy), ws = upload(w);
  const auto of_x = matrix_in<const T>(xs, shape, shape.in),
             of_dy = matrix_in<const T>(dys, shape, shape.in);
  const auto of_w = as_tensor<const T>(ws, {shape.columns});
  for (const bool centred : {false, true}) {
    SCOPED_TRACE(centred ? "layer_norm" : "rms_norm");
    const auto want =
        kernels::norm_gradients(doubles(x, shape, shape.in), doubles(w, {1, shape.columns}, {}),
                                doubles(dy, shape, shape.in), centred, eps);
    by_each_candidate(
        [&] {
          const Buffer dxs = upload(clean), dws = upload(clean_row), dbs = upload(clean_row);
          const auto of_dx = matrix_in<T>(dxs, shape, shape.out);
          const auto of_dw = as_tensor<T>(dws, {shape.columns}),
                     of_db = as_tensor<T>(dbs, {shape.columns});
          ASSERT_THAT(
              centred ? kernels::layer_norm_backward(stream, of_x, of_w, of_dy, of_dx, of_dw, of_db,
                                                     eps)
                      : kernels::rms_norm_backward(stream, of_x, of_w, of_dy, of_dx, of_dw, eps),
              IsOk());
          const auto check = [](const std::vector<double>& got, const std::vector<double>& exact,
                                const std::vector<double>& error) {
            ASSERT_EQ(got.size(), exact.size());
            for (size_t i = 0; i < got.size(); ++i) {
              ASSERT_NEAR(got[i], exact[i],
                          error[i] + (std::abs(exact[i]) + error[i]) * kStep<T> + kLeast<T>)
                  << i;
            }
          };
          std::vector<T> dx = dxs.download<T>(stream).value();
          ASSERT_NO_FATAL_FAILURE(check(doubles(dx, shape, shape.out), want.dx, want.dx_error));
          for (int64_t r = 0; r < shape.rows; ++r) {
            std::fill_n(dx.begin() + shape.out.offset + r * pitch_of(shape, shape.out),
                        shape.columns, T(-2.0f));
          }
          for (const T& value : dx) ASSERT_EQ(wide(value), -2) << "written outside the rows";
          std::vector<T> dw = dws.download<T>(stream).value(), db = dbs.download<T>(stream).value();
          ASSERT_EQ(wide(dw.back()), -2);
          ASSERT_EQ(wide(db.back()), -2);
          dw.pop_back(), db.pop_back();
          ASSERT_NO_FATAL_FAILURE(
              check(doubles(dw, {1, shape.columns}, {}), want.dw, want.dw_error));
          if (!centred) return;
          ASSERT_NO_FATAL_FAILURE(
              check(doubles(db, {1, shape.columns}, {}), want.db, want.db_error));
        },
        most);
  }
}

template <class T>
class NormsBackward : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(NormsBackward, Types);

TYPED_TEST(NormsBackward, OfRowsOfEveryLength) {
  for (const RowsAt& shape :
       {RowsAt{0, 5},     RowsAt{5, 0},     RowsAt{1, 1},    RowsAt{300, 1},   RowsAt{129, 3},
        RowsAt{3, 31},    RowsAt{65, 32},   RowsAt{7, 33},   RowsAt{700, 64},  RowsAt{9, 256},
        RowsAt{2, 1000},  RowsAt{3, 1023},  RowsAt{5, 2048}, RowsAt{2, 4096},  RowsAt{3, 8192},
        RowsAt{2, 16384}, RowsAt{2, 12344}, RowsAt{3, 4099}, RowsAt{2, 40000}, RowsAt{2, 9216},
        RowsAt{2, 36880}}) {
    check_backward<TypeParam>(shape);
  }
}

TYPED_TEST(NormsBackward, OfRowsThatAreNotAligned) {
  check_backward<TypeParam>({4, 1000, {1001}, {1001}});
  check_backward<TypeParam>({4, 1000, {1008, 1}, {1016, 1}});
  check_backward<TypeParam>({4, 1000, {1001}, {1000}});
  check_backward<TypeParam>({3, 20000, {20001}, {20008}});
  check_backward<TypeParam>({5, 17, {17}, {32, 1}});
  check_backward<TypeParam>({9, 519, {521, 3}, {520}});
  check_backward<TypeParam>({20, 33000, {33001, 5}, {33003, 2}});
}

// More rows than a device has blocks at once, so that blocks take several.
TYPED_TEST(NormsBackward, OfManyRows) {
  check_backward<TypeParam>({5000, 24});
  check_backward<TypeParam>({1400, 520});
  if (HEDDLE_SANITIZED) return;
  check_backward<TypeParam>({2200, 261});
  check_backward<TypeParam>({280, 2059});
  check_backward<TypeParam>({70, 8201});
}

TEST(NormBackward, OfRowsFarFromZero) {
  check_backward<float>({7, 1000}, 100, 1);
  check_backward<float>({7, 1000}, 0, 1e-4f);
}

// Of gradients that are small integers the sums for b are exact: each row counts once.
TEST(NormBackward, CountsEachRowOnce) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  for (const auto& [rows, columns] :
       {std::pair<int64_t, int64_t>{5003, 24}, {2200, 300}, {50, 9000}, {50, 9001}}) {
    if (HEDDLE_SANITIZED && rows == 2200) continue;
    const auto x = random_elements<float>(rows * columns, 0, 1, 1);
    std::vector<float> dy, want(columns);
    for (int64_t i = 0; i < rows * columns; ++i) {
      dy.push_back(static_cast<float>(i * 7 % 11 - 5));
      want[i % columns] += dy.back();
    }
    const Buffer xs = device.upload(absl::MakeConstSpan(x)).value(),
                 dys = device.upload(absl::MakeConstSpan(dy)).value(),
                 dxs = device.allocate(dy.size() * sizeof(float)).value(),
                 dws = device.allocate(columns * sizeof(float)).value(),
                 dbs = device.allocate(columns * sizeof(float)).value();
    by_each_candidate(
        [&, r = rows, c = columns] {
          ASSERT_THAT(
              kernels::layer_norm_backward<float>(
                  stream, as_tensor<const float>(xs, {r, c}), as_tensor<const float>(xs, {c}),
                  as_tensor<const float>(dys, {r, c}), as_tensor<float>(dxs, {r, c}),
                  as_tensor<float>(dws, {c}), as_tensor<float>(dbs, {c}), 1e-5f),
              IsOk());
          ASSERT_EQ(dbs.download<float>(stream).value(), want);
        },
        HEDDLE_SANITIZED ? 1 : 3);
  }
}

// Rows whose variance is infinite are scaled by 0.
TEST(NormBackward, OfRowsTooFarApart) {
  const Stream stream = test_device().create_stream().value();
  constexpr int64_t kRows = 3, kColumns = 2048;
  std::vector<float> x(kRows * kColumns, 0);
  for (size_t i = 0; i < x.size(); ++i) x[i] = i % kColumns < kColumns / 2 ? 0 : 1e20f;
  const auto dy = random_elements<float>(kRows * kColumns, 0, 1, 1);
  const Buffer xs = test_device().upload<float>(x).value(),
               dys = test_device().upload<float>(dy).value(),
               row = test_device().upload<float>(std::vector<float>(kColumns, 1)).value();
  const auto in = [&](const Buffer& of) { return as_tensor<const float>(of, {kRows, kColumns}); };
  by_each_candidate([&] {
    const Buffer dxs = test_device().upload<float>(x).value(),
                 dws = test_device().upload<float>(std::vector<float>(kColumns, 1)).value(),
                 dbs = test_device().upload<float>(std::vector<float>(kColumns, 1)).value();
    ASSERT_THAT(kernels::layer_norm_backward<float>(
                    stream, in(xs), as_tensor<const float>(row, {kColumns}), in(dys),
                    as_tensor<float>(dxs, {kRows, kColumns}), as_tensor<float>(dws, {kColumns}),
                    as_tensor<float>(dbs, {kColumns}), 1e-5f),
                IsOk());
    EXPECT_THAT(dxs.download<float>(stream).value(), testing::Each(0.0f));
    EXPECT_THAT(dws.download<float>(stream).value(), testing::Each(0.0f));
  });
}

// dx may be dy or x, where rows are read again too.
template <class T>
void check_in_place(int64_t columns) {
  SCOPED_TRACE(testing::Message() << columns << " of " << sizeof(T) << " bytes");
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  constexpr int64_t kRows = 5;
  const auto x = random_elements<T>(kRows * columns, 0.5f, 2, 1),
             dy = random_elements<T>(kRows * columns, 0, 1, 2),
             w = random_elements<T>(columns, 1, 1, 3);
  std::vector<std::vector<T>> found[3];
  for (const int where : {0, 1, 2}) {  // of its own, x, dy
    const auto upload = [&](const std::vector<T>& values) {
      return device.upload(absl::MakeConstSpan(values)).value();
    };
    const Buffer xs = upload(x), dys = upload(dy), ws = upload(w), own = upload(x), dws = upload(w),
                 dbs = upload(w);
    const Buffer& dxs = where == 0 ? own : where == 1 ? xs : dys;
    const Status status = kernels::layer_norm_backward<T>(
        stream, as_tensor<const T>(xs, {kRows, columns}), as_tensor<const T>(ws, {columns}),
        as_tensor<const T>(dys, {kRows, columns}), as_tensor<T>(dxs, {kRows, columns}),
        as_tensor<T>(dws, {columns}), as_tensor<T>(dbs, {columns}), 1e-5f);
    ASSERT_THAT(status, IsOk());
    for (const Buffer* const buffer : {&dxs, &dws, &dbs})
      found[where].push_back(buffer->template download<T>(stream).value());
    for (size_t i = 0; i < 3; ++i) {
      for (size_t e = 0; e < found[0][i].size(); ++e)
        ASSERT_EQ(wide(found[where][i][e]), wide(found[0][i][e]));
    }
  }
}
TEST(NormBackward, StoresInPlace) {
  for (const int64_t columns : {24, 101, 264, 1000, 1001, 8192, 8200, 8201, 40001, 150008}) {
    check_in_place<float>(columns);
    check_in_place<bfloat16>(columns);
  }
}

// Elements of a row that are apart are not copied in bulk; dx is as of rows whose elements are neighbours.
TEST(NormBackward, OfElementsThatAreApart) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  constexpr int64_t kRows = 3, kColumns = 2051;
  const auto x = random_elements<float>(kRows * kColumns * 2, 0.5f, 2, 1),
             w = random_elements<float>(kColumns, 1, 1, 2);
  std::vector<float> near;
  for (size_t i = 0; i < x.size(); i += 2) near.push_back(x[i]);
  const Buffer apart_memory = device.upload(absl::MakeConstSpan(x)).value(),
               near_memory = device.upload(absl::MakeConstSpan(near)).value(),
               weights = device.upload(absl::MakeConstSpan(w)).value();
  const auto of_w = as_tensor<const float>(weights, {kColumns});
  const TensorRef<const float, 2> apart(reinterpret_cast<const float*>(apart_memory.address()),
                                        {kRows, kColumns}, {2 * kColumns, 2});
  const auto gradient = [&](const TensorRef<const float, 2>& of_x) {
    const Buffer dx = device.upload(absl::MakeConstSpan(near)).value(),
                 dw = device.upload(absl::MakeConstSpan(w)).value();
    by_each_candidate([&] {
      EXPECT_THAT(kernels::rms_norm_backward<float>(stream, of_x, of_w, of_x,
                                                    as_tensor<float>(dx, {kRows, kColumns}),
                                                    as_tensor<float>(dw, {kColumns}), 1e-5f),
                  IsOk());
    });
    return dx.download<float>(stream).value();
  };
  const std::vector<float> got = gradient(apart),
                           want = gradient(as_tensor<const float>(near_memory, {kRows, kColumns}));
  for (size_t i = 0; i < want.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 1e-5 + 1e-5 * std::abs(want[i])) << i;
}

TEST(NormBackward, SaysWhatDoesNotFit) {
  const Stream stream = test_device().create_stream().value();
  const Buffer memory = test_device().allocate(4096).value();
  const auto matrix = as_tensor<float>(memory, {4, 8}), other = as_tensor<float>(memory, {4, 7});
  const auto eight = as_tensor<float>(memory, {8}), seven = as_tensor<float>(memory, {7});
  const auto backward = [&](const auto& x, const auto& w, const auto& dy, const auto& dx,
                            const auto& dw, const auto& db) {
    return kernels::layer_norm_backward<float>(stream, x, w, dy, dx, dw, db, 1e-5f);
  };
  const auto code = StatusCode::kInvalidArgument;
  EXPECT_THAT(backward(matrix, eight, other, matrix, eight, eight),
              Fails(code, "layer_norm_backward: x is 4 × 8 and dy 4 × 7"));
  EXPECT_THAT(backward(matrix, eight, matrix, other, eight, eight), Fails(code, "dx 4 × 7"));
  EXPECT_THAT(backward(matrix, seven, matrix, matrix, eight, eight),
              Fails(code, "w has 7 elements and x 8 columns"));
  EXPECT_THAT(backward(matrix, eight, matrix, matrix, seven, eight), Fails(code, "dw has 7"));
  EXPECT_THAT(backward(matrix, eight, matrix, matrix, eight, seven), Fails(code, "db has 7"));
  const TensorRef<float, 1> nowhere(nullptr, {8});
  EXPECT_THAT(backward(matrix, eight, matrix, matrix, nowhere, eight),
              Fails(code, "layer_norm_backward: dw is a null pointer"));
  EXPECT_THAT(backward(matrix, eight, matrix, matrix, eight, nowhere), Fails(code, "db is a null"));
  const TensorRef<float, 2> many(matrix.data, {(int64_t{1} << 31) - 1, 8});
  EXPECT_THAT(backward(many, eight, many, many, eight, eight),
              Fails(code, "layer_norm_backward: 2147483647 rows; it takes 0 to 2147418112"));
}

}  // namespace
}  // namespace heddle
