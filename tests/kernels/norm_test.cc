// rms_norm and layer_norm against double precision: element types, shapes from nothing to rows of several clusters'
// registers, alignments, means far from zero.
#include "heddle/kernels/norm/norm.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/runtime/tuning/tuning_scope.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"
#include "support/tuning_candidates.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

struct Norm {
  bool centred;
  float eps;
};

// Within what the operation's reference allows: a mean is off by the roundings on the way of each term, and so is the
// scale, relatively.
template <class T>
void check_row(const Norm& norm, const std::vector<double>& x, const std::vector<T>& w,
               const std::vector<T>& b, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  const double steps = (128 + n / 8192) * 0x1p-24;
  double mean = 0, magnitude = 0, squares = 0;
  for (const double v : x) mean += v / n, magnitude += std::abs(v) / n;
  if (!norm.centred) mean = 0;
  for (const double v : x) squares += (v - mean) * (v - mean) / n;
  const double mean_error = norm.centred ? steps * magnitude : 0;
  const double scale = 1 / std::sqrt(squares + norm.eps);
  const double apart = mean_error * (2 * std::sqrt(squares) + mean_error);
  const double scale_error = (steps * squares + apart) / (squares + norm.eps) + 6 * 0x1p-24;
  for (size_t c = 0; c < x.size(); ++c) {
    const double factor = scale * wide(w[c]), product = (x[c] - mean) * factor;
    const double exact = product + (norm.centred ? wide(b[c]) : 0);
    const double error = mean_error * std::abs(factor) +
                         std::abs(product) * (scale_error + 0x1p-22) + std::abs(exact) * 0x1p-24;
    ASSERT_NEAR(y[c], exact, error + (std::abs(exact) + error) * kStep<T> + kLeast<T>)
        << "column " << c;
  }
}

// What is checked, and how.
struct Options {
  float mean = 0.5f, spread = 2, eps = 1e-5f;
  int offset = 0;      // elements in front of w and b
  int candidates = 0;  // deals that heddle tune measures, besides the model's
};
template <class T>
void check_norms(const RowsAt& shape, const Options& options = {}) {
  const auto w = random_elements<T>(shape.columns + 1, 1, 0.5f, 3),
             b = random_elements<T>(shape.columns + 1, 0, 1, 4);
  const Device& device = test_device();
  const Buffer weight = device.upload(absl::MakeConstSpan(w)).value(),
               bias = device.upload(absl::MakeConstSpan(b)).value();
  const auto columns_of = [&](const Buffer& buffer) {
    return TensorRef<const T, 1>(reinterpret_cast<const T*>(buffer.address()) + options.offset,
                                 {shape.columns}, {1});
  };
  const auto of = columns_of(weight), behind = columns_of(bias);
  const std::vector<T> by(w.begin() + options.offset, w.end()),
      plus(b.begin() + options.offset, b.end());
  for (const bool centred : {false, true}) {
    if (!centred && options.mean > 1e18f) continue;  // squares that f32 does not hold
    const auto check = [&] {
      check_rows<T>(
          shape, options.mean, options.spread,
          [&](const Stream& stream, const auto& x, const auto& y) {
            return centred ? kernels::layer_norm(stream, x, of, behind, y, options.eps)
                           : kernels::rms_norm(stream, x, of, y, options.eps);
          },
          [&](const auto& x, const auto& y) {
            check_row<T>({centred, options.eps}, x, by, plus, y);
          });
    };
    if (options.candidates == 0) {
      check();
    } else {
      by_each_candidate(check, options.candidates);
    }
  }
}

template <class T>
class Norms : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(Norms, Types);

TYPED_TEST(Norms, OfRowsOfEveryLength) {
  for (const RowsAt& shape :
       {RowsAt{0, 5}, RowsAt{5, 0}, RowsAt{1, 1}, RowsAt{300, 1}, RowsAt{129, 3}, RowsAt{3, 31},
        RowsAt{65, 32}, RowsAt{7, 33}, RowsAt{9, 127}, RowsAt{2, 512}, RowsAt{2, 1000},
        RowsAt{3, 1023}, RowsAt{2, 4096}, RowsAt{1, 16384}, RowsAt{1, 65536}, RowsAt{2, 70001},
        RowsAt{1, 524389}}) {
    check_norms<TypeParam>(shape);
  }
}

