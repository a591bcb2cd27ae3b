// Values record the op that the user wrote, with its types and its line.
#include <string>

#include "dsl/language/trace_kernel.h"
#include "gmock/gmock.h"

namespace heddle {
namespace {

using testing::HasSubstr;

// One parameter of each type, so that operators have something of the kernel to work on.
template <class T>
void all_operators(Tensor<T, 1> y, Value<T> a, Value<T> b) {
  y(0) = a + b;
  y(1) = a - b;
  y(2) = a * b;
  y(3) = a / b;
  y(4) = -a;
  y(5) = min(a, b);
  y(6) = max(a, b);
  y(7) = abs(a);
  y(8) = fma(a, b, a);
  y(9) = select(a < b, a, b);
  if constexpr (detail::is_floating<T>) {
    y(10) = sqrt(a);
    y(11) = rcp(a);
  } else {
    y(10) = a % b;
    y(11) = (a & b) | (a ^ ~b);
    y(12) = (a << 3) >> 1;
  }
}

template <class T>
class Operators : public testing::Test {};
using Types = testing::Types<int32_t, uint32_t, int64_t, uint64_t, half, bfloat16, float, double>;
TYPED_TEST_SUITE(Operators, Types);

TYPED_TEST(Operators, RecordOneOpEach) {
  const auto kernel = define_kernel("operators(y, a, b)", all_operators<TypeParam>);
  const ir::TraceResult result = trace(kernel);
  ASSERT_TRUE(result.diagnostics.empty()) << ir::to_string(result.diagnostics);
  const ir::Kernel& k = result.kernel;
  for (const ir::Opcode opcode :
       {ir::Opcode::kSub, ir::Opcode::kMul, ir::Opcode::kDiv, ir::Opcode::kNeg, ir::Opcode::kMin,
        ir::Opcode::kMax, ir::Opcode::kAbs, ir::Opcode::kFma, ir::Opcode::kSelect,
        ir::Opcode::kLt}) {
    EXPECT_EQ(count_ops(k, opcode), 1) << ir::info(opcode).mnemonic;
  }
  const bool floating = detail::is_floating<TypeParam>;
  EXPECT_EQ(count_ops(k, ir::Opcode::kSqrt), floating);
  EXPECT_EQ(count_ops(k, ir::Opcode::kRem), !floating);
  EXPECT_EQ(count_ops(k, ir::Opcode::kShl), !floating);
}

TEST(ValueTest, HostNumbersBecomeConstantsOfTheOtherOperandsType) {
  const auto kernel = define_kernel("constants(y, h, n)", [](Tensor<float, 1> y, Half h, UInt n) {
    y(0) = cast<float>(h * 0.5);
    y(1) = cast<float>(7 + n);
  });
  const std::string text = traced_text(kernel);
  EXPECT_THAT(text, HasSubstr("const 0.5 : f16"));
  EXPECT_THAT(text, HasSubstr("const 7 : u32"));
}

TEST(ValueTest, CapturedHostValuesAreBakedIn) {
  const float scale = 2.5f;
  const auto kernel =
      define_kernel("scaled(x, y)",
                    [scale](Tensor<const float, 1> x, Tensor<float, 1> y) { y(0) = x(0) * scale; });
  EXPECT_THAT(traced_text(kernel), HasSubstr("const 2.5 : f32"));
}

TEST(ValueTest, ConversionsSayTheirTypes) {
  const auto kernel = define_kernel("convert(y, n)", [](Tensor<float, 1> y, Int n) {
    y(0) = cast<float>(n);
    y(1) = Float(cast<int64_t>(n));
    y(2) = bitcast<float>(n);
    y(3) = cast<float>(cast<bool>(n));
    y(4) = cast<float>(cast<half>(n));
  });
  const std::string text = traced_text(kernel);
  EXPECT_THAT(text, HasSubstr("convert %n : i64"));
  EXPECT_THAT(text, HasSubstr("bitcast %n : f32"));
  EXPECT_THAT(text, HasSubstr("convert %n : bool"));
  EXPECT_THAT(text, HasSubstr("convert %n : f16"));
}

TEST(ValueTest, BoolOperators) {
  const auto kernel = define_kernel("bools(y, p, q)", [](Tensor<bool, 1> y, Bool p, Bool q) {
    y(0) = (p && q) || !p;
    y(1) = (p ^ q) == true;
  });
  const ir::TraceResult result = trace(kernel);
  EXPECT_TRUE(result.diagnostics.empty()) << ir::to_string(result.diagnostics);
  EXPECT_EQ(count_ops(result.kernel, ir::Opcode::kAnd), 1);
  EXPECT_EQ(count_ops(result.kernel, ir::Opcode::kOr), 1);
  EXPECT_EQ(count_ops(result.kernel, ir::Opcode::kNot), 1);
  EXPECT_EQ(count_ops(result.kernel, ir::Opcode::kXor), 1);
}

TEST(ValueTest, EveryOpKnowsItsLine) {
  const int line = __LINE__ + 2;
  const auto kernel = define_kernel("lines(y, a, b)", [](Tensor<float, 1> y, Float a, Float b) {
    Float c = a * b;
    y(0) = c;
  });
  const ir::Kernel k = trace(kernel).kernel;
  int checked = 0;
  k.walk([&](ir::OpId id) {
    if (k.op(id).opcode == ir::Opcode::kMul) {
      EXPECT_EQ(k.loc(id).line, line);
      EXPECT_THAT(std::string(k.loc(id).file), HasSubstr("value_test.cc"));
      ++checked;
    }
    if (k.op(id).opcode == ir::Opcode::kStore) {
      EXPECT_EQ(k.loc(id).line, line + 1);
      ++checked;
    }
  });
  EXPECT_EQ(checked, 2);
}

TEST(ValueTest, HostSixteenBitTypesRound) {
  EXPECT_EQ(half(0.1).bits, 0x2E66);
  EXPECT_EQ(bfloat16(0.1).bits, 0x3DCD);
  EXPECT_EQ(half::from_bits(0x3C00).to_float(), 1.0f);
  EXPECT_EQ(bfloat16::from_bits(0x3F80).to_float(), 1.0f);
}

TEST(VecTest, ArithmeticIsElementwiseAndScalarsSpread) {
  const auto kernel =
      define_kernel("vectors(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
        Vec<float, 4> v = x.vec<4>(0);
        y.vec<4>(4) = fma(v, Vec<float, 4>(2.0f), v + 1.0f);
        y(8) = v[3];
        Vec<float, 2> pair(v[0], v[1]);
        y.vec<2>(10) = pair;
        Fragment<float> tile(8, 0.0f);
        Fragment<float> sum = tile + 3.0f;
        y(12) = sum[7] + sum.slice(2, 2)[1];
      });
  const std::string text = traced_text(kernel);
  EXPECT_THAT(text, HasSubstr(": vec<f32, 4>"));
  EXPECT_THAT(text, HasSubstr("splat"));
  EXPECT_THAT(text, HasSubstr("pack"));
  EXPECT_THAT(text, HasSubstr("{index = 3} : f32"));
  EXPECT_THAT(text, HasSubstr(": frag<f32, 8>"));
}

TEST(VecTest, ElementOutOfRangeIsReported) {
  const auto kernel =
      define_kernel("element(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
        Vec<float, 4> v = x.vec<4>(0);
        y(0) = v[4];
      });
  EXPECT_THAT(mistakes(kernel), HasSubstr("element 4 of a vector of 4"));
}

}  // namespace
}  // namespace heddle
