// Loops and branches in PTX: tests, guards, jumps, and where their values are.
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "codegen/ptx_kernels.h"
#include "codegen/ptx_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle::codegen {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

std::string loop_text(absl::string_view start, absl::string_view stop, absl::string_view step) {
  return kernel_text(absl::StrCat(kThread, "%zero = const 0 : i32\n%ten = const 10 : i32\n",
                                  "%start = ", start, "\n%stop = ", stop, "\n%step = ", step, R"(
%r = for %i in %start .. %stop step %step carry(%a = %zero) : i32 {
  %b = add %a, %i : i32
  yield %b
}
%f = convert %r : f32
store %y, %f, %t
)"));
}

TEST(PtxLoop, ComparesTheNextIndexWhereItCannotWrap) {
  const std::string text = ptx(loop_text("const 0 : i32", "sub %n, %t : i32", "const 1 : i32"));
  EXPECT_THAT(text, ContainsRegex("add\\.s32 (%r[0-9]+), %r[0-9]+, 1;\n\tsetp\\.lt\\.s32 %p0, "
                                  "%r[0-9]+, %r[0-9]+;\n\t@%p0 bra \\$L1;"));
  // And may not run at all.
  EXPECT_THAT(text, ContainsRegex("@!%p0 bra \\$L2;\n\\$L1:"));
}

TEST(PtxLoop, ComparesWithALimitWhereTheIndexMightWrap) {
  const std::string text = ptx(loop_text("const 0 : i32", "sub %n, %t : i32", "const 512 : i32"));
  EXPECT_THAT(text, ContainsRegex("sub\\.s32 %r[0-9]+, %r[0-9]+, 512;\n\\$L1:"));
  EXPECT_THAT(text, ContainsRegex("setp\\.lt\\.s32 %p0, %r[0-9]+, %r[0-9]+;\n\tadd\\.s32 "
                                  "%r[0-9]+, %r[0-9]+, 512;\n\t@%p0 bra \\$L1;"));
}

TEST(PtxLoop, CountsTheDistanceWhereEitherMightWrap) {
  const std::string text =
      ptx(loop_text("sub %t, %n : i32", "sub %n, %t : i32", "const 512 : i32"));
  EXPECT_THAT(text, ContainsRegex("setp\\.gt\\.u32 %p0, (%r[0-9]+), 512;\n\tsub\\.u32 %r[0-9]+, "
                                  "%r[0-9]+, 512;\n\tadd\\.s32 %r[0-9]+, %r[0-9]+, 512;"));
  const std::string down = ptx(loop_text("sub %t, %n : i32", "sub %n, %t : i32", "const -3 : i32"));
  EXPECT_THAT(down, ContainsRegex("setp\\.gt\\.s32 %p0, .*\n\t@!%p0 bra"));
  EXPECT_THAT(down, ContainsRegex("setp\\.gt\\.u32 %p0, %r[0-9]+, 3;\n\tsub\\.u32 %r[0-9]+, "
                                  "%r[0-9]+, 3;\n\tadd\\.s32 %r[0-9]+, %r[0-9]+, -3;"));
}

// ptxas 13.0 loses trips of loops that it unrolls where stop - start wraps.
TEST(PtxLoop, IsNotUnrolledByTheAssemblerWhereTheDistanceMightWrap) {
  const auto unrolls = [](const char* start, const char* stop, const char* step) {
    return !absl::StrContains(ptx(loop_text(start, stop, step)), ".pragma \"nounroll\";");
  };
  EXPECT_TRUE(unrolls("const 0 : i32", "sub %n, %t : i32", "const 4096 : i32"));
  EXPECT_TRUE(unrolls("const -1 : i32", "const 2147483646 : i32", "const 4096 : i32"));
  EXPECT_FALSE(unrolls("const -1 : i32", "const 2147483647 : i32", "const 4096 : i32"));
  EXPECT_FALSE(unrolls("sub %t, %n : i32", "const 1 : i32", "const 4096 : i32"));
  EXPECT_TRUE(unrolls("const 5 : i32", "const -2147483642 : i32", "const -4096 : i32"));
  EXPECT_FALSE(unrolls("const 5 : i32", "const -2147483643 : i32", "const -4096 : i32"));
  // A million trips are not made, and ptxas unrolls by constants alone.
  EXPECT_TRUE(unrolls("sub %t, %n : i32", "const 1 : i32", "const 512 : i32"));
  EXPECT_TRUE(unrolls("sub %t, %n : i32", "const 1 : i32", "add %t, %n : i32"));
}

TEST(PtxLoop, NeedsNoGuardWhereItIsSureToRun) {
  const std::string text = ptx(loop_text("const 0 : i32", "const 10 : i32", "const 1 : i32"));
  EXPECT_THAT(text, Not(HasSubstr("@!")));
  EXPECT_THAT(text, HasSubstr("@%p0 bra.uni $L1;"));
  const std::string once = ptx(loop_text("const 0 : i32", "const 10 : i32", "const 10 : i32"));
  EXPECT_THAT(once, Not(HasSubstr("bra")));
  const std::string never = ptx(loop_text("const 3 : i32", "const 3 : i32", "const 1 : i32"));
  EXPECT_THAT(never, Not(HasSubstr("bra")));
  EXPECT_THAT(never, Not(HasSubstr("add.s32")));
}

TEST(PtxLoop, KeepsCarriedValuesInTheirRegisters) {
  const std::string text = ptx(loop_text("const 0 : i32", "const 10 : i32", "const 1 : i32"));
  EXPECT_THAT(text,
              ContainsRegex("\\$L1:\n\tadd\\.s32 (%r[0-9]+), %r[0-9]+, %r[0-9]+;\n\tadd\\.s32"));
  EXPECT_EQ(count_lines(text, "mov.b32"), 2) << text;  // 0 and 0, before the loop
}

TEST(PtxLoop, SwapsCarriedValuesThroughAScratchRegister) {
  const std::string text = ptx(kernel_text(absl::StrCat(kThread, R"(
%one = const 1 : i32
%m = mul %n, %n : i32
%a, %b = for %i in %t .. %n step %one carry(%c = %n, %d = %m) : i32, i32 {
  yield %d, %c
}
%s = sub %a, %b : i32
%f = convert %s : f32
store %y, %f, %t
)")));
  EXPECT_EQ(count_lines(text.substr(text.find("$L1:")), "mov.b32"), 3) << text;
}

TEST(PtxLoop, DoesNotOverwriteWhatIsStillRead) {
  // %b is yielded for %a, but %a is read after %b is computed: they need two registers.
  const std::string text = ptx(kernel_text(absl::StrCat(kThread, R"(
%one = const 1 : i32
%r = for %i in %t .. %n step %one carry(%a = %n) : i32 {
  %b = add %a, %i : i32
  %late = convert %a : f32
  store %y, %late, %i
  yield %b
}
%f = convert %r : f32
store %y, %f, %t
)")));
  EXPECT_EQ(count_lines(text.substr(text.find("$L1:")), "mov.b32"), 1) << text;
}

TEST(PtxBranch, PrintsOnlyWhatIsThere) {
  const auto text_for = [](absl::string_view then, absl::string_view otherwise) {
    return ptx(kernel_text(absl::StrCat(kThread, "%p = lt %t, %n : bool\n%v = load %x, %t : f32\n",
                                        "if %p {\n", then, "\nyield\n} else {\n", otherwise,
                                        "\nyield\n}\nstore %y, %v, %n")));
  };
  // More than is guarded one by one.
  const std::string store =
      "store %y, %v, %t\nstore %y, %v, %t\nstore %y, %v, %t\nstore %y, %v, %t\nstore %y, %v, %t";
  EXPECT_THAT(text_for(store, ""), ContainsRegex("@!%p0 bra \\$L1;\n[^$]*\\$L1:"));
  EXPECT_THAT(text_for("", store), ContainsRegex("@%p0 bra \\$L1;\n[^$]*\\$L1:"));
  EXPECT_THAT(text_for("", ""), Not(HasSubstr("bra")));
  EXPECT_THAT(text_for(store, store),
              ContainsRegex("@!%p0 bra \\$L2;\n[^$]*bra.uni \\$L1;\n\\$L2:\n[^$]*\\$L1:"));
}

TEST(PtxBranch, GuardsAFewAccessesWithoutAJump) {
  const auto text_for = [](absl::string_view branch) {
    return ptx(kernel_text(
        absl::StrCat(kThread, "%p = lt %t, %n : bool\n%v = load %x, %t : f32\n", branch)));
  };
  const std::string store = text_for("if %p {\nstore %y, %v, %t\nyield\n}");
  EXPECT_THAT(store, HasSubstr("@%p0 st.global.b32"));
  EXPECT_THAT(store, Not(HasSubstr("bra")));
  // The load writes where the other branch's value is by then.
  const std::string load = text_for(
      "%r = if %p : f32 {\n%w = load %x, %n : f32\nyield %w\n} else {\n%c = const 1.0 : f32\n"
      "yield %c\n}\nstore %y, %r, %t");
  EXPECT_THAT(load, HasSubstr("mov.b32 %r2, 0x3F800000;"));
  EXPECT_THAT(load, HasSubstr("@%p0 ld.global.b32 %r2, "));
  EXPECT_THAT(load, Not(HasSubstr("bra")));
}

// What the other branch's value would be written over before the branch reads it: the register
// lives on in the loop.
TEST(PtxBranch, GuardsNothingWhoseRegistersAreWrittenOver) {
  // `before` the branch, `first` in it; then it loads at %at.
  const auto text_for = [](absl::string_view before, absl::string_view first) {
    return ptx(kernel_text(absl::StrCat(kThread, R"(
%one = const 1 : i32
%zero = const 0 : i32
%r = for %i in %zero .. %n step %one carry(%a = %t) : i32 {
  %c = gt %a, %zero : bool
)",
                                        before, "\n  %next = if %c : i32 {\n", first, R"(
    %l = load %x, %at : f32
    %k = bitcast %l : i32
    yield %k
  } else {
    yield %zero
  }
  yield %next
}
%f = bitcast %r : f32
store %y, %f, %t)")));
  };
  const std::string elsewhere = "%at = add %i, %one : i32\n";
  // A part of an address, under an addition; a register by another name, stored.
  EXPECT_THAT(text_for("", "%at = add %a, %one : i32"), Not(ContainsRegex("@%p[0-9]+ ld")));
  EXPECT_THAT(text_for("%g = bitcast %a : f32", elsewhere + "store %y, %g, %i"),
              Not(ContainsRegex("@%p[0-9]+ st")));
  // The same where nothing reads the register: guarded.
  EXPECT_THAT(text_for("", elsewhere), ContainsRegex("@%p[0-9]+ ld"));
}

TEST(PtxBranch, JumpsOverWhatMayNotHappenOtherwise) {
  const auto text_for = [](absl::string_view before, absl::string_view branch) {
    return ptx(kernel_text(absl::StrCat(kThread, "%p = lt %t, %n : bool\n", before, branch)));
  };
  const std::string value = "%v = load %x, %t : f32\n";
  // A sum that would be added to its own register in every lane.
  EXPECT_THAT(text_for(value,
                       "%r = if %p : f32 {\n%w = load %x, %n : f32\n%s = add %v, %w : f32\n"
                       "yield %s\n} else {\nyield %v\n}\nstore %y, %r, %t"),
              HasSubstr("bra"));
  // A division is not computed for nothing.
  EXPECT_THAT(text_for(value, "if %p {\n%q = div %v, %v : f32\nstore %y, %q, %t\nyield\n}"),
              HasSubstr("bra"));
  // All lanes of a warp agree: they jump together.
  EXPECT_THAT(ptx(kernel_text(absl::StrCat(kThread, "%z = const 0 : i32\n%p = lt %n, %z : bool\n",
                                           value, "if %p {\nstore %y, %v, %t\nyield\n}"))),
              HasSubstr("bra.uni"));
}

TEST(PtxBranch, SaysWhereWarpsAgree) {
  const std::string text = ptx(kernel_text(absl::StrCat(kThread, R"(
%z = const 0 : i32
%w = warp_id : i32
%p = eq %w, %z : bool
%v = load %x, %t : f32
if %p {
  store %y, %v, %t
  yield
}
)")));
  EXPECT_THAT(text, HasSubstr("@!%p0 bra.uni $L1;"));
  EXPECT_THAT(text, ContainsRegex("shr.u32 %r[0-9]+, %r0, 5;\n\tshfl.sync.idx.b32 %r[0-9]+, "
                                  "%r[0-9]+, 0, 31, 0xFFFFFFFF;"));
}

TEST(PtxBranch, JoinsResultsInOneRegister) {
  const std::string text = ptx(kernel_text(absl::StrCat(kThread, R"(
%p = lt %t, %n : bool
%v = if %p : f32 {
  %a = load %x, %t : f32
  yield %a
} else {
  %b = load %x, %n : f32
  yield %b
}
store %y, %v, %t
)")));
  EXPECT_THAT(text, Not(HasSubstr("mov.b32"))) << text;
}

// What a program expects of a condition stays known behind a promise.
TEST(PtxBranch, ExpectationsAreSeenThroughPromises) {
  const std::string text = ptx(kernel_text(absl::StrCat(kThread, R"(
%c = lt %t, %n : bool
%e = expect %c {likely = 0} : bool
%u = assume_uniform %e : bool
if %u {
  trap
  yield
}
%o = const 1.0 : f32
store %y, %o, %t
)")));
  EXPECT_LT(text.find("ret;"), text.find("trap;")) << text;
}

}  // namespace
}  // namespace heddle::codegen
