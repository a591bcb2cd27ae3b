#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/passes/pipeline_text.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/operation/bound_call.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/findings.h"
#include "heddle/tools/command/launched_kernels.h"
#include "heddle/tools/command/option_values.h"
#include "heddle/tools/command/output.h"

namespace heddle::tools {
namespace {

using absl::string_view;
using runtime::Compilation;

constexpr string_view kStages[] = {"trace", "constants", "ir", "ptx", "cubin", "sass"};

StatusOr<DumpRequest> request_of(const DumpOptions& options) {
  DumpRequest request;
  request.stats = options.stats;
  request.report = options.report;
  std::vector<std::string> names;
  for (const std::string& list : options.stages) {
    const StatusOr<std::vector<std::string>> more = split_list("--stage", "stage", list);
    if (!more.ok()) return more.status();
    names.insert(names.end(), more->begin(), more->end());
  }
  if (names.empty() && !options.stats && !options.report) names = {"all"};
  for (const std::string& name : names) {
    if (name == "all") {
      request.stages.insert(std::begin(kStages), std::end(kStages));
      continue;
    }
    const auto stage = std::find(std::begin(kStages), std::end(kStages), name);
    if (stage == std::end(kStages)) {
      return InvalidArgumentError(absl::StrCat("unknown stage '", name, "'",
                                               ir::suggest(name, kStages), "; there are ",
                                               absl::StrJoin(kStages, ", "), " and all"));
    }
    request.stages.insert(*stage);
    request.by_name.insert(*stage);
  }
  return request;
}

runtime::Stage stage_for(const DumpRequest& request) {
  if (request.needs_machine_code()) return runtime::Stage::kCubin;
  return request.has("ptx") ? runtime::Stage::kPtx : runtime::Stage::kIr;
}

// Without ptxas the text is there all the same.
void tolerate_missing_ptxas(const DumpRequest& request, Findings& found) {
  const bool asked = request.by_name.count("cubin") + request.by_name.count("sass") > 0;
  if (found.compilation == nullptr || !found.compilation->assembly.cubin.empty() || asked ||
      !IsNotFound(found.failure)) {
    return;
  }
  found.lack = std::exchange(found.failure, OkStatus());
}

// One document for a kernel, a list of them for several.
void print_json(const std::vector<Findings>& all, const ChosenKernel& kernel,
                const DumpRequest& request) {
  nlohmann::ordered_json documents = nlohmann::ordered_json::array();
  for (const Findings& found : all) documents.push_back(to_json(found, kernel, request));
  print(to_string(documents.size() == 1 ? documents[0] : documents));
}

// What became of all kernels that an operation launches, and of the operation itself.
struct Dumped {
  std::vector<Findings> found;
  Status done;
};

// An error where the command's options are wrong.
StatusOr<Dumped> dump_all(const DumpRequest& request, const DumpOptions& options,
                          const ir::Target& target, const runtime::BoundCall& call) {
  runtime::CompileOptions compile;
  compile.stage = stage_for(request);
  const StatusOr<LaunchedKernels> launched =
      compile_launches(call, target, std::move(compile), options.passes);
  if (!launched.ok()) return launched.status();
  Dumped dumped{{}, launched->done};
  for (const LaunchedKernel& kernel : launched->kernels) {
    Findings& found = dumped.found.emplace_back();
    found.name = kernel.name;
    found.statistics.kernel = kernel.traced.name();
    found.statistics.target = std::string(target.name);
    found.compilation = kernel.compilation;
    found.failure = kernel.failure;
    if (kernel.compilation == nullptr) {
      show_trace(kernel.traced, request, found);
    } else {
      show(*kernel.compilation, request, found);
      if (options.passes.time) {
        absl::FPrintF(stderr, "%s", tools::describe(kernel.compilation->report));
      }
    }
    tolerate_missing_ptxas(request, found);
  }
  return dumped;
}

// The pipelines that `--opt` names: one, or with `--diff` two.
StatusOr<std::vector<std::string>> levels_of(const DumpOptions& options) {
  const StatusOr<std::vector<std::string>> numbers = split_list("--opt", "level", options.levels);
  if (!numbers.ok()) return numbers.status();
  std::vector<std::string> names;
  for (const std::string& number : *numbers) {
    const std::string& name = names.emplace_back(absl::StrCat("O", number));
    const auto is_it = [&](const ir::PipelineLevel& level) { return level.name == name; };
    if (absl::c_any_of(ir::pipeline_levels(), is_it)) continue;
    return InvalidArgumentError(absl::StrCat(
        "there is no level '", number, "' of optimisation; --opt takes 0 to ",
        ir::pipeline_levels().size() - 1, options.diff ? ", two with a comma between" : ""));
  }
  const size_t wanted = options.diff ? 2 : 1;
  if (names.size() == wanted) return names;
  return InvalidArgumentError(absl::StrCat(
      "--opt names ", ir::counted(static_cast<int64_t>(names.size()), "level"), ", and ",
      options.diff ? "--diff compares two; write --opt 0,3"
                   : "one at a time is shown; add --diff to compare two"));
}

// The kernels of two pipelines beside each other.
Exit show_difference(const DumpRequest& request, const DumpOptions& options,
                     const ir::Target& target, const runtime::BoundCall& call,
                     const std::vector<std::string>& levels) {
  std::vector<Dumped> dumped;
  for (const std::string& level : levels) {
    DumpOptions one = options;
    one.passes.passes = level;
    StatusOr<Dumped> dump = dump_all(request, one, target, call);
    if (!dump.ok()) return misused(dump.status());
    dumped.push_back(*std::move(dump));
  }
  Exit exit = Exit::kDone;
  for (const Dumped& one : dumped) {
    if (!one.done.ok()) return failed(one.done);
    for (const Findings& found : one.found)
      exit = std::max(exit, report_problems(found, &one == &dumped[0]));
  }
  if (dumped[0].found.empty()) return failed("the operation launches nothing for these sizes");
  // Facts that passes ask for may make more variants of one kernel than of the other.
  for (const Findings& left : dumped[0].found) {
    const auto right = absl::c_find_if(
        dumped[1].found, [&](const Findings& found) { return found.name == left.name; });
    if (right == dumped[1].found.end()) {
      remark(absl::StrCat(levels[1], " makes no ", left.name));
    } else {
      print_beside(levels[0], left, levels[1], *right);
    }
  }
  return exit;
}

}  // namespace

Exit dump_kernel(const DumpOptions& given) {
  StatusOr<DumpRequest> request = request_of(given);
  if (!request.ok()) return misused(request.status());
  request->compares = given.diff;
  DumpOptions options = given;
  std::vector<std::string> levels;
  if (!given.levels.empty()) {
    StatusOr<std::vector<std::string>> named = levels_of(given);
    if (!named.ok()) return misused(named.status());
    levels = *std::move(named);
    if (!given.diff) options.passes.passes = levels[0];
  }
  const StatusOr<ChosenKernel> kernel = choose_kernel(options.choice);
  if (!kernel.ok()) return misused(kernel.status());
  const StatusOr<runtime::BoundCall> call =
      runtime::bind(*kernel->operation, kernel->settings, {}, kernel->sizes);
  if (!call.ok()) return misused(call.status());
  const bool alone = request->stages.size() == 1 && !request->stats && !request->report;
  if (alone && request->has("cubin") && !options.json && options.folder.empty() &&
      stdout_is_terminal()) {
    return misused("machine code is no text: name a folder with -o, or redirect the output");
  }
  const StatusOr<const ir::Target*> target = target_named(options.arch);
  if (!target.ok()) return misused(target.status());

  if (given.diff) return show_difference(*request, options, **target, *call, levels);

  const StatusOr<Dumped> dumped = dump_all(*request, options, **target, *call);
  if (!dumped.ok()) return misused(dumped.status());
  const std::vector<Findings>& all = dumped->found;
  if (options.json) print_json(all, *kernel, *request);
  for (const Findings& found : all) {
    if (options.json) break;
    if (options.folder.empty()) {
      print_parts(found, *request, alone && all.size() == 1);
    } else if (Status s = write_files(found, *request, options.folder); !s.ok()) {
      return misused(s);
    }
  }
  Exit exit = Exit::kDone;
  // A tool that is missing is missing for all of them.
  bool lack_is_said = false;
  for (const Findings& found : all) {
    exit = std::max(exit, report_problems(found, !lack_is_said));
    lack_is_said |= !found.lack.ok();
  }
  if (!dumped->done.ok()) return failed(dumped->done);
  if (!all.empty()) return exit;
  return failed(
      absl::StrCat("kernel '", kernel->operation->name(), "' launches nothing for these sizes"));
}

}  // namespace heddle::tools
