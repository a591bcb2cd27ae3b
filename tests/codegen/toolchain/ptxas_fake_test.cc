// Everything that can go wrong between us and an assembler, played by scripts.

#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/codegen/toolchain/ptxas.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kPtx[] = "first line\n\tsecond line;\n";

class FakePtxas : public testing::Test {
 protected:
  FakePtxas() {
    options_.arch = "sm_90a";
    options_.entries = {"k"};
    options_.ptxas_path = temp_.file("ptxas");
    options_.timeout = milliseconds(10'000);
    write_file(temp_.file("good.cubin"), make_cubin(90, {"k"}));
  }

  void install(absl::string_view body) { write_fake_ptxas(options_.ptxas_path, body); }
  std::string put(absl::string_view file) {
    return absl::StrCat("cat ", temp_.file(file), " > \"$out\"");
  }
  std::string put_bytes(absl::string_view bytes) {
    write_file(temp_.file("other.cubin"), bytes);
    return put("other.cubin");
  }
  StatusOr<Assembly> run() { return assemble(kPtx, options_, &said_); }
  void expect(StatusCode code, absl::string_view text) {
    const Status status = run().status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(text)));
  }
  // The end of every message about a run.
  std::string by_whom() const {
    return absl::StrCat(" (", options_.ptxas_path, " 13.0.88, target sm_90a)");
  }

  TempDir temp_;
  AssembleOptions options_;
  std::vector<Diagnostic> said_;
};

TEST_F(FakePtxas, GoodOnesAreBelieved) {
  install(
      absl::StrCat("echo \"ptxas info    : Compiling entry function 'k' for 'sm_90a'\" >&2\n"
                   "echo 'ptxas info    : Used 40 registers, used 1 barriers' >&2\n"
                   "echo 'ptxas warning : beware' >&2\n",
                   put("good.cubin")));
  const StatusOr<Assembly> assembly = run();
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  EXPECT_EQ(assembly->cubin, make_cubin(90, {"k"}));
  ASSERT_NE(assembly->find("k"), nullptr);
  EXPECT_EQ(assembly->find("k")->registers, 40);
  EXPECT_EQ(assembly->find("k")->code_bytes, 16);
  EXPECT_EQ(assembly->find("other"), nullptr);
  EXPECT_THAT(assembly->diagnostics, ElementsAre(Diagnostic{Severity::kWarning, 0, "", "beware"}));
  EXPECT_EQ(said_, assembly->diagnostics);
  EXPECT_EQ(assembly->ptxas_path, options_.ptxas_path);
  EXPECT_EQ(assembly->ptxas_version.to_string(), "13.0.88");
  EXPECT_GT(assembly->wall_time.count(), 0);
}

TEST_F(FakePtxas, GetsThePtxAndTheOptions) {
  install(absl::StrCat("printf '%s\\n' \"$@\" > ", temp_.file("arguments"), "; cat > ",
                       temp_.file("ptx"), "; ", put("good.cubin")));
  options_.max_registers = 64;
  options_.extra_flags = {"--fmad=false"};
  ASSERT_TRUE(run().ok());
  std::ifstream ptx(temp_.file("ptx"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(ptx), {}), kPtx);
  std::ifstream arguments(temp_.file("arguments"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(arguments), {}),
            "--gpu-name=sm_90a\n--opt-level=3\n--verbose\n--generate-line-info\n"
            "--maxrregcount=64\n--override-directive-values\n--fmad=false\n"
            "--output-file=/proc/self/fd/3\n/proc/self/fd/0\n");
}

TEST_F(FakePtxas, Missing) { expect(StatusCode::kNotFound, "/ptxas does not exist"); }

TEST_F(FakePtxas, NotExecutable) {
  install("exit 0");
  chmod(options_.ptxas_path.c_str(), 0600);
  expect(StatusCode::kFailedPrecondition, "/ptxas is not executable");
}

TEST_F(FakePtxas, Folder) {
  std::filesystem::create_directory(options_.ptxas_path);
  expect(StatusCode::kFailedPrecondition, "/ptxas is a folder");
}

