// NVIDIA's PTX compiler as a library in this process (nvPTXCompiler, made a shared library by tools/ptx_library.sh). It takes what
// ptxas takes, and makes and says what ptxas does, without the start of a process.
//
// It works in a thread of its own, so that
//   - it has the stack that it may need, however small the caller's is;
//   - it computes and reads constants as a fresh program does, whatever rounding, flushing of denormals or locale the caller has set;
//   - no signal handler of the host program runs in it, but for faults;
//   - the caller does not wait for ever: the thread is left behind at the timeout, and goes when the library returns.
// A crash of it ends the host program: where that may not be, ptxas runs as a process (Assembler::kPtxas).
#pragma once

#include "heddle/codegen/toolchain/subprocess.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

// Does what run_command does where a program is ptxas: command.program is the library's file, which stays loaded; an argument
// --version gives the version (major and minor; it knows no patch) as ptxas prints it. Of `command`, environment, grace and limits
// but for the timeout do not matter. The exit code is nvPTXCompiler's result. Thread-safe.
//   kFailedPrecondition  the file cannot be loaded, is no such library, or was replaced since it was loaded
//   kResourceExhausted   no thread can be started, or memory ran out
StatusOr<Finished> run_ptx_library(const Command& command);

}  // namespace heddle::codegen
