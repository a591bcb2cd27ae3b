// softmax_backward and log_softmax_backward against double precision: types, lengths of rows, alignments, and rows whose
// gradient is known.
#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/softmax/softmax.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

// dx of a row whose y and dy are the same numbers, v. Each term of the sum is rounded, and added up within a thread, a
// warp, a block, a cluster and the parts of long rows; exp is within (4 + 2.5 |v|) 2^-23.
template <class T>
void check_row(bool is_log, const std::vector<double>& v, const std::vector<double>& dx) {
  double sum = 0, terms = 0;
  for (const double x : v) {
    const double term = is_log ? x : x * x;
    sum += term, terms += std::abs(term);
  }
  const double error = terms * (64 + static_cast<double>(v.size()) / 32768) * 0x1p-24;
  for (size_t c = 0; c < v.size(); ++c) {
    const double weight = is_log ? std::exp(v[c]) : v[c];
    const double exact = is_log ? v[c] - weight * sum : v[c] * (v[c] - sum);
    const double step = is_log ? (4 + 2.5 * std::abs(v[c])) * 0x1p-23 : 0;
    const double computed =
        std::abs(weight) * (error + std::abs(sum) * step) +
        0x1p-22 * (std::abs(v[c]) * (is_log ? 1 : std::abs(v[c])) + std::abs(weight * sum));
    ASSERT_NEAR(dx[c], exact, computed + (std::abs(exact) + computed) * kStep<T> + kLeast<T>)
        << "column " << c;
  }
}

template <class T>
void check_backward(const RowsAt& shape, float spread = 0.5f) {
  for (const bool is_log : {false, true}) {
    check_rows<T>(
        shape, 0, spread,
        [&](const Stream& stream, const auto& v, const auto& dx) {
          return is_log ? kernels::log_softmax_backward(stream, v, v, dx)
                        : kernels::softmax_backward(stream, v, v, dx);
        },
        [&](const auto& v, const auto& dx) { check_row<T>(is_log, v, dx); });
  }
}

template <class T>
class SoftmaxBackward : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(SoftmaxBackward, Types);

TYPED_TEST(SoftmaxBackward, OfRowsOfEveryLength) {
  for (const RowsAt& shape :
       {RowsAt{0, 5}, RowsAt{5, 0}, RowsAt{1, 1}, RowsAt{129, 3}, RowsAt{65, 32}, RowsAt{9, 127},
        RowsAt{3, 1023}, RowsAt{2, 4096}, RowsAt{2, 9001}, RowsAt{1, 65536}, RowsAt{1, 70001}}) {
    check_backward<TypeParam>(shape);
  }
}

TYPED_TEST(SoftmaxBackward, OfRowsInParts) { check_backward<TypeParam>({1, 1000003}, 0.125f); }

TYPED_TEST(SoftmaxBackward, OfRowsThatAreNotAligned) {
  check_backward<TypeParam>({4, 1000, {1008, 1}, {1016, 1}});
  check_backward<TypeParam>({4, 1000, {1001}, {1000}});
  check_backward<TypeParam>({5, 17, {17}, {32, 1}});
}

// Of small numbers whose products are exact; y and dy change places with another result.
TYPED_TEST(SoftmaxBackward, OfARowByHand) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const auto upload = [&](std::vector<float> values) {
    const std::vector<TypeParam> host(values.begin(), values.end());
    return device.upload(absl::MakeConstSpan(host)).value();
  };
  const Buffer y = upload({0.5f, 0.25f, 0.25f, 0.0f}), dy = upload({1.0f, 2.0f, -4.0f, 8.0f});
  const Buffer dx = upload({0.0f, 0.0f, 0.0f, 0.0f});
  const auto of = [](const Buffer& buffer) { return as_tensor<const TypeParam>(buffer, {1, 4}); };
  const auto result = [&] {
    std::vector<double> values;
    const std::vector<TypeParam> host = dx.download<TypeParam>(stream).value();
    for (const TypeParam v : host) values.push_back(wide(v));
    return values;
  };
  ASSERT_THAT(kernels::softmax_backward(stream, of(y), of(dy), as_tensor<TypeParam>(dx, {1, 4})),
              IsOk());
  EXPECT_EQ(result(), (std::vector<double>{0.5, 0.5, -1, 0}));  // the sum is 0
  const Buffer zeros = upload({0.0f, 0.0f, 0.0f, 0.0f});
  ASSERT_THAT(
      kernels::log_softmax_backward(stream, of(zeros), of(dy), as_tensor<TypeParam>(dx, {1, 4})),
      IsOk());
  EXPECT_EQ(result(), (std::vector<double>{-6, -5, -11, 1}));  // the sum is 7, e^0 is 1
}

TEST(SoftmaxBackwardTest, RefusesOtherExtents) {
  const Stream stream = test_device().create_stream().value();
  const Buffer memory = test_device().allocate(64).value();
  const auto of = [&](int64_t rows, int64_t columns) {
    return as_tensor<const float>(memory, {rows, columns});
  };
  const auto to = [&](int64_t rows, int64_t columns) {
    return as_tensor<float>(memory, {rows, columns});
  };
  EXPECT_THAT(
      std::string(kernels::softmax_backward(stream, of(2, 8), of(8, 2), to(2, 8)).message()),
      HasSubstr("softmax_backward: y is 2 × 8 and dy 8 × 2; both need the same extents"));
  EXPECT_THAT(
      std::string(kernels::log_softmax_backward(stream, of(2, 8), of(2, 8), to(2, 4)).message()),
      HasSubstr("log_softmax_backward: y is 2 × 8 and dx 2 × 4; both need the same extents"));
}

}  // namespace
}  // namespace heddle
