#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "heddle/codegen/toolchain/subprocess.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/ahead/export.h"
#include "heddle/runtime/operation/dry_run.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/launched_kernels.h"
#include "heddle/tools/command/option_values.h"
#include "heddle/tools/command/output.h"
#include "heddle/tools/command/shape.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

constexpr auto kCompilerTimeout = std::chrono::minutes(5);

// The named dimensions of a call, in the order of --shape: of its outputs, then of its inputs.
std::vector<std::string> size_names(const runtime::BoundCall& call) {
  std::vector<std::string> names;
  for (const bool written : {true, false}) {
    for (const runtime::BoundCall::Value& value : call.values) {
      if (value.argument->is_written() != written) continue;
      for (const runtime::OperationArgument::Dimension& dimension : value.argument->dimensions) {
        const bool known = std::find(names.begin(), names.end(), dimension.name) != names.end();
        if (!dimension.name.empty() && !known) names.push_back(dimension.name);
      }
    }
  }
  return names;
}

// A plan for each shape and each target.
StatusOr<std::vector<runtime::ExportedPlan>> record(const ChosenKernel& kernel,
                                                    const std::vector<runtime::Sizes>& shapes,
                                                    const std::vector<const ir::Target*>& targets,
                                                    std::vector<std::string>& names) {
  std::vector<runtime::ExportedPlan> plans;
  for (const runtime::Sizes& sizes : shapes) {
    const StatusOr<runtime::BoundCall> call =
        runtime::bind(*kernel.operation, kernel.settings, {}, sizes);
    if (!call.ok()) return call.status();
    names = size_names(*call);
    for (const ir::Target* const target : targets) {
      runtime::CompileOptions compile;
      compile.target = std::string(target->name);
      StatusOr<runtime::RecordedCall> recorded =
          runtime::record_call(*call, runtime::info_of(*target), compile);
      if (!recorded.ok()) {
        return Status(
            recorded.status().code(),
            absl::StrCat(kernel.operation->name(), " of ", shape_text(kernel, call->sizes), " for ",
                         target->name, ": ", recorded.status().message()));
      }
      absl::PrintF("%s %s: %s, %d bytes of workspace\n", target->name,
                   shape_text(kernel, call->sizes),
                   ir::counted(static_cast<int64_t>(recorded->steps.size()), "step"),
                   recorded->workspace_bytes);
      plans.push_back({target, call->sizes, *std::move(recorded)});
    }
  }
  return plans;
}

