// The kernels that an operation launches, compiled without a device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/ir/kernel.h"
#include "heddle/ir/status.h"
#include "heddle/ir/target.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/operation/bound_call.h"
#include "heddle/tools/command/pass_options.h"

namespace heddle::tools {

struct LaunchedKernel {
  std::string
      name;  // as files and headings have it: "row_sum", and "row_sum.1" for another variant
  ir::Kernel traced;
  // As far as it came; nullptr where the trace has mistakes.
  std::shared_ptr<const runtime::Compilation> compilation;
  Status failure;  // what kept it from coming further
};

struct LaunchedKernels {
  std::vector<LaunchedKernel> kernels;
  Status done;  // of the operation itself
};

// Compiles what a call of an operation launches on a target, each variant of a kernel once, to `compile.stage` or as far as
// it gets; block, cluster, target and passes are set here. An error where the passes are wrong.
StatusOr<LaunchedKernels> compile_launches(const runtime::BoundCall& call, const ir::Target& target,
                                           runtime::CompileOptions compile,
                                           const PassOptions& passes);

// The target of that name, or the default one for none. kInvalidArgument: there is none.
StatusOr<const ir::Target*> target_named(const std::string& name);

}  // namespace heddle::tools
