// Operations from outside, as functions of kernels: on the interpreter, and on a GPU by --device.
#include "heddle/dsl/extend/custom_function.h"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>
#include <vector>

#include "dsl/extend/results_of.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/heddle.h"
#include "support/matchers.h"
#include "support/test_device.h"

namespace heddle {
namespace {

using ::testing::HasSubstr;

int32_t dot_of_bytes(uint32_t a, uint32_t b, int32_t c) {
  for (int i = 0; i < 32; i += 8) c += static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i);
  return c;
}
const CustomFunction<int32_t(uint32_t, uint32_t, int32_t)> dot4(
    {.row = ir::op_row("test.dot4", "a:u32 b:u32 c:i32 -> i32", ir::kPure),
     .summary = "c and the products of four signed bytes of a and b, added up",
     .ptx = {{"dp4a.s32.s32 %0, %1, %2, %3;"}}},
    dot_of_bytes);

// Where each lane's bit stands: the last operand is a number of the instruction.
const CustomFunction<uint32_t(uint32_t, uint32_t, uint32_t, uint32_t)> logic(
    {.row = ir::op_row("test.logic", "a:u32 b:u32 c:u32 value:u32 -> u32", ir::kPure),
     .summary = "each bit by a table of eight",
     .ptx = {{"lop3.b32 %0, %1, %2, %3, %#4;"}}},
    [](uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
      uint32_t result = 0;
      for (int i = 0; i < 32; ++i) {
        const uint32_t row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
        result |= (table >> row & 1) << i;
      }
      return result;
    });

// Of every element; halves have PTX of their own.
const CustomFunction<half(half, half)> larger_half(
    {.row = ir::op_row("test.larger", "a:T b:T -> T", ir::DataClass::kFloat, ir::kPure),
     .summary = "the larger one's absolute value",
     .ptx = {{"{ .reg .b16 x, y;\n abs.f16 x, %1;\n abs.f16 y, %2;\n max.f16 %0, x, y; }",
              ir::Scalar::kF16}}},
    [](half a, half b) {
      return half(std::max(std::abs(static_cast<float>(a)), std::abs(static_cast<float>(b))));
    });

// A sum over the lanes of a mask, by one instruction.
const CustomFunction<uint32_t(uint32_t, uint32_t)> added_up({
    .row = ir::op_row("test.added", "value:u32 mask:u32? -> u32", ir::Scope::kWarp),
    .summary = "the sum over the lanes that take part",
    .ptx = {{"redux.sync.add.u32 %0, %1, %2;"}},
    .warp_meaning =
        [](uint32_t lanes, absl::Span<const uint64_t> in, absl::Span<uint64_t> out) {
          uint32_t sum = 0;
          for (int i = 0; i < 32; ++i) sum += (lanes >> i & 1) * static_cast<uint32_t>(in[i]);
          for (int i = 0; i < 32; ++i) {
            if (lanes >> i & 1) out[i] = sum;
          }
        },
});

const CustomFunction<std::tuple<uint32_t, uint32_t>(uint64_t)> halves_of(
    {.row = ir::op_row("test.halves", "a:X -> u32 u32", ir::kVolatile),
     .summary = "the low and the high word",
     .ptx = {{"mov.b64 {%0, %1}, %2;"}}},
    [](uint64_t x) {
      return std::tuple(static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32));
    });

const CustomFunction<uint32_t(uint32_t)> unexplained({.row = ir::op_row("test.unexplained",
                                                                        "a:u32 -> u32", ir::kPure),
                                                      .summary = "a",
                                                      .ptx = {{"mov.b32 %0, %1;"}}});

TEST(CustomFunctions, ComputeWhatTheirMeaningSays) {
  const auto dots = results_of<int32_t>(64, [] {
    const UInt t = cast<uint32_t>(thread_idx.x);
    return dot4(t * 0x81'02'7F'03u, t * 0x01'FF'80'10u + 7u, thread_idx.x - 5);
  });
  ASSERT_THAT(dots.status(), IsOk());
  for (uint32_t t = 0; t < 64; ++t) {
    EXPECT_EQ((*dots)[t], dot_of_bytes(t * 0x81'02'7F'03u, t * 0x01'FF'80'10u + 7u,
                                       static_cast<int32_t>(t) - 5));
  }
}

