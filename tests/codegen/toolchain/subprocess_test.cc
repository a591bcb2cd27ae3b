#include "heddle/codegen/toolchain/subprocess.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "codegen/toolchain/tool_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

Command shell(const std::string& script) {
  Command command;
  command.program = "/bin/sh";
  command.arguments = {"-c", script};
  return command;
}

Finished must_run(const Command& command) {
  StatusOr<Finished> finished = run_command(command);
  EXPECT_TRUE(finished.ok()) << finished.status();
  return finished.ok() ? *std::move(finished) : Finished();
}

milliseconds elapsed_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
}

// Gone, or a zombie that only its new parent has still to collect.
bool is_dead(const std::string& pid_file) {
  std::ifstream file(pid_file);
  int pid = 0;
  if (!(file >> pid)) return false;
  for (int tries = 0; tries < 200; ++tries) {
    std::ifstream stat(absl::StrCat("/proc/", pid, "/stat"));
    std::string number, name, state;
    if (!(stat >> number >> name >> state) || state == "Z") return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

TEST(Subprocess, CapturesBothStreamsAndTheExitCode) {
  const Finished finished = must_run(shell("echo out; echo err >&2; exit 7"));
  EXPECT_EQ(finished.standard_output, "out\n");
  EXPECT_EQ(finished.standard_error, "err\n");
  EXPECT_EQ(finished.exit_code, 7);
  EXPECT_EQ(finished.signal, 0);
  EXPECT_FALSE(finished.succeeded());
  EXPECT_GT(finished.wall_time.count(), 0);
  EXPECT_EQ(describe_end(finished, milliseconds(1000)), "ended with exit code 7");
}

TEST(Subprocess, InputIsStandardInputAndAFileThatCanBeReadTwice) {
  Command command = shell(absl::StrCat("cat; cat ", kInputFile));
  command.input = "some text\n";
  EXPECT_EQ(must_run(command).standard_output, "some text\nsome text\n");
}

TEST(Subprocess, PassesLargeInputsThatNobodyReads) {
  const std::string large(20 << 20, 'x');
  Command command = shell("exit 0");
  command.input = large;
  EXPECT_TRUE(must_run(command).succeeded());
  command = shell("wc -c");
  command.input = large;
  EXPECT_THAT(must_run(command).standard_output, HasSubstr("20971520"));
}

TEST(Subprocess, ReturnsTheOutputFile) {
  Command command = shell(absl::StrCat("printf 'a\\0b' > ", kOutputFile, "; echo said"));
  command.wants_output_file = true;
  const Finished finished = must_run(command);
  EXPECT_EQ(finished.output_file, std::string("a\0b", 3));
  EXPECT_EQ(finished.standard_output, "said\n");
}

TEST(Subprocess, ArgumentsAreNotReadByAShell) {
  Command command;
  command.program = "/usr/bin/printf";
  command.arguments = {"%s|", "$HOME", "*", "a b", "", "`id`", "-x"};
  EXPECT_EQ(must_run(command).standard_output, "$HOME|*|a b||`id`|-x|");
}

TEST(Subprocess, TheEnvironmentIsTheGivenOneAlone) {
  setenv("HEDDLE_TEST_SECRET", "1", 1);
  Command command;
  command.program = "/usr/bin/env";
  EXPECT_EQ(must_run(command).standard_output, "LC_ALL=C\nPATH=/usr/bin:/bin\n");
  unsetenv("HEDDLE_TEST_SECRET");
}

TEST(Subprocess, TheChildGetsNoOtherDescriptors) {
  const int leaked = open("/dev/null", O_RDONLY);  // as careless libraries do
  Command command;
  command.program = "/bin/ls";
  command.arguments = {"/proc/self/fd"};
  const Finished finished = must_run(command);
  close(leaked);
  // 3 is the folder that ls itself reads.
  EXPECT_EQ(finished.standard_output, "0\n1\n2\n3\n");
}

TEST(Subprocess, WorksWhereStandardInputIsClosed) {
  const int kept = dup(0);
  close(0);
  Command command = shell(absl::StrCat("cat > ", kOutputFile, "; echo said"));
  command.input = "in";
  command.wants_output_file = true;
  const Finished finished = must_run(command);
  dup2(kept, 0);
  close(kept);
  EXPECT_EQ(finished.output_file, "in");
  EXPECT_EQ(finished.standard_output, "said\n");
}

TEST(Subprocess, LeavesNoDescriptorBehind) {
  const auto count = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  must_run(shell("exit 0"));
  const auto before = count();
  must_run(shell("exit 0"));
  Command missing;
  missing.program = "/nonexistent/program";
  EXPECT_FALSE(run_command(missing).ok());
  EXPECT_EQ(count(), before);
}

TEST(Subprocess, SaysWhyAProgramCannotBeStarted) {
  TempDir temp;
  Command command;
  command.program = temp.file("missing");
  EXPECT_EQ(run_command(command).status().code(), StatusCode::kNotFound);
  command.program = write_file(temp.file("plain"), "text", 0600);
  EXPECT_EQ(run_command(command).status().code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(run_command(command).status().message()),
              HasSubstr(absl::StrCat("cannot start ", command.program)));
  command.program = "ls";
  EXPECT_EQ(run_command(command).status().message(),
            "a program is run by its absolute path, not as 'ls'");
  command = shell(std::string("exit\0", 5));
  EXPECT_EQ(run_command(command).status().code(), StatusCode::kInvalidArgument);
}

TEST(Subprocess, ReportsSignals) {
  const Finished finished = must_run(shell("kill -SEGV $$"));
  EXPECT_EQ(finished.signal, SIGSEGV);
  EXPECT_EQ(describe_end(finished, milliseconds(0)), "was killed by SIGSEGV");
}

TEST(Subprocess, StopsAHangingProgramAtItsTimeout) {
  Command command = shell("echo before; sleep 100");
  command.timeout = milliseconds(300);
  const auto start = std::chrono::steady_clock::now();
  const Finished finished = must_run(command);
  EXPECT_TRUE(finished.timed_out);
  EXPECT_FALSE(finished.succeeded());
  EXPECT_EQ(finished.standard_output, "before\n");
  EXPECT_GE(elapsed_since(start), milliseconds(300));
  EXPECT_LT(elapsed_since(start), milliseconds(5000));
  EXPECT_EQ(describe_end(finished, command.timeout), "did not end within 0.3 s");
}

TEST(Subprocess, KillsWhatIgnoresTheFirstSignal) {
  Command command = shell("trap '' TERM; while :; do sleep 0.02; done");
  command.timeout = milliseconds(300);
  command.grace = milliseconds(100);
  const Finished finished = must_run(command);
  EXPECT_TRUE(finished.timed_out);
  EXPECT_EQ(finished.signal, SIGKILL);
}

TEST(Subprocess, AProgramMayEndByItselfWithinTheGrace) {
  Command command = shell("trap 'echo cleaned; exit 3' TERM; while :; do sleep 0.02; done");
  command.timeout = milliseconds(300);
  const Finished finished = must_run(command);
  EXPECT_TRUE(finished.timed_out);
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_EQ(finished.standard_output, "cleaned\n");
}

TEST(Subprocess, KillsTheWholeGroupAtTheTimeout) {
  TempDir temp;
  Command command = shell(absl::StrCat("sleep 100 & echo $! > ", temp.file("pid"), "; wait"));
  command.timeout = milliseconds(300);
  EXPECT_TRUE(must_run(command).timed_out);
  EXPECT_TRUE(is_dead(temp.file("pid")));
}

TEST(Subprocess, DoesNotWaitForWhatTheProgramLeftBehind) {
  TempDir temp;
  const auto start = std::chrono::steady_clock::now();
  // The sleeper holds both pipes open.
  const Finished finished =
      must_run(shell(absl::StrCat("sleep 100 & echo $! > ", temp.file("pid"), "; echo done")));
  EXPECT_LT(elapsed_since(start), milliseconds(5000));
  EXPECT_TRUE(finished.succeeded());
  EXPECT_EQ(finished.standard_output, "done\n");
  EXPECT_TRUE(is_dead(temp.file("pid")));
}

TEST(Subprocess, WaitsForAProgramThatClosesItsStreams) {
  Command command = shell("exec >&- 2>&-; sleep 0.1; exit 5");
  EXPECT_EQ(must_run(command).exit_code, 5);
  command = shell("exec >&- 2>&-; sleep 100");
  command.timeout = milliseconds(100);
  EXPECT_TRUE(must_run(command).timed_out);
}

TEST(Subprocess, KeepsHeadAndTailOfALongStream) {
  Command command = shell("seq 1 200000 >&2");
  command.max_captured = 1000;
  const Finished finished = must_run(command);
  EXPECT_LE(finished.standard_error.size(), 1100);
  EXPECT_TRUE(absl::StartsWith(finished.standard_error, "1\n2\n3\n"));
  EXPECT_TRUE(absl::EndsWith(finished.standard_error, "199999\n200000\n"));
  // Both sides of the gap are whole lines, and its size is right.
  const std::vector<std::string> lines = absl::StrSplit(finished.standard_error, '\n');
  size_t kept = 0, left_out = 0;
  int previous = 0;
  bool gap = false;
  for (const std::string& line : lines) {
    int number = 0;
    if (absl::SimpleAtoi(line, &number)) {
      kept += line.size() + 1;
      if (!gap) {
        EXPECT_EQ(number, previous + 1);
      }
      previous = number;
      gap = false;
    } else if (absl::StartsWith(line, "[")) {
      gap = true;
      ASSERT_TRUE(absl::SimpleAtoi(line.substr(1, line.find(' ') - 1), &left_out)) << line;
    }
  }
  EXPECT_EQ(kept + left_out, 1288895);  // what seq prints
}

TEST(Subprocess, KeepsAllOfAStreamThatFits) {
  Command command = shell("seq 1 100");
  command.max_captured = 292;  // exactly what seq prints
  EXPECT_EQ(must_run(command).standard_output.size(), 292);
  EXPECT_FALSE(absl::StrContains(must_run(command).standard_output, "left out"));
  command.max_captured = 290;
  EXPECT_TRUE(absl::StrContains(must_run(command).standard_output, "left out"));
}

TEST(Subprocess, SurvivesAFloodOnBothStreams) {
  const Finished finished =
      must_run(shell("head -c 100000000 /dev/zero >&2 & head -c 20000000 /dev/zero; wait"));
  EXPECT_TRUE(finished.succeeded());
  EXPECT_LT(finished.standard_error.size(), (1 << 20) + 100);
  EXPECT_LT(finished.standard_output.size(), (1 << 20) + 100);
}

TEST(Subprocess, AFloodDoesNotOutrunTheTimeout) {
  Command command = shell("exec cat /dev/zero");
  command.timeout = milliseconds(150);
  EXPECT_TRUE(must_run(command).timed_out);
}

TEST(Subprocess, LimitsFilesAndCoreDumps) {
  TempDir temp;
  Command command = shell(
      absl::StrCat("sleep 0.1; ulimit -c; exec head -c 3000000 /dev/zero > ", temp.file("large")));
  command.max_file_bytes = 1 << 20;
  const Finished finished = must_run(command);
  EXPECT_EQ(finished.standard_output, "0\n");
  EXPECT_FALSE(finished.succeeded());
  EXPECT_EQ(std::filesystem::file_size(temp.file("large")), 1 << 20);
}

TEST(Subprocess, LimitsMemoryWhereAsked) {
  Command command = shell("sleep 0.1; ulimit -v");
  EXPECT_EQ(must_run(command).standard_output, "unlimited\n");
  command.max_memory_bytes = uint64_t{256} << 20;
  EXPECT_EQ(must_run(command).standard_output, "262144\n");
}

TEST(Subprocess, RunsInManyThreadsAtOnce) {
  std::vector<std::thread> threads;
  std::vector<int> right(8, 0);
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([t, &right] {
      for (int i = 0; i < 10; ++i) {
        const std::string text = absl::StrCat(t, "/", i);
        Command command = shell(absl::StrCat("cat > ", kOutputFile));
        command.input = text;
        command.wants_output_file = true;
        StatusOr<Finished> finished = run_command(command);
        right[t] += finished.ok() && finished->output_file == text ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(right, testing::Each(10));
}

TEST(Subprocess, SaysWhenTheHostReapsItsChildren) {
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGCHLD, &ignore, &before);
  const Status status = run_command(shell("exit 3")).status();
  sigaction(SIGCHLD, &before, nullptr);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()), HasSubstr("the host program ignores SIGCHLD"));
}

TEST(Subprocess, ChildrenStartWithDefaultSignals) {
  struct sigaction ignore = {}, before = {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGTERM, &ignore, &before);
  sigset_t blocked, old;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &old);
  const Finished finished = must_run(shell("kill -TERM $$; sleep 1"));
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  sigaction(SIGTERM, &before, nullptr);
  EXPECT_EQ(finished.signal, SIGTERM);
}

}  // namespace
}  // namespace heddle::codegen
