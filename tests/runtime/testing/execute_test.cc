// What `execute` and `expect` of a filetest take, and how they fail.
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/runtime/testing/filetest.h"
#include "heddle/runtime/testing/values.h"

namespace heddle::filetest {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// y[i] = x[i] + n
constexpr char kKernel[] =
    "kernel @k(%x: view<i32, global, 1> [?] strides [1], %y: view<i32, global, 1> [?] strides [1], "
    "%n: i32) {\n"
    "  %t = thread_idx {axis = x} : i32\n"
    "  %v = load %x, %t : i32\n"
    "  %s = add %v, %n : i32\n"
    "  %ok = bounds %y, %t : check\n"
    "  store %y, %s, %t, %ok $report\n"
    "}\n";

std::vector<std::string> run(absl::string_view directives, absl::string_view report = "") {
  const std::string kernel = absl::StrReplaceAll(kKernel, {{"$report", report}});
  return run_filetest_text(absl::StrCat(kernel, directives), "t.ir").failures;
}

TEST(Execute, ResultsAreCompared) {
  const std::string execute = "; execute: %x = [1, 2, 3], %y = unwritten(3), %n = 10, block = 3\n";
  EXPECT_THAT(run(execute + "; expect: %y = [11, 12, 13]\n; expect: %x = iota(3, 1)\n"), IsEmpty());
  EXPECT_THAT(run(execute + "; expect: %y = [11, ?, ?]\n; expect: %x = [1, 2, 4]\n"),
              ElementsAre(AllOf(HasSubstr("t.ir:10: %x[2] is 3 instead of 4"),
                                HasSubstr("executed as written, by line 8"))));
  EXPECT_THAT(run(execute + "; expect: %y = fill(3, 12)\n"),
              ElementsAre(HasSubstr("%y[0] is 11 instead of 12, and 1 more differ")));
  EXPECT_THAT(run(execute + "; expect: %y = [11, 12]\n"),
              ElementsAre(HasSubstr("%y has 3 elements, and 2 are expected")));
  EXPECT_THAT(run(execute + "; expect: success\n"), IsEmpty());
  EXPECT_THAT(run(execute), ElementsAre(HasSubstr("t.ir:8: this execution expects nothing")));
  EXPECT_THAT(run("; expect: %y = [1]\n; verify: traced\n"),
              ElementsAre(HasSubstr("'expect' belongs below an 'execute'")));
}

TEST(Execute, SeveralLaunchesOfOneKernel) {
  EXPECT_THAT(run("; execute: %x = [1], %y = unwritten(1), %n = 1, block = 1\n"
                  "; expect: %y = [2]\n"
                  "; execute: %x = [1], %y = unwritten(1),\n"
                  ";     %n = -1, block = 1\n"
                  "; expect: %y = [1]\n"),
              ElementsAre(HasSubstr("t.ir:12: %y[0] is 0 instead of 1")));
}

TEST(Execute, ReportsStandOnTheirLines) {
  const std::string execute = "; execute: %x = iota(4), %y = unwritten(2), %n = 0, block = 4\n";
  EXPECT_THAT(run(execute, "; report: writes y(2), outside its extents (2)"), IsEmpty());
  EXPECT_THAT(run(execute + "; fix: guard the access\n", "; report: writes y(2)"), IsEmpty());
  EXPECT_THAT(run(execute, "; report: writes x"),
              ElementsAre(HasSubstr("t.ir:6: expected report is not there: writes x"),
                          HasSubstr("t.ir:6: unexpected report: t.ir:6: error: writes y(2)")));
  EXPECT_THAT(run("; verify: traced\n", "; report: writes y(2)"),
              ElementsAre(HasSubstr("t.ir:6: a report needs an '; execute: ...'")));
  // A launch that succeeds has no report, and one that is reported has no results.
  EXPECT_THAT(
      run("; execute: %x = iota(4), %y = unwritten(4), %n = 0, block = 4\n", "; report: writes y"),
      ElementsAre(HasSubstr("expected report is not there")));
  EXPECT_THAT(run(execute + "; expect: %y = [0, 1]\n"),
              ElementsAre(HasSubstr("t.ir:8: the launch fails: t.ir:6: error: writes y(2)")));
}

TEST(Execute, TheHostTestsWhatIsRequired) {
  constexpr char kOwnGrid[] =
      "kernel @k(%n: i32, %y: view<i32, global, 1> [?] strides [1]) block(1, 1, 1) {\n"
      "  %z = const 0 : i32\n  %one = const 1 : i32\n  %ok = ge %n, %z : bool\n"
      "  require %ok, %n {message = \"n is %\", fix = \"count up\"} $require\n"
      "  launch_grid %n, %one, %one $grid\n"
      "  store %y, %n, %z\n}\n; execute: %y = [7], ";
  const auto run_it = [&](absl::string_view settings, absl::string_view require = "",
                          absl::string_view grid = "") {
    const std::string kernel =
        absl::StrReplaceAll(kOwnGrid, {{"$require", require}, {"$grid", grid}});
    return run_filetest_text(absl::StrCat(kernel, settings), "t.ir").failures;
  };
  EXPECT_THAT(run_it("%n = 3\n; expect: grid = 3\n; expect: %y = [3]\n"), IsEmpty());
  EXPECT_THAT(run_it("%n = 3\n; expect: grid = (3, 2, 1)\n"),
              ElementsAre(HasSubstr("t.ir:10: the grid is 3x1x1 instead of 3x2x1")));
  EXPECT_THAT(run_it("%n = 3\n; expect: grid = some\n"),
              ElementsAre(HasSubstr("t.ir:10: 'some' is no number")));
  // No block runs.
  EXPECT_THAT(run_it("%n = 0\n; expect: grid = 0\n; expect: %y = [7]\n"), IsEmpty());
  // A launch that names an empty grid is wrong.
  EXPECT_THAT(
      run("; execute: %x = [1], %y = [1], %n = 0, block = 1, grid = 0\n; expect: success\n"),
      ElementsAre(HasSubstr("t.ir:8: the launch fails: ")));
  EXPECT_THAT(run_it("%n = 3, grid = 0\n; expect: success\n"),
              ElementsAre(HasSubstr("the launch names a grid of 0x1x1 blocks")));
  EXPECT_THAT(run_it("%n = -1\n; fix: count up\n", "; report: n is -1"), IsEmpty());
  EXPECT_THAT(run_it("%n = -1\n; fix: count down\n", "; report: n is -1"),
              ElementsAre(HasSubstr("t.ir:10: expected fix is not there: count down")));
  EXPECT_THAT(run_it("%n = -1\n; expect: success\n"),
              ElementsAre(HasSubstr("t.ir:9: the launch fails: n is -1 (t.ir:5); fix: count up")));
  EXPECT_THAT(run_it("%n = 1, grid = 2\n", "", "; report: the kernel's own is 1x1x1"), IsEmpty());
}

// `contract` makes one rounding of two: a pass that changes results is found.
TEST(Execute, PassesMayNotChangeResults) {
  constexpr char kProduct[] =
      "; run: contract\n"
      "kernel @k(%x: view<f32, global, 1> [?] strides [1], %y: view<f32, global, 1> [?] strides "
      "[1]) "
      "block(1, 1, 1) {\n"
      "  %z = const 0 : i32\n  %one = const -1.0 : f32\n"
      "  %a = load %x, %z : f32\n  %p = mul %a, %a : f32\n  %s = add %p, %one : f32\n"
      "  store %y, %s, %z\n}\n"
      "; execute: %x = [1.0000004], %y = unwritten(1)\n";  // 1 + 3 * 2^-23
  EXPECT_THAT(
      run_filetest_text(absl::StrCat(kProduct, "; expect: %y = [0x35400000]\n"), "t.ir").failures,
      ElementsAre(AllOf(HasSubstr("t.ir:11: %y[0] is "), HasSubstr("executed after contract"))));
  EXPECT_THAT(run_filetest_text(absl::StrCat(kProduct, "; expect: %x = [?]\n"), "t.ir").failures,
              ElementsAre(HasSubstr("t.ir:10: contract changes what %y holds")));
  EXPECT_THAT(run_filetest_text(
                  absl::StrCat(kProduct, "; expect: %y = [0x35400000] within 1e-12\n"), "t.ir")
                  .failures,
              IsEmpty());
  EXPECT_THAT(run_filetest_text(
                  absl::StrCat(kProduct, "; expect: %y = [0x35400000] within 2 ulp\n"), "t.ir")
                  .failures,
              IsEmpty());
}

TEST(Execute, LaunchesAreMisspelt) {
  const auto failure = [](absl::string_view settings) {
    const std::vector<std::string> failures =
        run(absl::StrCat("; execute: ", settings, "\n; expect: success\n"));
    return failures.size() == 1 ? failures[0] : absl::StrCat(failures.size(), " failures");
  };
  EXPECT_THAT(failure("%x = [1], %n = 1, block = 1"), HasSubstr("t.ir:8: '%y' is given no value"));
  EXPECT_THAT(failure("%x = [1], %x = [2]"), HasSubstr("'%x' is given twice"));
  EXPECT_THAT(failure("%z = [1]"), HasSubstr("'%z' is no parameter of kernel 'k'"));
  EXPECT_THAT(failure("%x = [1], %y = [1], %n = 1"), HasSubstr("'block' is not given"));
  EXPECT_THAT(failure("gird = 1"),
              HasSubstr("'gird' is no parameter, which begin with %, and no setting"));
  EXPECT_THAT(failure("%x = [1.5]"), HasSubstr("%x: '1.5' is no i32"));
  EXPECT_THAT(failure("%x = [?]"), HasSubstr("'?' is for results"));
  EXPECT_THAT(failure("%x = [1, [2]]"), HasSubstr("has another number of elements"));
  EXPECT_THAT(failure("%x = [[1]]"), HasSubstr("'1, 1' is 2 extents for 1 modes"));
  EXPECT_THAT(failure("%x = iota(4) strides (2)"),
              HasSubstr("is not what the kernel declares: strides 1"));
  EXPECT_THAT(failure("%x = ones(4)"), HasSubstr("is no list; write [1, 2]"));
  EXPECT_THAT(failure("%x = %y"), HasSubstr("is no memory that an earlier parameter was given"));
  EXPECT_THAT(failure("grid"), HasSubstr("is no 'name = value'"));
}

TEST(Execute, MemoryMayBeSharedOrGone) {
  EXPECT_THAT(run("; execute: %x = [1, 2], %y = %x, %n = 5, block = 2\n; expect: %x = [6, 7]\n"),
              IsEmpty());
  const auto report = [](absl::string_view x) {
    return run(absl::StrCat("; execute: %x = ", x,
                            ", %y = unwritten(1), %n = 5, block = 1\n; expect: success\n"));
  };
  EXPECT_THAT(report("null"), ElementsAre(HasSubstr("at a null pointer")));
  EXPECT_THAT(report("freed(1)"), ElementsAre(HasSubstr("which was freed")));
  EXPECT_THAT(report("unwritten(1)"), ElementsAre(HasSubstr("which nobody has written")));
}

TEST(Values, AreRead) {
  const auto list = [](ir::Scalar scalar, absl::string_view text) {
    return list_from(scalar, text).value();
  };
  EXPECT_EQ(list(ir::Scalar::kI32, "[[1, 2, 3], [4, 5, 6]]").extents, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(list(ir::Scalar::kI32, "iota(2x2, -1)").elements[0].bits, 0xFFFFFFFFu);
  EXPECT_EQ(list(ir::Scalar::kF16, "[-inf]").elements[0].bits, 0xFC00u);
  EXPECT_EQ(list(ir::Scalar::kF64, "[-0]").elements[0].bits, uint64_t{1} << 63);
  EXPECT_FALSE(list(ir::Scalar::kF64, "unwritten(3)").written);
  EXPECT_FALSE(list_from(ir::Scalar::kI32, "[[1], [2, 3]]").ok());
  EXPECT_FALSE(list_from(ir::Scalar::kI32, "[[1], 2]").ok());
  EXPECT_FALSE(list_from(ir::Scalar::kI32, "[1, 2").ok());
  EXPECT_FALSE(list_from(ir::Scalar::kI32, "fill(4294967296, 0)").ok());
}

TEST(Values, AreCompared) {
  const Element one = element_from(ir::Scalar::kF32, "1").value();
  const Element nan = element_from(ir::Scalar::kF32, "nan").value();
  EXPECT_TRUE(matches(ir::Scalar::kF32, 0x7FC12345, nan, {}));
  EXPECT_FALSE(matches(ir::Scalar::kF32, 0x7F800000, nan, {}));
  EXPECT_TRUE(matches(ir::Scalar::kF32, 0x3F800002, one, bound_from("2 ulp").value()));
  EXPECT_FALSE(matches(ir::Scalar::kF32, 0x3F800003, one, bound_from("2 ulp").value()));
  EXPECT_FALSE(matches(ir::Scalar::kF32, 0x3F800001, one, {}));
  EXPECT_FALSE(matches(ir::Scalar::kF32, 0x7FC00000, one, bound_from("1").value()));
  EXPECT_FALSE(bound_from("two ulp").ok());
  EXPECT_FALSE(bound_from("-1").ok());
}

}  // namespace
}  // namespace heddle::filetest
