// histogram bin by bin: every type, bins that fit in shared memory and more, elements outside, at edges, at odd places, all
// alike.
#include "heddle/kernels/histogram/histogram.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

template <class T>
class Histograms : public testing::Test {};
using Types = testing::Types<float, half, bfloat16, int32_t, uint8_t>;
TYPED_TEST_SUITE(Histograms, Types);

// As histogram.h says it.
template <class T>
std::vector<int32_t> expected_counts(const std::vector<T>& x, double lower, double upper,
                                     int64_t bins) {
  std::vector<int32_t> counts(static_cast<size_t>(bins));
  for (const T& element : x) {
    int64_t bin = 0;
    if constexpr (std::is_integral_v<T>) {
      const auto at = static_cast<int64_t>(element), first = static_cast<int64_t>(lower),
                 last = static_cast<int64_t>(upper);
      if (at < first || at > last) continue;
      bin = (at - first) * bins / (last - first);
    } else {
      const auto at = static_cast<float>(element), first = static_cast<float>(lower),
                 last = static_cast<float>(upper);
      if (!(at >= first && at <= last)) continue;
      const float beyond = at - first;
      const auto scale =
          static_cast<float>(static_cast<double>(bins) / (static_cast<double>(last) - first));
      bin = static_cast<int64_t>(beyond * scale);
    }
    ++counts[static_cast<size_t>(std::min(bin, bins - 1))];
  }
  return counts;
}

template <class T>
void check_counts(const std::vector<T>& x, double lower, double upper, int64_t bins,
                  int64_t offset = 0, int64_t stride = 1) {
  SCOPED_TRACE(testing::Message() << x.size() << " elements, " << bins << " bins from " << lower
                                  << " to " << upper << ", offset " << offset << ", stride "
                                  << stride);
  std::vector<T> memory(static_cast<size_t>(offset) + x.size() * static_cast<size_t>(stride) + 1);
  for (size_t i = 0; i < x.size(); ++i) {
    memory[static_cast<size_t>(offset) + i * static_cast<size_t>(stride)] = x[i];
  }
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer in = device.upload(absl::MakeConstSpan(memory)).value(),
               out = device.upload<int32_t>(std::vector<int32_t>(static_cast<size_t>(bins), 77))
                         .value();
  TensorRef<const T, 1> from = as_tensor<const T>(in, {static_cast<int64_t>(memory.size())});
  from.data += offset;
  from.capacity_bytes -= offset * static_cast<int64_t>(sizeof(T));
  from.extents[0] = static_cast<int64_t>(x.size());
  from.strides[0] = stride;
  ASSERT_THAT(kernels::histogram<T>(stream, from, lower, upper, as_tensor<int32_t>(out, {bins})),
              IsOk());
  EXPECT_EQ(out.download<int32_t>(stream).value(), expected_counts(x, lower, upper, bins));
}

template <class T>
std::vector<T> elements(int64_t count, double lower, double upper) {
  std::mt19937_64 random(static_cast<uint64_t>(count));
  std::uniform_real_distribution<double> all(lower, upper);
  std::vector<T> x;
  for (int64_t i = 0; i < count; ++i) {
    const double number = all(random);
    if constexpr (std::is_integral_v<T>) {
      x.push_back(static_cast<T>(std::floor(number)));
    } else {
      x.push_back(T(static_cast<float>(number)));
    }
  }
  return x;
}

TYPED_TEST(Histograms, CountEveryElement) {
  for (const int64_t count : {0, 1, 7, 100, 5000, 40001}) {
    check_counts(elements<TypeParam>(count, 0, 250), 10, 200, 37);
  }
  check_counts(elements<TypeParam>(9000, 0, 250), 0, 256, 256);
  check_counts(elements<TypeParam>(9000, 0, 250), 3, 4, 1);
}
TYPED_TEST(Histograms, HaveAnyNumberOfBins) {
  const auto x = elements<TypeParam>(3000, 0, 250);
  for (const int64_t bins :
       {1, 2, 255, 256, 257, 1000, 4096, 20000, 40000, 57600, 60000, 200000, 1000000}) {
    check_counts(x, 0, 250, bins);
  }
}
TYPED_TEST(Histograms, TakeElementsAtOddPlaces) {
  const auto x = elements<TypeParam>(10000, 0, 250);
  for (const int64_t offset : {1, 3, 5}) check_counts(x, 0, 250, 100, offset);
  for (const int64_t stride : {2, 3}) check_counts(x, 0, 250, 100, 1, stride);
}
TYPED_TEST(Histograms, OfElementsThatAreAllAlike) {
  check_counts(std::vector<TypeParam>(20000, TypeParam(5)), 0, 100, 64);
  check_counts(std::vector<TypeParam>(20000, TypeParam(100)), 0, 100, 3000);
  check_counts(std::vector<TypeParam>(20000, TypeParam(101)), 0, 100, 64);
}

