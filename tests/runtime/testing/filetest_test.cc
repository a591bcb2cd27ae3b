// The runner of filetests cannot be pleased by accident: each directive can fail, and says why.
#include "heddle/runtime/testing/filetest.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace heddle::filetest {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kKernel[] =
    "kernel @k(%x: view<i32, global, 1> [?] strides [1], %n: i32) block(64, 1, 1) {\n"
    "  %two = const 2 : i32\n"
    "  %four = add %two, %two : i32\n"
    "  store %x, %four, %n\n"
    "}\n";

std::vector<std::string> failures_of(absl::string_view text) {
  return run_filetest_text(text, "t.ir").failures;
}
std::vector<std::string> with_kernel(absl::string_view before, absl::string_view after = "") {
  return failures_of(absl::StrCat(before, kKernel, after));
}

TEST(FiletestRunner, ACaseThatExpectsNothingFails) {
  EXPECT_THAT(failures_of(kKernel),
              ElementsAre(HasSubstr("t.ir:1: this kernel is expected to do nothing")));
  EXPECT_THAT(with_kernel("; run: fold\n"),
              ElementsAre(HasSubstr("t.ir:2: this kernel is expected to do nothing")));
  EXPECT_THAT(failures_of(absl::StrCat("; verify: traced\n", kKernel, "; --- second\n", kKernel)),
              ElementsAre(HasSubstr("t.ir:8: this kernel is expected to do nothing")));
  EXPECT_THAT(failures_of(""), ElementsAre("t.ir:1: this file has no kernel"));
  EXPECT_THAT(failures_of(absl::StrCat("; verify: traced\n", kKernel, "; --- second\n")),
              ElementsAre("t.ir:7: this case has no kernel"));
  EXPECT_THAT(failures_of("; verify: traced\n"), ElementsAre("t.ir:1: this case has no kernel"));
}

TEST(FiletestRunner, StagesAreVerified) {
  EXPECT_THAT(with_kernel("; verify: traced\n"), IsEmpty());
  EXPECT_THAT(with_kernel("; verify: emittable\n"), IsEmpty());
  EXPECT_THAT(with_kernel("; verify: twice\n"), ElementsAre(HasSubstr("unknown stage 'twice'")));
  const std::string text =
      absl::StrReplaceAll(kKernel, {{"  store", "  %v = var %n : var<i32>\n  store"}});
  EXPECT_THAT(failures_of(absl::StrCat("; verify: traced\n", text)), IsEmpty());
  EXPECT_THAT(
      failures_of(absl::StrCat("; verify: pure_ssa\n", text)),
      ElementsAre(HasSubstr("t.ir:5: unexpected error: t.ir:5: error: a variable is left")));
}

TEST(FiletestRunner, ChecksAreInOrder) {
  EXPECT_THAT(with_kernel("", "; check: const 2\n; check: add\n; check: store\n"), IsEmpty());
  EXPECT_THAT(with_kernel("", "; check: add\n; check: const 2\n"),
              ElementsAre(HasSubstr("t.ir:7: no line behind the last match has: const 2")));
  EXPECT_THAT(with_kernel("", "; check: mul\n"),
              ElementsAre(HasSubstr("t.ir:6: no line has: mul")));
  EXPECT_THAT(with_kernel("", "; check-not: store\n"),
              ElementsAre("t.ir:6: unwanted: store %x, %four, %n"));
}

TEST(FiletestRunner, PassesRun) {
  EXPECT_THAT(with_kernel("; run: fold,dce\n", "; check: const 4\n; check-not: add\n"), IsEmpty());
  EXPECT_THAT(with_kernel("; run: default\n", "; check: const 4\n"), IsEmpty());
  EXPECT_THAT(with_kernel("; run: flod\n", "; check: const 4\n"),
              ElementsAre(HasSubstr("t.ir:2: unexpected error: ")));
  EXPECT_THAT(with_kernel("; run: fold\n; run: dce\n", "; check: const 4\n"),
              ElementsAre(HasSubstr("t.ir:2: a second 'run'")));
}

