#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/verify/support.h"

namespace heddle::ir {
namespace {

class ConvergenceMistake : public ::testing::TestWithParam<Mistake> {};

TEST_P(ConvergenceMistake, IsLocatedAndExplained) {
  EXPECT_EQ(mistakes_of(with_body(GetParam().body)), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    Convergence, ConvergenceMistake,
    ::testing::ValuesIn(std::vector<Mistake>{
        {"BarrierInADivergentIf", R"(%t = thread_idx {axis = x} : i32
%b = lt %t, %n : bool
if %b {
barrier
yield
})",
         "5: 'barrier' under a condition that differs between threads: all threads of the block "
         "must reach it together; move it out, or make the condition the same for the whole block"
         "; where only you know that the whole block agrees on it, wrap it in assume_uniform()"},
        {"BarrierInADivergentFor", R"(%t = thread_idx {axis = x} : i32
%one = const 1 : i32
for %i in %t .. %n step %one {
barrier
yield
})",
         "5: 'barrier' under a condition that differs between threads: all threads of the block "
         "must reach it together; move it out, or make the condition the same for the whole block"
         "; where only you know that the whole block agrees on it, wrap it in assume_uniform()"},
        {"BarrierInADivergentWhile", R"(%t = thread_idx {axis = x} : i32
while {
%b = lt %t, %n : bool
yield %b
} do {
barrier
yield
})",
         "7: 'barrier' under a condition that differs between threads: all threads of the block "
         "must reach it together; move it out, or make the condition the same for the whole block"
         "; where only you know that the whole block agrees on it, wrap it in assume_uniform()"},
        {"BarrierInAWarpUniformIf", R"(%w = warp_id : i32
%zero = const 0 : i32
%b = eq %w, %zero : bool
if %b {
barrier
yield
})",
         "6: 'barrier' under a condition that differs between threads: all threads of the block "
         "must reach it together; move it out, or make the condition the same for the whole block"
         "; where only you know that the whole block agrees on it, wrap it in assume_uniform()"},
        {"ShuffleInADivergentIf", R"(%t = lane_id : i32
%b = lt %t, %n : bool
if %b {
%s = shfl.xor %f, %n : f32
yield
})",
         "5: 'shfl.xor' under a condition that differs between threads: all threads of a warp must "
         "reach it together; move it out, or make the condition the same for the whole warp, or "
         "give it the mask of the lanes that take part; where only you know that the whole block "
         "agrees on it, wrap it in assume_uniform()"},
        {"CommitInAWarpUniformIf", R"(%w = warp_id : i32
%zero = const 0 : i32
%b = eq %w, %zero : bool
if %b {
wgmma.commit
yield
})",
         "6: 'wgmma.commit' under a condition that differs between threads: all 128 threads of a "
         "warp group must reach it together; move it out, or make the condition the same for the "
         "whole warp group; where only you know that the whole block agrees on it, wrap it in "
         "assume_uniform()"},
    }),
    mistake_name);

TEST(VerifierConvergence, NotesTheCondition) {
  const Kernel kernel = parse(with_body(R"(%t = thread_idx {axis = x} : i32
%b = lt %t, %n : bool
if %b {
  if %p {
    barrier
    yield
  }
  yield
})"),
                              "k.ir", {.text_as_source = true})
                            .value();
  const Diagnostics wrong = verify(kernel);
  ASSERT_EQ(wrong.size(), 1u);
  EXPECT_EQ(
      to_string(wrong),
      "k.ir:6: error: 'barrier' under a condition that differs between threads: all threads of "
      "the block must reach it together\n"
      "  in: barrier\n"
      "  k.ir:4: the condition of this 'if' differs between the threads of the block\n"
      "  fix: move it out, or make the condition the same for the whole block; where only you know "
      "that the whole block agrees on it, wrap it in assume_uniform()\n");
}

