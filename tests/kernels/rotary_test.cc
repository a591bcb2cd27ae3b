// rotary and its gradient against double precision: both kinds of pairs, every type, any strides.
#include "heddle/kernels/rotary/rotary.h"

#include <cmath>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/matrix_rows.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using kernels::RotaryPairs;

struct Case {
  int64_t tokens, heads, elements;
  int64_t offset = 0;   // of the input's first element
  int64_t between = 0;  // elements between heads
};
const Case kCases[] = {{1, 1, 2},        {3, 2, 6},        {5, 3, 8},  {4, 4, 64},    {7, 5, 128},
                       {2, 12, 96},      {40, 8, 128},     {3, 2, 10}, {3, 4, 64, 1}, {3, 4, 64, 8},
                       {3, 4, 64, 0, 8}, {3, 4, 64, 0, 3}, {0, 4, 64}, {4, 0, 64},    {4, 4, 0}};

template <class T>
class Rotaries : public testing::Test {};
using Types = testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(Rotaries, Types);

template <class T>
void check_turned(const Case& c, RotaryPairs pairs, bool back) {
  const int64_t head = c.elements + c.between, token = c.heads * head, half = c.elements / 2,
                size = c.offset + c.tokens * token;
  SCOPED_TRACE(testing::Message() << c.tokens << " x " << c.heads << " x " << c.elements
                                  << ", offset " << c.offset << ", between " << c.between
                                  << (back ? ", back" : ""));
  const auto x = random_elements<T>(size, 0, 1, 3);
  const auto cosine = random_elements<float>(c.tokens * half, 0, 1, 4),
             sine = random_elements<float>(c.tokens * half, 0, 1, 5);
  const std::vector<T> clean(static_cast<size_t>(size), T(-7.0f));
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer in = device.upload(absl::MakeConstSpan(x)).value(),
               out = device.upload(absl::MakeConstSpan(clean)).value(),
               cosines = device.upload(absl::MakeConstSpan(cosine)).value(),
               sines = device.upload(absl::MakeConstSpan(sine)).value();
  const auto placed = [&](auto* data, const Buffer& buffer) {
    using U = std::remove_pointer_t<decltype(data)>;
    TensorRef<U, 3> tensor(reinterpret_cast<U*>(buffer.address()) + c.offset,
                           {c.tokens, c.heads, c.elements}, {token, head, 1});
    return tensor;
  };
  const auto angles = [&](const Buffer& buffer) {
    return as_tensor<const float>(buffer, {c.tokens, half});
  };
  const auto from = placed(static_cast<const T*>(nullptr), in);
  const auto to = placed(static_cast<T*>(nullptr), out);
  ASSERT_THAT(
      back ? kernels::rotary_backward<T>(stream, pairs, from, angles(cosines), angles(sines), to)
           : kernels::rotary<T>(stream, pairs, from, angles(cosines), angles(sines), to),
      IsOk());
  const std::vector<T> got = out.template download<T>(stream).value();
  std::vector<bool> written(got.size());
  for (int64_t t = 0; t < c.tokens; ++t) {
    for (int64_t h = 0; h < c.heads; ++h) {
      for (int64_t i = 0; i < half; ++i) {
        const bool halves = pairs == RotaryPairs::kHalves;
        const int64_t first = c.offset + t * token + h * head, a = first + (halves ? i : 2 * i),
                      b = first + (halves ? i + half : 2 * i + 1);
        const double one = wide(x[a]), other = wide(x[b]), cos = cosine[t * half + i],
                     sin = back ? -sine[t * half + i] : sine[t * half + i];
        // The product is rounded, the sum, and the result.
        const auto near = [&](int64_t at, double p, double q) {
          const double error = std::abs(q) * 0x1p-24 + std::abs(p + q) * (0x1p-24 + kStep<T>)*1.01;
          ASSERT_NEAR(wide(got[at]), p + q, error + kLeast<T>) << t << ", " << h << ", " << i;
          written[static_cast<size_t>(at)] = true;
        };
        near(a, one * cos, -other * sin);
        near(b, other * cos, one * sin);
      }
    }
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (written[i]) continue;
    ASSERT_EQ(wide(got[i]), -7.0) << i;
  }
}

TYPED_TEST(Rotaries, TurnPairs) {
  for (const Case& c : kCases) {
    for (const RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kNeighbours}) {
      check_turned<TypeParam>(c, pairs, false);
      check_turned<TypeParam>(c, pairs, true);
    }
  }
}

TEST(RotaryTest, SaysWhatDoesNotFit) {
  const Stream stream = test_device().create_stream().value();
  const auto call = [&](int64_t elements, int64_t heads_of_y, int64_t half, int64_t tokens) {
    return kernels::rotary<float>(
        stream, RotaryPairs::kHalves, {nullptr, {3, 4, elements}, {4 * elements, elements, 1}},
        {nullptr, {3, half}, {half, 1}}, {nullptr, {tokens, half}, {half, 1}},
        {nullptr, {3, heads_of_y, elements}, {4 * elements, elements, 1}});
  };
  constexpr auto kInvalid = StatusCode::kInvalidArgument;
  EXPECT_THAT(call(8, 5, 4, 3), Fails(kInvalid,
                                      "rotary: extent 1 of the input is 4 and that of "
                                      "the output 5; both need the same"));
  EXPECT_THAT(call(7, 4, 4, 3),
              Fails(kInvalid, "rotary: heads of 7 elements, which do not make pairs"));
  EXPECT_THAT(call(8, 4, 5, 3), Fails(kInvalid, "rotary: cosine is 3 × 5; it has to be 3 × 4"));
  EXPECT_THAT(
      call(int64_t{1} << 30, 4, int64_t{1} << 29, 3),
      Fails(kInvalid, "rotary: tokens of 4 × 1073741824 elements; they have at most 2147418112"));
  EXPECT_THAT(call(8, 4, 4, 2), Fails(kInvalid, "rotary: sine is 2 × 4; it has to be 3 × 4"));
}

}  // namespace
}  // namespace heddle