TEST_F(FakePtxas, WrongVersionAnswer) {
  write_script(options_.ptxas_path, "echo 'something else'");
  expect(StatusCode::kFailedPrecondition, "does not answer as ptxas does, but 'something else'");
}

TEST_F(FakePtxas, Hang) {
  install("sleep 100");
  options_.timeout = milliseconds(200);
  expect(
      StatusCode::kDeadlineExceeded,
      absl::StrCat("ptxas did not end within 0.2 s; raise the timeout or make the kernel smaller",
                   by_whom()));
}

TEST_F(FakePtxas, ForkAndHang) {
  install("sleep 100 & sleep 100 & wait");
  options_.timeout = milliseconds(200);
  expect(StatusCode::kDeadlineExceeded, "did not end within 0.2 s");
  // A child that is left behind with our pipes does not hold up a good result.
  install(absl::StrCat("sleep 100 &\n", put("good.cubin")));
  options_.timeout = milliseconds(10'000);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(run().ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, milliseconds(5'000));
}

TEST_F(FakePtxas, Crash) {
  install(absl::StrCat(put("good.cubin"), "; kill -SEGV $$"));
  expect(StatusCode::kInternal,
         absl::StrCat("the assembler crashed: ptxas was killed by SIGSEGV; this is a fault of "
                      "ptxas, so try another version or a lower opt_level",
                      by_whom()));
  // Behind a script that starts the real one, a signal comes as an exit code.
  install("sh -c 'kill -SEGV $$'; exit $?");
  expect(StatusCode::kInternal, "the assembler crashed: ptxas was killed by SIGSEGV");
}

TEST_F(FakePtxas, KilledForMemoryOrFileSize) {
  install("kill -KILL $$");
  expect(StatusCode::kResourceExhausted,
         "ptxas was killed by SIGKILL, as happens when memory runs out");
  install("kill -XFSZ $$");
  expect(StatusCode::kResourceExhausted, "ptxas wrote more than a file may have");
}

TEST_F(FakePtxas, KeepsThePtxOfAFailureWhereAsked) {
  install("kill -SEGV $$");
  options_.keep_ptx_dir = temp_.file("kept");
  expect(StatusCode::kInternal,
         absl::StrCat("; the PTX could not be kept in ", temp_.file("kept"), ": No such file"));
  std::filesystem::create_directory(temp_.file("kept"));
  const Status status = run().status();
  const std::string message(status.message());
  const size_t at = message.find("; the PTX is kept in ");
  ASSERT_NE(at, std::string::npos) << message;
  std::string path = message.substr(at + sizeof("; the PTX is kept in ") - 1);
  path.pop_back();  // the closing parenthesis
  EXPECT_TRUE(absl::StartsWith(path, temp_.file("kept/heddle-")));
  EXPECT_TRUE(absl::EndsWith(path, ".ptx"));
  std::ifstream file(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), kPtx);
}

TEST_F(FakePtxas, ExitCode1) {
  install("echo oops >&2; exit 1");
  expect(StatusCode::kUnknown,
         absl::StrCat("ptxas ended with exit code 1 and printed: oops", by_whom()));
}

TEST_F(FakePtxas, ExitCode255) {
  install("exit 255");
  expect(StatusCode::kUnknown,
         absl::StrCat("ptxas ended with exit code 255 and printed no error", by_whom()));
}

TEST_F(FakePtxas, ErrorsLeadToTheirLines) {
  install(
      "echo 'ptxas /proc/self/fd/0, line 2; error   : bad word' >&2\n"
      "echo 'ptxas /proc/self/fd/0, line 1; error   : worse word' >&2\n"
      "echo 'ptxas fatal   : Ptx assembly aborted due to errors' >&2\n"
      "exit 255");
  expect(StatusCode::kInvalidArgument,
         absl::StrCat("ptxas refused the PTX: PTX line 2: bad word in `second line;`; "
                      "PTX line 1: worse word in `first line`",
                      by_whom()));
  EXPECT_THAT(said_, ElementsAre(Diagnostic{Severity::kError, 2, "", "bad word"},
                                 Diagnostic{Severity::kError, 1, "", "worse word"},
                                 Diagnostic{Severity::kFatal, 0, "",
                                            "Ptx assembly aborted due to errors"}));
}

