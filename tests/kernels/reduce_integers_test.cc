// reduce of integers: exact, of every reduction that they have, in modes of every kind.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/kernels/reduce/reduce.h"
#include "support/matchers.h"
#include "support/test_device.h"
#include "support/tuning_candidates.h"

namespace heddle {
namespace {

using kernels::Along;
using kernels::Reduction;

constexpr Reduction kOfIntegers[] = {Reduction::kSum, Reduction::kProduct, Reduction::kMax,
                                     Reduction::kMin, Reduction::kArgmax,  Reduction::kArgmin};

template <class T>
int64_t expected(Reduction reduction, const std::vector<T>& x) {
  switch (reduction) {
    case Reduction::kMax:
      return *std::max_element(x.begin(), x.end());
    case Reduction::kMin:
      return *std::min_element(x.begin(), x.end());
    case Reduction::kArgmax:
      return std::max_element(x.begin(), x.end()) - x.begin();
    case Reduction::kArgmin:
      return std::min_element(x.begin(), x.end()) - x.begin();
    default: {
      const bool product = reduction == Reduction::kProduct;
      uint64_t all = product;
      for (const T v : x) {
        const auto term = static_cast<uint64_t>(static_cast<int64_t>(v));
        all = product ? all * term : all + term;
      }
      return static_cast<int64_t>(all);
    }
  }
}

// y(o, i) of x(o, ·, i), whose first element lies `offset` elements behind an aligned place.
template <class T>
void check(const Stream& stream, const int64_t (&extents)[3], const std::vector<T>& x,
           int64_t offset) {
  const int64_t outer = extents[0], middle = extents[1], inner = extents[2];
  std::vector<T> host(static_cast<size_t>(offset), T(3));
  host.insert(host.end(), x.begin(), x.end());
  const Buffer in = test_device().upload(absl::MakeConstSpan(host)).value();
  const TensorRef<const T, 3> of(reinterpret_cast<const T*>(in.address()) + offset, extents);
  const Buffer out = test_device().allocate(outer * inner * sizeof(int64_t)).value();
  for (const Reduction reduction : kOfIntegers) {
    SCOPED_TRACE(testing::Message() << outer << "x" << middle << "x" << inner << " reduction "
                                    << static_cast<int>(reduction));
    const auto y = as_tensor<int64_t>(out, {outer, inner});
    by_each_candidate(
        [&] {
          ASSERT_THAT(kernels::reduce<T>(stream, reduction, of, y), IsOk());
          const std::vector<int64_t> got = out.download<int64_t>(stream).value();
          for (int64_t o = 0; o < outer; ++o) {
            for (int64_t i = 0; i < inner; ++i) {
              std::vector<T> all;
              for (int64_t m = 0; m < middle; ++m) all.push_back(x[(o * middle + m) * inner + i]);
              ASSERT_EQ(got[o * inner + i], expected(reduction, all)) << o << ", " << i;
            }
          }
        },
        2);
  }
}

template <class T>
class ReduceIntegers : public testing::Test {};
using Types = testing::Types<int32_t, uint8_t>;
TYPED_TEST_SUITE(ReduceIntegers, Types);

TYPED_TEST(ReduceIntegers, IsExact) {
  using Limits = std::numeric_limits<TypeParam>;
  const Stream stream = test_device().create_stream().value();
  const struct {
    int64_t extents[3], offset = 0;
  } cases[] = {{{1, 1, 5}},       {{300, 3, 1}},      {{70, 31, 1}},
               {{40, 129, 1}, 3}, {{9, 4096, 1}},     {{2, 50001, 1}, 5},
               {{1, 300, 64}},    {{1, 1000, 33}, 1}, {{3, 17, 40}, 0}};
  std::mt19937 random(1);
  std::uniform_int_distribution<int64_t> any(Limits::lowest(), Limits::max());
  for (const auto& c : cases) {
    std::vector<TypeParam> x;
    for (int64_t i = 0; i < c.extents[0] * c.extents[1] * c.extents[2]; ++i) {
      // Ends of the range, which are several's, and what f32 does not hold.
      const int64_t value = any(random);
      x.push_back(static_cast<TypeParam>(i % 11 == 3   ? Limits::max()
                                         : i % 13 == 5 ? Limits::lowest()
                                                       : value));
    }
    check(stream, c.extents, x, c.offset);
  }
}

TEST(ReduceIntegersTest, OfAllOfAMatrix) {
  const Stream stream = test_device().create_stream().value();
  const std::vector<int32_t> x(300 * 77, std::numeric_limits<int32_t>::max());
  const Buffer in = test_device().upload<int32_t>(x).value(),
               out = test_device().allocate(sizeof(int64_t)).value();
  const auto of = as_tensor<const int32_t>(in, {300, 77});
  const auto y = as_tensor<int64_t>(out, {1});
  ASSERT_THAT(kernels::reduce<int32_t>(stream, Reduction::kSum, Along::kAll, of, y), IsOk());
  EXPECT_EQ(out.download<int64_t>(stream).value()[0], int64_t{2147483647} * 300 * 77);
}

TEST(ReduceIntegersTest, SaysWhatIntegersDoNotHave) {
  const Stream stream = test_device().create_stream().value();
  const Buffer in = test_device().allocate(64).value(), out = test_device().allocate(64).value();
  for (const Reduction reduction : {Reduction::kMean, Reduction::kNorm2, Reduction::kVar}) {
    EXPECT_THAT(kernels::reduce<int32_t>(stream, reduction, Along::kLast,
                                         as_tensor<const int32_t>(in, {2, 4}),
                                         as_tensor<int64_t>(out, {2})),
                Fails(StatusCode::kInvalidArgument,
                      "reduce: mean, norm2 and var are of floats; fix: cast the integers first"));
  }
}

}  // namespace
}  // namespace heddle
