#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "heddle/codegen/cache/disk_cache.h"
#include "heddle/codegen/toolchain/tool_path.h"
#include "heddle/ir/target.h"
#include "heddle/runtime/compile_option_text.h"
#include "heddle/runtime/cuda/driver.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/observe/ranges.h"
#include "heddle/tools/command/advice.h"
#include "heddle/tools/command/commands.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {
namespace {

using Json = nlohmann::ordered_json;
using codegen::Tool;

// One thing that is there or missing: a line of text, an entry of the JSON.
struct Finding {
  std::string name;
  std::string text;
  Json json;
};

std::string one_line(absl::string_view text) { return absl::StrReplaceAll(text, {{"\n", " "}}); }

// `why` may say itself what works all the same.
Finding missing(absl::string_view name, const Status& why, absl::string_view what_works = {}) {
  const std::string message =
      advise(absl::StrCat(one_line(why.message()), what_works.empty() ? "" : "; ", what_works));
  return {std::string(name), absl::StrCat("missing: ", message), {{"missing", message}}};
}

std::string compiler() {
#if defined(__clang__)
  return absl::StrCat("clang++ ", __clang_major__, ".", __clang_minor__, ".", __clang_patchlevel__);
#else
  return absl::StrCat("g++ ", __GNUC__, ".", __GNUC_MINOR__, ".", __GNUC_PATCHLEVEL__);
#endif
}

Finding build() {
#ifdef __OPTIMIZE__
  const char* const how = "optimised";
#else
  const char* const how = "not optimised";
#endif
  return {"compiler", absl::StrCat(compiler(), ", ", how), {{"name", compiler()}, {"build", how}}};
}

Finding tool_finding(const std::string& name, Tool tool, absl::string_view without) {
  const StatusOr<codegen::ToolLocation> found = codegen::find_tool(tool);
  if (!found.ok()) return missing(name, found.status(), without);
  Json json = {{"path", found->path}, {"origin", found->origin}};
  std::string text = found->path;
  // Only the assembler's version is read anyhow.
  if (found->version.major > 0) {
    json["version"] = found->version.to_string();
    absl::StrAppend(&text, ", ", found->version.to_string());
  }
  absl::StrAppend(&text, " (from ", found->origin, ")");
  return {name, text, json};
}

Finding cuda_header() {
#ifdef HEDDLE_HAVE_CUDA_H
  return {"cuda.h", "there when this program was built", {{"built_with", true}}};
#else
  return {"cuda.h",
          "missing when this program was built, which leaves cuda devices out: run "
          "tools/setup.sh and build again; the interpreter works",
          {{"built_with", false}}};
#endif
}

Finding nvtx() {
  if (runtime::has_profiler_ranges()) {
    return {"nvtx",
            "there when this program was built: HEDDLE_NVTX=on shows ranges in profilers",
            {{"built_with", true}}};
  }
  return {"nvtx",
          "missing when this program was built, which leaves ranges for profilers out: run "
          "tools/setup.sh and build again",
          {{"built_with", false}}};
}

Finding driver() {
#ifdef HEDDLE_HAVE_CUDA_H
  const StatusOr<const runtime::cuda::Driver*> driver = runtime::cuda::Driver::get();
  if (!driver.ok()) return missing("driver", driver.status(), "a GPU needs NVIDIA's driver");
  const std::string version = runtime::cuda::version_text((*driver)->version());
  return {"driver",
          absl::StrCat((*driver)->library(), ", CUDA ", version),
          {{"library", (*driver)->library()}, {"cuda", version}}};
#else
  return {"driver", "not looked for: cuda devices were left out of this build", nullptr};
#endif
}

// "cuda:0" and on; an entry each.
std::vector<Finding> devices() {
  std::vector<Finding> findings;
  const StatusOr<int> count = Device::cuda_device_count();
  for (int i = 0; i < count.value_or(0); ++i) {
    const std::string name = absl::StrCat("cuda:", i);
    const StatusOr<Device> device = Device::open(name);
    if (!device.ok()) {
      findings.push_back(missing(name, device.status()));
      continue;
    }
    const DeviceInfo& info = device->info();
    const ir::Target* const target = ir::target_for_device(info.compute_major, info.compute_minor);
    const std::string arch = target != nullptr ? std::string(target->name) : "no known target";
    findings.push_back(
        {name,
         absl::StrFormat("%s, %s, %d SMs, %.1f GiB", info.name, arch, info.sm_count,
                         static_cast<double>(info.total_memory) / (1 << 30)),
         {{"name", info.name},
          {"target", arch},
          {"compute_capability", absl::StrCat(info.compute_major, ".", info.compute_minor)},
          {"sm_count", info.sm_count},
          {"memory_bytes", info.total_memory}}});
  }
  findings.push_back(
      {"interp", "the interpreter, which checks every access; needs nothing", {{"works", true}}});
  return findings;
}

Finding cache() {
  const std::shared_ptr<codegen::DiskCache> kept = codegen::DiskCache::of_user();
  if (kept == nullptr) {
    return {"cache",
            "compiled kernels are kept in memory while a program runs; nothing on disk",
            {{"works", false}, {"folder", nullptr}}};
  }
  const codegen::DiskCache::Usage usage = kept->usage().value_or(codegen::DiskCache::Usage{});
  return {"cache",
          absl::StrFormat("%s, %d compiled kernels and versions of tools, %.1f MiB", kept->path(),
                          usage.entries, static_cast<double>(usage.bytes) / (1 << 20)),
          {{"works", true},
           {"folder", kept->path()},
           {"entries", usage.entries},
           {"bytes", usage.bytes}}};
}

// What compiling does where a program does not say otherwise.
Finding defaults() {
  const StatusOr<CompileOptions> set = runtime::with_environment({});
  if (!set.ok()) {
    const std::string message(set.status().message());
    return {"options", absl::StrCat("wrong: ", message), {{"wrong", message}}};
  }
  Json json = Json::object();
  std::string text = "of HEDDLE_OPTIONS, and their values:";
  for (const runtime::CompileOptionText& option : runtime::compile_option_texts()) {
    const std::string value = option.print(*set);
    json[std::string(option.name)] = {
        {"value", value}, {"values", option.values}, {"help", option.help}};
    absl::StrAppendFormat(&text, "\n  --%-44s %-8s %s",
                          absl::StrCat(option.name, "=", option.values), value, option.help);
  }
  return {"options", text, json};
}

// The environment variables that Heddle reads.
Finding variables() {
  Json json = Json::object();
  std::string text;
  for (const char* name : {"HEDDLE_OPTIONS",
                           "HEDDLE_PTXAS",
                           "HEDDLE_PTX_LIBRARY",
                           "HEDDLE_NVDISASM",
                           "HEDDLE_CUOBJDUMP",
                           "HEDDLE_CUDA_LIBRARY",
                           "CUDA_HOME",
                           "CUDA_PATH",
                           "CUDA_VISIBLE_DEVICES",
                           "CUDA_LAUNCH_BLOCKING",
                           "HEDDLE_LOG",
                           "HEDDLE_NVTX",
                           "HEDDLE_DUMP",
                           "HEDDLE_DUMP_DIR",
                           "HEDDLE_PASSES",
                           "HEDDLE_INTERP_COMPLETION",
                           "HEDDLE_LAUNCH_BLOCKING",
                           "HEDDLE_REPORT_DIR",
                           "HEDDLE_RECORD",
                           "HEDDLE_TUNE",
                           "HEDDLE_CACHE",
                           "HEDDLE_CACHE_DIR",
                           "HEDDLE_CACHE_MIB"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    json[name] = value;
    absl::StrAppend(&text, text.empty() ? "" : " ", name, "=", value);
  }
  return {"variables", text.empty() ? "none that Heddle reads are set" : text, json};
}

}  // namespace

Exit show_environment(const EnvOptions& options) {
  std::vector<Finding> findings = {
      {"heddle", HEDDLE_VERSION, {{"version", HEDDLE_VERSION}}},
      build(),
      tool_finding("ptxas", Tool::kPtxas, "tracing, IR, PTX and the interpreter work without it"),
      tool_finding("ptx-library", Tool::kPtxLibrary, "ptxas assembles in a process of its own"),
      tool_finding("nvdisasm", Tool::kNvdisasm, "everything but showing SASS works without it"),
      tool_finding("cuobjdump", Tool::kCuobjdump, "nvdisasm does the same and more"),
      cuda_header(),
      nvtx(),
      driver(),
      {"targets", ir::target_names(), ir::target_names()},
  };
  for (Finding& device : devices()) findings.push_back(std::move(device));
  findings.push_back(cache());
  findings.push_back(defaults());
  findings.push_back(variables());
  if (options.json) {
    Json all = Json::object();
    for (Finding& finding : findings) all[finding.name] = std::move(finding.json);
    absl::PrintF("%s\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
    return Exit::kDone;
  }
  for (const Finding& finding : findings) absl::PrintF("%-12s %s\n", finding.name, finding.text);
  return Exit::kDone;
}

}  // namespace heddle::tools
