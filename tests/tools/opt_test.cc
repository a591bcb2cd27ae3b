// heddle opt.
#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "heddle/codegen/toolchain/cubin.h"
#include "tools/command_testing.h"

namespace heddle::tools {
namespace {

using codegen::TempDir;
using codegen::write_file;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kScale[] =
    R"(kernel @scale(%x: view<f32, global, 1> [?] strides [1]) block(256, 1, 1) {
  %i = thread_idx {axis = x} : i32
  %one = const 1.0 : f32
  %two = add %one, %one : f32
  %v = load %x, %i : f32
  %r = mul %v, %two : f32
  store %x, %r, %i
}
)";

// As printed from standard input.
Outcome opt(const Arguments& more, absl::string_view text) {
  Arguments arguments = {"opt", "-"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return heddle_command(arguments, {}, text);
}

TEST(OptTest, RunsPassesOnText) {
  const Outcome folded = opt({"--passes", "fold,dce"}, kScale);
  EXPECT_EQ(folded.exit_code, 0) << folded.err;
  EXPECT_EQ(folded.err, "");
  EXPECT_THAT(folded.out, AllOf(HasSubstr("const 2.0 : f32"), Not(HasSubstr("add "))));
  const Outcome usual = opt({}, kScale);
  EXPECT_EQ(usual.exit_code, 0) << usual.err;
  EXPECT_THAT(usual.out, Not(HasSubstr("add ")));
}

TEST(OptTest, WithoutPassesPrintsWhatItRead) {
  const Outcome same = opt({"--passes", ""}, kScale);
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(opt({"--passes", ""}, same.out).out, same.out);
  EXPECT_THAT(same.out, HasSubstr("add %one, %one : f32"));
  EXPECT_THAT(opt({"--passes", "", "--locs"}, kScale).out, HasSubstr("loc(\"stdin\":3)"));
}

TEST(OptTest, ReadsWhatDumpPrints) {
  const TempDir dir;
  const Outcome trace = heddle_command({"dump", "row_sum", "--stage", "trace"});
  const std::string file = write_file(dir.file("row_sum.ir"), trace.out);
  const Outcome same = heddle_command({"opt", file, "--passes", "", "--locs"});
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_EQ(same.out, trace.out);
  const Outcome optimized = heddle_command({"opt", file, "--locs", "-o", dir.file("out.ir")});
  EXPECT_EQ(optimized.exit_code, 0) << optimized.err;
  EXPECT_EQ(slurp(dir.file("out.ir")), heddle_command({"dump", "row_sum", "--stage", "ir"}).out);
}

TEST(OptTest, EmitsPtxAndMachineCode) {
  const Outcome ptx = opt({"--emit", "ptx", "--arch", "sm_80"}, kScale);
  EXPECT_EQ(ptx.exit_code, 0) << ptx.err;
  EXPECT_THAT(ptx.out, AllOf(HasSubstr(".target sm_80"), HasSubstr(".entry scale")));
  HEDDLE_NEEDS_TOOL(kPtxas);
  const Outcome cubin = opt({"--emit", "cubin"}, kScale);
  EXPECT_EQ(cubin.exit_code, 0) << cubin.err;
  EXPECT_TRUE(codegen::read_cubin(cubin.out).ok());
}

TEST(OptTest, WatchesPasses) {
  const Outcome watched =
      opt({"--passes", "fold,dce", "--print-after", "all", "--pass-limit", "1", "--time-passes"},
          kScale);
  EXPECT_EQ(watched.exit_code, 0) << watched.err;
  EXPECT_THAT(watched.err, AllOf(StartsWith("; after fold\nkernel @scale("),
                                 Not(HasSubstr("after dce")), HasSubstr("all passes")));
}

// A file that breaks a rule of meaning is as wrong as one that breaks a rule of syntax.
TEST(OptTest, AWrongKernelIsMisuseWithItsLine) {
  std::string wrong = kScale;
  wrong.replace(wrong.find("store %x, %r"), 12, "store %x, %i");
  const Outcome done = opt({"--verify"}, wrong);
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_THAT(done.err, AllOf(StartsWith("heddle: kernel 'scale' "), HasSubstr("stdin:7")));
  EXPECT_EQ(done.out, "");
}

// Right IR that cannot be assembled is a failure, and what keeps it from that may be cured.
TEST(OptTest, AKernelWhoseStoresFoldAwayIsEmittedEmpty) {
  const Outcome empty =
      opt({"--emit", "ptx"},
          R"(kernel @never(%x: view<i32, global, 1> [?] strides [1]) block(32, 1, 1) {
  %i = thread_idx {axis = x} : i32
  %most = const 32 : i32
  %beyond = ge %i, %most : bool
  if %beyond {
    store %x, %i, %i
    yield
  }
}
)");
  EXPECT_EQ(empty.exit_code, 0) << empty.err;
  EXPECT_THAT(empty.out, AllOf(HasSubstr("ret;"), Not(HasSubstr("st."))));
}

TEST(OptTest, AKernelThatStoresNothingIsMisuseWithItsLine) {
  const Outcome idle = opt({}, "\nkernel @idle(%n: i32) block(32, 1, 1) {\n  barrier\n}\n");
  EXPECT_EQ(idle.exit_code, 2);
  EXPECT_THAT(idle.err, HasSubstr("stdin:2: error: kernel 'idle' has no side effects"));
}