TEST(FiletestRunner, TargetsAreTried) {
  EXPECT_THAT(with_kernel("; target: sm_80\n", "; check: target(sm_80)\n"), IsEmpty());
  EXPECT_THAT(
      with_kernel("; target: sm_80, sm_90a\n", "; check: target(sm_80)\n"),
      ElementsAre(AllOf(HasSubstr("no line has: target(sm_80)"), HasSubstr("(for sm_90a)"))));
  EXPECT_THAT(with_kernel("; target: sm_90+\n", "; check-not: target(sm_8\n"), IsEmpty());
  EXPECT_THAT(with_kernel("; target: sm_70\n; verify: traced\n"),
              ElementsAre(HasSubstr("t.ir:1: unknown target 'sm_70'")));
}

TEST(FiletestRunner, PtxIsEmitted) {
  EXPECT_THAT(with_kernel("; emit: ptx\n", "; check: .visible .entry k\n; check: st.global\n"),
              IsEmpty());
  EXPECT_THAT(
      with_kernel("", "; check: const 2\n; emit: ptx\n; check: st.global\n; check-not: const\n"),
      IsEmpty());
  EXPECT_THAT(with_kernel("; emit: ptx\n", "; check: st.shared\n"),
              ElementsAre(HasSubstr("t.ir:7: no line has: st.shared")));
  EXPECT_THAT(with_kernel("; emit: ptx\n", "; check-not: st.global\n"),
              ElementsAre(HasSubstr("t.ir:7: unwanted: st.global")));
  EXPECT_THAT(with_kernel("; emit: sass\n"), ElementsAre(HasSubstr("'sass' cannot be emitted")));
}

TEST(FiletestRunner, ErrorsMatchByLineAndText) {
  const auto with = [](absl::string_view comment) {
    return failures_of(absl::StrReplaceAll(
        kKernel, {{"%two, %two : i32", absl::StrCat("%two, %x : i32", comment)}}));
  };
  EXPECT_THAT(with(" ; error: operand 2 of 'add' is view"), IsEmpty());
  EXPECT_THAT(with(" ; error: operand 3"),
              ElementsAre("t.ir:3: expected error is not there: operand 3",
                          HasSubstr("t.ir:3: unexpected error: t.ir:3: error: operand 2")));
  EXPECT_THAT(with("\n  ; error: operand 2 of 'add' is view"),
              ElementsAre(HasSubstr("t.ir:4: expected error is not there"),
                          HasSubstr("t.ir:3: unexpected error")));
  EXPECT_THAT(failures_of(absl::StrReplaceAll(kKernel, {{"%n\n", "%n ; error: nothing\n"}})),
              ElementsAre("t.ir:4: expected error is not there: nothing"));
  EXPECT_THAT(failures_of(absl::StrReplaceAll(
                  kKernel, {{"store", "stroe"}, {"%n\n", "%n ; error: unknown op\n"}})),
              IsEmpty());
}

TEST(FiletestRunner, ErrorsOfTheKernelStandOnItsFirstLine) {
  EXPECT_THAT(failures_of("\nkernel @k(%n: i32) { ; error: no side effects\n}\n"), IsEmpty());
}

TEST(FiletestRunner, TheEmittersErrorsAreFoundToo) {
  const std::string text = absl::StrReplaceAll(
      kKernel, {{"  store", "  %w = exp2 %w0 : f64\n  store"}, {"%n: i32", "%n: i32, %w0: f64"}});
  EXPECT_THAT(failures_of(absl::StrReplaceAll(text, {{": f64\n", ": f64 ; error: no GPU has\n"},
                                                     {"kernel", "; emit: ptx\nkernel"}})),
              IsEmpty());
}

