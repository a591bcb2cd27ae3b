// Runs passes by name.
//
//   PipelineReport report;
//   Status status = run_pipeline(kernel, kDefaultPipeline,
//                                      {.verify_each = true, .report = &report});
//   for (const PassRun& run : report.passes) …  // names, times, what changed
//
// pipeline_text.h says how pipelines are written. The whole pipeline is checked before its first pass runs: an
// unknown pass, or one whose needs no pass before it meets, is refused by name and leaves the kernel as it was.
// Passes share what they have found out about the kernel, as far as those between them keep it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/passes/pass.h"
#include "heddle/ir/status.h"

namespace heddle::ir {

// dce comes before what asks about arguments on behalf of an op: for dead ops it should not be
// asked. vectorize comes when equal offsets are one value, and leaves offsets behind that nobody
// uses.
inline constexpr absl::string_view kDefaultPipeline =
    "promote-vars,equal-extents,unroll,fold,if-convert,narrow,reduce-strength,warp-index,dce,licm,"
    "cse,widen-loops,unroll-loads,fold,vectorize,share-addresses,lower-division,dce,sink,early-"
    "loads,"
    "contract,pack-arithmetic";

// The level of that pipeline, with what a program has registered to run in it.
inline constexpr absl::string_view kDefaultLevel = "O3";

// The same without `contract`: every result rounded as the kernel is written.
inline constexpr absl::string_view kExactPipeline =
    "promote-vars,equal-extents,unroll,fold,if-convert,narrow,reduce-strength,warp-index,dce,licm,"
    "cse,widen-loops,unroll-loads,fold,vectorize,share-addresses,lower-division,dce,sink,early-"
    "loads,"
    "pack-arithmetic";

struct PassRun {
  std::string name;
  double microseconds = 0;
  bool changed = false;
  bool skipped = false;  // it is for other targets
  int ops_before = 0;    // ops in the kernel's text, not counting yields
  int ops_after = 0;
};

struct PipelineReport {
  std::vector<PassRun> passes;  // those that ran, in order
};

struct PipelineOptions {
  const PassRegistry* registry = nullptr;  // the program's where there is none: process_passes()
  // Verifies the kernel before the first pass and after each: that it is legal, that the properties which passes
  // declare hold, that a pass which says that it changed nothing did not, and that the analyses
  // which it keeps still agree with the kernel. Where one does not, an Internal error names the pass.
  bool verify_each = false;
  // Analyses of the kernel, to begin with and to be used behind the pipeline.
  Analyses* analyses = nullptr;
  // Names of passes with commas between them, or "all": print the kernel before or after them.
  // After a pass that changed nothing, a line says so instead.
  std::string print_before{};
  std::string print_after{};
  // Where printed text goes; to standard error where there is no function.
  std::function<void(absl::string_view)> print{};
  // Is told of each pass that changed the kernel, with the text of before and after (PrintOptions::by_id).
  std::function<void(const PassRun&, absl::string_view before, absl::string_view after)>
      on_change{};
  int pass_limit = -1;       // run only so many passes: bisects a pipeline. Negative: all
  std::string stop_after{};  // run no pass after the first of this name
  PipelineReport* report = nullptr;
};

// InvalidArgument where the pipeline or the options cannot work; a pass's own error where one
// fails.
Status run_pipeline(Kernel& kernel, absl::string_view passes, const PipelineOptions& options = {});

}  // namespace heddle::ir