TYPED_TEST(Norms, OfRowsThatAreNotAligned) {
  check_norms<TypeParam>({4, 1000, {1001}, {1001}});
  check_norms<TypeParam>({4, 1000, {1008, 1}, {1016, 1}});
  check_norms<TypeParam>({4, 1000, {1001}, {1000}});
  check_norms<TypeParam>({5, 17, {17}, {32, 1}});
}

// So many rows that blocks and clusters take several, one after the other, where a deal says so.
TYPED_TEST(Norms, OfManyRows) {
  check_norms<TypeParam>({300, 269}, {.candidates = HEDDLE_SANITIZED ? 1 : 4});
  if (HEDDLE_SANITIZED) return;
  check_norms<TypeParam>({500, 256}, {.candidates = 4});
  check_norms<TypeParam>({45, 8201, {8201, 3}, {8209, 3}}, {.candidates = 6});
}

TYPED_TEST(Norms, OfColumnsThatAreNotAligned) {
  check_norms<TypeParam>({3, 1024}, {.offset = 1});
  check_norms<TypeParam>({3, 40}, {.offset = 1});
}

// Of x + residual, all four matrices in places of their own: the sums to the bit, and the norms of these.
template <class T>
void check_sums(const RowsAt& shape, bool centred) {
  SCOPED_TRACE(testing::Message() << shape << (centred ? " centred" : ""));
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto x = random_elements<T>(size_of(shape, shape.in), 0.5f, 2, 5),
             residual = random_elements<T>(size_of(shape, shape.in), -1, 3, 6);
  const std::vector<T> clean(static_cast<size_t>(size_of(shape, shape.out)), T(-2.0f));
  const auto w = random_elements<T>(shape.columns, 1, 0.5f, 3),
             b = random_elements<T>(shape.columns, 0, 1, 4);
  const auto upload = [&](const std::vector<T>& values) {
    return device.upload(absl::MakeConstSpan(values)).value();
  };
  const Buffer xs = upload(x), residuals = upload(residual), ys = upload(clean),
               sums = upload(clean), ws = upload(w), bs = upload(b);
  const auto of = matrix_in<const T>(xs, shape, shape.in),
             more = matrix_in<const T>(residuals, shape, shape.in);
  const auto y = matrix_in<T>(ys, shape, shape.out), sum = matrix_in<T>(sums, shape, shape.out);
  const auto weight = as_tensor<const T>(ws, {shape.columns}),
             bias = as_tensor<const T>(bs, {shape.columns});
  ASSERT_THAT(centred ? kernels::add_layer_norm(stream, of, more, weight, bias, y, sum, 1e-5f)
                      : kernels::add_rms_norm(stream, of, more, weight, y, sum, 1e-5f),
              IsOk());
  const std::vector<T> got = ys.template download<T>(stream).value(),
                       added = sums.template download<T>(stream).value();
  std::vector<bool> written(clean.size());
  for (int64_t row = 0; row < shape.rows; ++row) {
    std::vector<double> total, norm;
    for (int64_t c = 0; c < shape.columns; ++c) {
      const int64_t from = shape.in.offset + row * pitch_of(shape, shape.in) + c,
                    to = shape.out.offset + row * pitch_of(shape, shape.out) + c;
      const T exact(static_cast<float>(x[from]) + static_cast<float>(residual[from]));
      ASSERT_EQ(wide(added[to]), wide(exact)) << "row " << row << ", column " << c;
      total.push_back(wide(exact));
      norm.push_back(wide(got[to]));
      written[to] = true;
    }
    check_row<T>({centred, 1e-5f}, total, w, b, norm);
  }
  for (size_t i = 0; i < clean.size(); ++i) {
    if (written[i]) continue;
    ASSERT_EQ(wide(got[i]), -2) << i;
    ASSERT_EQ(wide(added[i]), -2) << i;
  }
}