TEST(HistogramTest, CountsEdgesOnce) {
  std::vector<float> x;
  for (int i = 0; i <= 64; ++i) {
    const float edge = static_cast<float>(i) / 64;
    x.insert(x.end(), {std::nextafter(edge, -1.0f), edge, std::nextafter(edge, 2.0f)});
  }
  constexpr float kMost = std::numeric_limits<float>::infinity();
  x.insert(x.end(), {kMost, -kMost, std::nanf(""), -0.0f, 0x1p-149f});
  check_counts(x, 0, 1, 64);
  check_counts(x, -0.3, 0.7, 10);
  check_counts(x, -1.5e38, 1.5e38, 1000);
}
TEST(HistogramTest, OfIntegersIsExact) {
  constexpr int32_t kLeast = INT32_MIN, kMost = INT32_MAX;
  std::vector<int32_t> x = {kLeast, kLeast + 1, -1, 0, 1, kMost - 1, kMost};
  for (const int32_t more : elements<int32_t>(5000, kLeast, kMost)) x.push_back(more);
  check_counts(x, kLeast, kMost, 1000);
  check_counts(x, kLeast, kMost, 70000);
  check_counts(x, kLeast, kMost - 1, 255);
  check_counts(elements<int32_t>(5000, 0, 70000), 0, 70000, 70000);
  check_counts(elements<int32_t>(5000, 0, 70000), 0, 70000, 90000);
  check_counts(x, -7, 12, 3);
  // Where products of 32 bits end, and 64 are taken.
  check_counts(elements<int32_t>(5000, 0, 1 << 16), 0, 1 << 16, (1 << 16) - 1);
  check_counts(elements<int32_t>(5000, 0, 1 << 16), 0, 1 << 16, 1 << 16);
}

TEST(HistogramTest, SaysWhatDoesNotFit) {
  const Stream stream = test_device().create_stream().value();
  const auto call = [&](auto element, double lower, double upper, int64_t bins, int64_t n = 5) {
    using T = decltype(element);
    return kernels::histogram<T>(stream, {nullptr, {n}, {1}}, lower, upper, {nullptr, {bins}, {1}});
  };
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  EXPECT_THAT(call(1.0f, 0, 1, 0),
              Fails(kInvalid, "histogram: no bins; counts has one element for each"));
  EXPECT_THAT(call(1.0f, 2, 1, 8),
              Fails(kInvalid, "histogram: bins from 2 to 1; lower must be less than upper"));
  EXPECT_THAT(call(1.0f, 1, 1 + 1e-12, 8), Fails(kInvalid, "lower must be less than upper"));
  EXPECT_THAT(call(1.0f, -3e38, 3e38, 8),
              Fails(kInvalid,
                    "histogram: 8 bins from -3e+38 to 3e+38; neither upper - lower nor "
                    "bins over that may be more than f32 has"));
  EXPECT_THAT(call(1.0f, 0, 1e-37, 256), Fails(kInvalid, "may be more than f32 has"));
  EXPECT_THAT(call(1.0f, 0, std::nan(""), 8),
              Fails(kInvalid, "histogram: an edge of nan; edges are numbers that f32 has"));
  EXPECT_THAT(call(1.0f, 0, 1e39, 8), Fails(kInvalid, "histogram: an edge of 1e+39"));
  EXPECT_THAT(call(int32_t{1}, 0.5, 3, 8),
              Fails(kInvalid, "histogram: an edge of 0.5; those of integers are integers"));
  EXPECT_THAT(call(int32_t{1}, 0, 0x1p31, 8),
              Fails(kInvalid, "histogram: an edge of 2147483648; edges are numbers that i32 has"));
  EXPECT_THAT(
      call(1.0f, 0, 1, 8, int64_t{1} << 31),
      Fails(kInvalid, "histogram: 2147483648 elements and 8 bins; both are fewer than 2147418112"));
}

}  // namespace
}  // namespace heddle
