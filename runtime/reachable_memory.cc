#include "heddle/runtime/reachable_memory.h"

#include "absl/strings/str_cat.h"
#include "heddle/runtime/argument_facts.h"
#include "heddle/runtime/cuda/cuda_backend.h"

namespace heddle::runtime {

Status check_reach(const Argument& argument, absl::string_view what, Backend& device) {
  // A number reaches no memory; of a Buffer every launch knows where it lies.
  const bool unknown = argument.begin != argument.end && argument.memory == nullptr;
  if (!unknown || device.kind() != BackendKind::kCuda) return OkStatus();
  const Status status = static_cast<cuda::CudaBackend&>(device).check_reach(argument.bits);
  if (!IsInvalidArgument(status)) return status;
  return InvalidArgumentError(absl::StrCat(what, " ", status.message()));
}

Status check_reach(absl::string_view kernel, absl::Span<const ir::ParamInfo> params,
                   Arguments arguments, Backend& device) {
  if (device.kind() != BackendKind::kCuda) return OkStatus();
  for (int i = 0; i < static_cast<int>(arguments.size()); ++i) {
    const Status status = check_reach(
        arguments[i], absl::StrCat(describe_argument(params, i), " of ", kernel), device);
    if (!status.ok()) return status;
  }
  return OkStatus();
}

}  // namespace heddle::runtime
