// Products of a warp in the language, on whatever device the tests run on, and mistakes. Every atom is in
// tests/runtime/mma_atoms_test.cc.
#include "heddle/dsl/cuda/mma.h"

#include <string>
#include <vector>

#include "dsl/language/run_ints.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

// d = x * y of 16 x 16 by 16 x 8 halves, through ldmatrix, as the header's example has it.
TEST(Mma, MultipliesWhatLdmatrixLoads) {
  const auto kernel = define_kernel(
      "product(x, y, d)", [](Tensor<const half, 2> x, Tensor<const half, 2> y, Tensor<float, 2> d) {
        const Shared<half, 2> a({16, 16}), b({16, 8});
        const Int lane = lane_id();
        for (int i = 0; i < 8; ++i) {
          const Int at = lane * 8 + i;
          a(at / 16, at % 16) = x(at / 16, at % 16);
          If(at < 128, [&] { b(at / 8, at % 8) = y(at / 8, at % 8); });
        }
        sync_warp();
        const Fragment<half> fa = ldmatrix(a.at(lane % 16, lane / 16 * 8), 4);
        const Fragment<half> fb = ldmatrix(b.at(lane % 16, 0), 2, true);
        // ldmatrix has the four matrices column by column, as mma has its registers.
        const Fragment<float> sum = mma(Fragment<float>(4, 0.5f), fa, fb);
        for (int i = 0; i < sum.size(); ++i) {
          d(lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2) = sum[i];
        }
      });
  std::vector<half> x, y;
  for (int i = 0; i < 256; ++i) x.emplace_back(i * 7 % 13 - 6);
  for (int i = 0; i < 128; ++i) y.emplace_back(i * 5 % 11 - 5);
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer x_memory = device.upload<half>(x).value(), y_memory = device.upload<half>(y).value();
  const Buffer d_memory = device.allocate(128 * sizeof(float)).value();
  ASSERT_THAT(
      kernel.launch(stream, {.grid = 1, .block = 32}, as_tensor<const half>(x_memory, {16, 16}),
                    as_tensor<const half>(y_memory, {16, 8}), as_tensor<float>(d_memory, {16, 8})),
      IsOk());
  const std::vector<float> d = d_memory.download<float>(stream).value();
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      float wanted = 0.5f;
      for (int k = 0; k < 16; ++k) {
        wanted += x[static_cast<size_t>(row * 16 + k)].to_float() *
                  y[static_cast<size_t>(k * 8 + column)].to_float();
      }
      EXPECT_EQ(d[static_cast<size_t>(row * 8 + column)], wanted) << row << " " << column;
    }
  }
}

// Numbers that tf32 has, and one that it rounds.
TEST(Mma, MultipliesConvertedNumbers) {
  const auto kernel = define_kernel("rounded(d)", [](Tensor<float, 1> d) {
    const Fragment<tfloat32> a(4, cast<tfloat32>(Float(1.0f + 0x1p-11f)));
    const Fragment<tfloat32> b(2, cast<tfloat32>(Float(1.0f)));
    d(lane_id()) = mma(Fragment<float>(4, 0.0f), a, b)[0];
  });
  const Device& device = test_device();
  const Stream stream = device.create_stream().value();
  const Buffer d = device.allocate(32 * sizeof(float)).value();
  ASSERT_THAT(kernel.launch(stream, {.grid = 1, .block = 32}, as_tensor<float>(d, {32})), IsOk());
  // Ties are away from zero.
  EXPECT_EQ(d.download<float>(stream).value()[7], 8 * (1.0f + 0x1p-10f));
}

template <class Body>
std::string mistake_of(Body body) {
  const auto kernel = define_kernel("mistake(d)", body);
  CompileOptions options;
  options.target = "sm_86";
  options.block = {32, 1, 1};
  options.stage = Stage::kPtx;
  return std::string(kernel.compile(Signature{tensor({kAny})}, options).status().message());
}

TEST(Mma, SaysWhatThereIsNone) {
  EXPECT_THAT(mistake_of([](Tensor<float, 1> d) {
                d(0) = mma(Fragment<float>(4, 0.0f), Fragment<half>(8, cast<half>(Float(1.0f))),
                           Fragment<half>(8, cast<half>(Float(1.0f))))[0];
              }),
              HasSubstr("give each lane 4, 2 and 4 for m16n8k8, or 8, 4 and 4 for m16n8k16"));
  EXPECT_THAT(mistake_of([](Tensor<float, 1> d) {
                d(0) = mma(Fragment<float>(4, 0.0f), Fragment<float>(4, 1.0f),
                           Fragment<float>(2, 1.0f))[0];
              }),
              HasSubstr("'mma' does not multiply f32 by f32 into f32"));
}

}  // namespace
}  // namespace heddle