TEST_F(FakePtxas, ManyErrorsMakeAShortMessageAndALongList) {
  install(
      "for i in 1 2 3 4 5 6 7; do echo \"ptxas x, line 7; error   : number $i\" >&2; done; exit "
      "255");
  expect(StatusCode::kInvalidArgument, "PTX line 7: number 5 in ``; and 2 more (");
  EXPECT_EQ(said_.size(), 7);
}

TEST_F(FakePtxas, ErrorsCountEvenWithExitCode0) {
  install(absl::StrCat("echo 'ptxas error   : quietly' >&2\n", put("good.cubin")));
  expect(StatusCode::kInvalidArgument, "ptxas refused the PTX: quietly");
}

TEST_F(FakePtxas, UnknownTargetsAndVersionsAreForTheDriver) {
  install(
      "echo \"ptxas fatal   : Value 'sm_90a' is not defined for option 'gpu-name'\" >&2; exit 255");
  expect(StatusCode::kUnimplemented,
         absl::StrCat("this ptxas does not know the target sm_90a; use another version, or let the "
                      "driver assemble the PTX",
                      by_whom()));
  install(
      "echo \"ptxas fatal   : Value 'sm_101' is not defined for option 'gpu-name'\" >&2; exit 255");
  options_.arch = "sm_101";
  expect(StatusCode::kUnimplemented, "target sm_101 (since ptxas 13 it is called sm_110); use");
  options_.arch = "sm_110";
  expect(StatusCode::kUnimplemented, "target sm_110 (before ptxas 13 it was called sm_101); use");
  install("echo \"ptxas fatal   : Unknown option '-fmad'\" >&2; exit 255");
  expect(StatusCode::kInvalidArgument,
         "this ptxas does not have a flag that was asked for: Unknown option '-fmad' (");
  install(
      "echo \"ptxas x, line 1; fatal   : Unsupported .version 9.9; current version is '9.0'\" >&2; "
      "exit 255");
  expect(StatusCode::kUnimplemented, "Unsupported .version 9.9; current version is '9.0'; use");
}

TEST_F(FakePtxas, Success0WithoutOutput) {
  install("exit 0");
  expect(
      StatusCode::kDataLoss,
      absl::StrCat("ptxas reported success, but its cubin cannot be used: it is empty", by_whom()));
}

TEST_F(FakePtxas, Success0WithEmptyOutput) {
  install(": > \"$out\"");
  expect(StatusCode::kDataLoss, "its cubin cannot be used: it is empty");
}

TEST_F(FakePtxas, Success0WithTruncatedOutput) {
  const std::string cubin = make_cubin(90, {"k"});
  for (size_t size : {size_t{1}, cubin.size() / 2, cubin.size() - 1}) {
    install(put_bytes(cubin.substr(0, size)));
    expect(StatusCode::kDataLoss, "its cubin cannot be used: it");
  }
  install("echo text > \"$out\"");
  expect(StatusCode::kDataLoss, "it has only 5 bytes");
}

TEST_F(FakePtxas, Success0WithForeignOutput) {
  install(put_bytes(make_cubin(80, {"k"})));
  expect(StatusCode::kDataLoss, "its cubin cannot be used: it is for sm_80");
  install(put_bytes(make_cubin(90, {"k"}, EM_X86_64)));
  expect(StatusCode::kDataLoss, "it is an ELF file for machine 62");
  install(put_bytes(make_cubin(90, {"other"})));
  expect(StatusCode::kDataLoss, "it holds no code of kernel 'k'");
}

