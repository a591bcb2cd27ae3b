// Shuffles in PTX: segments, and the lanes that are there.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "codegen/ptx_kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle::codegen {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

TEST(PtxWarp, ShufflesInSegments) {
  const auto text_for = [](absl::string_view op) {
    return ptx(
        kernel_text(absl::StrCat(kThread, "%v = load %x, %t : f32\n%two = const 2 : i32\n",
                                 "%nine = const 9 : i32\n%s = ", op, " : f32\nstore %y, %s, %t")));
  };
  EXPECT_THAT(text_for("shfl.xor %v, %two"), HasSubstr(", 2, 31, 0xFFFFFFFF;"));
  EXPECT_THAT(text_for("shfl.up %v, %two"), HasSubstr(", 2, 0, 0xFFFFFFFF;"));
  EXPECT_THAT(text_for("shfl.down %v, %two {width = 8}"), HasSubstr(", 2, 6175, 0xFFFFFFFF;"));
  // A lane outside the segment gives one's own value; PTX would reach into the segment before.
  EXPECT_THAT(text_for("shfl.xor %v, %nine {width = 8}"), Not(HasSubstr("shfl")));
  const std::string unknown = text_for("shfl.idx %v, %n {width = 8}");
  EXPECT_THAT(unknown, ContainsRegex("setp\\.lt\\.u32 %p0, %r[0-9]+, 8;\n\tshfl\\.sync\\.idx"));
  EXPECT_THAT(unknown, HasSubstr("selp.b32"));
}

TEST(PtxWarp, NamesOnlyLanesThatAreThere) {
  const auto text_for = [](absl::string_view block) {
    return ptx(kernel_text(absl::StrCat(kThread, "%v = load %x, %t : f32\n%one = const 1 : i32\n",
                                        "%s = shfl.xor %v, %one : f32\nstore %y, %s, %t"),
                           block));
  };
  EXPECT_THAT(text_for("block(64, 1, 1)"), HasSubstr(", 1, 31, 0xFFFFFFFF;"));
  EXPECT_THAT(text_for("block(20, 1, 1)"), HasSubstr(", 1, 31, 0x000FFFFF;"));
  const std::string partial = text_for("block(48, 1, 1)");
  EXPECT_THAT(partial, ContainsRegex("and\\.b32 %r[0-9]+, %r0, 0xFFFFFFE0;\n\tsub\\.u32 %r[0-9]+, "
                                     "48, %r[0-9]+;\n\tshl\\.b32 %r[0-9]+, 1, %r[0-9]+;"));
  const std::string dynamic = text_for("block(?)");
  EXPECT_THAT(dynamic, HasSubstr("%ntid.z"));
}

// Which register stands where: destination, value, lane, mask.
TEST(PtxWarp, OperandsStandInTheirPlaces) {
  const std::string text = ptx(kernel_text(absl::StrCat(kThread, R"(
%two = const 2 : i32
%l = rem %n, %two : i32
%five = const 5 : i32
%v = and %n, %five : i32
%lane = const 7 : i32
%mask = const 65535 : u32
%c = lt %v, %l : bool
%s = shfl.idx %v, %lane, %mask : i32
%b = ballot %c, %mask : u32
%all = vote.all %c, %mask : bool
%any = vote.any %c, %mask : bool
%uni = vote.uni %c, %mask : bool
%m = match.any %v, %mask : u32
%a = redux %v, %mask {op = add} : i32
%x0 = redux %v, %mask {op = xor} : i32
warp.sync %mask
%e = elect %mask : bool
%b1 = bitcast %b : i32
%m1 = bitcast %m : i32
%s1 = add %s, %b1 : i32
%s2 = add %s1, %m1 : i32
%s3 = add %s2, %a : i32
%s4 = add %s3, %x0 : i32
%e1 = and %all, %any : bool
%e2 = and %e1, %uni : bool
%e3 = and %e2, %e : bool
%r = select %e3, %s4, %v : i32
%f = convert %r : f32
store %y, %f, %t
)")));
  std::string value, predicate;
  for (const std::string& line : lines_of(text)) {
    if (absl::StartsWith(line, "and.b32 ") && absl::EndsWith(line, ", 5;")) {
      value = line.substr(8, line.find(',') - 8);
    }
    if (absl::StartsWith(line, "setp.lt.s32 ")) predicate = line.substr(12, line.find(',') - 12);
  }
  ASSERT_NE(value, "") << text;
  ASSERT_NE(predicate, "") << text;
  const auto one = [&](absl::string_view mnemonic, absl::string_view operands) {
    EXPECT_THAT(text, ContainsRegex(absl::StrCat(mnemonic, " [_|%a-z0-9]+, ", operands, ";")))
        << text;
  };
  one("shfl\\.sync\\.idx\\.b32", absl::StrCat(value, ", 7, 31, (0x0000FFFF|65535)"));
  one("vote\\.sync\\.ballot\\.b32", absl::StrCat(predicate, ", (0x0000FFFF|65535)"));
  one("vote\\.sync\\.all\\.pred", absl::StrCat(predicate, ", (0x0000FFFF|65535)"));
  one("vote\\.sync\\.any\\.pred", absl::StrCat(predicate, ", (0x0000FFFF|65535)"));
  one("vote\\.sync\\.uni\\.pred", absl::StrCat(predicate, ", (0x0000FFFF|65535)"));
  one("match\\.any\\.sync\\.b32", absl::StrCat(value, ", (0x0000FFFF|65535)"));
  one("redux\\.sync\\.add\\.s32", absl::StrCat(value, ", (0x0000FFFF|65535)"));
  one("redux\\.sync\\.xor\\.b32", absl::StrCat(value, ", (0x0000FFFF|65535)"));
  EXPECT_THAT(text, ContainsRegex("bar\\.warp\\.sync (0x0000FFFF|65535);"));
}

}  // namespace
}  // namespace heddle::codegen
