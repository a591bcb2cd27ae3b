#include "heddle/runtime/cuda/errors.h"

#include <algorithm>
#include <optional>
#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace heddle::runtime::cuda {
namespace {

constexpr bool kSticky = true;
constexpr bool kLocal = false;

constexpr char kAskInterpreter[] =
    "run the kernel on Device::open(\"interp\"), which reports the access with its line";
constexpr char kCapture[] = "move the call out of the stream capture";
constexpr char kMps[] = "check the MPS daemon (nvidia-cuda-mps-control)";
constexpr char kUpdateDriver[] = "update the NVIDIA driver";

// cuda.h says of the sticky ones that the process must be relaunched (226 and on) or that the
// context is gone (710).
constexpr ErrorInfo kErrors[] = {
    {1, "CUDA_ERROR_INVALID_VALUE", StatusCode::kInvalidArgument, kLocal,
     "check sizes, addresses and the shape of the launch"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", StatusCode::kResourceExhausted, kLocal,
     "free buffers or make them smaller"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", StatusCode::kFailedPrecondition, kLocal,
     "a process that was forked after the first use of CUDA cannot use it: fork earlier, or exec"},
    {4, "CUDA_ERROR_DEINITIALIZED", StatusCode::kFailedPrecondition, kLocal,
     "the program is ending: use the device before main returns"},
    {34, "CUDA_ERROR_STUB_LIBRARY", StatusCode::kFailedPrecondition, kLocal,
     "a toolkit's stub was loaded: name the driver's own libcuda.so.1 in HEDDLE_CUDA_LIBRARY"},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", StatusCode::kFailedPrecondition, kLocal,
     kUpdateDriver},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", StatusCode::kUnavailable, kLocal,
     "another process has the GPU to itself: see the compute mode in nvidia-smi"},
    {100, "CUDA_ERROR_NO_DEVICE", StatusCode::kNotFound, kLocal,
     "no GPU is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES"},
    {101, "CUDA_ERROR_INVALID_DEVICE", StatusCode::kNotFound, kLocal,
     "check the device's number and CUDA_VISIBLE_DEVICES"},
    {102, "CUDA_ERROR_DEVICE_NOT_LICENSED", StatusCode::kFailedPrecondition, kLocal,
     "the virtual GPU needs a licence"},
    {200, "CUDA_ERROR_INVALID_IMAGE", StatusCode::kInvalidArgument, kLocal,
     "the cubin is damaged: compile the kernel again"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", StatusCode::kFailedPrecondition, kLocal,
     "somebody else reset the device: open it again"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", StatusCode::kInvalidArgument, kLocal,
     "the code is for another architecture; fix: compile it for the device's"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", StatusCode::kDataLoss, kLocal,
     "the GPU's memory is failing: see nvidia-smi -q -d ECC"},
    {218, "CUDA_ERROR_INVALID_PTX", StatusCode::kInvalidArgument, kLocal,
     "the driver's assembler refused the PTX"},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", StatusCode::kDataLoss, kLocal,
     "a link between GPUs is failing: see nvidia-smi nvlink -s"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", StatusCode::kFailedPrecondition, kLocal,
     "libnvidia-ptxjitcompiler.so is missing: install ptxas, and the driver need not assemble"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", StatusCode::kFailedPrecondition, kLocal,
     "the PTX is newer than the driver: update the driver or install ptxas"},
    {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", StatusCode::kFailedPrecondition, kLocal,
     "unset CUDA_DISABLE_PTX_JIT or install ptxas"},
    {226, "CUDA_ERROR_CONTAINED", StatusCode::kDataLoss, kSticky,
     "an access to another GPU's memory or the hardware failed: see nvidia-smi and dmesg"},
    {300, "CUDA_ERROR_INVALID_SOURCE", StatusCode::kInvalidArgument, kLocal,
     "the module is damaged: compile the kernel again"},
    {302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", StatusCode::kFailedPrecondition, kLocal,
     "reinstall the NVIDIA driver"},
    {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", StatusCode::kFailedPrecondition, kLocal,
     "reinstall the NVIDIA driver"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", StatusCode::kInternal, kLocal,
     "check limits such as locked memory and open files (ulimit -a)"},
    {400, "CUDA_ERROR_INVALID_HANDLE", StatusCode::kInvalidArgument, kLocal,
     "the stream, event or module was destroyed or belongs to another device"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", StatusCode::kFailedPrecondition, kLocal, ""},
    {500, "CUDA_ERROR_NOT_FOUND", StatusCode::kNotFound, kLocal,
     "the module has nothing of that name"},
    {600, "CUDA_ERROR_NOT_READY", StatusCode::kUnavailable, kLocal, "synchronise first"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", StatusCode::kAborted, kSticky, kAskInterpreter},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", StatusCode::kResourceExhausted, kLocal,
     "the block needs too many registers or the parameters are too large: use fewer threads"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", StatusCode::kDeadlineExceeded, kSticky,
     "the kernel ran longer than the display's watchdog allows"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", StatusCode::kFailedPrecondition, kLocal,
     "somebody else reset the device: open it again"},
    {710, "CUDA_ERROR_ASSERT", StatusCode::kAborted, kSticky,
     "a device-side assertion failed: its text is on the standard error output"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", StatusCode::kAborted, kSticky,
     "the kernel's stack overflowed or was overwritten"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", StatusCode::kAborted, kSticky,
     "the kernel was built for another device or trapped"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", StatusCode::kAborted, kSticky, kAskInterpreter},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", StatusCode::kAborted, kSticky, kAskInterpreter},
    {718, "CUDA_ERROR_INVALID_PC", StatusCode::kAborted, kSticky, kAskInterpreter},
    {719, "CUDA_ERROR_LAUNCH_FAILED", StatusCode::kAborted, kSticky, kAskInterpreter},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", StatusCode::kInvalidArgument, kLocal,
     "launch no more blocks than fit the device at once"},
    {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", StatusCode::kAborted, kSticky,
     "the kernel ended with tensor memory allocated"},
    {800, "CUDA_ERROR_NOT_PERMITTED", StatusCode::kPermissionDenied, kLocal, ""},
    {801, "CUDA_ERROR_NOT_SUPPORTED", StatusCode::kUnimplemented, kLocal,
     "this device or driver lacks the feature"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", StatusCode::kUnavailable, kLocal,
     "a service such as the NVIDIA fabric manager is not running"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", StatusCode::kFailedPrecondition, kLocal,
     "libcuda and the kernel module differ in version: reboot or reinstall the driver"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", StatusCode::kFailedPrecondition, kLocal,
     "take CUDA's forward-compatibility libraries off the library path"},
    {805, "CUDA_ERROR_MPS_CONNECTION_FAILED", StatusCode::kUnavailable, kLocal, kMps},
    {806, "CUDA_ERROR_MPS_RPC_FAILURE", StatusCode::kUnavailable, kLocal, kMps},
    {807, "CUDA_ERROR_MPS_SERVER_NOT_READY", StatusCode::kUnavailable, kLocal, kMps},
    {808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", StatusCode::kResourceExhausted, kLocal, kMps},
    {809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", StatusCode::kResourceExhausted, kLocal, kMps},
    {810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", StatusCode::kAborted, kSticky, kMps},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", StatusCode::kFailedPrecondition, kLocal,
     kCapture},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", StatusCode::kFailedPrecondition, kLocal,
     kCapture},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", StatusCode::kFailedPrecondition, kLocal,
     "do not let one capture wait for another"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", StatusCode::kFailedPrecondition, kLocal,
     "end a capture on the stream that it began on"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", StatusCode::kFailedPrecondition, kLocal,
     "let the captured stream wait for an event of each stream that takes part"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", StatusCode::kFailedPrecondition, kLocal, kCapture},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", StatusCode::kFailedPrecondition, kLocal, kCapture},
    {907, "CUDA_ERROR_CAPTURED_EVENT", StatusCode::kFailedPrecondition, kLocal, kCapture},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", StatusCode::kFailedPrecondition, kLocal,
     "end a capture on the thread that began it"},
    {909, "CUDA_ERROR_TIMEOUT", StatusCode::kDeadlineExceeded, kLocal, ""},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", StatusCode::kFailedPrecondition, kLocal,
     "build the graph anew"},
    {911, "CUDA_ERROR_EXTERNAL_DEVICE", StatusCode::kAborted, kSticky,
     "a device outside CUDA reported broken data"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", StatusCode::kInvalidArgument, kLocal,
     "use a smaller cluster, or less shared memory or fewer threads a block"},
    {913, "CUDA_ERROR_FUNCTION_NOT_LOADED", StatusCode::kFailedPrecondition, kLocal, ""},
    {999, "CUDA_ERROR_UNKNOWN", StatusCode::kInternal, kLocal,
     "check the driver: nvidia-smi, dmesg"},
};

