// Runs tests/filetests/, and checks that the runner itself cannot be pleased by accident.

#include "support/filetest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const char kFolder[] = HEDDLE_TEST_DATA_DIR "/filetests";

class Filetest : public ::testing::TestWithParam<std::string> {};

TEST_P(Filetest, MeetsItsExpectations) {
  const std::vector<std::string> failures =
      run_filetest(GetParam(), std::getenv("HEDDLE_BLESS") != nullptr);
  EXPECT_TRUE(failures.empty()) << absl::StrJoin(failures, "\n");
}

INSTANTIATE_TEST_SUITE_P(Folder, Filetest, ::testing::ValuesIn(find_filetests(kFolder)),
                         [](const auto& test) {
                           const std::filesystem::path path(test.param);
                           return absl::StrReplaceAll(
                               path.lexically_relative(kFolder).replace_extension().string(),
                               {{"/", "_"}, {"-", "_"}, {".", "_"}});
                         });

// --- The runner ---

constexpr char kKernel[] =
    "kernel @k(%x: view<i32, global, 1> [?] strides [1], %n: i32) block(64, 1, 1) {\n"
    "  %two = const 2 : i32\n"
    "  %four = add %two, %two : i32\n"
    "  store %x, %four, %n\n"
    "}\n";

std::vector<std::string> failures_of(absl::string_view text) {
  return run_filetest_text(text, "t.ir").failures;
}

TEST(FiletestRunner, AFileThatExpectsNothingFails) {
  EXPECT_THAT(failures_of(kKernel), ElementsAre(HasSubstr("t.ir:1: this file expects nothing")));
  EXPECT_THAT(failures_of(absl::StrCat("; run: fold\n", kKernel)),
              ElementsAre(HasSubstr("t.ir:1: this file expects nothing")));
}

TEST(FiletestRunner, VerifyIsAnExpectation) {
  EXPECT_THAT(failures_of(absl::StrCat("; verify\n", kKernel)), IsEmpty());
  EXPECT_THAT(failures_of(absl::StrCat("; verify emittable\n", kKernel)), IsEmpty());
}

TEST(FiletestRunner, StagesAreVerified) {
  const std::string text =
      absl::StrReplaceAll(kKernel, {{"  store", "  %v = var %n : var<i32>\n  store"}});
  EXPECT_THAT(failures_of(absl::StrCat("; verify\n", text)), IsEmpty());
  EXPECT_THAT(
      failures_of(absl::StrCat("; verify pure_ssa\n", text)),
      ElementsAre(HasSubstr("t.ir:5: unexpected error: t.ir:5: error: a variable is left")));
}

TEST(FiletestRunner, ChecksAreInOrder) {
  EXPECT_THAT(
      failures_of(absl::StrCat(kKernel, "; check: const 2\n; check: add\n; check: store\n")),
      IsEmpty());
  EXPECT_THAT(failures_of(absl::StrCat(kKernel, "; check: add\n; check: const 2\n")),
              ElementsAre(HasSubstr("t.ir:7: no line behind the last match has: const 2")));
  EXPECT_THAT(failures_of(absl::StrCat(kKernel, "; check: mul\n")),
              ElementsAre(HasSubstr("t.ir:6: no line has: mul")));
  EXPECT_THAT(failures_of(absl::StrCat(kKernel, "; check-not: store\n")),
              ElementsAre("t.ir:6: unwanted: store %x, %four, %n"));
}

TEST(FiletestRunner, PassesRun) {
  EXPECT_THAT(failures_of(absl::StrCat("; run: fold,dce\n", kKernel,
                                       "; check: const 4\n; check-not: add\n")),
              IsEmpty());
  EXPECT_THAT(failures_of(absl::StrCat("; run: flod\n", kKernel, "; check: const 4\n")),
              ElementsAre(HasSubstr("t.ir:2: ")));
}

