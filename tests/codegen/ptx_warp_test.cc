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

}  // namespace
}  // namespace heddle::codegen
