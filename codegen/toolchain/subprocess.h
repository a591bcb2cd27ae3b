// Runs a program without a shell, with everything bounded: time, captured output, file sizes,
// memory.
//
//   Command command;
//   command.program = "/usr/local/cuda/bin/ptxas";
//   command.arguments = {"-o", kOutputFile, kInputFile};
//   command.input = ptx;
//   command.wants_output_file = true;
//   StatusOr<Finished> run = run_command(command);
//   if (run.ok() && run->succeeded()) use(run->output_file);
//
// Input and output files live in memory, so nothing is left behind in a temporary folder, nobody
// else can get at them, and a full or read-only disk does not matter. Safe to call from any number
// of threads; signal handlers and masks of the process stay as they are.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

// Names by which the program opens its in-memory files. The input is its standard input as well,
// and may be read again and sought in.
inline constexpr char kInputFile[] = "/proc/self/fd/0";
inline constexpr char kOutputFile[] = "/proc/self/fd/3";

struct Command {
  std::string program{};                 // absolute path
  std::vector<std::string> arguments{};  // without the program's own name
  absl::string_view input{};             // contents of kInputFile; copied once
  bool wants_output_file = false;        // whether kOutputFile exists
  // The program's whole environment, "NAME=value" each.
  std::vector<std::string> environment = {"LC_ALL=C", "PATH=/usr/bin:/bin"};

  // From start to SIGTERM for the program and all that it started; `grace` later comes SIGKILL.
  std::chrono::milliseconds timeout{60'000};
  std::chrono::milliseconds grace{500};
  size_t max_captured = size_t{1} << 20;        // bytes kept of each stream, half head, half tail
  uint64_t max_file_bytes = uint64_t{1} << 30;  // of any file that it writes
  std::optional<uint64_t> max_memory_bytes{};   // of its address space
};

struct Finished {
  int exit_code = 0;  // meaningful where signal is 0
  int signal = 0;     // what ended it; 0 = it exited by itself
  bool timed_out = false;
  std::string standard_output;
  std::string standard_error;
  std::string output_file;
  std::chrono::microseconds wall_time{0};

  bool succeeded() const { return !timed_out && signal == 0 && exit_code == 0; }
};

// Starts the program and waits for its end. Processes that it left behind in its process group are
// killed then. An error means that there is no result: kInvalidArgument (a relative path, a NUL
// byte in an argument), kNotFound, kPermissionDenied and other codes of the system for a program
// that could not be started, kInternal where the host program reaped the child behind our back.
StatusOr<Finished> run_command(const Command& command);

// How it ended: "was killed by SIGSEGV", "ended with exit code 255", "did
// not end within 60 s".
std::string describe_end(const Finished& finished, std::chrono::milliseconds timeout);

}  // namespace heddle::codegen
