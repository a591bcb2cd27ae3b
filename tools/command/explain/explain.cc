#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "heddle/codegen/toolchain/disassemble.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/explain/explanation.h"
#include "heddle/tools/command/findings.h"
#include "heddle/tools/command/launched_kernels.h"
#include "heddle/tools/command/output.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {
namespace {

// "page.html", and for further kernels of the operation "page.1.html".
std::string file_for(const std::string& file, size_t number) {
  if (number == 0) return file;
  const std::filesystem::path path(file);
  return (path.parent_path() /
          absl::StrCat(path.stem().string(), ".", number, path.extension().string()))
      .string();
}

}  // namespace

Exit explain_kernel(const ExplainOptions& options) {
  const StatusOr<ChosenKernel> kernel = choose_kernel(options.choice);
  if (!kernel.ok()) return misused(kernel.status());
  const StatusOr<runtime::BoundCall> call =
      runtime::bind(*kernel->operation, kernel->settings, {}, kernel->sizes);
  if (!call.ok()) return misused(call.status());
  const StatusOr<const ir::Target*> target = target_named(options.arch);
  if (!target.ok()) return misused(target.status());
  runtime::CompileOptions compile;
  compile.stage = runtime::Stage::kCubin;
  const std::string passes = options.passes.passes.value_or(compile.passes);
  const StatusOr<LaunchedKernels> launched =
      compile_launches(*call, **target, std::move(compile), options.passes);
  if (!launched.ok()) return misused(launched.status());

  nlohmann::ordered_json documents = nlohmann::ordered_json::array();
  bool lack_is_said = false;
  Exit exit = Exit::kDone;
  for (size_t i = 0; i < launched->kernels.size(); ++i) {
    const LaunchedKernel& one = launched->kernels[i];
    if (one.compilation == nullptr) {
      exit = failed(one.failure);
      continue;
    }
    // Without assembler or disassembler there are source, IR and PTX all the same.
    std::string listing;
    Status lack = one.failure;
    if (lack.ok()) {
      StatusOr<std::string> text = codegen::disassemble(one.compilation->assembly.cubin);
      if (text.ok()) listing = *std::move(text);
      lack = text.status();
    }
    if (!lack.ok() && !IsNotFound(lack)) {
      exit = failed(lack);
      continue;
    }
    if (!lack.ok() && !std::exchange(lack_is_said, true)) {
      remark(absl::StrCat("there is no machine code to show: ", lack.message()));
    }
    const Explanation explanation = explain(*one.compilation, passes, listing);
    if (options.json) {
      documents.push_back(to_json(explanation));
    } else if (options.html.empty()) {
      print(absl::StrCat(i > 0 ? "\n" : "", to_text(explanation)));
    } else if (Status s = write_file(file_for(options.html, i), to_html(explanation)); !s.ok()) {
      return misused(s);
    }
  }
  if (options.json && !documents.empty()) {
    print(to_string(documents.size() == 1 ? documents[0] : documents));
  }
  if (!launched->done.ok()) return failed(launched->done);
  if (!launched->kernels.empty()) return exit;
  return failed(
      absl::StrCat("kernel '", kernel->operation->name(), "' launches nothing for these sizes"));
}

}  // namespace heddle::tools
