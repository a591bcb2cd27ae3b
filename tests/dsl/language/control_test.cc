// Control flow records regions, carries anything Traced, and reports what would be lost.
#include <array>
#include <optional>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "dsl/language/trace_kernel.h"
#include "gmock/gmock.h"

namespace heddle {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct MaxAt {
  Float value;
  Int index;
};
struct Nested {
  MaxAt best;
  std::array<Float, 2> pair;
};

MaxAt larger(const MaxAt& a, const MaxAt& b) { return select(b.value > a.value, b, a); }

const ir::Op& only(const ir::Kernel& kernel, ir::Opcode opcode) {
  const ir::Op* found = nullptr;
  kernel.walk([&](ir::OpId id) {
    if (kernel.op(id).opcode == opcode) found = &kernel.op(id);
  });
  EXPECT_NE(found, nullptr) << ir::info(opcode).mnemonic;
  return *found;
}

TEST(ForTest, CarriesAScalar) {
  const auto kernel = define_kernel("sum(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
    Float sum = For(range(thread_idx.x, x.shape(0), block_dim.x), Float(0),
                    [&](Int i, Float acc) { return acc + x(i); });
    y(0) = sum;
  });
  const std::string text = traced_text(kernel);
  EXPECT_THAT(text, HasSubstr("for "));
  EXPECT_THAT(text, HasSubstr("carry("));
}

TEST(ForTest, CarriesSeveralValuesAsATuple) {
  const auto kernel = define_kernel("two(y, n)", [](Tensor<float, 1> y, Int n) {
    const auto both = For(range(n), 0.0f, Int(1),
                          [&](Int i, Float a, Int b) { return std::tuple(a + 1.0f, b + i); });
    y(0) = std::get<0>(both);
    y(std::get<1>(both)) = 0.0f;
  });
  const ir::Kernel k = trace(kernel).kernel;
  EXPECT_EQ(only(k, ir::Opcode::kFor).results.size(), 2u);
}

TEST(ForTest, CarriesNestedStructsAndArrays) {
  const auto kernel = define_kernel("nested(y, n)", [](Tensor<float, 1> y, Int n) {
    Nested start{{0.0f, 0}, {1.0f, 2.0f}};
    Nested end = For(range(n), start, [&](Int i, Nested s) {
      return Nested{larger(s.best, MaxAt{cast<float>(i), i}), {s.pair[1], s.pair[0]}};
    });
    y(0) = end.best.value + end.pair[0];
    y(1) = end.pair[1];
  });
  const ir::Kernel k = trace(kernel).kernel;
  EXPECT_EQ(only(k, ir::Opcode::kFor).results.size(), 4u);
}

TEST(ForTest, CarriesFragmentsAsOneValue) {
  const auto kernel = define_kernel("tile(y, n)", [](Tensor<float, 1> y, Int n) {
    Fragment<float> tile = For(range(n), Fragment<float>(16, 0.0f),
                               [&](Int i, Fragment<float> t) { return t + cast<float>(i); });
    y(0) = tile[15];
  });
  EXPECT_EQ(only(trace(kernel).kernel, ir::Opcode::kFor).results.size(), 1u);
}

TEST(ForTest, FragmentOfAnotherSizeIsReported) {
  const auto kernel = define_kernel("sizes(y, n)", [](Tensor<float, 1> y, Int n) {
    Fragment<float> tile = For(range(n), Fragment<float>(16, 0.0f),
                               [&](Int, Fragment<float> t) { return t.slice(0, 8); });
    y(0) = tile[0];
  });
  EXPECT_THAT(mistakes(kernel),
              HasSubstr("the body gives frag<f32, 8> where frag<f32, 16> is carried"));
}

TEST(ForTest, SixtyFourBitRanges) {
  const auto kernel = define_kernel("wide(y, n)", [](Tensor<float, 1> y, Int64 n) {
    For(range(Int64(0), n, 2), [&](Int64 i) { y(i) = 0.0f; });
  });
  EXPECT_THAT(traced_text(kernel), HasSubstr("const 2 : i64"));
}

