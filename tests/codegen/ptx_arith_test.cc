// Arithmetic in PTX: signs, and 16-bit floats in pairs.
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

TEST(Ptx, FlipsSignsAsBitsWhereTheBitsShow) {
  const std::string stored = ptx(kernel_text(
      absl::StrCat(kThread, "%v = load %x, %t : f32\n%m = neg %v : f32\nstore %y, %m, %t")));
  EXPECT_THAT(stored, ContainsRegex("xor\\.b32 %r[0-9]+, %r[0-9]+, 0x80000000;"));
  const std::string added = ptx(kernel_text(absl::StrCat(
      kThread,
      "%v = load %x, %t : f32\n%m = neg %v : f32\n%s = fma %m, %v, %v : f32\nstore %y, %s, %t")));
  EXPECT_THAT(added, HasSubstr("neg.f32 "));
  // Arithmetic on the bits shows them.
  const std::string compared = ptx(kernel_text(absl::StrCat(
      kThread,
      "%v = load %x, %t : f32\n%m = neg %v : f32\n%b = bitcast %m : i32\n%z = const 0 : i32\n"
      "%p = lt %b, %z : bool\n%s = select %p, %v, %m : f32\nstore %y, %v, %t\nif %p {\n"
      "store %y, %v, %z\nyield\n}\n")));
  EXPECT_THAT(compared, ContainsRegex("xor\\.b32 %r[0-9]+, %r[0-9]+, 0x80000000;"));
}

// ptxas 13.0 sign-extends the number of cvt.s64.u32 where a shl follows.
TEST(Ptx, SpellsWideningWithTheSignOfTheSource) {
  const std::string text = ptx(kernel_text(absl::StrCat(
      kThread,
      "%u = convert %t : u32\n%w = convert %u : i64\n%s = convert %t : u64\n%b = bitcast %s : i64\n"
      "%sum = add %w, %b : i64\n%f = convert %sum : f32\nstore %y, %f, %t")));
  EXPECT_THAT(text, HasSubstr("cvt.u64.u32"));
  EXPECT_THAT(text, HasSubstr("cvt.s64.s32"));
  EXPECT_THAT(text, Not(HasSubstr("cvt.s64.u32")));
  EXPECT_THAT(text, Not(HasSubstr("cvt.u64.s32")));
}

// ptxas 13.0 leaves a bit of a bool's number that is shifted out.
TEST(Ptx, ShiftsOutOfAllBitsAreZero) {
  const auto shifted = [](int by) {
    return ptx(kernel_text(absl::StrCat(
        kThread, "%z = const 0 : i32\n%p = lt %z, %t : bool\n%w = convert %p : u64\n%by = const ",
        by, " : u32\n%s = shl %w, %by : u64\n%f = convert %s : f32\nstore %y, %f, %t")));
  };
  EXPECT_THAT(shifted(63), ContainsRegex("shl\\.b64 %rd[0-9]+, %rd[0-9]+, 63;"));
  EXPECT_THAT(shifted(64), Not(HasSubstr("shl.b64")));
  EXPECT_THAT(shifted(64), ContainsRegex("mov\\.b64 %rd[0-9]+, 0;"));
}

// ptxas 13.0 compares the negated result of `abs` with a constant as if it knew the outcome.
TEST(Ptx, HasNoAbsOfIntegers) {
  const auto abs_of = [](const char* scalar) {
    return ptx(kernel_text(absl::StrCat(kThread, "%i = convert %t : ", scalar, "\n%a = abs %i : ",
                                        scalar, "\n%f = convert %a : f32\nstore %y, %f, %t")));
  };
  for (const char* scalar : {"i32", "i64"}) EXPECT_THAT(abs_of(scalar), Not(HasSubstr("abs.s")));
  EXPECT_THAT(abs_of("i32"), ContainsRegex("sad\\.s32 %r[0-9]+, %r[0-9]+, 0, 0;"));
  EXPECT_THAT(abs_of("i64"),
              ContainsRegex("neg\\.s64 (%rd[0-9]+), (%rd[0-9]+);[^;]*"
                            "setp\\.lt\\.s64 (%p[0-9]+), %rd[0-9]+, 0;[^;]*"
                            "selp\\.b64 %rd[0-9]+, %rd[0-9]+, %rd[0-9]+, %p[0-9]+;"));
}

