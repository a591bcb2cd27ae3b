// Where branches lead whose flags are known. What they do is tested by ptx_semantics_test.cc.
#include <string>

#include "absl/strings/str_cat.h"
#include "codegen/ptx_kernels.h"
#include "codegen/ptx_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle::codegen {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

// A flag that a branch sets, and what is done where it is not set.
std::string flagged(absl::string_view asked, absl::string_view rest) {
  return kernel_text(absl::StrCat(kThread, R"(
%zero = const 0.0 : f32
%yes = const true : bool
%no = const false : bool
%p = lt %t, %n : bool
%f = if %p : bool {
  store %y, %zero, %t
  store %y, %zero, %t
  store %y, %zero, %n
  store %y, %zero, %n
  store %y, %zero, %t
  yield %yes
} else {
  yield %no
}
)",
                                  asked, "\nif %go {\n", rest, "\n  yield\n}\n"));
}

TEST(PtxJumps, AFlagThatEveryWayKnowsHasNoRegister) {
  const std::string text =
      ptx(flagged("%go = not %f : bool", "store %y, %zero, %t\nstore %y, %zero, %n"));
  EXPECT_EQ(count_lines(text, "setp"), 1) << text;
  EXPECT_EQ(count_lines(text, "bra"), 2) << text;
  EXPECT_THAT(text, Not(HasSubstr("mov.pred")));
}

// The threads of a warp come back together in front of what they do together: the way over the test
// would lead them there apart.
TEST(PtxJumps, ThreadsMeetBeforeWhatTheyDoTogether) {
  const std::string text = ptx(flagged("%same = assume_uniform %f : bool\n%go = not %same : bool",
                                       "warp.sync\nstore %y, %zero, %n"));
  EXPECT_EQ(count_lines(text, "mov.pred"), 2) << text;
  EXPECT_THAT(text, ContainsRegex("@!%p[0-9]+ bra[^\n]*;\n(\t.loc[^\n]*\n)?\tbar.warp.sync"));
}

// The same of a loop's next trip.
TEST(PtxJumps, ThreadsMeetBeforeATripThatTheyMakeTogether) {
  const std::string text = ptx(kernel_text(absl::StrCat(kThread, R"(
%zero = const 0.0 : f32
%yes = const true : bool
%no = const false : bool
%p = lt %t, %n : bool
%r = while carry(%f = %no) : bool {
  %same = assume_uniform %f : bool
  %go = not %same : bool
  yield %go
} do(%c) {
  warp.sync
  %g = if %p : bool {
    store %y, %zero, %t
    store %y, %zero, %n
    store %y, %zero, %t
    store %y, %zero, %n
    store %y, %zero, %t
    yield %yes
  } else {
    yield %no
  }
  yield %g
}
)")));
  EXPECT_EQ(count_lines(text, "mov.pred"), 3) << text;
}

// Of integers; of floats neither of two opposites holds where there is a NaN.
TEST(PtxJumps, OppositesAreKnownOfIntegersAlone) {
  const auto text_of = [](absl::string_view values) {
    return ptx(kernel_text(absl::StrCat(kThread, "%zero = const 0.0 : f32\n%q = lt %t, %n : bool\n",
                                        values, "\n%a = lt %u, %v : bool\n", R"(
if %a {
  yield
} else {
  if %q {
    store %y, %zero, %t
    store %y, %zero, %t
    store %y, %zero, %n
    store %y, %zero, %n
    store %y, %zero, %t
    yield
  }
  %b = ge %u, %v : bool
  if %b {
    store %y, %zero, %n
    store %y, %zero, %n
    yield
  }
  yield
}
)")));
  };
  const std::string ints = text_of("%u = mul %t, %n : i32\n%v = add %t, %n : i32");
  EXPECT_THAT(ints, Not(HasSubstr("setp.ge")));
  EXPECT_EQ(count_lines(ints, "st.global"), 7) << ints;  // what it guards is done
  const std::string floats = text_of("%u = load %x, %t : f32\n%v = load %x, %n : f32");
  EXPECT_THAT(floats, HasSubstr("setp.ge.f32"));
}

}  // namespace
}  // namespace heddle::codegen