TEST(ForTest, ImperativeFormIsTheSameLoop) {
  const auto kernel =
      define_kernel("imperative(x, y)", [](Tensor<const float, 1> x, Tensor<float, 1> y) {
        Var<float> sum(0.0f);
        for (Int i : range(x.shape(0))) sum += x(i);
        y(0) = sum;
      });
  const std::string text = traced_text(kernel);
  EXPECT_THAT(text, AllOf(HasSubstr("for "), HasSubstr("var.load"), HasSubstr("var.store")));
}

TEST(ForTest, HostBreakIsReportedAndTracingGoesOn) {
  bool leave = true;
  const int line = __LINE__ + 2;
  const auto kernel = local_kernel("broken(y, n)", [&](Tensor<float, 1> y, Int n) {
    for (Int i : range(n)) {
      y(i) = 1.0f;
      if (leave) break;
    }
    for (Int i : range(n)) {
      y(i) = 2.0f;
      if (leave) break;
    }
  });
  const ir::TraceResult result = trace(kernel);
  ASSERT_EQ(result.diagnostics.size(), 2u) << ir::to_string(result.diagnostics);
  EXPECT_EQ(result.diagnostics[0].place.line, line);
  EXPECT_THAT(result.diagnostics[0].message, HasSubstr("left by a host break, return or goto"));
  EXPECT_EQ(result.diagnostics[0].fix,
            "put the condition into the range, leave by If(p, [] { Break(); }), or use "
            "While(condition, body) on Vars");
}

TEST(ForTest, ValueThatLeavesItsBodyIsReportedWithBothPlaces) {
  const int line = __LINE__ + 4;
  const auto kernel = define_kernel("escape(y, n)", [](Tensor<float, 1> y, Int n) {
    std::array<Float, 1> kept{0.0f};
    detail::Node escaped;
    For(range(n), [&](Int i) { escaped = (i * 2).node(); });
    y(Int(escaped)) = kept[0];
  });
  const ir::TraceResult result = trace(kernel);
  ASSERT_GE(result.diagnostics.size(), 1u);
  const ir::Diagnostic& d = result.diagnostics[0];
  EXPECT_THAT(d.message, HasSubstr("value used outside the for body that made it"));
  ASSERT_EQ(d.notes.size(), 2u);
  EXPECT_EQ(d.notes[0].place.line, line);
  EXPECT_THAT(d.fix, HasSubstr("Var"));
}

TEST(WhileTest, CarriesAStruct) {
  const auto kernel = define_kernel("search(y, n)", [](Tensor<float, 1> y, Int n) {
    MaxAt m = While(
        MaxAt{1.0f, 0}, [&](MaxAt s) { return s.index < n; },
        [&](MaxAt s) {
          return MaxAt{s.value * 2.0f, s.index + 1};
        });
    y(0) = m.value;
  });
  EXPECT_EQ(only(trace(kernel).kernel, ir::Opcode::kWhile).results.size(), 2u);
}

TEST(WhileTest, ImperativeForm) {
  const auto kernel = define_kernel("spin(y, n)", [](Tensor<float, 1> y, Int n) {
    Var<int32_t> i(0);
    While([&] { return i < n; }, [&] { i += 1; });
    y(0) = cast<float>(i);
  });
  EXPECT_THAT(traced_text(kernel), HasSubstr("while"));
}

TEST(IfTest, ReturnsAStruct) {
  const auto kernel = define_kernel("choose(y, p)", [](Tensor<float, 1> y, Bool p) {
    MaxAt m = If(
        p,
        [&] {
          return MaxAt{1.0f, 1};
        },
        [&] {
          return MaxAt{2.0f, 2};
        });
    y(m.index) = m.value;
  });
  EXPECT_EQ(only(trace(kernel).kernel, ir::Opcode::kIf).results.size(), 2u);
}

TEST(IfTest, ElseGoesIntoTheSecondRegion) {
  const auto kernel = define_kernel("either(y, p)", [](Tensor<float, 1> y, Bool p) {
    If(p, [&] { y(0) = 1.0f; }).Else([&] { y(0) = 2.0f; });
  });
  const ir::Kernel k = trace(kernel).kernel;
  const ir::Op& op = only(k, ir::Opcode::kIf);
  EXPECT_NE(k.region(op.regions[0]).first, k.region(op.regions[0]).last);
  EXPECT_NE(k.region(op.regions[1]).first, k.region(op.regions[1]).last);
  EXPECT_EQ(count_ops(k, ir::Opcode::kStore), 2);
}

