// Floats of 8 and 4 bits that came with Blackwell, from lambda to result. A device that lacks them
// refuses the kernel and says which has them.
#include <cmath>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

const ArgumentSpec kAligned = tensor({kAny}).aligned(16);
constexpr int kThreads = 32, kEach = 4, kCount = kThreads * kEach;

// Blocks of four numbers, in four bits each, and a power of two that scales them.
const auto& quantizer() {
  static const auto& kernel = *new auto(define_kernel(
      "quantize(x, codes, scales, y)", [](Tensor<const float, 1> x, Tensor<float4_e2m1x2, 1> codes,
                                          Tensor<float8_e8m0, 1> scales, Tensor<float, 1> y) {
        const Int i = thread_idx.x;
        const Vec<float, kEach> v = x.vec<kEach>(i * kEach);
        const Vec<float, kEach> magnitudes = abs(v);
        const Float most =
            max(max(magnitudes[0], magnitudes[1]), max(magnitudes[2], magnitudes[3]));
        const Float8E8M0 scale = cast<float8_e8m0>(most * (1.0f / 6));
        const Float factor = cast<float>(scale);
        const auto pairs = pack_e2m1(v * rcp(factor));
        scales(i) = scale;
        codes.vec<kEach / 2>(i * (kEach / 2)) = pairs;
        y.vec<kEach>(i * kEach) = unpack_e2m1(pairs).as<float>() * factor;
      }));
  return kernel;
}

// What a device of this kind runs it as.
bool has_them(const Device& device) {
  return device.cuda() == nullptr || device.info().compute_major >= 10;
}

TEST(Narrow, QuantizesBlocks) {
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  std::vector<float> values;
  for (int i = 0; i < kCount; ++i) {
    values.push_back(std::ldexp(static_cast<float>((i * 37) % 101 - 50) / 8, i % 23 - 11));
  }
  const Buffer x = device.upload(absl::MakeConstSpan(values)).value();
  const Buffer codes = device.allocate(kCount / 2).value();
  const Buffer scales = device.allocate(kThreads).value();
  const Buffer y = device.allocate(kCount * sizeof(float)).value();
  const auto compiled = quantizer().compile(
      Signature{kAligned, kAligned, kAligned, kAligned},
      CompileOptions{.block = {kThreads, 1, 1}, .target = "sm_100a", .stage = Stage::kPtx});
  ASSERT_THAT(compiled, IsOk());
  EXPECT_THAT(compiled->ptx(), testing::HasSubstr("cvt.rn.satfinite.e2m1x2.f32"));
  EXPECT_THAT(compiled->ptx(), testing::HasSubstr("cvt.rp.satfinite.ue8m0x2.f32"));
  const auto launch = [&](const auto& kernel) {
    return kernel.launch(stream, {.block = kThreads}, as_tensor<const float>(x, {kCount}),
                         as_tensor<float4_e2m1x2>(codes, {kCount / 2}),
                         as_tensor<float8_e8m0>(scales, {kThreads}), as_tensor<float>(y, {kCount}));
  };
  if (!has_them(device)) {
    EXPECT_THAT(launch(quantizer()), Fails(StatusCode::kInvalidArgument,
                                           "narrow_test.cc:", "sm_100a is the first that has"));
    return;
  }
  ASSERT_THAT(on_gpu() ? launch(quantizer()) : launch(*compiled), IsOk());
  const auto got_codes = codes.download<uint8_t>(stream).value();
  const auto got_scales = scales.download<uint8_t>(stream).value();
  const auto got = y.download<float>(stream).value();
  for (int block = 0; block < kThreads; ++block) {
    float most = 0;
    for (int i = 0; i < kEach; ++i) {
      most = std::max(most, std::fabs(values[static_cast<size_t>(block * kEach + i)]));
    }
    const float8_e8m0 scale(most * (1.0f / 6));
    EXPECT_EQ(got_scales[static_cast<size_t>(block)], scale.bits) << block;
    for (int i = 0; i < kEach; i += 2) {
      const auto at = static_cast<size_t>(block * kEach + i);
      const float4_e2m1x2 pair(values[at] / scale.to_float(), values[at + 1] / scale.to_float());
      EXPECT_EQ(got_codes[at / 2], pair.bits) << at;
      EXPECT_EQ(got[at], pair.first() * scale.to_float()) << at;
      EXPECT_EQ(got[at + 1], pair.second() * scale.to_float()) << at;
    }
  }
}

TEST(Narrow, HostTypesHoldTheirNumbers) {
  EXPECT_EQ(float8_e8m0(3.0).to_float(), 4.0f);
  EXPECT_EQ(float8_e8m0(-0.25).to_float(), 0.25f);
  EXPECT_EQ(float8_e8m0(0.0).to_float(), 0x1p-127f);
  EXPECT_EQ(float8_e8m0(1e300).to_float(), 0x1p127f);
  EXPECT_TRUE(std::isnan(float8_e8m0(NAN).to_float()));
  const float4_e2m1x2 pair(-2.5, 100.0);
  EXPECT_EQ(pair.bits, 0x7C);
  EXPECT_EQ(pair.first(), -2.0f);
  EXPECT_EQ(pair.second(), 6.0f);
}

TEST(Narrow, ScalarsVectorsAndFragmentsConvert) {
  const auto kernel =
      define_kernel("shapes(x, y, z)",
                    [](Tensor<const float, 1> x, Tensor<float4_e2m1x2, 1> y, Tensor<half, 1> z) {
                      const Float4E2M1x2 one = pack_e2m1(Vec<float, 2>(x(0), x(1)));
                      y(0) = one;
                      const Float8E8M0 down = cast<float8_e8m0>(x(2), Rounding::zero);
                      const Fragment<float> many(6, cast<float>(down));
                      const Fragment<float4_e2m1x2> pairs = pack_e2m1(many);
                      y(1) = pairs[2];
                      const Fragment<half> back = unpack_e2m1(pairs);
                      z(0) = back[5];
                      z(1) = unpack_e2m1(one)[1];
                      y(2) = select(x(0) > 0.0f, one, pairs[0]);
                    });
  const auto compiled =
      kernel.compile(Signature{kAligned, kAligned, kAligned},
                     CompileOptions{.block = {1, 1, 1}, .target = "sm_120a", .stage = Stage::kPtx});
  ASSERT_THAT(compiled, IsOk());
  if (on_gpu()) return;
  const Stream stream = test_device().create_stream().value();
  const Buffer x = test_device().upload<float>({1.4f, -5.1f, 3.9f}).value();
  const Buffer y = test_device().allocate(3).value();
  const Buffer z = test_device().allocate(2 * sizeof(half)).value();
  ASSERT_THAT(compiled->launch(stream, {.block = 1}, as_tensor<const float>(x, {3}),
                               as_tensor<float4_e2m1x2>(y, {3}), as_tensor<half>(z, {2})),
              IsOk());
  EXPECT_THAT(y.download<uint8_t>(stream).value(), testing::ElementsAre(0xF3, 0x44, 0xF3));
  const auto halves = z.download<half>(stream).value();
  EXPECT_EQ(halves[0].to_float(), 2.0f);
  EXPECT_EQ(halves[1].to_float(), -6.0f);
}

}  // namespace
}  // namespace heddle
