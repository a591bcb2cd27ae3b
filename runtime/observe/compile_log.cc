#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/codegen/cache/disk_cache.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/observe/compile_log_internal.h"
#include "heddle/runtime/observe/kernel_report.h"
#include "heddle/runtime/observe/log.h"

namespace heddle::runtime {
namespace {

std::string ms(double us) { return absl::StrFormat("%.2f", us / 1e3); }

// "compiled in 12.31 ms for sm_90a, block 512x1x1 (trace 0.10, passes 0.20, PTX 0.05, assembling 11.96)"
std::string describe_times(const KernelReport& report) {
  const StageTimes& t = report.times;
  if (report.recalled) {
    return absl::StrCat("recalled for ", report.target, ", block ", ir::to_string(report.block),
                        " (reading ", ms(t.trace), ", machine code ", ms(t.assemble), ")");
  }
  std::string text = absl::StrCat(
      "compiled in ", ms(t.trace + t.passes + t.emit + t.assemble), " ms for ", report.target,
      report.block.x == 0 ? ", any block" : absl::StrCat(", block ", ir::to_string(report.block)),
      report.cluster.count() > 1 ? absl::StrCat(", cluster ", ir::to_string(report.cluster)) : "",
      " (trace ", ms(t.trace), ", passes ", ms(t.passes));
  if (report.origin != CodeOrigin::kNobody) absl::StrAppend(&text, ", PTX ", ms(t.emit));
  if (report.code) absl::StrAppend(&text, ", assembling ", ms(t.assemble));
  return absl::StrCat(text, ")");
}

std::string describe_code(const KernelReport& report) {
  switch (report.origin) {
    case CodeOrigin::kNobody:
      return "";
    case CodeOrigin::kDriver:
      return ": the driver assembles it when it is loaded";
    case CodeOrigin::kDiskCache:
      return absl::StrCat(": ", summary(report), "; from the disk's cache");
    case CodeOrigin::kLibrary:
    case CodeOrigin::kProgram:
      break;
  }
  return absl::StrCat(": ", summary(report), "; by ", report.code ? report.code->assembler : "");
}

void log_warnings(const std::string& kernel, const KernelReport& report) {
  if (report.code && report.code->spill_store_bytes + report.code->spill_load_bytes > 0) {
    log(LogLevel::kWarning,
        absl::StrCat(kernel, " needs more than ", report.code->registers,
                     " registers a thread, and spills ", report.code->spill_store_bytes,
                     " bytes to memory and loads ", report.code->spill_load_bytes));
  }
  for (const KernelReport::Remark& remark : report.remarks) {
    const ir::SourceLine& at = remark.place;
    log(LogLevel::kWarning,
        absl::StrCat(kernel, ": ptxas says",
                     at.file.empty() ? "" : absl::StrCat(" of ", at.file, ":", at.line), ": ",
                     remark.text));
  }
}

}  // namespace

void log_compilation(const Compilation& compilation) {
  if (!logs(LogLevel::kWarning)) return;
  const std::string kernel = compilation.describe();
  const KernelReport report = kernel_report(compilation);
  log(LogLevel::kInfo, absl::StrCat(kernel, " ", describe_times(report), describe_code(report)));
  log_warnings(kernel, report);
  if (!logs(LogLevel::kDebug) || !report.code) return;
  const auto cache =
      compilation.options.disk_cache == DiskCaching::kOff ? nullptr : codegen::DiskCache::of_user();
  log(LogLevel::kDebug,
      absl::StrCat(kernel, ": the disk's cache ",
                   cache == nullptr
                       ? "is off"
                       : absl::StrCat(compilation.assembly.from_cache ? "had its code, "
                                                                      : "did not have its code, ",
                                      cache->path())));
}

void log_failed_compilation(absl::string_view kernel, const Status& why) {
  if (!logs(LogLevel::kError)) return;
  // Most name the kernel themselves.
  const bool named = absl::StartsWith(why.message(), kernel);
  log(LogLevel::kError,
      absl::StrCat("not compiled: ", named ? "" : kernel, named ? "" : ": ", why.message()));
}

void log_wait(const VariantWait& wait) {
  const std::string made = wait.compile_us < 0
                               ? "compiled before"
                               : absl::StrCat("compiled in ", ms(wait.compile_us), " ms");
  log(LogLevel::kInfo, absl::StrCat(wait.kernel, ": a launch on ", wait.device, " waited ",
                                    ms(wait.wait_us), " ms for variant ", wait.variant, " (", made,
                                    ", loaded in ", ms(wait.load_us), " ms): ", wait.reason));
}

void log_wait_for_thread(absl::string_view kernel, absl::string_view device, double wait_us) {
  log(LogLevel::kInfo, absl::StrCat(kernel, ": a launch on ", device, " waited ", ms(wait_us),
                                    " ms while another thread compiled it"));
}

}  // namespace heddle::runtime