TEST(IfTest, HostConditionsSpecialise) {
  const bool twice = true;
  const auto kernel = local_kernel("host(y)", [&](Tensor<float, 1> y) {
    for (int i = 0; i < 3; ++i) y(i) = 1.0f;
    if (twice) y(3) = 2.0f;
  });
  EXPECT_EQ(count_ops(trace(kernel).kernel, ir::Opcode::kStore), 4);
}

TEST(VarTest, StructVariablesHoldEachMember) {
  const auto kernel = define_kernel("var(y, n)", [](Tensor<float, 1> y, Int n) {
    Var<MaxAt> best(MaxAt{0.0f, 0});
    for (Int i : range(n)) best = larger(best, MaxAt{cast<float>(i), i});
    MaxAt m = best;
    y(m.index) = m.value;
  });
  EXPECT_EQ(count_ops(trace(kernel).kernel, ir::Opcode::kVar), 2);
}

TEST(SelectTest, ChoosesLeafByLeaf) {
  const auto kernel = define_kernel("select(y, p)", [](Tensor<float, 1> y, Bool p) {
    MaxAt m = select(p, MaxAt{1.0f, 1}, MaxAt{2.0f, 2});
    y(m.index) = m.value;
  });
  EXPECT_EQ(count_ops(trace(kernel).kernel, ir::Opcode::kSelect), 2);
}

TEST(ShuffleTest, MovesEveryLeaf) {
  const auto kernel = define_kernel("shuffle(y)", [](Tensor<float, 1> y) {
    MaxAt mine{cast<float>(lane_id()), lane_id()};
    MaxAt other = shfl_xor(mine, 1);
    y(other.index) = other.value;
  });
  EXPECT_EQ(count_ops(trace(kernel).kernel, ir::Opcode::kShflXor), 2);
}

TEST(ReduceTest, BlockReduceOfAStructNeedsOneBarrier) {
  const auto kernel = define_kernel("reduce(y)", [](Tensor<float, 1> y) {
    MaxAt best = block_reduce(MaxAt{cast<float>(thread_idx.x), thread_idx.x}, larger);
    If(thread_idx.x == 0, [&] { y(best.index) = best.value; });
  });
  const ir::Kernel k = trace(kernel).kernel;
  EXPECT_EQ(count_ops(k, ir::Opcode::kBarrier), 1);
  EXPECT_EQ(count_ops(k, ir::Opcode::kShared), 2);
}

TEST(ReduceTest, InALoopThereAreTwoBarriers) {
  const auto kernel = define_kernel("loop(y, n)", [](Tensor<float, 1> y, Int n) {
    for (Int i : range(n)) {
      Float total = block_reduce(cast<float>(thread_idx.x + i), plus());
      If(thread_idx.x == 0, [&] { y(i) = total; });
    }
  });
  EXPECT_EQ(count_ops(trace(kernel).kernel, ir::Opcode::kBarrier), 2);
}

// So that a debugger, a profiler or a message never leads into Heddle's headers.
TEST(ReduceTest, EveryOpHasTheLineOfTheCallOrOfTheFunctionThatCombines) {
  const int line = __LINE__ + 3;
  const auto kernel = define_kernel("lines(y, n)", [](Tensor<float, 1> y, Int n) {
    for (Int i : range(n)) {
      y(i) = block_reduce(Vec<float, 2>(cast<float>(thread_idx.x))[1], plus());
    }
  });
  const ir::Kernel k = trace(kernel).kernel;
  k.walk([&](ir::OpId id) {
    EXPECT_THAT(std::string(k.loc(id).file), HasSubstr("control_test.cc"));
    EXPECT_GE(k.loc(id).line, line - 1) << ir::info(k.op(id)).mnemonic;
    EXPECT_LE(k.loc(id).line, line) << ir::info(k.op(id)).mnemonic;
  });
}

