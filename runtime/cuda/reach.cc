// Whether kernels of a GPU reach the memory at an address.
#include <sys/uio.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "heddle/runtime/cuda/cuda_backend.h"

namespace heddle::runtime::cuda {
namespace {

// Whether this process can read the byte: memory that the driver does not know and that the host reads is the host's alone.
// What else the driver does not know may be a graph's, which has no memory before it is launched.
bool is_host_memory(DeviceAddress address) {
  char byte = 0;
  const iovec here{&byte, 1};
  const iovec there{reinterpret_cast<void*>(static_cast<uintptr_t>(address)), 1};
  return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1;
}

}  // namespace

Status CudaBackend::check_reach(DeviceAddress address) {
  if (lost()) return health();
  const Scope scope(*this);
  if (scope.result() != Result::kSuccess) return fail(scope.failed_call(), scope.result());
  const auto& ask = api().pointer_get_attribute;
  DevicePointer seen = 0;
  const Result result = ask(&seen, PointerAttribute::kDevicePointer, address);
  if (error_info(result).sticky) return fail(ask.symbol, result);
  // kInvalidValue: there is no address by which they reach it. Another failure says nothing of it.
  if (result != Result::kInvalidValue) return OkStatus();
  int owner = 0;
  if (ask(&owner, PointerAttribute::kDeviceOrdinal, address) == Result::kSuccess) {
    return InvalidArgumentError(
        absl::StrCat("lies in memory of cuda:", owner, ", which kernels on ", name(),
                     " cannot reach; fix: copy it to a Buffer of ", name(),
                     ", launch on the other device, or allow the access (cuCtxEnablePeerAccess)"));
  }
  int pageable = 0;
  const Result asked =
      api().device_get_attribute(&pageable, DeviceAttribute::kPageableMemoryAccess, device_);
  if (asked != Result::kSuccess || pageable != 0 || !is_host_memory(address)) return OkStatus();
  return InvalidArgumentError(absl::StrCat("lies in memory of the host, which kernels on ", name(),
                                           " cannot reach; fix: copy it to memory of the device, "
                                           "or pin it (cuMemHostRegister)"));
}

}  // namespace heddle::runtime::cuda
