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

struct CompileOptions;
class InterpBackend;
namespace cuda {
class CudaBackend;
}  // namespace cuda

// A device: a GPU, or an interpreter. A handle that is cheap to copy. Thread-safe.
class Device {
 public:
  // "cuda:N" or "interp"; "cuda" is cuda:0, and "interp:N" are further interpreters with memory of
  // their own. Opening a name again gives the same device while it is in use. kInvalidArgument
  // for another name, kNotFound without a driver or without that GPU; the message says what works.
  static StatusOr<Device> open(absl::string_view name);

  // An interpreter with memory and limits of its own, which open() does not give to others.
  static Device open_private_interp(DeviceInfo info);

  // How many GPUs open() accepts; the reason where there is no driver.
  static StatusOr<int> cuda_device_count();

  // The device behind a stream or a buffer, which must have one.
  explicit Device(std::shared_ptr<Backend> backend) : backend_(std::move(backend)) {}

  // "cuda:0", "interp".
  const std::string& name() const { return backend_->name(); }
  // What the device has, and its limits.
  const DeviceInfo& info() const { return backend_->info(); }
  // What stands behind it: a GPU, an interpreter, or a dry run.
  BackendKind kind() const { return backend_->kind(); }

  // OK, or which launch made the device unusable. After an illegal access or a similar error, the
  // driver refuses every further call, and Heddle reports that at once.
  Status health() const { return backend_->health(); }
  // Free and total memory, in bytes.
  StatusOr<MemoryUsage> memory_usage() const { return backend_->memory_usage(); }
  // Waits for all streams. It returns errors of earlier kernels.
  Status synchronize() const { return backend_->synchronize(); }

  // The interpreter's limit of instructions, for the warps of a block, or of blocks that run
  // together. A launch that exceeds it ends with kResourceExhausted; the message names the loop
  // that does not end and what it waits for. 0: no limit. The default is 10^9, which takes ten
  // seconds or so. GPUs have no such limit.
  void set_max_instructions(int64_t count) const;
  // When the interpreter completes copies and tensor-core products: "early", at once; "late", as
  // late as the kernel allows; "seed:7", at times that follow from the number. The default is that of the
  // environment variable HEDDLE_INTERP_COMPLETION, or else late. kInvalidArgument for another text.
  // GPUs complete them when they do.
  Status set_completion(absl::string_view when) const;

  // How launches on this device compile kernels from now on: all but the block, the cluster and the stage, which are the launch's.
  // Kernels that were compiled for such arguments before stay as they are. HEDDLE_OPTIONS and HEDDLE_PASSES still count where the
  // options leave their defaults. All handles of the device see it.
  void set_launch_options(const CompileOptions& options) const;

  // Allocates device memory, which is uninitialised. 0 bytes are allowed. kResourceExhausted says
  // how much was requested and how much there is.
  StatusOr<Buffer> allocate(size_t bytes) const;
  // Allocates pinned host memory, likewise.
  StatusOr<PinnedBuffer> allocate_pinned(size_t bytes) const;

  // A new stream.
  StatusOr<Stream> create_stream() const;
  // The default stream, which launches without a stream use. It belongs to the device and always
  // exists.
  Stream default_stream() const;
  // A stream (CUstream) of this device that was made elsewhere, such as PyTorch's current one. It
  // must outlive its uses here.
  Stream borrow_stream(StreamHandle handle) const;
  // A new event.
  StatusOr<Event> create_event() const;

  // A new buffer with these values, complete on return.
  template <class T>
  StatusOr<Buffer> upload(absl::Span<const T> values) const;
  template <class T>
  StatusOr<Buffer> upload(std::initializer_list<T> values) const {
    return upload(absl::Span<const T>(values.begin(), values.size()));
  }

  // The implementation; at most one of cuda() and interp() is not null.
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