TEST(MistakesTest, AreAllReportedTogether) {
  bool leave = true;
  const auto kernel = local_kernel("many(y, n)", [&](Tensor<float, 1> y, Int n) {
    for (Int i : range(n)) {
      y(i) = 0.0f;
      if (leave) break;
    }
    Vec<float, 4> v(1.0f, 2.0f, 3.0f, 4.0f);
    y(0) = v[9];
    If(thread_idx.x < n, [&] { sync_threads(); });
  });
  const std::string text = mistakes(kernel);
  EXPECT_THAT(text, HasSubstr("host break"));
  EXPECT_THAT(text, HasSubstr("element 9 of a vector of 4"));
  EXPECT_THAT(text, HasSubstr("barrier"));
}

TEST(MistakesTest, ValueOfAnotherKernelIsNamed) {
  detail::Node kept;
  const auto first = local_kernel("first(y, n)", [&](Tensor<float, 1> y, Int n) {
    kept = (n + 1).node();
    y(0) = 0.0f;
  });
  trace(first);
  const auto second = local_kernel("second(y)", [&](Tensor<float, 1> y) { y(Int(kept)) = 0.0f; });
  EXPECT_THAT(mistakes(second), HasSubstr("value from kernel 'first' used in kernel 'second'"));
}

TEST(MistakesTest, AValueMadeOutsideEveryKernelIsReportedByEachThatUsesIt) {
  const Float a = 1.0f;
  const int line = __LINE__ + 1;
  const Float b = a + 2.0f;
  const auto innocent = define_kernel("innocent(y)", [](Tensor<float, 1> y) { y(0) = 1.0f; });
  EXPECT_EQ(mistakes(innocent), "");
  const auto kernel = local_kernel("guilty(y)", [&](Tensor<float, 1> y) { y(0) = b; });
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(mistakes(kernel), HasSubstr("add of kernel values outside a kernel"));
    EXPECT_THAT(mistakes(kernel), HasSubstr(absl::StrCat("control_test.cc:", line)));
  }
}

TEST(MistakesTest, ElseFollowsItsIfOnce) {
  const auto late = define_kernel("late(y, n)", [](Tensor<float, 1> y, Int n) {
    auto statement = If(n > 0, [&] { y(0) = 1.0f; });
    y(1) = 9.0f;
    statement.Else([&] { y(1) = 2.0f; });
  });
  EXPECT_THAT(mistakes(late), HasSubstr("Else() that does not follow its If() directly"));
  const auto twice = define_kernel("twice(y, n)", [](Tensor<float, 1> y, Int n) {
    auto statement = If(n > 0, [&] { y(0) = 1.0f; });
    statement.Else([&] { y(1) = 2.0f; });
    statement.Else([&] { y(1) = 3.0f; });
  });
  EXPECT_THAT(mistakes(twice), HasSubstr("a second Else() of one If()"));
  const auto deeper = define_kernel("deeper(y, n)", [](Tensor<float, 1> y, Int n) {
    auto statement = If(n > 0, [&] { y(0) = 1.0f; });
    for (Int i : range(n)) statement.Else([&] { y(i) += 2.0f; });
  });
  EXPECT_THAT(mistakes(deeper), HasSubstr("Else() that does not follow its If() directly"));
}

TEST(MistakesTest, HostIntegersFitWhatTheyBecome) {
  const auto kernel = define_kernel("misfit(y, n, u)", [](Tensor<float, 1> y, Int n, UInt u) {
    for (Int i : range(4294967298L)) y(i) = 0.0f;
    Int a = 5000000000LL;
    If(u + 4294967295u > -1, [&] { y(a + n) = 1.0f; });
    y(4294967295u) = 2.0f;
  });
  const std::string found = mistakes(kernel);
  EXPECT_THAT(found, HasSubstr("4294967298 does not fit an i32"));
  EXPECT_THAT(found, HasSubstr("5000000000 does not fit an i32"));
  EXPECT_THAT(found, HasSubstr("-1 does not fit an u32"));
  EXPECT_THAT(found, Not(HasSubstr("4294967295 does")));
}