TEST(FiletestRunner, NotesAndFixesAreHeldAgainstWhatIsSaid) {
  constexpr char kDivergent[] =
      "; emit: ptx\n"
      "kernel @k(%x: view<i32, global, 1> [?] strides [1], %n: i32) block(64, 1, 1) {\n"
      "  %t = thread_idx {axis = x} : i32 ; note: $1\n"
      "  %p = lt %t, %n : bool\n"
      "  if %p { ; note: $0\n"
      "    barrier ; error: differs between threads\n"
      "    yield\n  }\n  store %x, %n, %n\n}\n; fix: $2\n";
  const auto with = [&](const char* note, const char* fix) {
    return failures_of(
        absl::StrReplaceAll(kDivergent, {{"$0", note}, {" ; note: $1", ""}, {"$2", fix}}));
  };
  EXPECT_THAT(with("differs between the threads", "move it out"), IsEmpty());
  EXPECT_THAT(with("depnds", "move it out"),
              ElementsAre("t.ir:5: expected note is not there: depnds"));
  EXPECT_THAT(with("differs between the threads", "leave it"),
              ElementsAre("t.ir:11: expected fix is not there: leave it"));
  EXPECT_THAT(with_kernel("; verify: traced\n; fix: it\n"),
              ElementsAre("t.ir:2: a fix belongs to an error or a report"));
}

TEST(FiletestRunner, MisusedDirectivesFail) {
  EXPECT_THAT(with_kernel("; verify: traced\n; chek: add\n"),
              ElementsAre(HasSubstr("t.ir:2: unknown directive 'chek'; there are: for, target")));
  EXPECT_THAT(with_kernel("; error: x\n; verify: traced\n"),
              ElementsAre(HasSubstr("t.ir:1: 'error' stands behind the code")));
  EXPECT_THAT(failures_of(absl::StrReplaceAll(kKernel, {{"%n\n", "%n ; check: x\n"}})),
              ::testing::Contains(HasSubstr("t.ir:4: 'check' stands at the start of a line")));
  EXPECT_THAT(with_kernel("; verify: traced\n; check:\n"),
              ElementsAre("t.ir:2: 'check:' says nothing"));
  EXPECT_THAT(failures_of(absl::StrReplaceAll(absl::StrCat(kKernel, "; check: add\n"),
                                              {{"%n\n", "%n ; error: x\n"}})),
              ElementsAre("t.ir:6: a kernel with errors has no output to check"));
  for (const absl::string_view check : {"check-unchanged:", "guards: none"}) {
    EXPECT_THAT(failures_of(absl::StrReplaceAll(absl::StrCat("; run: dce\n", kKernel, "; ", check),
                                                {{"%n\n", "%n ; error: x\n"}})),
                ElementsAre("t.ir:7: a kernel with errors has no output to check"));
  }
  EXPECT_THAT(failures_of(absl::StrReplaceAll(kKernel, {{"%two : i32", "%two : i32 ; error: x"},
                                                        {"%n\n", "%n ; stores: 4\n"}})),
              ElementsAre("t.ir:4: a kernel with errors has no output to check"));
  EXPECT_THAT(with_kernel("; Prose: it may say anything\n; verify: traced\n"), IsEmpty());
  EXPECT_THAT(failures_of(absl::StrCat("; verify: traced\n", kKernel, kKernel)),
              ElementsAre(HasSubstr("t.ir:7: a second kernel")));
}

