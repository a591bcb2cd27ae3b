// What dsl/LANGUAGE.md shows of the kernel library, run on the test device.
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
// <page>
#include <heddle/kernels/gemm/fused.h>
// </page>
#include "kernels/gemm_check.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

// <page>
const auto bias_relu = [](const kernels::GemmPart& part, const Fragment<float>& sums,
                          Tensor<const float, 1> bias) {
  return max(sums + part.by_column(bias), 0.0f);
};

Status layer(const Stream& stream, const Buffer& x, const Buffer& weights, const Buffer& bias,
             const Buffer& y, int64_t m, int64_t n, int64_t k) {
  return kernels::gemm_with(stream, bias_relu, as_tensor<const half>(x, {m, k}),
                            as_tensor<const half>(weights, {n, k}, {1, n}),  // stored as k x n
                            as_tensor<half>(y, {m, n}), as_tensor<const float>(bias, {n}));
}
// </page>

TEST(Guide, CallsTheKernelLibrary) {
  if (!has_wgmma()) GTEST_SKIP() << "this device is none of sm_90a";
  constexpr int64_t kM = 24, kN = 16, kK = 32;
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<half> x, weights;
  std::vector<float> bias;
  for (int i = 0; i < kM * kK; ++i) x.push_back(half(static_cast<float>(i % 7 - 3)));
  for (int i = 0; i < kK * kN; ++i) weights.push_back(half(static_cast<float>(i % 5 - 2)));
  for (int i = 0; i < kN; ++i) bias.push_back(static_cast<float>(i - 8));
  const Buffer y = device.allocate(kM * kN * sizeof(half)).value();
  ASSERT_THAT(layer(stream, device.upload<half>(x).value(), device.upload<half>(weights).value(),
                    device.upload<float>(bias).value(), y, kM, kN, kK),
              IsOk());
  const std::vector<half> found = y.download<half>(stream).value();
  for (int i = 0; i < kM; ++i) {
    for (int j = 0; j < kN; ++j) {
      float sum = bias[static_cast<size_t>(j)];
      for (int l = 0; l < kK; ++l) {
        sum += static_cast<float>((i * kK + l) % 7 - 3) * static_cast<float>((l * kN + j) % 5 - 2);
      }
      ASSERT_EQ(static_cast<float>(found[static_cast<size_t>(i * kN + j)]), std::max(sum, 0.0f));
    }
  }
}

}  // namespace
}  // namespace heddle
