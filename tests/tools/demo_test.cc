// The demo, on the interpreter.
#include <algorithm>

#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Outcome demo(const Arguments& more, const std::vector<std::string>& environment = {}) {
  static const codegen::TempDir& dir = *new codegen::TempDir();
  Arguments arguments = more;
  arguments.insert(arguments.end(), {"--device", "interp"});
  if (std::find(more.begin(), more.end(), "--matrix") == more.end()) {
    arguments.insert(arguments.end(), {"--matrix", dir.file("matrix.npy")});
  }
  return run_program(HEDDLE_DEMO, arguments, environment);
}

TEST(DemoTest, ShowsEveryStageAndChecksTheResult) {
  const Outcome done = demo({"--rows", "9", "--columns", "130"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  for (const char* heading : {"traced IR", "optimised IR", "PTX for sm_90a", "ptxas",
                              "time of every stage", "result against sums in double precision"}) {
    EXPECT_THAT(done.out, HasSubstr(absl::StrCat("\n==== ", heading, "\n\n")));
  }
  EXPECT_THAT(done.out,
              AllOf(HasSubstr("matrix: f32[9, 130] from "), HasSubstr("kernel @row_sum("),
                    HasSubstr(".entry row_sum"), HasSubstr("y: all 9 elements right, max error ")));
}

TEST(DemoTest, MakesTheSameMatrixEveryTime) {
  const codegen::TempDir dir;
  for (const char* name : {"a.npy", "b.npy"}) {
    ASSERT_EQ(demo({"--rows", "3", "--columns", "5", "--matrix", dir.file(name)}).exit_code, 0);
  }
  EXPECT_EQ(slurp(dir.file("a.npy")), slurp(dir.file("b.npy")));
  const std::vector<double> values = read_doubles(dir.file("a.npy"));
  ASSERT_EQ(values.size(), 15u);
  for (const double value : values) {
    EXPECT_GE(value, -1);
    EXPECT_LE(value, 1);
  }
  EXPECT_NE(values[0], values[1]);
}

TEST(DemoTest, TakesOtherTypesAndShapes) {
  EXPECT_EQ(demo({"--rows", "2", "--columns", "700", "--dtype", "bf16"}).exit_code, 0);
  EXPECT_EQ(demo({"--rows", "2", "--columns", "33", "--dtype", "f16"}).exit_code, 0);
  EXPECT_EQ(demo({"--rows", "0", "--columns", "33"}).exit_code, 0);
}

TEST(DemoTest, GoesOnWithoutPtxas) {
  const Outcome done = demo({"--rows", "2", "--columns", "3"}, {"HEDDLE_PTXAS=/no/ptxas"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(
      done.out,
      AllOf(HasSubstr("/no/ptxas"),
            HasSubstr("; fix: unset HEDDLE_PTXAS, or set it to the absolute path of ptxas; the "
                      "rest works without it\n")));
}

TEST(DemoTest, AnswersMisuseWithOneLine) {
  expect_misused(demo({"--dtype", "f8"}),
                 "setting 'dtype' of kernel 'row_sum' cannot be 'f8': it is one of f32, f16, bf16");
  expect_misused(demo({"--rows", "-1"}), HasSubstr("--rows"));
  expect_misused(demo({"--frob"}), HasSubstr("--frob"));
  expect_misused(demo({"--matrix", "/no/such/m.npy"}),
                 "/no/such/m.npy: cannot be written: No such file or directory");
  expect_misused(run_program(HEDDLE_DEMO, {"--device", "tpu"}), HasSubstr("'tpu' names no device"));
}

}  // namespace
}  // namespace heddle::tools
