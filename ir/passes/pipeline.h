// Runs passes by name.
//
//   PipelineReport report;
//   Status status = run_pipeline(kernel, kDefaultPipeline,
//                                      {.verify_each = true, .report = &report});
//   for (const PassRun& run : report.passes) …  // names, times, what changed
//
// The whole pipeline is checked before its first pass runs: an unknown pass, or one whose needs no
// pass before it meets, is refused by name and leaves the kernel as it was.
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
// uses. unroll-loads is for those who know their loops: on an H200 it makes axpby of unaligned
// halves 9 % faster, and sums of rows of 128 halves 15 % slower.
inline constexpr absl::string_view kDefaultPipeline =
    "promote-vars,unroll,fold,reduce-strength,dce,licm,cse,widen-loops,fold,vectorize,dce,"
    "early-loads,contract,order";

// The same without `contract`: every result rounded as the kernel is written.
inline constexpr absl::string_view kExactPipeline =
    "promote-vars,unroll,fold,reduce-strength,dce,licm,cse,widen-loops,fold,vectorize,dce,"
    "early-loads,order";

struct PassRun {
  std::string name;
  double microseconds = 0;
  bool changed = false;
  int ops_before = 0;  // ops in the kernel's text, not counting yields
  int ops_after = 0;
};

struct PipelineReport {
  std::vector<PassRun> passes;  // those that ran, in order
};

struct PipelineOptions {
  const PassRegistry* registry = nullptr;  // the built-in passes where there is none
  // Verifies the kernel before the first pass and after each. A pass that leaves a wrong kernel
  // behind is an Internal error that names it.
  bool verify_each = false;
  // Names of passes with commas between them, or "all": print the kernel before or after them.
  // After a pass that changed nothing, a line says so instead.
  std::string print_before{};
  std::string print_after{};
  // Where printed text goes; to standard error where there is no function.
  std::function<void(absl::string_view)> print{};
  int pass_limit = -1;       // run only so many passes: bisects a pipeline. Negative: all
  std::string stop_after{};  // run no pass after the first of this name
  PipelineReport* report = nullptr;
};

// InvalidArgument where the pipeline or the options cannot work; a pass's own error where one
// fails.
Status run_pipeline(Kernel& kernel, absl::string_view passes, const PipelineOptions& options = {});

// The properties that a kernel has, whatever was run on it.
uint32_t properties_of(const Kernel& kernel);

}  // namespace heddle::ir
