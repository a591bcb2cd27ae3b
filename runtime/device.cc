#include "heddle/runtime/device.h"

#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "heddle/runtime/compile_options.h"
#include "heddle/runtime/cuda/cuda_backend.h"
#include "heddle/runtime/interp_backend.h"

namespace heddle::runtime {
namespace {

// The N of "kind:N", 0 for "kind" alone.
std::optional<int> ordinal_of(absl::string_view name, absl::string_view kind) {
  if (!absl::ConsumePrefix(&name, kind)) return std::nullopt;
  if (name.empty()) return 0;
  if (!absl::ConsumePrefix(&name, ":") || name.empty() || name.size() > 4) return std::nullopt;
  for (char c : name) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) return std::nullopt;
  }
  int ordinal = 0;
  return absl::SimpleAtoi(name, &ordinal) ? std::optional<int>(ordinal) : std::nullopt;
}

}  // namespace

StatusOr<Device> Device::open(absl::string_view name) {
  if (const std::optional<int> ordinal = ordinal_of(name, "interp")) {
    const auto completion = InterpBackend::completion_of_environment();
    if (!completion.ok()) return completion.status();
    return Device(InterpBackend::open(*ordinal));
  }
  if (const std::optional<int> ordinal = ordinal_of(name, "cuda")) {
    StatusOr<std::shared_ptr<cuda::CudaBackend>> backend = cuda::CudaBackend::open(*ordinal);
    if (!backend.ok()) return backend.status();
    return Device(*std::move(backend));
  }
  return InvalidArgumentError(absl::StrCat(
      "'", name, "' names no device; say \"cuda:0\" (or another number) or \"interp\""));
}

Device Device::open_private_interp(DeviceInfo info) {
  return Device(std::make_shared<InterpBackend>("interp", std::move(info)));
}

StatusOr<int> Device::cuda_device_count() { return cuda::CudaBackend::device_count(); }

StatusOr<Buffer> Device::allocate(size_t bytes) const {
  return Buffer::allocate(backend_, bytes, std::nullopt);
}

StatusOr<PinnedBuffer> Device::allocate_pinned(size_t bytes) const {
  if (Status s = backend_->health(); !s.ok()) return s;
  if (bytes == 0) return PinnedBuffer();
  const StatusOr<void*> memory = backend_->allocate_host(bytes);
  if (!memory.ok()) return memory.status();
  return PinnedBuffer(backend_, *memory, bytes);
}

StatusOr<Stream> Device::create_stream() const {
  const StatusOr<StreamHandle> handle = backend_->create_stream();
  if (!handle.ok()) return handle.status();
  return Stream(backend_, *handle, std::make_shared<const OwnedStream>(backend_, *handle));
}

Stream Device::default_stream() const { return borrow_stream(StreamHandle::kDefault); }

Stream Device::borrow_stream(StreamHandle handle) const {
  return Stream(backend_, handle, /*owned=*/nullptr);
}

StatusOr<Event> Device::create_event() const {
  const StatusOr<EventHandle> handle = backend_->create_event();
  if (!handle.ok()) return handle.status();
  return Event(backend_, *handle);
}

void Device::set_max_instructions(int64_t count) const {
  if (InterpBackend* const backend = interp()) backend->set_max_instructions(count);
}

void Device::set_launch_options(const CompileOptions& options) const {
  backend_->set_launch_options(std::make_shared<const CompileOptions>(options));
}

Status Device::set_completion(absl::string_view when) const {
  const StatusOr<ir::interp::Completion> completion = ir::interp::parse_completion(when);
  if (!completion.ok()) return completion.status();
  if (InterpBackend* const backend = interp()) backend->set_completion(*completion);
  return OkStatus();
}

cuda::CudaBackend* Device::cuda() const {
  return kind() == BackendKind::kCuda ? static_cast<cuda::CudaBackend*>(backend_.get()) : nullptr;
}

InterpBackend* Device::interp() const {
  return kind() == BackendKind::kInterp ? static_cast<InterpBackend*>(backend_.get()) : nullptr;
}

Device Stream::device() const { return Device(backend_); }

}  // namespace heddle::runtime