TEST(CustomFunctions, TakeNumbersOfTheInstruction) {
  const auto bits = results_of<uint32_t>(64, [] {
    const UInt t = cast<uint32_t>(thread_idx.x);
    return logic(t, t << 1, 0x2Fu, 0x96u);
  });
  ASSERT_THAT(bits.status(), IsOk());
  for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ((*bits)[t], t ^ t << 1 ^ 0x2Fu);
  const auto wrong = results_of<uint32_t>(32, [] {
    const UInt t = cast<uint32_t>(thread_idx.x);
    return logic(t, t, t, t);
  });
  EXPECT_THAT(std::string(wrong.status().message()),
              AllOf(HasSubstr("%#4 of the PTX of 'test.logic' is no constant operand"),
                    HasSubstr("custom_function_test.cc")));
}

TEST(CustomFunctions, OfVectorsWorkElementByElement) {
  const auto all = results_of<half>(32, [] {
    const Half t = cast<half>(thread_idx.x);
    const Vec<half, 4> a(t, -t, half(3.0f), t * half(2.0f));
    const Vec<half, 4> b(half(-2.0f), half(1.0f), -t, half(5.0f));
    const Vec<half, 4> m = larger_half(a, b);
    return m[0] + m[1] + m[2] + m[3];
  });
  ASSERT_THAT(all.status(), IsOk());
  for (int t = 0; t < 32; ++t) {
    EXPECT_EQ(
        static_cast<float>((*all)[t]),
        static_cast<float>(std::max(t, 2) + std::max(t, 1) + std::max(t, 3) + std::max(2 * t, 5)))
        << t;
  }
}

TEST(CustomFunctions, OfWarpsSeeTheLanesThatTakePart) {
  const auto sums = results_of<uint32_t>(64, [] {
    const UInt t = cast<uint32_t>(thread_idx.x);
    Var<uint32_t> sum(0u);
    If(
        thread_idx.x % 32 < 8, [&] { sum = added_up(t, 0xFFu); },
        [&] { sum = added_up(t, 0xFFFFFF00u); });
    return UInt(sum);
  });
  ASSERT_THAT(sums.status(), IsOk());
  for (uint32_t t = 0; t < 64; ++t) {
    const uint32_t first = t / 32 * 32;
    const uint32_t low = 8 * first + 28, high = 24 * first + (8 + 31) * 12;
    EXPECT_EQ((*sums)[t], t % 32 < 8 ? low : high) << t;
  }
}

TEST(CustomFunctions, GiveTuples) {
  const auto sums = results_of<uint32_t>(32, [] {
    const auto [low, high] = halves_of(cast<uint64_t>(thread_idx.x) * uint64_t{0x1'0000'0003});
    return low + 2u * high;
  });
  ASSERT_THAT(sums.status(), IsOk());
  for (uint32_t t = 0; t < 32; ++t) EXPECT_EQ((*sums)[t], 5 * t);
}

TEST(CustomFunctions, WithoutAMeaningRunOnGpusAlone) {
  const auto same = results_of<uint32_t>(32, [] { return unexplained(cast<uint32_t>(lane_id())); });
  if (test_device_name() != "interp") {
    EXPECT_THAT(same.status(), IsOk());
    return;
  }
  EXPECT_THAT(std::string(same.status().message()),
              AllOf(HasSubstr("'test.unexplained' has no meaning that says what it computes"),
                    HasSubstr("custom_function_test.cc")));
}

