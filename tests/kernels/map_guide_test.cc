// What dsl/LANGUAGE.md shows of maps, run on the test device.
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
// <page>
#include <heddle/kernels/map/copy.h>
// </page>
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

// <page>
constexpr auto scaled_sum = kernels::define_map(
    "scaled_sum(a, b, by, y)", [](Float a, Float b, Float by) { return (a + b) * by; });

Status sums(const Stream& stream, const Buffer& a, const Buffer& b, const Buffer& y, int64_t m,
            int64_t n) {
  const auto turned = kernels::permuted(as_tensor<const float>(b, {n, m}), {1, 0});
  return scaled_sum(stream, as_tensor<const half>(a, {m, n}), turned, 0.5f,
                    as_tensor<half>(y, {m, n}));
}
// </page>

TEST(Guide, MapsAFunctionOfElements) {
  constexpr int64_t kM = 40, kN = 70;
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<half> a;
  std::vector<float> b;
  for (int i = 0; i < kM * kN; ++i) {
    a.push_back(half(static_cast<float>(i % 32)));
    b.push_back(static_cast<float>(i % 64));
  }
  const Buffer y = device.allocate(kM * kN * sizeof(half)).value();
  ASSERT_THAT(
      sums(stream, device.upload<half>(a).value(), device.upload<float>(b).value(), y, kM, kN),
      IsOk());
  const std::vector<half> found = y.download<half>(stream).value();
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      ASSERT_EQ(
          static_cast<float>(found[static_cast<size_t>(i * kN + j)]),
          (static_cast<float>((i * kN + j) % 32) + static_cast<float>((j * kM + i) % 64)) / 2);
    }
  }
}

}  // namespace
}  // namespace heddle
