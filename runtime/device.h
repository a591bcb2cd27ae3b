// A device: a GPU, or the interpreter, through one API.
//
//   Device device = Device::open("cuda:0").value();          // or "interp": no GPU needed
//   Stream stream = device.create_stream().value();
//   Buffer x = device.upload<float>({1, 2, 3}).value();
//
// A Device is a cheap copyable handle; streams, events, buffers and modules keep theirs open. Every
// function is thread-safe. A GPU is used through its primary context, which CUDA's runtime API and
// PyTorch use too, and each call leaves the calling thread's current context as it was.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/buffer.h"
#include "heddle/runtime/device_info.h"
#include "heddle/runtime/stream.h"

namespace heddle::runtime {

class InterpBackend;
namespace cuda {
class CudaBackend;
}  // namespace cuda

class Device {
 public:
  // "cuda:N" or "interp"; "cuda" is cuda:0, and "interp:N" are further interpreters with memory of
  // their own. Opening a name again gives the same device while anybody holds it. kInvalidArgument
  // for another name, kNotFound without a driver or without that GPU; the message says what works.
  static StatusOr<Device> open(absl::string_view name);

  // An interpreter that nobody else opens, with limits of the caller's choice.
  static Device open_private_interp(DeviceInfo info);

  // The GPUs that open() accepts; why none when there is no driver.
  static StatusOr<int> cuda_device_count();

  // The device behind a stream or a buffer, which must have one.
  explicit Device(std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {}

  // "cuda:0", "interp".
  const std::string& name() const { return backend_->name(); }
  const DeviceInfo& info() const { return backend_->info(); }
  BackendKind kind() const { return backend_->kind(); }

  // OK, or which launch made the device unusable: after an illegal access and its like the driver
  // refuses every further call, and so does Heddle, at once.
  Status health() const { return backend_->health(); }
  StatusOr<MemoryUsage> memory_usage() const { return backend_->memory_usage(); }
  // Waits for all streams. Errors of earlier kernels come out here.
  Status synchronize() const { return backend_->synchronize(); }

  // How many instructions the warps of a block, or of the blocks that run together, may execute on
  // the interpreter before a launch ends with kResourceExhausted, the loop that does not end and
  // what it waits for; 0: no limit. A thousand million by default, which takes ten seconds or so.
  // GPUs have no such limit.
  void set_max_instructions(int64_t count) const;

  // 0 bytes are allowed. kResourceExhausted says how much was asked for and how much there is.
  StatusOr<Buffer> allocate(size_t bytes) const;
  StatusOr<PinnedBuffer> allocate_pinned(size_t bytes) const;

  StatusOr<Stream> create_stream() const;
  // The stream that launches without one use; it belongs to the device and always exists.
  Stream default_stream() const;
  // A stream that somebody else made for this device (a CUstream), such as PyTorch's current one;
  // it must outlive its uses here.
  Stream borrow_stream(StreamHandle handle) const;
  StatusOr<Event> create_event() const;

  // A new buffer with these values, complete on return.
  template <class T>
  StatusOr<Buffer> upload(absl::Span<const T> values) const;
  template <class T>
  StatusOr<Buffer> upload(std::initializer_list<T> values) const {
    return upload(absl::Span<const T>(values.begin(), values.size()));
  }

  // What launches need: at most one of the two is not null.
  cuda::CudaBackend* cuda() const;
  InterpBackend* interp() const;
  const std::shared_ptr<Backend>& backend() const { return backend_; }

  friend bool operator==(const Device& a, const Device& b) { return a.backend_ == b.backend_; }

 private:
  std::shared_ptr<Backend> backend_;
};

template <class T>
StatusOr<Buffer> Device::upload(absl::Span<const T> values) const {
  static_assert(std::is_trivially_copyable_v<T>, "upload needs plain values");
  StatusOr<Buffer> buffer = allocate(values.size() * sizeof(T));
  if (!buffer.ok()) return buffer;
  const Stream stream = default_stream();
  if (Status s = buffer->copy_from_host(stream, values.data(), buffer->size_bytes()); !s.ok()) {
    return s;
  }
  if (Status s = stream.synchronize(); !s.ok()) return s;
  return buffer;
}

}  // namespace heddle::runtime

namespace heddle {
using runtime::Device;
using runtime::DeviceInfo;
}  // namespace heddle