// One mistake, however many ops it reaches: the one that asks most of the condition speaks.
TEST(VerifierConvergence, OneConditionIsOneMistake) {
  const Kernel kernel = parse(with_body(R"(%t = lane_id : i32
%b = lt %t, %n : bool
if %b {
  %s = shfl.xor %f, %n : f32
  %u = shfl.xor %s, %n : f32
  barrier
  yield
}
if %b {
  barrier
  yield
})"),
                              "k.ir", {.text_as_source = true})
                            .value();
  EXPECT_EQ(
      to_status("kernel 'k'", verify(kernel)).message(),
      "kernel 'k' has 2 errors:\n"
      "k.ir:7: error: 'barrier' under a condition that differs between threads: all threads of "
      "the block must reach it together\n"
      "  in: barrier\n"
      "  k.ir:4: the condition of this 'if' differs between the threads of the block\n"
      "  and 2 more like it, at k.ir:5, k.ir:6\n"
      "  fix: move it out, or make the condition the same for the whole block; where only you know "
      "that the whole block agrees on it, wrap it in assume_uniform()\n"
      "k.ir:11: error: 'barrier' under a condition that differs between threads: all threads of "
      "the block must reach it together\n"
      "  in: barrier\n"
      "  k.ir:10: the condition of this 'if' differs between the threads of the block\n"
      "  fix: move it out, or make the condition the same for the whole block; where only you know "
      "that the whole block agrees on it, wrap it in assume_uniform()");
}

struct Allowed {
  const char* name;
  const char* body;
};

void PrintTo(const Allowed& allowed, std::ostream* out) { *out << allowed.name; }

class ConvergenceAllowed : public ::testing::TestWithParam<Allowed> {};

TEST_P(ConvergenceAllowed, IsNoMistake) { EXPECT_EQ(mistakes_of(with_body(GetParam().body)), ""); }

INSTANTIATE_TEST_SUITE_P(Convergence, ConvergenceAllowed,
                         ::testing::ValuesIn(std::vector<Allowed>{
                             {"BarrierUnderAParameter", R"(if %p {
  barrier
  yield
})"},
                             {"BarrierUnderABlockIndex", R"(%b = block_idx {axis = x} : i32
%q = lt %b, %n : bool
if %q {
  barrier
  yield
})"},
                             {"BarrierInAUniformLoop", R"(%one = const 1 : i32
for %i in %one .. %n step %one {
  barrier
  yield
})"},
                             {"ShuffleUnderAWarpIndex", R"(%w = warp_id : i32
%one = const 1 : i32
%q = lt %w, %one : bool
if %q {
  %s = shfl.xor %f, %one : f32
  yield
})"},
                             {"MaskedWarpOpsInDivergentCode", R"(%t = lane_id : i32
%q = lt %t, %n : bool
%mask = ballot %q : u32
if %q {
  %s = shfl.xor %f, %n, %mask : f32
  %v = vote.any %p, %mask : bool
  %a = ballot %p, %mask : u32
  warp.sync %mask
  yield
})"},
                         }),
                         [](const auto& test) { return std::string(test.param.name); });

// A legal kernel stays legal when it promises something.
TEST(Convergence, PromisesTakeNothingAway) {
  for (const absl::string_view tid :
       {"%t = thread_idx {axis = x} : i32\n",
        "%x0 = thread_idx {axis = x} : i32\n%t = assume_range %x0 {min = 0, max = 127} : i32\n"}) {
    const std::string text = absl::StrCat(
        "kernel @k(%y: view<i32, global, 1> [128] strides [1]) block(128, 1, 1) {\n", tid,
        "%z = const 0 : i32\n%c = const 32 : i32\n%two = const 2 : i32\n%w = div %t, %c : i32\n"
        "%p = lt %w, %two : bool\nif %p {\n%v = shfl.idx %t, %z : i32\nstore %y, %v, %t\nyield\n"
        "}\n}\n");
    EXPECT_EQ(mistakes_of(text), "") << tid;
  }
}

}  // namespace
}  // namespace heddle::ir