TYPED_TEST(Norms, OfSumsWithAResidual) {
  for (const bool centred : {false, true}) {
    for (const RowsAt& shape :
         {RowsAt{0, 5}, RowsAt{300, 1}, RowsAt{129, 3}, RowsAt{9, 127}, RowsAt{2, 1000},
          RowsAt{4, 1000, {1001}, {1001}}, RowsAt{4, 1000, {1001}, {1000}}, RowsAt{3, 1023},
          RowsAt{2, 4096}, RowsAt{2, 9001}, RowsAt{1, 65536}, RowsAt{1, 300007}}) {
      check_sums<TypeParam>(shape, centred);
    }
  }
}

// As transformers call it: the sum takes the residual's place and the norm that of x.
TYPED_TEST(Norms, OfSumsInPlace) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto check = [&](int64_t rows, int64_t columns) {
    const auto x = random_elements<TypeParam>(rows * columns, 0, 1, 7),
               residual = random_elements<TypeParam>(rows * columns, 0, 1, 8),
               w = random_elements<TypeParam>(columns, 1, 0.5f, 9);
    const auto upload = [&](const auto& values) {
      return device.upload(absl::MakeConstSpan(values)).value();
    };
    const Buffer weight = upload(w), xs = upload(x), residuals = upload(residual), y = upload(x),
                 sum = upload(x);
    const auto read = [&](const Buffer& buffer) {
      return as_tensor<const TypeParam>(buffer, {rows, columns});
    };
    const auto write = [&](const Buffer& buffer) {
      return as_tensor<TypeParam>(buffer, {rows, columns});
    };
    const auto ws = as_tensor<const TypeParam>(weight, {columns});
    EXPECT_THAT(
        kernels::add_rms_norm(stream, read(xs), read(residuals), ws, write(y), write(sum), 1e-6f),
        IsOk());
    EXPECT_THAT(kernels::add_rms_norm(stream, read(xs), read(residuals), ws, write(xs),
                                      write(residuals), 1e-6f),
                IsOk());
    const auto same = [&](const Buffer& a, const Buffer& b) {
      return a.template download<uint8_t>(stream).value() ==
             b.template download<uint8_t>(stream).value();
    };
    EXPECT_TRUE(same(y, xs));
    EXPECT_TRUE(same(sum, residuals));
  };
  check(2, 1000003);
  by_each_candidate([&] { check(40, 4107); }, HEDDLE_SANITIZED ? 2 : 8);
}

// Threads without elements must not make the variance of equal ones infinite.
TYPED_TEST(Norms, OfHugeEqualElements) {
  const float huge = std::is_same_v<TypeParam, half> ? 6e4f : 1e20f;
  check_norms<TypeParam>({3, 40, {41}, {41}}, {.mean = huge, .spread = 0});
  check_norms<TypeParam>({1, 65540}, {.mean = huge, .spread = 0});
  // Of which a warp's would be too much.
  const float huger = std::is_same_v<TypeParam, half> ? 6e4f : 1e36f;
  check_norms<TypeParam>({2, 2049}, {.mean = huger, .spread = 0});
  check_norms<TypeParam>({2, 33001}, {.mean = huger, .spread = 0});
}

// More rows for each block than it has places for them and for its warps' values.
TEST(NormTest, OfManyRowsOfABlockAlone) {
  runtime::TuningScope scope;
  check_norms<float>({700, 269});
  const std::vector<runtime::TuningProblem> asked(scope.asked().begin(), scope.asked().end());
  ASSERT_EQ(asked.size(), 2u);
  for (const runtime::TuningProblem& problem : asked) {
    const auto alone = absl::c_find_if(problem.candidates, [](const std::string& name) {
      return absl::StartsWith(name, "staged") && absl::StrContains(name, " blocks=1 ") &&
             absl::StrContains(name, ", 1 a multiprocessor");
    });
    ASSERT_NE(alone, problem.candidates.end());
    scope.use(problem, *alone);
  }
  check_norms<float>({700, 269});
}

