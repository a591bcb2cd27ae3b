// What a lambda computes again is recorded once, where the first time has always run before.
#include <optional>

#include "absl/strings/str_cat.h"
#include "dsl/language/trace_kernel.h"
#include "gmock/gmock.h"

namespace heddle {
namespace {

template <class... P>
int recorded(const Kernel<P...>& kernel, ir::Opcode opcode) {
  const ir::TraceResult result = trace(kernel);
  EXPECT_TRUE(result.diagnostics.empty()) << ir::to_string(result.diagnostics);
  return count_ops(result.kernel, opcode);
}

TEST(Numbering, RecordsArithmeticOnce) {
  const auto kernel = define_kernel("once(y, a, b)", [](Tensor<int, 1> y, Int a, Int b) {
    y(0) = a * b;
    y(1) = b * a;
    y(2) = a - b;
    y(3) = b - a;
    y(4) = a * b + 7;
    y(5) = 7 + b * a;
  });
  EXPECT_EQ(recorded(kernel, ir::Opcode::kMul), 1);
  EXPECT_EQ(recorded(kernel, ir::Opcode::kSub), 2);
  EXPECT_EQ(recorded(kernel, ir::Opcode::kAdd), 1);
}

TEST(Numbering, TellsTypesAndAttributesApart) {
  const auto kernel = define_kernel("apart(y, a)", [](Tensor<double, 1> y, Float a) {
    y(0) = cast<double>(a);
    y(1) = cast<double>(cast<half>(a));
    y(2) = cast<double>(thread_idx.x);
    y(3) = cast<double>(thread_idx.y);
  });
  EXPECT_EQ(recorded(kernel, ir::Opcode::kThreadIdx), 2);
  EXPECT_EQ(recorded(kernel, ir::Opcode::kConvert), 5);
}

TEST(Numbering, ABranchHasItsOwn) {
  const auto kernel = define_kernel("branch(y, a, b)", [](Tensor<int, 1> y, Int a, Int b) {
    If(
        a < b, [&] { y(0) = a * b; }, [&] { y(1) = a * b; });
    y(2) = a * b;
  });
  EXPECT_EQ(recorded(kernel, ir::Opcode::kMul), 3);
}

TEST(Numbering, LoadsReadEachTime) {
  const auto kernel = define_kernel("loads(y, a)", [](Tensor<int, 1> y, Int a) {
    y(0) = y(1);
    y(1) = a;
    y(2) = y(1);
  });
  EXPECT_EQ(recorded(kernel, ir::Opcode::kLoad), 2);
}

// Products are summed in the registers of a fragment.
TEST(Numbering, FragmentsAreTheirOwn) {
  const auto kernel = define_kernel("fragments(y, a)", [](Tensor<float, 1> y, Float a) {
    const Fragment<float> one(4, a), other(4, a);
    y(0) = one[0] + other[1];
  });
  EXPECT_EQ(recorded(kernel, ir::Opcode::kSplat), 2);
}

// An element is read where it is named, though only what follows asks for it: in front of arithmetic that its
// place has in common with an access behind.
TEST(Numbering, WhatIsRecordedEarlierUsesNothingLater) {
  const auto kernel = define_kernel("earlier(m, y, i, j)",
                                    [](Tensor<float, 2> m, Tensor<float, 1> y, Int i, Int j) {
                                      const auto element = m(i, j);
                                      m(i, j) = 1.0f;
                                      y(0) = element;
                                    });
  EXPECT_EQ(recorded(kernel, ir::Opcode::kLoad), 1);
}

struct Two {
  Int first, second;
};

// A structure's assignment does not tell its line: it is that of its values, where they were computed last.
TEST(Numbering, LinesAreThoseOfTheUse) {
  const int line = __LINE__ + 4;
  const auto kernel = define_kernel("lines(y, a, b)", [](Tensor<int, 1> y, Int a, Int b) {
    y(0) = a * b;
    Var<Two> both(Two{a, b});
    both = Two{a - b, a * b};
    y(1) = both.get().first;
  });
  const ir::Kernel k = trace(kernel).kernel;
  int checked = 0;
  k.walk([&](ir::OpId id) {
    if (k.op(id).opcode != ir::Opcode::kVarStore) return;
    EXPECT_EQ(k.loc(id).line, line);
    ++checked;
  });
  EXPECT_EQ(checked, 2);
}

// What leaves a branch was made where the branch computed it last.
TEST(Numbering, MistakesNameTheLastPlace) {
  const int line = __LINE__ + 5;
  const auto kernel = define_kernel("leaves(y, a, b)", [](Tensor<int, 1> y, Int a, Int b) {
    std::optional<Int> leaked;
    If(a < b, [&] {
      y(0) = a * b;
      leaked.emplace(b * a);
    });
    y(1) = *leaked;
  });
  EXPECT_THAT(mistakes(kernel),
              testing::HasSubstr(absl::StrCat("numbering_test.cc:", line, ": made here")));
}

// Each number names the one before twice, so that the last one, written out, has 2^40 of the first.
TEST(Numbering, NumbersMadeOfEachOtherTakeNoTime) {
  const auto kernel = define_kernel("nested(y)", [](Tensor<int, 1> y) {
    SymInt x = thread_idx.x;
    for (int i = 0; i < 40; ++i) x = mod(floor_div(x, 3) * 5 + mod(x, 7) * 11, 1000);
    y(0) = Int(x);
  });
  EXPECT_GT(recorded(kernel, ir::Opcode::kAdd), 0);
}

}  // namespace
}  // namespace heddle
