#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/codegen/cache/disk_cache.h"
#include "heddle/runtime/ahead/warm_up.h"
#include "heddle/runtime/device.h"
#include "heddle/tools/command/commands.h"
#include "heddle/tools/command/launched_kernels.h"
#include "heddle/tools/command/output.h"

namespace heddle::tools {
namespace {

// For the architecture that is named, or the GPU's; without either the default one.
StatusOr<WarmUpReport> warm(const WarmOptions& options, const CompileAllOptions& compile) {
  std::string device = options.device;
  if (device.empty() && options.arch.empty() && Device::cuda_device_count().value_or(0) > 0) {
    device = "cuda:0";
  }
  if (device.empty()) {
    const StatusOr<const ir::Target*> target = target_named(options.arch);
    if (!target.ok()) return target.status();
    return warm_up_disk(**target, {}, options.list, compile);
  }
  const StatusOr<Device> opened = Device::open(device);
  if (!opened.ok()) return opened.status();
  if (opened->kind() != runtime::BackendKind::kCuda) {
    return InvalidArgumentError(absl::StrCat("--device ", device,
                                             " keeps nothing on the disk; fix: name a GPU, or an "
                                             "architecture by --arch"));
  }
  if (codegen::DiskCache::of_user() == nullptr) {
    return FailedPreconditionError(
        "there is no cache on disk to fill; fix: unset HEDDLE_CACHE and HEDDLE_CACHE_MIB, and set "
        "HEDDLE_CACHE_DIR to a folder of yours");
  }
  return warm_up(*opened, {}, options.list, compile);
}

}  // namespace

Exit warm_cache(const WarmOptions& options) {
  CompileAllOptions compile{.threads = options.threads};
  if (!options.quiet && !options.json) {
    compile.on_done = [](const CompileProgress& p) {
      absl::PrintF("%d of %d: %s%s\n", p.done, p.total, p.job, p.status.ok() ? "" : ", failed");
    };
  }
  const StatusOr<WarmUpReport> report = warm(options, compile);
  if (!report.ok()) {
    const StatusCode code = report.status().code();
    const bool of_user = code == StatusCode::kInvalidArgument || code == StatusCode::kNotFound;
    return of_user ? misused(report.status()) : failed(report.status());
  }
  print(absl::StrCat(options.json ? runtime::to_json(*report) : runtime::to_string(*report), "\n"));
  if (report->failed.empty()) return Exit::kDone;
  return failed(absl::StrCat(report->failed.size(), " of the list's ", report->lines,
                             " lines do not compile"));
}

}  // namespace heddle::tools