// Neither where constants are folded, nor where threads run.
TEST(CustomFunctions, ThatThrowAreReported) {
  if (test_device_name() != "interp") GTEST_SKIP() << "a meaning is the interpreter's";
  const CustomFunction<uint32_t(uint32_t)> small(
      {.row = ir::op_row("test.small", "a:u32 -> u32", ir::kPure), .ptx = {{"mov.u32 %0, %1;"}}},
      [](uint32_t a) -> uint32_t { return a < 9 ? a : throw std::out_of_range("too large"); });
  const CustomFunction<uint32_t(uint32_t, uint32_t)> of_warp(
      {.row = ir::op_row("test.small_warp", "a:u32 mask:u32? -> u32", ir::Scope::kWarp),
       .ptx = {{"mov.u32 %0, %1;"}},
       .warp_meaning = [](uint32_t, absl::Span<const uint64_t>, absl::Span<uint64_t>) {
         throw 1;
       }});
  const auto said = [](auto body) {
    return std::string(results_of<uint32_t>(32, body).status().message());
  };
  for (const bool constant : {false, true}) {
    EXPECT_THAT(
        said([&] { return constant ? small(UInt(20u)) : small(cast<uint32_t>(thread_idx.x)); }),
        AllOf(HasSubstr("the function that says what this op computes has thrown an "
                        "exception, 'too large'"),
              HasSubstr("custom_function_test.cc")));
  }
  EXPECT_THAT(said([&] { return of_warp(cast<uint32_t>(thread_idx.x), UInt(0xFFFFFFFFu)); }),
              HasSubstr("what this op computes has thrown an exception"));
}

// A call that is the kernel's first instruction, and results that nobody uses.
TEST(CustomFunctions, MayComeFirst) {
  const CustomFunction<std::tuple<uint32_t, uint32_t>(uint32_t)> twice(
      {.row = ir::op_row("test.twice", "a:u32 -> u32 u32"),
       .summary = "a, and 2 a",
       .ptx = {{"mov.b32 %0, %2;\n add.u32 %1, %2, %2;"}}},
      [](uint32_t a) { return std::tuple(a, 2 * a); });
  const auto kernel = local_kernel("first", [&](Tensor<uint32_t, 1> y, UInt n) {
    const auto [once, doubled] = twice(n);
    const auto [again, unused] = twice(n + 5u);
    y(0) = n + 1u;
    y(1) = once;
    y(2) = doubled;
    y(3) = again;
  });
  const Stream stream = test_device().create_stream().value();
  const Buffer out = test_device().upload(absl::MakeConstSpan(std::vector<uint32_t>(4))).value();
  ASSERT_THAT(kernel.launch(stream, {.block = 1}, as_tensor<uint32_t>(out, {4}), 7u), IsOk());
  EXPECT_THAT(out.download<uint32_t>(stream).value(), ::testing::ElementsAre(8, 7, 14, 12));
}

// Numbers as the assembler reads them.
TEST(CustomFunctions, PrintNumbersByType) {
  const CustomFunction<int32_t(int32_t, int32_t)> shifted(
      {.row = ir::op_row("test.shifted", "a:i32 b:i32 -> i32", ir::kPure),
       .summary = "a + b",
       .ptx = {{"add.s32 %0, %1, %#2;"}}},
      [](int32_t a, int32_t b) { return a + b; });
  const CustomFunction<float(float, float)> grown(
      {.row = ir::op_row("test.grown", "a:T b:T -> T", ir::DataClass::kFloat, ir::kPure),
       .summary = "a + b",
       .ptx = {{"add.rn.f32 %0, %1, %#2;", ir::Scalar::kF32}}},
      [](float a, float b) { return a + b; });
  const auto all =
      results_of<float>(32, [&] { return grown(cast<float>(shifted(thread_idx.x, -4)), 1.5f); });
  ASSERT_THAT(all.status(), IsOk());
  for (int t = 0; t < 32; ++t) {
    EXPECT_EQ((*all)[static_cast<size_t>(t)], static_cast<float>(t) - 2.5f);
  }
}

// Where the op is refused, whoever calls it is told.
TEST(CustomFunctions, ReportRefusedOpsWhereTheyAreCalled) {
  const CustomFunction<uint32_t(uint32_t)> nameless(
      {.row = ir::op_row("nameless", "a:u32 -> u32", ir::kPure), .ptx = {{"mov.b32 %0, %1;"}}});
  EXPECT_FALSE(nameless.status().ok());
  const auto result = results_of<uint32_t>(32, [&] { return nameless(cast<uint32_t>(lane_id())); });
  EXPECT_THAT(
      std::string(result.status().message()),
      AllOf(HasSubstr(
                "the op 'nameless' is refused: an op from outside is called by its owner's name"),
            HasSubstr("custom_function_test.cc")));
}

}  // namespace
}  // namespace heddle