TEST(FiletestRunner, VariablesMakeInstances) {
  const std::string text =
      absl::StrCat("; for: $T = int\n", absl::StrReplaceAll(kKernel, {{": i32\n", ": $T\n"}}));
  EXPECT_THAT(failures_of(absl::StrCat(text, "; check: : i32\n")),
              ::testing::Contains(HasSubstr("(with $T = u32)")));
  EXPECT_THAT(
      failures_of(absl::StrCat(absl::StrReplaceAll(text, {{"<i32", "<$T"}}), "; check: : $T\n")),
      IsEmpty());
  EXPECT_THAT(with_kernel("; for: $T = i32\n; verify: traced\n"),
              ElementsAre("t.ir:1: nothing in this case uses $T"));
  EXPECT_THAT(with_kernel("; for: T = i32\n; verify: traced\n"),
              ElementsAre(HasSubstr("t.ir:1: 'T = i32' names no variable")));
  EXPECT_THAT(failures_of(absl::StrCat("; for: $A/$B = add/6, sub\n", kKernel)),
              ElementsAre(HasSubstr("'sub' is 1 values for 2 names")));
  EXPECT_THAT(failures_of(absl::StrCat("; for: $A/$B = add/4, sub/0, mul/4\n; run: fold\n",
                                       absl::StrReplaceAll(kKernel, {{"add", "$A"}}),
                                       "; check: const $B\n")),
              IsEmpty());
  EXPECT_THAT(failures_of(absl::StrCat(
                  "; for: $A/$B = `add %two, %two`/`4`, `sub %two, %two`/0\n", "; run: fold\n",
                  absl::StrReplaceAll(kKernel, {{"add %two, %two", "$A"}}), "; check: const $B\n")),
              IsEmpty());
}

TEST(FiletestRunner, CasesAreApart) {
  EXPECT_THAT(
      failures_of(absl::StrCat("; One kernel twice.\n; --- first\n", kKernel, "; check: add\n",
                               "; --- second\n; run: fold\n", kKernel, "; check: add\n")),
      ElementsAre(HasSubstr("t.ir:16: no line has: add")));
}

TEST(FiletestRunner, AMissingOrOldGoldenFailsUntilItIsBlessed) {
  const std::string missing =
      absl::StrCat("; run: fold,dce\n", kKernel, "; check-exact:\n\n; --- next\n; emit: ptx\n",
                   kKernel, "; check-exact:\n");
  const FiletestResult first = run_filetest_text(missing, "t.ir");
  EXPECT_THAT(first.failures, ElementsAre(HasSubstr("t.ir:7: the golden is missing"),
                                          HasSubstr("t.ir:16: the golden is missing")));
  EXPECT_THAT(failures_of(first.blessed), IsEmpty());
  EXPECT_THAT(first.blessed, HasSubstr("; check-exact:\n; | kernel @k(\n; |     %x"));
  const std::string old = absl::StrReplaceAll(first.blessed, {{"| }", "| } "}});
  const FiletestResult second = run_filetest_text(old, "t.ir");
  EXPECT_THAT(second.failures, ElementsAre(HasSubstr("t.ir:7: the golden differs"),
                                           HasSubstr("the golden differs")));
  EXPECT_EQ(second.blessed, first.blessed);
  EXPECT_THAT(
      with_kernel("; verify: traced\n; | kernel\n"),
      ElementsAre(HasSubstr("a golden's lines follow '; check-exact:' or '; check-body:'")));
  EXPECT_THAT(with_kernel("; target: sm_80+\n; check-exact:\n"),
              ElementsAre(HasSubstr("a golden is that of one kernel for one target")));
}

TEST(FiletestRunner, AGoldenMayBeOfTheOpsAlone) {
  const std::string missing = absl::StrCat("; run: fold,dce\n", kKernel, "; check-body:\n");
  const FiletestResult first = run_filetest_text(missing, "t.ir");
  EXPECT_THAT(first.failures, ElementsAre(HasSubstr("t.ir:7: the golden is missing")));
  EXPECT_THAT(first.blessed, ::testing::EndsWith("; check-body:\n; | %four = const 4 : i32\n"
                                                 "; | store %x, %four, %n\n"));
  EXPECT_THAT(failures_of(first.blessed), IsEmpty());
  EXPECT_THAT(failures_of(absl::StrReplaceAll(first.blessed, {{"| store", "| stroe"}})),
              ElementsAre(HasSubstr("t.ir:7: the golden differs")));
  EXPECT_THAT(with_kernel("; emit: ptx\n; check-body:\n"),
              ElementsAre("t.ir:2: PTX has no ops; write '; check-exact:'"));
  EXPECT_THAT(with_kernel("; check-exact:\n; check-body:\n"),
              ElementsAre("t.ir:2: a second golden of the same output"));
  EXPECT_THAT(with_kernel("; verify: traced\n; check-body: store\n"),
              ElementsAre(HasSubstr("t.ir:2: nothing follows 'check-body:'")));
}

