// Runs a tool as what it is: a program in a process of its own, a library in this one.
#pragma once

#include "heddle/codegen/toolchain/subprocess.h"
#include "heddle/codegen/toolchain/tool_path.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

// `command.program` is the tool's file. Errors as of run_command and run_ptx_library.
StatusOr<Finished> run_tool(Tool tool, const Command& command);

}  // namespace heddle::codegen