// Where the elements of one warp are far from all others, its mean is no good beginning.
TEST(NormTest, OfOneWarpFarFromOthers) {
  constexpr int64_t kColumns = 129374;
  std::vector<float> x(kColumns);
  for (int64_t c = 0; c < kColumns; ++c) {
    const bool of_first_warp = c / 4 < 2048 && c / 4 % 256 < 32;
    if (of_first_warp || c >= kColumns - 2) x[c] = 100.7f;
  }
  const std::vector<float> w(kColumns, 1), b(kColumns, 0);
  const Stream stream = test_device().create_stream().value();
  const auto upload = [](const std::vector<float>& of) {
    return test_device().upload(absl::MakeConstSpan(of)).value();
  };
  const Buffer xs = upload(x), ws = upload(w), bs = upload(b), ys = upload(x);
  ASSERT_THAT(kernels::layer_norm<float>(stream, as_tensor<const float>(xs, {1, kColumns}),
                                         as_tensor<const float>(ws, {kColumns}),
                                         as_tensor<const float>(bs, {kColumns}),
                                         as_tensor<float>(ys, {1, kColumns}), 1e-5f),
              IsOk());
  const std::vector<float> got = ys.download<float>(stream).value();
  check_row<float>({true, 1e-5f}, {x.begin(), x.end()}, w, b, {got.begin(), got.end()});
}

// A mean that is many standard deviations away: the squares' sums would lose the variance.
TYPED_TEST(Norms, OfMeansFarFromZero) {
  check_norms<TypeParam>({3, 777}, {.mean = 1000, .spread = 3});
  check_norms<TypeParam>({2, 5000}, {.mean = -200, .spread = 1});
}

// Where all elements are equal, what is added under the root decides.
TYPED_TEST(Norms, OfEqualElements) {
  check_norms<TypeParam>({2, 300}, {.mean = 1, .spread = 0, .eps = 1e-2f});
}

TEST(NormTest, RefusesOtherExtents) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x = device.allocate(64).value(), y = device.allocate(64).value(),
               w = device.allocate(64).value();
  const auto in = as_tensor<const float>(x, {2, 8});
  const auto message = [&](const TensorRef<const float, 1>& weight,
                           const TensorRef<const float, 1>& bias, const TensorRef<float, 2>& out) {
    return std::string(kernels::layer_norm(stream, in, weight, bias, out, 1e-5f).message());
  };
  const auto right = as_tensor<const float>(w, {8}), wrong = as_tensor<const float>(w, {7});
  EXPECT_THAT(message(right, right, as_tensor<float>(y, {8, 2})),
              HasSubstr("layer_norm: x is 2 × 8 and y 8 × 2; both need the same extents"));
  EXPECT_THAT(
      message(wrong, right, as_tensor<float>(y, {2, 8})),
      HasSubstr("layer_norm: w has 7 elements and x 8 columns; w takes one element a column"));
  EXPECT_THAT(
      message(right, wrong, as_tensor<float>(y, {2, 8})),
      HasSubstr("layer_norm: b has 7 elements and x 8 columns; b takes one element a column"));
  const auto of_sums = [&](int64_t residuals, int64_t sums,
                           const TensorRef<const float, 1>& weight) {
    return std::string(kernels::add_rms_norm(stream, in, as_tensor<const float>(x, {2, residuals}),
                                             weight, as_tensor<float>(y, {2, 8}),
                                             as_tensor<float>(y, {2, sums}), 1e-6f)
                           .message());
  };
  EXPECT_THAT(of_sums(7, 8, right),
              HasSubstr("add_rms_norm: x is 2 × 8 and residual 2 × 7; both need the same extents"));
  EXPECT_THAT(of_sums(8, 7, right),
              HasSubstr("add_rms_norm: x is 2 × 8 and sum 2 × 7; both need the same extents"));
  EXPECT_THAT(of_sums(8, 8, wrong), HasSubstr("add_rms_norm: w has 7 elements"));
}

}  // namespace
}  // namespace heddle
