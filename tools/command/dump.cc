#include "heddle/runtime/dump.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "heddle/codegen/toolchain/disassemble.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/specialize.h"
#include "heddle/tools/command/advice.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/option_values.h"
#include "heddle/tools/command/output.h"
#include "heddle/tools/command/statistics.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {
namespace {

using absl::string_view;
using runtime::Compilation;
using Json = nlohmann::ordered_json;

constexpr string_view kStages[] = {"trace", "constants", "ir", "ptx", "cubin", "sass"};

// What is to be shown. Machine code that nobody asked for by name may be missing.
struct DumpRequest {
  std::set<string_view> stages;
  std::set<string_view> by_name;
  bool stats = false;

  bool has(string_view stage) const { return stages.count(stage) != 0; }
  bool needs_machine_code() const { return stats || has("cubin") || has("sass"); }
};

absl::StatusOr<DumpRequest> wish_of(const DumpOptions& options) {
  DumpRequest wish;
  wish.stats = options.stats;
  std::vector<std::string> names;
  for (const std::string& list : options.stages) {
    const absl::StatusOr<std::vector<std::string>> more = split_list("--stage", "stage", list);
    if (!more.ok()) return more.status();
    names.insert(names.end(), more->begin(), more->end());
  }
  if (names.empty() && !options.stats) names = {"all"};
  for (const std::string& name : names) {
    if (name == "all") {
      wish.stages.insert(std::begin(kStages), std::end(kStages));
      continue;
    }
    const auto stage = std::find(std::begin(kStages), std::end(kStages), name);
    if (stage == std::end(kStages)) {
      return absl::InvalidArgumentError(absl::StrCat("unknown stage '", name, "'",
                                                     ir::suggest(name, kStages), "; there are ",
                                                     absl::StrJoin(kStages, ", "), " and all"));
    }
    wish.stages.insert(*stage);
    wish.by_name.insert(*stage);
  }
  return wish;
}

// What came of the wish.
struct Findings {
  struct Part {
    string_view stage;
    std::string suffix;  // of a file that holds it
    std::string text;
    bool binary = false;
  };
  std::vector<Part> parts;
  Statistics statistics;
  std::shared_ptr<const Compilation> compilation;
  absl::Status failure;  // what keeps the wish from being fulfilled
  absl::Status lack;     // what else is not there
};

runtime::Stage stage_for(const DumpRequest& wish) {
  if (wish.needs_machine_code()) return runtime::Stage::kCubin;
  return wish.has("ptx") ? runtime::Stage::kPtx : runtime::Stage::kIr;
}

// The furthest stage that can be reached, so that what went right can be looked at where the rest
// went wrong; `failure` then says why.
std::shared_ptr<const Compilation> compile_far(const ir::KernelSource& source,
                                               const ir::Specialization& specialization,
                                               runtime::CompileOptions options,
                                               absl::Status& failure) {
  while (true) {
    std::shared_ptr<const Compilation> partial;
    absl::StatusOr<std::shared_ptr<const Compilation>> done =
        runtime::compile_source(source, specialization, options, &partial);
    if (done.ok()) return *std::move(done);
    failure.Update(done.status());
    if (partial != nullptr || options.stage == runtime::Stage::kIr) return partial;
    options.stage = runtime::Stage::kIr;
    // The passes were watched the first time.
    auto quiet = std::make_shared<ir::PipelineOptions>(*options.pipeline);
    quiet->print_before.clear();
    quiet->print_after.clear();
    options.pipeline = std::move(quiet);
  }
}

void show_trace(const ir::Kernel& traced, const DumpRequest& wish, Findings& found) {
  if (wish.has("trace")) {
    found.parts.push_back({"trace", "trace.ir", ir::print(traced, {.locs = true})});
  }
  if (wish.has("constants")) {
    found.parts.push_back({"constants", "constants", runtime::list_constants(traced)});
  }
  if (wish.stats) found.statistics.trace = count_ops(traced);
}

void show_machine_code(const Compilation& compilation, const DumpRequest& wish, Findings& found) {
  const codegen::Assembly& assembly = compilation.assembly;
  const codegen::EntryReport* const report = assembly.find(compilation.ptx.entry);
  if (report != nullptr && wish.stats) found.statistics.resources = *report;
  if (wish.has("cubin")) {
    found.parts.push_back({"ptxas", "ptxas", describe(assembly, compilation.ptx.entry)});
    found.parts.push_back({"cubin", "cubin", assembly.cubin, /*binary=*/true});
  }
  if (!wish.has("sass") && !wish.stats) return;
  absl::StatusOr<std::string> listing = codegen::disassemble(assembly.cubin);
  if (!listing.ok()) {
    const bool tolerable = absl::IsNotFound(listing.status()) && wish.by_name.count("sass") == 0;
    (tolerable ? found.lack : found.failure).Update(listing.status());
    return;
  }
  if (wish.stats) found.statistics.sass = codegen::count_opcodes(codegen::sass_opcodes(*listing));
  if (wish.has("sass")) found.parts.push_back({"sass", "sass", *std::move(listing)});
}

void show(const Compilation& compilation, const DumpRequest& wish, Findings& found) {
  show_trace(compilation.traced, wish, found);
  if (wish.has("ir")) {
    found.parts.push_back({"ir", "ir", ir::print(compilation.optimized, {.locs = true})});
  }
  if (wish.stats) found.statistics.ir = count_ops(compilation.optimized);
  const std::string& ptx = compilation.ptx.text;
  if (!ptx.empty()) {
    if (wish.has("ptx")) found.parts.push_back({"ptx", "ptx", ptx});
    if (wish.stats) found.statistics.ptx = count_ptx_instructions(ptx);
  }
  if (!compilation.assembly.cubin.empty()) show_machine_code(compilation, wish, found);
}

Json to_json(const Findings& found, const ChosenKernel& kernel, const DumpRequest& wish) {
  Json json = {{"kernel", found.statistics.kernel},
               {"target", found.statistics.target},
               {"settings", kernel.settings}};
  Json stages = Json::object();
  for (const Findings::Part& part : found.parts) {
    stages[std::string(part.stage)] = part.binary ? absl::Base64Escape(part.text) : part.text;
  }
  json["stages"] = std::move(stages);
  if (wish.stats) json["stats"] = tools::to_json(found.statistics);
  if (found.compilation != nullptr) {
    const runtime::StageTimes& times = found.compilation->times;
    json["times_us"] = {{"trace", times.trace},
                        {"passes", times.passes},
                        {"emit", times.emit},
                        {"assemble", times.assemble},
                        {"ptxas", times.ptxas}};
    Json passes = Json::array();
    for (const ir::PassRun& run : found.compilation->report.passes) {
      passes.push_back({{"name", run.name},
                        {"us", run.microseconds},
                        {"changed", run.changed},
                        {"ops_before", run.ops_before},
                        {"ops_after", run.ops_after}});
    }
    json["passes"] = std::move(passes);
  }
  Json problems = Json::array();
  for (const absl::Status& problem : {found.failure, found.lack}) {
    if (!problem.ok()) problems.push_back(advise(problem.message()));
  }
  json["problems"] = std::move(problems);
  return json;
}

std::string to_string(const Json& json) {
  // Text of the user's may be no UTF-8.
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

absl::Status write_files(const Findings& found, const std::string& name, const DumpRequest& wish,
                         const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat(folder, ": cannot be made: ", error.message()));
  }
  std::vector<Findings::Part> files = found.parts;
  if (wish.stats) {
    files.push_back({"stats", "stats.txt", to_text(found.statistics)});
    files.push_back({"stats", "stats.json", to_string(tools::to_json(found.statistics))});
  }
  for (const Findings::Part& file : files) {
    const std::string path =
        (std::filesystem::path(folder) / absl::StrCat(name, ".", file.suffix)).string();
    if (absl::Status s = write_file(path, file.text); !s.ok()) return s;
    absl::PrintF("%s\n", path);
  }
  return absl::OkStatus();
}

