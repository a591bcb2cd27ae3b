#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/codegen/ptx.h"
#include "heddle/codegen/toolchain/ptxas.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/output.h"

namespace heddle::tools {
namespace {

// Far more than any kernel's text: a larger file is something else, or a device without an end.
constexpr size_t kMostBytes = size_t{64} << 20;

StatusOr<std::string> read_text(const std::string& path) {
  const bool from_stdin = path == "-";
  std::FILE* const file = from_stdin ? stdin : std::fopen(path.c_str(), "re");
  std::string text;
  bool good = file != nullptr;
  char buffer[1 << 14];
  for (size_t got = 1; good && got > 0 && text.size() <= kMostBytes;) {
    got = std::fread(buffer, 1, sizeof(buffer), file);
    text.append(buffer, got);
    good = std::ferror(file) == 0;
  }
  const int error = errno;
  if (file != nullptr && !from_stdin) std::fclose(file);
  if (text.size() > kMostBytes) {
    return ResourceExhaustedError(
        absl::StrCat(from_stdin ? "stdin" : path, ": is larger than ", kMostBytes >> 20,
                     " MiB, the most that is read; fix: give a kernel's text, such as "
                     "'heddle dump --stage ir' prints"));
  }
  if (good) return text;
  return ErrnoToStatus(error, absl::StrCat(from_stdin ? "stdin" : path, ": cannot be read"));
}

std::string describe(const ir::Kernel& kernel) {
  return absl::StrCat("kernel '", kernel.name(), "'");
}

StatusOr<std::string> assemble(const codegen::PtxModule& ptx, const ir::Kernel& kernel) {
  codegen::AssembleOptions options;
  options.arch = std::string(kernel.target->name);
  options.entries = {ptx.entry};
  StatusOr<codegen::Assembly> assembly = codegen::assemble(ptx.text, options);
  if (!assembly.ok()) return assembly.status();
  for (const codegen::Diagnostic& said : assembly->diagnostics) {
    if (said.is_performance_note()) {
      remark(absl::StrCat("ptxas: PTX line ", said.ptx_line, ": ", said.text));
    }
  }
  return std::move(assembly->cubin);
}

// The optimised kernel as what the user asked for.
StatusOr<std::string> emit(const ir::Kernel& kernel, const OptOptions& options) {
  if (options.emit == "ir") return ir::print(kernel, {.locs = options.locs});
  if (Status s = ir::to_status(describe(kernel), ir::verify(kernel, ir::Stage::kEmittable));
      !s.ok()) {
    return s;
  }
  StatusOr<codegen::PtxModule> ptx = codegen::emit_ptx(kernel);
  if (!ptx.ok()) return ptx.status();
  if (options.emit == "ptx") return std::move(ptx->text);
  return assemble(*ptx, kernel);
}

}  // namespace

Exit optimize_file(const OptOptions& options) {
  const bool machine_code = options.emit == "cubin";
  if (machine_code && options.output.empty() && stdout_is_terminal()) {
    return misused("machine code is no text: name a file with -o, or redirect the output");
  }
  const StatusOr<std::string> text = read_text(options.file);
  if (!text.ok()) return misused(text.status());
  StatusOr<ir::Kernel> kernel =
      ir::parse(*text, options.file == "-" ? "stdin" : options.file, {.text_as_source = true});
  if (!kernel.ok()) return misused(kernel.status());
  if (!options.arch.empty()) {
    kernel->target = ir::find_target(options.arch);
    if (kernel->target == nullptr) {
      return misused(
          absl::StrCat("unknown target '", options.arch, "'; there are ", ir::target_names()));
    }
  }
  // Passes require a legal kernel.
  if (Status s = ir::to_status(describe(*kernel), ir::verify(*kernel)); !s.ok()) {
    return misused(s);
  }
  const std::string passes = options.passes.passes.value_or(std::string(ir::kDefaultLevel));
  if (Status s = check_pipeline(*kernel, passes, options.passes); !s.ok()) return misused(s);
  ir::PipelineReport report;
  ir::PipelineOptions pipeline = pipeline_options(options.passes);
  pipeline.report = &report;
  if (Status s = ir::run_pipeline(*kernel, passes, pipeline); !s.ok()) return failed(s);
  if (options.passes.time) absl::FPrintF(stderr, "%s", describe(report));

  const StatusOr<std::string> result = emit(*kernel, options);
  if (!result.ok()) return failed(result.status());
  if (options.output.empty()) {
    print(*result);
    return Exit::kDone;
  }
  const Status written = write_file(options.output, *result);
  return written.ok() ? Exit::kDone : misused(written);
}

}  // namespace heddle::tools