constexpr bool ascending() {
  for (size_t i = 1; i < std::size(kErrors); ++i) {
    if (kErrors[i - 1].code >= kErrors[i].code) return false;
  }
  return true;
}
static_assert(ascending(), "error_info searches by halves");

}  // namespace

absl::Span<const ErrorInfo> error_table() { return kErrors; }

ErrorInfo error_info(Result result) {
  const int code = static_cast<int>(result);
  const ErrorInfo* row =
      std::lower_bound(std::begin(kErrors), std::end(kErrors), code,
                       [](const ErrorInfo& info, int wanted) { return info.code < wanted; });
  if (row != std::end(kErrors) && row->code == code) return *row;
  return {code, "", StatusCode::kInternal, kLocal, ""};
}

absl::string_view call_name(absl::string_view symbol) {
  const size_t suffix = symbol.rfind("_v");
  return suffix == absl::string_view::npos ? symbol : symbol.substr(0, suffix);
}

Status driver_error(const DriverApi& api, Result result, const DriverFailure& failure) {
  const ErrorInfo info = error_info(result);
  // The driver knows codes that are newer than the table; the table works when the driver fails.
  std::string name = info.name;
  const char* known = nullptr;
  if (name.empty() && api.get_error_name(result, &known) == Result::kSuccess && known != nullptr) {
    name = known;
  }
  if (name.empty()) name = "unknown error";
  const char* text = nullptr;
  if (api.get_error_string(result, &text) != Result::kSuccess) text = nullptr;

  std::string message(call_name(failure.call));
  if (!failure.subject.empty()) absl::StrAppend(&message, " for ", failure.subject);
  absl::StrAppend(&message, " failed");
  if (!failure.device.empty()) absl::StrAppend(&message, " on ", failure.device);
  absl::StrAppend(&message, ": ", name, " (", info.code, ")");
  if (text != nullptr) absl::StrAppend(&message, ", ", text);
  if (!failure.detail.empty()) absl::StrAppend(&message, ": ", failure.detail);
  const absl::string_view hint = failure.hint.empty() ? info.hint : failure.hint;
  if (!hint.empty()) absl::StrAppend(&message, "; ", hint);

  return Status(info.status, message, info.code);
}

}  // namespace heddle::runtime::cuda
