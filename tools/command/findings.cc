#include "heddle/tools/command/findings.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/codegen/toolchain/disassemble.h"
#include "heddle/ir/text/printer.h"
#include "heddle/runtime/dump.h"
#include "heddle/tools/command/advice.h"
#include "heddle/tools/command/output.h"
#include "heddle/tools/command/text_diff.h"

namespace heddle::tools {

using runtime::Compilation;
using Json = nlohmann::ordered_json;

void show_trace(const ir::Kernel& traced, const DumpRequest& request, Findings& found) {
  if (request.has("trace")) {
    found.parts.push_back({"trace", "trace.ir", ir::print(traced, {.locs = true})});
  }
  if (request.has("constants")) {
    found.parts.push_back({"constants", "constants", runtime::list_constants(traced)});
  }
  if (request.stats) found.statistics.trace = count_ops(traced);
}

namespace {

void show_machine_code(const Compilation& compilation, const DumpRequest& request,
                       Findings& found) {
  const codegen::Assembly& assembly = compilation.assembly;
  const codegen::EntryReport* const report = assembly.find(compilation.ptx.entry);
  if (report != nullptr && request.stats) found.statistics.resources = *report;
  if (request.has("cubin")) {
    found.parts.push_back({"ptxas", "ptxas", describe(assembly, compilation.ptx.entry)});
    found.parts.push_back({"cubin", "cubin", assembly.cubin, /*binary=*/true});
  }
  if (!request.has("sass") && !request.stats) return;
  StatusOr<std::string> listing = codegen::disassemble(assembly.cubin);
  if (!listing.ok()) {
    const bool tolerable = IsNotFound(listing.status()) && request.by_name.count("sass") == 0;
    (tolerable ? found.lack : found.failure).Update(listing.status());
    return;
  }
  if (request.stats)
    found.statistics.sass = codegen::count_opcodes(codegen::sass_opcodes(*listing));
  if (request.has("sass")) found.parts.push_back({"sass", "sass", *std::move(listing)});
}

}  // namespace

void show(const Compilation& compilation, const DumpRequest& request, Findings& found) {
  show_trace(compilation.traced, request, found);
  if (request.report) found.report = runtime::kernel_report(compilation);
  if (request.stats) found.statistics.live = pressures_of(compilation.optimized);
  if (request.has("ir")) {
    found.parts.push_back(
        {"ir", "ir",
         ir::print(compilation.optimized, {.locs = !request.compares, .by_id = request.compares})});
  }
  if (request.stats) found.statistics.ir = count_ops(compilation.optimized);
  const std::string& ptx = compilation.ptx.text;
  if (!ptx.empty()) {
    if (request.has("ptx")) found.parts.push_back({"ptx", "ptx", ptx});
    if (request.stats) found.statistics.ptx = count_ptx_instructions(ptx);
  }
  if (!compilation.assembly.cubin.empty()) show_machine_code(compilation, request, found);
}

Json to_json(const Findings& found, const ChosenKernel& kernel, const DumpRequest& request) {
  Json json = {{"kernel", found.statistics.kernel},
               {"target", found.statistics.target},
               {"settings", kernel.settings}};
  Json stages = Json::object();
  for (const Findings::Part& part : found.parts) {
    stages[std::string(part.stage)] = part.binary ? absl::Base64Escape(part.text) : part.text;
  }
  json["stages"] = std::move(stages);
  if (request.stats) json["stats"] = tools::to_json(found.statistics);
  if (found.report) json["report"] = Json::parse(runtime::to_json(*found.report));
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
  for (const Status& problem : {found.failure, found.lack}) {
    if (!problem.ok()) problems.push_back(advise(problem.message()));
  }
  json["problems"] = std::move(problems);
  return json;
}

std::string to_string(const Json& json) {
  // The user's text may be invalid UTF-8.
  return absl::StrCat(json.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

Status write_files(const Findings& found, const DumpRequest& request, const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return InvalidArgumentError(absl::StrCat(folder, ": cannot be made: ", error.message()));
  }
  std::vector<Findings::Part> files = found.parts;
  if (request.stats) {
    files.push_back({"stats", "stats.txt", to_text(found.statistics)});
    files.push_back({"stats", "stats.json", to_string(tools::to_json(found.statistics))});
  }
  if (found.report) {
    files.push_back({"report", "report.txt", runtime::to_text(*found.report)});
    files.push_back({"report", "report.json", runtime::to_json(*found.report) + "\n"});
  }
  for (const Findings::Part& file : files) {
    const std::string path =
        (std::filesystem::path(folder) / absl::StrCat(found.name, ".", file.suffix)).string();
    if (Status s = write_file(path, file.text); !s.ok()) return s;
    absl::PrintF("%s\n", path);
  }
  return OkStatus();
}

void print_parts(const Findings& found, const DumpRequest& request, bool alone) {
  for (const Findings::Part& part : found.parts) {
    if (alone && part.stage != *request.stages.begin()) continue;
    if (!alone) absl::PrintF("--- %s: %s ---\n", found.name, part.suffix);
    if (part.binary && !alone) {
      absl::PrintF("%d bytes; -o DIR writes them\n", part.text.size());
    } else {
      print(part.text);
    }
    if (!alone) absl::PrintF("\n");
  }
  if (found.report) {
    if (!request.stages.empty()) absl::PrintF("--- %s: report ---\n", found.name);
    print(runtime::to_text(*found.report));
    if (request.stats) absl::PrintF("\n");
  }
  if (!request.stats) return;
  if (!request.stages.empty()) absl::PrintF("--- %s: stats ---\n", found.name);
  print(to_text(found.statistics));
}

void print_beside(absl::string_view left_title, const Findings& left, absl::string_view right_title,
                  const Findings& right) {
  constexpr int kColumn = 78;
  for (const Findings::Part& part : left.parts) {
    const auto other = absl::c_find_if(
        right.parts, [&](const Findings::Part& p) { return p.suffix == part.suffix; });
    if (part.binary || other == right.parts.end()) continue;
    absl::PrintF("--- %s: %s, %s and %s ---\n", left.name, part.suffix, left_title, right_title);
    print(side_by_side(part.text, other->text, kColumn));
    absl::PrintF("\n");
  }
}

Exit report_problems(const Findings& found, bool with_lack) {
  if (with_lack && !found.lack.ok()) {
    remark(absl::StrCat(found.lack.message(), "; the rest is shown without it"));
  }
  return found.failure.ok() ? Exit::kDone : failed(found.failure);
}

}  // namespace heddle::tools