// One part stands alone, so that it can be piped on; several get headings.
void print_parts(const Findings& found, const std::string& name, const DumpRequest& wish) {
  const bool alone = wish.stages.size() == 1 && !wish.stats;
  for (const Findings::Part& part : found.parts) {
    if (alone && part.stage != *wish.stages.begin()) continue;
    if (!alone) absl::PrintF("--- %s: %s ---\n", name, part.suffix);
    if (part.binary && !alone) {
      absl::PrintF("%d bytes; -o DIR writes them\n", part.text.size());
    } else {
      print(part.text);
    }
    if (!alone) absl::PrintF("\n");
  }
  if (!wish.stats) return;
  if (!wish.stages.empty()) absl::PrintF("--- %s: stats ---\n", name);
  print(to_text(found.statistics));
}

// Without ptxas the text is there all the same.
void tolerate_missing_ptxas(const DumpRequest& wish, Findings& found) {
  const bool asked = wish.by_name.count("cubin") + wish.by_name.count("sass") > 0;
  if (found.compilation == nullptr || !found.compilation->assembly.cubin.empty() || asked ||
      !absl::IsNotFound(found.failure)) {
    return;
  }
  found.lack = std::exchange(found.failure, absl::OkStatus());
}

Exit report_problems(const Findings& found) {
  if (!found.lack.ok()) {
    remark(absl::StrCat(found.lack.message(), "; the rest is shown without it"));
  }
  return found.failure.ok() ? Exit::kDone : failed(found.failure);
}

}  // namespace

