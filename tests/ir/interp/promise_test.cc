// Promises in the interpreter: what is reported is the same before and after passes.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "heddle/ir/passes/pipeline.h"
#include "ir/interp/run_text.h"

namespace heddle::ir {
namespace {

std::string with_promises(absl::string_view body) {
  return absl::StrCat(
      "kernel @k(%y: view<i32, global, 1> [4] strides [1], %n: i32, %m: i32) block(4, 1, 1) {\n"
      "%z = const 0 : i32\n%o = const 1 : i32\n%t = thread_idx {axis = x} : i32\n",
      body, "store %y, %t, %t\n}\n");
}

// Whether a promise is reported as broken; the same with passes and without.
bool breaks(absl::string_view body, int n, int m) {
  const std::string text = with_promises(body);
  bool broken[2] = {};
  for (const bool optimized : {false, true}) {
    const RunResult result =
        run_text(text, optimized ? kDefaultPipeline : "", {memory(4), number(n), number(m)});
    broken[optimized ? 1 : 0] = absl::StrContains(result.error, "promised to");
    EXPECT_EQ(result.error.empty(), !broken[optimized ? 1 : 0]) << result.error;
  }
  EXPECT_EQ(broken[0], broken[1]) << text;
  return broken[0];
}

TEST(Promises, AreCheckedThoughAllThatFollowsIsFolded) {
  constexpr absl::string_view kFolded =
      "%a = assume_range %n {min = 0, max = 7} : i32\n%k = const 8 : i32\n%c = lt %a, %k : bool\n"
      "if %c {\nstore %y, %o, %t\nyield\n}\n";
  EXPECT_FALSE(breaks(kFolded, 7, 0));
  EXPECT_TRUE(breaks(kFolded, 8, 0));
  EXPECT_TRUE(breaks("%a = assume_range %n {divisor = 4} : i32\n", 6, 0));
  EXPECT_TRUE(breaks("%a = assume_uniform %t : i32\n", 0, 0));
}

TEST(Promises, AreMadeOnlyWhereTheyStand) {
  constexpr absl::string_view kInIf =
      "%c = lt %z, %n : bool\nfor %i in %z .. %o step %o {\nif %c {\n"
      "%a = assume_range %m {min = 0} : i32\nstore %y, %a, %t\nyield\n}\nyield\n}\n";
  EXPECT_FALSE(breaks(kInIf, 0, -1));
  EXPECT_TRUE(breaks(kInIf, 1, -1));
  constexpr absl::string_view kInLoop =
      "for %i in %z .. %n step %o {\n%a = assume_range %m {min = 0} : i32\n"
      "store %y, %a, %t\nyield\n}\n";
  EXPECT_FALSE(breaks(kInLoop, 0, -1));
  EXPECT_TRUE(breaks(kInLoop, 3, -1));
  constexpr absl::string_view kInBranches =
      "%c = lt %z, %n : bool\nif %c {\n%a = assume_range %m {min = 0} : i32\n"
      "store %y, %a, %t\nyield\n} else {\n%b = assume_range %m {max = -1} : i32\n"
      "store %y, %b, %t\nyield\n}\n";
  EXPECT_FALSE(breaks(kInBranches, 1, 5));
  EXPECT_FALSE(breaks(kInBranches, 0, -5));
  EXPECT_TRUE(breaks(kInBranches, 1, -5));
}

// Of a u64 it is the number that is a multiple, not the i64 with the same bits.
TEST(Promises, MultiplesOfLargeUnsignedNumbers) {
  const auto error = [](uint64_t value, int by) {
    return run_text(absl::StrCat("kernel @k(%y: view<u64, global, 1> [1] strides [1], %n: u64) "
                                 "block(1, 1, 1) {\n%z = const 0 : i32\n%a = assume_range %n "
                                 "{divisor = ",
                                 by, "} : u64\nstore %y, %a, %z\n}\n"),
                    "", {memory(1), number(static_cast<int64_t>(value))})
        .error;
  };
  EXPECT_EQ(error(0xFFFFFFFFFFFFFFFA, 10), "");  // 2^64 - 6
  EXPECT_NE(error(0xFFFFFFFFFFFFFFFA, 6), "");
}

}  // namespace
}  // namespace heddle::ir
