#include "heddle/runtime/operation/compile_call.h"

#include "absl/algorithm/container.h"
#include "heddle/runtime/ahead/launch_recorder.h"
#include "heddle/runtime/executable.h"
#include "heddle/runtime/kernel_cache.h"
#include "heddle/runtime/operation/dry_run.h"

namespace heddle::runtime {

StatusOr<CompiledCall> compile_call(const Device& device, const HostFunction& function,
                                    Arguments arguments) {
  CompiledCall compiled;
  const Device dry = open_dry_run(device.info(), [&](const DryLaunch& launch) -> Status {
    ++compiled.launches;
    if (launch.source == nullptr) return OkStatus();
    const StatusOr<const Executable*> executable =
        KernelCache::of(*launch.source)
            .find_or_compile(*launch.source, device.backend(), launch.shape, launch.arguments);
    if (!executable.ok()) return executable.status();
    const auto& compilation = (*executable)->shared_compilation();
    if (!absl::c_linear_search(compiled.compilations, compilation)) {
      compiled.compilations.push_back(compilation);
    }
    return OkStatus();
  });
  const Status status = function.call(dry.default_stream(), arguments);
  if (results_were_wanted(dry)) return CompiledCall();
  if (!status.ok()) return status;
  return compiled;
}

StatusOr<CompiledCall> compile_call(const Device& device, const BoundCall& call,
                                    Arguments arguments) {
  StatusOr<CompiledCall> compiled = [&] {
    const VariantsOfCall of_call;
    return compile_call(device, *call.function, arguments);
  }();
  if (compiled.ok()) record_call(call, arguments);
  return compiled;
}

}  // namespace heddle::runtime