TEST(FiletestRunner, ErrorsMatchByLineAndText) {
  const auto with = [](absl::string_view comment) {
    return failures_of(absl::StrReplaceAll(
        kKernel, {{"%two, %two : i32", absl::StrCat("%two, %x : i32", comment)}}));
  };
  EXPECT_THAT(with(" ; error: operand 2 of 'add' is view"), IsEmpty());
  EXPECT_THAT(with(" ; error: operand 3"),
              ElementsAre("t.ir:3: expected an error that says: operand 3",
                          HasSubstr("t.ir:3: unexpected error: t.ir:3: error: operand 2")));
  EXPECT_THAT(
      with("\n  ; error: operand 2 of 'add' is view"),
      ElementsAre(HasSubstr("t.ir:4: expected an error"), HasSubstr("t.ir:3: unexpected error")));
  EXPECT_THAT(failures_of(absl::StrReplaceAll(kKernel, {{"%n\n", "%n ; error: nothing\n"}})),
              ElementsAre("t.ir:4: expected an error that says: nothing"));
  EXPECT_THAT(failures_of(absl::StrReplaceAll(
                  kKernel, {{"store", "stroe"}, {"%n\n", "%n ; error: unknown op\n"}})),
              IsEmpty());
}

TEST(FiletestRunner, ErrorsOfTheKernelStandOnItsFirstLine) {
  EXPECT_THAT(failures_of("\nkernel @k(%n: i32) { ; error: no side effects\n}\n"), IsEmpty());
}

TEST(FiletestRunner, MisusedDirectivesFail) {
  EXPECT_THAT(failures_of(absl::StrCat("; verify\n; chek: add\n", kKernel)),
              ElementsAre("t.ir:2: unknown directive 'chek'"));
  EXPECT_THAT(failures_of(absl::StrCat("; error: x\n; verify\n", kKernel)),
              ElementsAre("t.ir:1: an error stands on the line that is wrong"));
  EXPECT_THAT(failures_of(absl::StrReplaceAll(absl::StrCat(kKernel, "; check: add\n"),
                                              {{"%n\n", "%n ; error: x\n"}})),
              ElementsAre("t.ir:4: a kernel with errors has no result to check"));
  EXPECT_THAT(failures_of(absl::StrCat("; Prose: it may say anything\n; verify\n", kKernel)),
              IsEmpty());
}

TEST(FiletestRunner, AMissingOrOldGoldenFailsUntilItIsBlessed) {
  const std::string missing = absl::StrCat("; run: fold,dce\n", kKernel, "; check-exact\n");
  const FiletestResult first = run_filetest_text(missing, "t.ir");
  EXPECT_THAT(first.failures, ElementsAre(HasSubstr("t.ir:7: the golden result is missing")));
  EXPECT_THAT(failures_of(first.blessed), IsEmpty());
  EXPECT_THAT(first.blessed, HasSubstr("; check-exact\n; | kernel @k(\n; |     %x"));
  const std::string old = absl::StrReplaceAll(first.blessed, {{"| }", "| } "}});
  const FiletestResult second = run_filetest_text(old, "t.ir");
  EXPECT_THAT(second.failures, ElementsAre(HasSubstr("t.ir:7: the golden result differs")));
  EXPECT_EQ(second.blessed, first.blessed);
  EXPECT_THAT(failures_of(absl::StrCat(first.blessed, "; check: add\n")),
              ElementsAre(HasSubstr("only the golden result")));
}

TEST(FiletestRunner, BlessingRewritesTheFile) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/filetest_bless.ir");
  std::ofstream(path) << "; verify\n" << kKernel << "; check-exact\n";
  EXPECT_THAT(run_filetest(path, false), ElementsAre(HasSubstr("the golden result is missing")));
  EXPECT_THAT(run_filetest(path, true), IsEmpty());
  EXPECT_THAT(run_filetest(path, false), IsEmpty());
  std::filesystem::remove(path);
  EXPECT_THAT(run_filetest(path, false), ElementsAre(HasSubstr("cannot be read")));
}

}  // namespace
}  // namespace heddle::test