Exit dump_kernel(const DumpOptions& options) {
  const absl::StatusOr<DumpRequest> wish = wish_of(options);
  if (!wish.ok()) return misused(wish.status());
  const absl::StatusOr<ChosenKernel> kernel = choose_kernel(options.choice);
  if (!kernel.ok()) return misused(kernel.status());
  if (kernel->entry->variant == nullptr) {
    return misused(absl::StrCat("kernel '", kernel->entry->name, "' offers nothing to compile"));
  }
  absl::StatusOr<runtime::Variant> variant = kernel->entry->variant(kernel->settings);
  if (!variant.ok()) return misused(variant.status());
  if (variant->source == nullptr) {
    return misused(absl::StrCat("kernel '", kernel->entry->name,
                                "': its variant names no kernel (source is null)"));
  }
  const bool lone_cubin = wish->stages.size() == 1 && wish->has("cubin") && !wish->stats;
  if (lone_cubin && !options.json && options.folder.empty() && stdout_is_terminal()) {
    return misused("machine code is no text: name a folder with -o, or redirect the output");
  }

  runtime::CompileOptions compile = variant->options;
  compile.stage = stage_for(*wish);
  compile.allow_slow_wgmma = true;  // what ptxas notes is shown, not refused
  compile.pipeline = std::make_shared<const ir::PipelineOptions>(pipeline_options(options.passes));
  if (options.passes.passes) compile.passes = *options.passes.passes;
  if (!options.arch.empty()) compile.target = options.arch;
  const absl::StatusOr<ir::Specialization> signature =
      runtime::specialize(*variant->source, variant->signature);
  if (!signature.ok()) return failed(signature.status());
  ir::Specialization specialization = *signature;
  specialization.block = compile.block;
  specialization.cluster = compile.cluster;
  if (!compile.target.empty()) specialization.target = ir::find_target(compile.target);
  if (specialization.target == nullptr) {
    return misused(
        absl::StrCat("unknown target '", compile.target, "'; there are ", ir::target_names()));
  }

  Findings found;
  found.statistics.kernel = variant->source->name();
  found.statistics.target = std::string(specialization.target->name);
  const ir::TraceResult traced = runtime::trace_source(*variant->source, specialization);
  if (traced.diagnostics.empty()) {
    if (absl::Status s = check_pipeline(traced.kernel, compile.passes, options.passes); !s.ok()) {
      return misused(s);
    }
  }
  found.compilation =
      compile_far(*variant->source, specialization, std::move(compile), found.failure);
  if (found.compilation != nullptr) {
    show(*found.compilation, *wish, found);
    if (options.passes.time) {
      absl::FPrintF(stderr, "%s", tools::describe(found.compilation->report));
    }
  } else {
    show_trace(traced.kernel, *wish, found);
  }
  tolerate_missing_ptxas(*wish, found);

  const std::string name = codegen::ptx_identifier(variant->source->name());
  if (options.json) {
    print(to_string(to_json(found, *kernel, *wish)));
  } else if (!options.folder.empty()) {
    if (absl::Status s = write_files(found, name, *wish, options.folder); !s.ok()) {
      return misused(s);
    }
  } else {
    print_parts(found, name, *wish);
  }
  return report_problems(found);
}

}  // namespace heddle::tools
