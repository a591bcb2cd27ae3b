#include "heddle/ir/diagnostic.h"

#include "gtest/gtest.h"

namespace heddle::ir {
namespace {

Diagnostic wrong(int line, const char* message, const char* mistake = "") {
  return {.place = {"k.cc", line},
          .message = message,
          .notes = {},
          .fix = "mend it",
          .op = "",
          .mistake = mistake};
}

TEST(Diagnostics, SayTheSameOnce) {
  Diagnostic of_another_op = wrong(3, "unaligned");
  of_another_op.op = "%2 = load %x, %1 : vec<f32, 4>";
  EXPECT_EQ(to_status("kernel 'k'", {wrong(3, "unaligned"), wrong(4, "unaligned"), of_another_op})
                .message(),
            "kernel 'k' has 2 errors:\n"
            "k.cc:3: error: unaligned\n"
            "  fix: mend it\n"
            "k.cc:4: error: unaligned\n"
            "  fix: mend it");
}

TEST(Diagnostics, CountWhatOneMistakeLeadsTo) {
  EXPECT_EQ(to_status("kernel 'k'", {wrong(3, "barrier", "if"), wrong(5, "something else"),
                                     wrong(3, "shuffle", "if"), wrong(4, "shuffle", "if")})
                .message(),
            "kernel 'k' has 2 errors:\n"
            "k.cc:3: error: barrier\n"
            "  and 2 more like it, at k.cc:4\n"
            "  fix: mend it\n"
            "k.cc:5: error: something else\n"
            "  fix: mend it");
}

TEST(Diagnostics, ListAFewOfManyPlaces) {
  Diagnostics many;
  for (int line = 1; line <= 9; ++line) many.push_back(wrong(line, "shuffle", "if"));
  EXPECT_EQ(to_string(many),
            "k.cc:1: error: shuffle\n"
            "  and 8 more like it, at k.cc:2, k.cc:3, k.cc:4, k.cc:5, …\n"
            "  fix: mend it\n");
}

TEST(Diagnostics, CountWhatHasNoPlace) {
  Diagnostic nowhere = wrong(0, "shuffle", "if");
  nowhere.place = {};
  EXPECT_EQ(to_string({wrong(1, "shuffle", "if"), nowhere, wrong(2, "shuffle", "if")}),
            "k.cc:1: error: shuffle\n"
            "  and 2 more like it, at k.cc:2\n"
            "  fix: mend it\n");
  EXPECT_EQ(to_string({wrong(1, "shuffle", "if"), nowhere}),
            "k.cc:1: error: shuffle\n"
            "  and 1 more like it\n"
            "  fix: mend it\n");
}

}  // namespace
}  // namespace heddle::ir