TEST(FiletestRunner, PassesMayHaveNothingToDo) {
  EXPECT_THAT(with_kernel("; run: dce,cse\n; check-unchanged:\n"), IsEmpty());
  EXPECT_THAT(with_kernel("; run: fold\n; check-unchanged:\n"),
              ElementsAre(HasSubstr("t.ir:2: the kernel is another:\nkernel @k(")));
  EXPECT_THAT(with_kernel("; check-unchanged:\n"),
              ElementsAre("t.ir:1: what leaves it so? add '; run: ...'"));
}

TEST(FiletestRunner, StoresTellWhatTheyStore) {
  const auto with = [](absl::string_view passes, absl::string_view comment) {
    return failures_of(absl::StrCat(
        passes, absl::StrReplaceAll(kKernel, {{"%n\n", absl::StrCat("%n ; ", comment, "\n")}})));
  };
  EXPECT_THAT(with("", "stores: add(2, 2)"), IsEmpty());
  EXPECT_THAT(with("; run: fold\n", "stores: 4"), IsEmpty());
  EXPECT_THAT(with("; run: fold\n", "stores: add(2, 2)"), ElementsAre("t.ir:5: stores: 4"));
  EXPECT_THAT(failures_of(absl::StrReplaceAll(kKernel, {{"%two : i32", "%two : i32 ; stores: 4"}})),
              ElementsAre("t.ir:3: no store of this line is left"));
}

TEST(FiletestRunner, FactsThatAreReadAreGuards) {
  constexpr char kRemainder[] =
      "kernel @k(%x: view<i32, global, 1> [?] strides [1]) facts(%x extent_div 0 8) {\n"
      "  %n = extent %x {dim = 0} : i32\n  %c = const 4 : i32\n  %r = rem %n, %c : i32\n"
      "  store %x, %r, %c\n}\n";
  const auto with = [&](absl::string_view passes, absl::string_view guards) {
    return failures_of(absl::StrCat("; run: ", passes, "\n", kRemainder, "; guards: ", guards));
  };
  EXPECT_THAT(with("fold", "%x extent_div 0 8"), IsEmpty());
  EXPECT_THAT(with("dce", "none"), IsEmpty());
  EXPECT_THAT(with("fold", "none"),
              ElementsAre("t.ir:8: the facts that were read are: %x extent_div 0 8"));
  EXPECT_THAT(with("dce", "%x extent_div 0 8"),
              ElementsAre("t.ir:8: the facts that were read are: none"));
  EXPECT_THAT(with("dce", "none\n; guards: none"),
              ElementsAre(HasSubstr("t.ir:9: a second 'guards'")));
}

TEST(FiletestRunner, BlessingRewritesTheFile) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/filetest_bless.ir");
  std::ofstream(path) << "; verify: traced\n" << kKernel << "; check-exact:\n";
  EXPECT_THAT(run_filetest(path, false), ElementsAre(HasSubstr("the golden is missing")));
  EXPECT_THAT(run_filetest(path, true), IsEmpty());
  EXPECT_THAT(run_filetest(path, false), IsEmpty());
  std::filesystem::remove(path);
  EXPECT_THAT(run_filetest(path, false), ElementsAre(HasSubstr("cannot be read")));
}

TEST(FiletestRunner, FilesAreNamedByTheirPlace) {
  EXPECT_EQ(filetest_name("/a/b", "/a/b/ops/min.nan.ir"), "ops_min_nan");
  EXPECT_THAT(find_filetests("/nowhere"), IsEmpty());
}

}  // namespace
}  // namespace heddle::filetest