TEST(OptTest, AMissingPtxasIsAFailure) {
  const Outcome done =
      heddle_command({"opt", "-", "--emit", "cubin"}, {"HEDDLE_PTXAS=/no/ptxas"}, kScale);
  expect_one_line(done, 1,
                  AllOf(StartsWith("ptxas from HEDDLE_PTXAS (/no/ptxas) cannot be used: "),
                        EndsWith("; fix: unset HEDDLE_PTXAS, or set it to the absolute path "
                                 "of ptxas")));
}

TEST(OptTest, AnswersMisuseWithOneLine) {
  const TempDir dir;
  expect_misused(heddle_command({"opt", dir.file("no.ir")}),
                 dir.file("no.ir: cannot be read: No such file or directory"));
  expect_misused(heddle_command({"opt", dir.path()}),
                 dir.path() + ": cannot be read: Is a directory");
  expect_misused(opt({}, ""), StartsWith("stdin:1"));
  expect_misused(opt({}, "kernel @k() {\n  %x = lod %y : f32\n}\n"), StartsWith("stdin:2:"));
  expect_misused(opt({"--passes", "flod"}, kScale),
                 "unknown pass 'flod' in pipeline 'flod'; did you mean 'fold'?");
  expect_misused(opt({"--passes", "fold,,cse"}, kScale),
                 "empty pass name in --passes 'fold,,cse'; fix: leave out the extra comma");
  expect_misused(opt({"--print-before", "fold,"}, kScale),
                 "empty pass name in --print-before 'fold,'; fix: leave out the extra comma");
  expect_misused(heddle_command({"opt", ""}),
                 HasSubstr("is empty; it takes a file, or - for stdin"));
  expect_misused(opt({"-o", ""}, kScale), HasSubstr("is empty; it takes FILE"));
  expect_misused(opt({"--arch", ""}, kScale), "--arch: is empty; it takes SM");
  expect_misused(opt({"--emit", "exe"}, kScale), HasSubstr("--emit"));
  expect_misused(opt({"--arch", "sm_1"}, kScale), StartsWith("unknown target 'sm_1'; there are "));
  expect_misused(opt({"-o", dir.file("no/such/file")}, kScale),
                 dir.file("no/such/file: cannot be written: No such file or directory"));
}

// What a filetest of one case says of itself in comments (runtime/testing/filetest.h), as far as the command
// can tell. Those of several cases are in folders.
struct Filetest {
  std::string path = {};
  std::string passes = {};
  bool emittable = false;
  std::vector<int> error_lines = {};
};

std::vector<Filetest> filetests() {
  std::vector<Filetest> found;
  for (const auto& entry : std::filesystem::directory_iterator(HEDDLE_FILETESTS_DIR)) {
    if (entry.path().extension() != ".ir") continue;
    Filetest test{.path = entry.path().string()};
    int number = 0;
    for (const absl::string_view line : absl::StrSplit(slurp(test.path), '\n')) {
      ++number;
      constexpr absl::string_view kRun = "; run:";
      if (absl::StartsWith(line, kRun)) test.passes = std::string(line.substr(kRun.size()));
      test.emittable |= line == "; verify: emittable";
      if (absl::StrContains(line, "; error:")) test.error_lines.push_back(number);
    }
    found.push_back(std::move(test));
  }
  return found;
}

TEST(OptTest, RunsTheFiletests) {
  const std::vector<Filetest> tests = filetests();
  ASSERT_FALSE(tests.empty());
  for (const Filetest& test : tests) {
    const Outcome done = heddle_command({"opt", test.path, "--passes", test.passes, "--verify"});
    EXPECT_EQ(done.exit_code, test.error_lines.empty() ? 0 : 2) << test.path << "\n" << done.err;
    for (const int line : test.error_lines) {
      EXPECT_THAT(done.err, HasSubstr(absl::StrCat(test.path, ":", line, ": error: ")));
    }
    if (!test.emittable || !test.error_lines.empty()) continue;
    const bool assembles = codegen::find_tool(codegen::Tool::kPtxas).ok();
    const Outcome code = heddle_command(
        {"opt", test.path, "--passes", test.passes, "--emit", assembles ? "cubin" : "ptx"});
    EXPECT_EQ(code.exit_code, 0) << test.path;
    // ptxas had no remarks on speed either.
    EXPECT_EQ(code.err, "") << test.path;
  }
}

// Whatever the text, the answer is a kernel or an error, never a crash.
TEST(OptTest, SurvivesRandomText) {
  const std::string text = kScale;
  for (size_t cut = 0; cut < text.size(); cut += 17) {
    const Outcome done = opt({}, text.substr(0, cut));
    EXPECT_EQ(done.exit_code, 2) << cut << ": " << done.err;
  }
}

TEST(OptTest, ReadsNoFileWithoutAnEnd) {
  const Outcome endless = heddle_command({"opt", "/dev/zero"});
  EXPECT_EQ(endless.exit_code, 2);
  EXPECT_THAT(endless.err, HasSubstr("/dev/zero: is larger than 64 MiB, the most that is read"));
}

}  // namespace
}  // namespace heddle::tools