TEST_F(FakePtxas, FloodOfMessages) {
  install(absl::StrCat("head -c 100000000 /dev/zero | tr '\\0' '\\n' >&2\n",
                       "echo 'ptxas warning : after the flood' >&2\n", put("good.cubin")));
  const StatusOr<Assembly> assembly = run();
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  EXPECT_THAT(assembly->diagnostics,
              ElementsAre(Diagnostic{Severity::kWarning, 0, "", "after the flood"}));
}

TEST_F(FakePtxas, ClosedErrorStream) {
  install(absl::StrCat("exec 2>&-\n", put("good.cubin")));
  EXPECT_TRUE(run().ok());
  install("exec 1>&- 2>&-; exit 255");
  expect(StatusCode::kUnknown, "ended with exit code 255 and printed no error");
}

TEST_F(FakePtxas, ReplacedWhileItRuns) {
  // Once, as by an upgrade: the new one's result counts, under the new one's version.
  write_fake_ptxas(temp_.file("new"), put("good.cubin"), "13.1.10");
  install(absl::StrCat("mv ", temp_.file("new"), " \"$0\"; ", put("good.cubin")));
  const StatusOr<Assembly> assembly = run();
  ASSERT_TRUE(assembly.ok()) << assembly.status();
  EXPECT_EQ(assembly->ptxas_version.to_string(), "13.1.10");
  // All the time.
  install(absl::StrCat("cp \"$0\" \"$0.new\"; mv \"$0.new\" \"$0\"; ", put("good.cubin")));
  expect(StatusCode::kAborted, "ptxas was replaced by another file while it ran, twice; try again");
  // Taken away.
  install(absl::StrCat("rm \"$0\"; ", put("good.cubin")));
  expect(StatusCode::kNotFound, "/ptxas does not exist");
}

TEST_F(FakePtxas, ShadowInPathIsNotRun) {
  write_fake_ptxas(temp_.file("ptxas"), absl::StrCat("echo > ", temp_.file("ran")));
  const std::string path = getenv("PATH") != nullptr ? getenv("PATH") : "";
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(temp_.path());
  setenv("PATH", absl::StrCat(":.:", path).c_str(), 1);
  options_.ptxas_path.clear();
  (void)run();
  setenv("PATH", path.c_str(), 1);
  std::filesystem::current_path(before);
  EXPECT_FALSE(std::filesystem::exists(temp_.file("ran")));
}

TEST_F(FakePtxas, WrongOptionsAreSaidBeforeAnythingRuns) {
  install(put("good.cubin"));
  const AssembleOptions good = options_;
  for (const char* arch : {"", "sm_", "sm_90x", "90", "compute_90", "sm_90 -o x", "sm_90aa"}) {
    options_.arch = arch;
    expect(StatusCode::kInvalidArgument, "is not a target; write it as in sm_90a");
  }
  options_ = good;
  options_.opt_level = 4;
  expect(StatusCode::kInvalidArgument, "optimisation levels 0 to 3, not 4");
  options_ = good;
  options_.max_registers = 256;
  expect(StatusCode::kInvalidArgument, "1 to 255 registers, not 256");
  EXPECT_THAT(said_, IsEmpty());
}

TEST_F(FakePtxas, OnlyListedFlagsPass) {
  install(put("good.cubin"));
  for (const char* flag :
       {"--options-file=/etc/passwd", "-optf", "--output-file=/tmp/x", "-o", "--compile-only", "x",
        "", "--fmad", "--fmad=", "--fmad=maybe", "--fmad=true|false", "--fmad=true --compile-only",
        "--register-usage-level=", "--register-usage-level=-1", "--register-usage-level=1234567",
        "--warn-on-spills=", "--warn-on-spills=true", "--split-compile=N"}) {
    options_.extra_flags = {flag};
    expect(StatusCode::kInvalidArgument, absl::StrCat("ptxas flag '", flag, "' is not one of "));
  }
  options_.extra_flags = {"--fmad=false", "--register-usage-level=10", "--Ofast-compile=mid",
                          "--warn-on-spills"};
  EXPECT_TRUE(run().ok());
}

}  // namespace
}  // namespace heddle::codegen
