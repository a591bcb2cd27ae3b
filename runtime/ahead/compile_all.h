// Compiles many kernels at once, on all cores: before a program serves its first request, or as a step of an installation, after
// which other processes find the machine code in the user's cache.
//
//   const std::vector<CompileJob> jobs = {{&row_sum.source(), signature}, {&scale.source(), signature, {.target = "sm_80"}}};
//   const auto kernels = compile_all(jobs, {.on_done = [](const CompileProgress& p) {
//     std::printf("%d of %d: %s\n", p.done, p.total, p.job.c_str());
//   }});
//   for (const StatusOr<CompiledKernel>& kernel : kernels) ...           // in the order of the jobs
//
//   compile_all_calls(device, calls)     // what operations of the library launch: their launches then find it
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/argument.h"
#include "heddle/runtime/compile_options.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/launch.h"
#include "heddle/runtime/operation/compile_call.h"
#include "heddle/runtime/signature.h"

namespace heddle::runtime {

// A kernel, and what it is compiled for. The kernel must live until compile_all() returns.
struct CompileJob {
  const ir::KernelSource* source = nullptr;  // as kernel.source() gives it
  Signature signature = {};                  // what is known of its arguments
  CompileOptions options = {};               // how it is compiled
};

// A call of an operation whose launches are compiled; what it names must live until compile_all_calls() returns.
struct CompileCallJob {
  const HostFunction* function = nullptr;  // of the operation
  Arguments arguments = {};                // its memory is not touched
  std::string name = {};                   // for the progress
};

// What is said when a job has ended.
struct CompileProgress {
  int done = 0;        // jobs that have ended, with this one
  int total = 0;       // all of them
  std::string job;     // "kernel 'row_sum' (row_sum.cc:14)", or a call's name
  Status status;       // of this one
  double seconds = 0;  // since the first began
};

// How many are compiled at once, and who is told.
struct CompileAllOptions {
  int threads = 0;  // that compile, the caller's among them; 0: one for each core
  // Called when a job has ended, from the thread that it ran in; never twice at once.
  std::function<void(const CompileProgress&)> on_done = {};
};

// Each kernel compiled as compile() does it: a result for each job, in their order. A job that fails stops no other; what a kernel's
// lambda or on_done throws stops all, and is thrown here.
std::vector<StatusOr<CompiledKernel>> compile_all(absl::Span<const CompileJob> jobs,
                                                  const CompileAllOptions& options = {});

// Each call's kernels compiled and loaded as compile_call() does it.
std::vector<StatusOr<CompiledCall>> compile_all_calls(const Device& device,
                                                      absl::Span<const CompileCallJob> jobs,
                                                      const CompileAllOptions& options = {});

}  // namespace heddle::runtime

namespace heddle {
using runtime::compile_all;
using runtime::CompileAllOptions;
using runtime::CompileJob;
using runtime::CompileProgress;
}  // namespace heddle