TEST(MistakesTest, FragmentsHaveASizeAndMeetTheirLikes) {
  const auto kernel = define_kernel("fragments(y)", [](Tensor<float, 1> y) {
    Fragment<float> none(0, 1.0f), huge(65540, 1.0f), four(4, 1.0f), five(5, 1.0f);
    y(0) = (four + five)[0] + none[0] + huge[0];
  });
  const std::string found = mistakes(kernel);
  EXPECT_THAT(found, HasSubstr("a fragment of 0 elements"));
  EXPECT_THAT(found, HasSubstr("a fragment of 65540 elements"));
  EXPECT_THAT(found, HasSubstr("fragments of 4 and 5 elements in one operation"));
}

TEST(MistakesTest, NamesAreIdentifiersAndAsManyAsParameters) {
  const auto body = [](Tensor<float, 1> x, Tensor<float, 1> y) { y(0) = x(0); };
  EXPECT_EQ(mistakes(define_kernel("fine", body)), "");
  EXPECT_EQ(mistakes(define_kernel("fine(a, b)", body)), "");
  const auto found = [&](const char* name) { return mistakes(define_kernel(name, body)); };
  EXPECT_THAT(found("my kernel!"), HasSubstr("'my kernel!' is none"));
  EXPECT_THAT(found(""), HasSubstr("'' is none"));
  EXPECT_THAT(found(nullptr), HasSubstr("'' is none"));
  EXPECT_THAT(found("k(x, x)"), HasSubstr("two parameters are named 'x'"));
  EXPECT_THAT(found("k(1a, y)"), HasSubstr("'1a' is none"));
  EXPECT_THAT(found("k(x, y"), HasSubstr("do not end with ')'"));
  EXPECT_THAT(found("k(x)"), HasSubstr("1 parameter name for a lambda that takes 2"));
  EXPECT_THAT(found("k(x, y, z, ...)"), HasSubstr("3 parameter names for a lambda that takes 2"));
  const auto names = [&](const char* name) {
    const auto kernel = define_kernel(name, body);
    const auto params = kernel.source().params();
    return absl::StrCat(params[0].name, " ", params[1].name);
  };
  EXPECT_EQ(names("k(x, y)"), "x y");
  EXPECT_EQ(names("k(x, ...)"), "x arg1");
  EXPECT_EQ(names("k(...)"), "arg0 arg1");
  EXPECT_EQ(names("k"), "arg0 arg1");
}

TEST(MistakesTest, ViewsOfAnotherKernel) {
  std::optional<Tensor<float, 2>> kept;
  const auto first = local_kernel("first(y)", [&](Tensor<float, 2> y) {
    kept.emplace(y);
    y(0, 0) = 1.0f;
  });
  EXPECT_EQ(mistakes(first), "");
  const auto second = local_kernel("second(y)", [&](Tensor<float, 1> y) {
    y(0) = (*kept)(0, 1) + 1.0f;
    (*kept)(0, 0) = cast<float>(kept->shape(1));
  });
  EXPECT_THAT(mistakes(second), HasSubstr("value from kernel 'first' used in kernel 'second'"));
}

TEST(SelectTest, ChoosesVectorsAndFragmentsWhole) {
  const auto kernel = define_kernel("whole(y, n)", [](Tensor<float, 1> y, Int n) {
    Vec<float, 4> a(1.0f), b(2.0f);
    Fragment<float> c(3, 1.0f), d(3, 2.0f);
    y(0) = select(n > 0, a, -b)[1] + select(n > 0, c, d)[2];
  });
  EXPECT_EQ(count_ops(trace(kernel).kernel, ir::Opcode::kSelect), 2);
}

TEST(VarTest, EveryUpdate) {
  const auto kernel = define_kernel("updates(y, n)", [](Tensor<int32_t, 1> y, Int n) {
    Var<int> v(n);
    v += 1, v -= 2, v *= 3, v /= 4, v %= 5, v &= 6, v |= 7, v ^= 8, v <<= 1, v >>= 2;
    y(0) = v;
  });
  const ir::TraceResult result = trace(kernel);
  EXPECT_TRUE(result.diagnostics.empty()) << ir::to_string(result.diagnostics);
  EXPECT_EQ(count_ops(result.kernel, ir::Opcode::kVarStore), 10);
}

}  // namespace
}  // namespace heddle
