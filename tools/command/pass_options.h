// How a command runs passes and watches them.
#pragma once

#include <optional>
#include <string>

#include "heddle/ir/kernel.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/status.h"

namespace heddle::tools {

// As given on the command line.
struct PassOptions {
  std::optional<std::string> passes;  // names with commas; nullopt: the usual ones
  std::string print_before;           // passes, or "all"
  std::string print_after;
  int limit = -1;  // so many passes run; -1: all
  bool time = false;
  bool verify = false;
  bool print_changed = false;  // what each pass changes, as a diff
};

ir::PipelineOptions pipeline_options(const PassOptions& options);

// Whether the pipeline and the options could work on this kernel; runs nothing. kInvalidArgument
// for an empty name in a list too.
Status check_pipeline(const ir::Kernel& kernel, absl::string_view passes,
                      const PassOptions& options);

// What each pass did and how long it took, a line each.
std::string describe(const ir::PipelineReport& report);

}  // namespace heddle::tools