// ptxas 13.0 makes the f64 of a bool's number from what are its bits.
TEST(Ptx, HidesBitsThatBecomeAnF64) {
  const auto widened = [](absl::string_view f32) {
    return ptx(kernel_text(absl::StrCat(
        kThread, "%z = const 0 : i32\n%p = lt %z, %t : bool\n%u = convert %p : u32\n", f32,
        "%d = convert %v : f64\n%h = convert %d : i32\n%f = convert %h : f32\nstore %y, %f, %t")));
  };
  EXPECT_THAT(widened("%v = bitcast %u : f32\n"),
              ContainsRegex("prmt\\.b32 (%r[0-9]+), %r[0-9]+, 0, 0x3210;[^;]*cvt\\.f64\\.f32"));
  EXPECT_THAT(widened("%v = convert %u : f32\n"), Not(HasSubstr("prmt")));
  // Of a vector any lane.
  const std::string pair = ptx(kernel_text(absl::StrCat(
      kThread, "%z = const 0 : i32\n%p = lt %z, %t : bool\n%u = convert %p : u32\n",
      "%one = const 1.0 : f32\n%b = bitcast %u : f32\n%v = pack %one, %b : vec<f32, 2>\n",
      "%d = convert %v : vec<f64, 2>\n%e = extract %d {index = 1} : f64\n",
      "%f = convert %e : f32\nstore %y, %f, %t")));
  EXPECT_THAT(pair, ContainsRegex("selp\\.b32 (%r[0-9]+), 1, 0, %p[0-9]+;"));
  EXPECT_THAT(pair, HasSubstr("prmt.b32"));
}

TEST(Ptx, PacksHalves) {
  const std::string text =
      ptx("kernel @k(%h: view<f16, global, 1> [?] strides [1]) block(64, 1, 1) {\n"
          "%t = thread_idx {axis = x} : i32\n%z = const 0 : i32\n"
          "%v = load %h, %t : vec<f16, 4>\n%w = mul %v, %v : vec<f16, 4>\n"
          "%one = const 1.0 : vec<f16, 4>\n%u = add %w, %one : vec<f16, 4>\n"
          "%f = convert %u : vec<f32, 4>\n%g = add %f, %f : vec<f32, 4>\n"
          "%i = convert %g : vec<f16, 4>\nstore %h, %i, %z\n}");
  EXPECT_EQ(count_lines(text, "mul.rn.f16x2"), 2);
  EXPECT_EQ(count_lines(text, "add.rn.f16x2"), 2);
  EXPECT_EQ(count_lines(text, "cvt.f32.f16"), 4);
  EXPECT_EQ(count_lines(text, "cvt.rn.f16x2.f32"), 2);
  EXPECT_THAT(text, HasSubstr(", 0x3C003C00;"));
}

TEST(Ptx, WidensPackedBf16WithoutUnpackingIt) {
  const std::string text = ptx(
      "kernel @k(%h: view<bf16, global, 1> [?] strides [1], %y: view<f32, global, 1> [?] strides "
      "[1]) block(64, 1, 1) {\n%t = thread_idx {axis = x} : i32\n"
      "%v = load %h, %t : vec<bf16, 2>\n%f = convert %v : vec<f32, 2>\nstore %y, %f, %t\n}");
  EXPECT_THAT(text, ContainsRegex("shl\\.b32 %r[0-9]+, %r[0-9]+, 16;\n\tand\\.b32 %r[0-9]+, "
                                  "%r[0-9]+, 0xFFFF0000;"));
  EXPECT_THAT(text, Not(HasSubstr("cvt.")));
}

}  // namespace
}  // namespace heddle::codegen