// A program by its name, or by its path; "" where there is none.
std::string find_program(const std::string& name) {
  const auto runs = [](const fs::path& file) {
    std::error_code error;
    return fs::is_regular_file(file, error) && access(file.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return runs(name) ? fs::absolute(name).string() : "";
  const char* const path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    const fs::path file = fs::path(std::string(folder)) / name;
    if (!folder.empty() && runs(file)) return fs::absolute(file).string();
  }
  return "";
}

// The C compiler and its first arguments: those of CC, which is "ccache gcc -m64" as well, or one of PATH; empty where there is none.
// kNotFound where CC names none.
StatusOr<std::vector<std::string>> c_compiler() {
  const char* const chosen = std::getenv("CC");
  std::vector<std::string> words =
      absl::StrSplit(chosen == nullptr ? "" : chosen, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (!words.empty()) {
    const std::string program = find_program(words[0]);
    if (program.empty()) {
      return NotFoundError(absl::StrCat("CC is '", chosen, "', and there is no program '", words[0],
                                        "'; fix: let CC name a C compiler, or unset it"));
    }
    words[0] = program;
    return words;
  }
  for (const char* const name : {"cc", "gcc", "clang"}) {
    if (std::string program = find_program(name); !program.empty()) return std::vector{program};
  }
  return std::vector<std::string>();
}

Status compile_library(const std::vector<std::string>& compiler,
                       const std::vector<std::string>& sources, const std::string& library) {
  codegen::Command command;
  command.program = compiler[0];
  command.arguments.assign(compiler.begin() + 1, compiler.end());
  const auto append = [&](const std::vector<std::string>& arguments) {
    command.arguments.insert(command.arguments.end(), arguments.begin(), arguments.end());
  };
  append({"-std=c99", "-O2", "-fPIC", "-shared", "-o", library});
  append(sources);
  append({"-ldl", "-lpthread"});
  command.timeout = kCompilerTimeout;
  const StatusOr<codegen::Finished> run = codegen::run_command(command);
  if (!run.ok()) return run.status();
  if (run->succeeded()) return OkStatus();
  return InternalError(absl::StrCat(compiler[0], " ", codegen::describe_end(*run, command.timeout),
                                    ": ", run->standard_error));
}

}  // namespace

Exit build_kernel(const BuildOptions& options) {
  const StatusOr<ChosenKernel> kernel = choose_kernel(options.choice);
  if (!kernel.ok()) return misused(kernel.status());
  const StatusOr<std::vector<std::string>> targets_named =
      split_list("--arch", "an architecture", options.targets);
  if (!targets_named.ok()) return misused(targets_named.status());
  std::vector<const ir::Target*> targets;
  for (const std::string& name : *targets_named) {
    const StatusOr<const ir::Target*> target = target_named(name);
    if (!target.ok()) return misused(target.status());
    targets.push_back(*target);
  }
  if (targets.empty()) targets.push_back(&ir::default_target());
  std::vector<runtime::Sizes> shapes;
  for (const std::string& shape : options.shapes) {
    StatusOr<runtime::Sizes> sizes = parse_shape("--shape", *kernel, shape);
    if (!sizes.ok()) return misused(sizes.status());
    shapes.push_back(*std::move(sizes));
  }
  if (shapes.empty()) shapes.push_back(kernel->sizes);

  const std::string name = options.name.empty() ? kernel->operation->name() : options.name;
  if (Status s = runtime::check_exported_name(name); !s.ok()) return misused(s);
  std::vector<std::string> names;
  const StatusOr<std::vector<runtime::ExportedPlan>> plans =
      record(*kernel, shapes, targets, names);
  if (!plans.ok()) return failed(plans.status());
  const StatusOr<runtime::ExportedSources> sources =
      runtime::export_calls(name, names, *plans, {.tvm_ffi = options.tvm_ffi});
  if (!sources.ok()) return misused(sources.status());

  std::error_code error;
  fs::create_directories(options.folder, error);  // of what fails, writing the first file speaks
  const std::string stem = (fs::path(options.folder) / name).string();
  std::map<std::string, const std::string*> files = {{stem + ".h", &sources->header},
                                                     {stem + ".hpp", &sources->cpp_header},
                                                     {stem + ".c", &sources->source}};
  if (options.tvm_ffi) files[stem + "_tvm_ffi.c"] = &sources->tvm_ffi;
  for (const auto& [path, text] : files) {
    if (Status s = write_file(path, *text); !s.ok()) return misused(s);
    absl::PrintF("%s\n", path);
  }
  if (options.no_library) return Exit::kDone;
  const StatusOr<std::vector<std::string>> compiler = c_compiler();
  if (!compiler.ok()) return failed(compiler.status());
  if (compiler->empty()) {
    remark(absl::StrCat("there is no C compiler, so no library was made of ", stem,
                        ".c; fix: install one, or set CC"));
    return Exit::kDone;
  }
  const std::string library =
      (fs::path(options.folder) / absl::StrCat("lib", name, ".so")).string();
  std::vector<std::string> compiled;
  for (const auto& [path, text] : files) {
    if (fs::path(path).extension() == ".c") compiled.push_back(fs::absolute(path).string());
  }
  if (Status s = compile_library(*compiler, compiled, fs::absolute(library).string()); !s.ok()) {
    return failed(s);
  }
  absl::PrintF("%s\n", library);
  return Exit::kDone;
}

}  // namespace heddle::tools
