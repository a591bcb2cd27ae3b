#include "heddle/codegen/toolchain/tool_run.h"

#include "heddle/codegen/toolchain/ptx_library.h"

namespace heddle::codegen {

StatusOr<Finished> run_tool(Tool tool, const Command& command) {
  return tool == Tool::kPtxLibrary ? run_ptx_library(command) : run_command(command);
}

}  // namespace heddle::codegen
