#include "heddle/tools/command/pass_options.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "heddle/tools/command/option_values.h"
#include "heddle/tools/command/text_diff.h"

namespace heddle::tools {

ir::PipelineOptions pipeline_options(const PassOptions& options) {
  ir::PipelineOptions pipeline;
  pipeline.verify_each = options.verify;
  pipeline.print_before = options.print_before;
  pipeline.print_after = options.print_after;
  pipeline.pass_limit = options.limit;
  if (options.print_changed) {
    pipeline.on_change = [](const ir::PassRun& run, absl::string_view before,
                            absl::string_view after) {
      absl::FPrintF(stderr, "; %s changed\n%s", run.name, unified_diff(before, after));
    };
  }
  return pipeline;
}

Status check_pipeline(const ir::Kernel& kernel, absl::string_view passes,
                      const PassOptions& options) {
  const std::pair<absl::string_view, absl::string_view> lists[] = {
      {"--passes", passes},
      {"--print-before", options.print_before},
      {"--print-after", options.print_after}};
  for (const auto& [option, list] : lists) {
    if (const auto names = split_list(option, "pass", list); !names.ok()) return names.status();
  }
  ir::PipelineOptions dry = pipeline_options(options);
  dry.verify_each = false;
  dry.pass_limit = 0;
  dry.on_change = nullptr;
  ir::Kernel copy = kernel;
  return ir::run_pipeline(copy, passes, dry);
}

std::string describe(const ir::PipelineReport& report) {
  std::string text;
  double total = 0;
  for (const ir::PassRun& run : report.passes) {
    absl::StrAppendFormat(&text, "%-14s %9.1f us  %d ops", run.name, run.microseconds,
                          run.ops_before);
    if (run.ops_after != run.ops_before) absl::StrAppendFormat(&text, " -> %d", run.ops_after);
    absl::StrAppendFormat(&text, "%s\n",
                          run.skipped   ? ", left out for this target"
                          : run.changed ? ""
                                        : ", unchanged");
    total += run.microseconds;
  }
  absl::StrAppendFormat(&text, "%-14s %9.1f us\n", "all passes", total);
  return text;
}

}  // namespace heddle::tools
