// The interface of a device's implementations: the CUDA driver, the interpreter, dry runs. Programs
// use Device, Stream and Buffer, which are built on it.
//
// Launching is not part of it: the interpreter runs an ir::Kernel and the driver a loaded function.
// The layer that compiles kernels asks for the concrete backend and calls its own entry point.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "heddle/ir/status.h"
#include "heddle/runtime/device_info.h"

namespace heddle::ir {
struct TensorMap;
}

namespace heddle::runtime {

struct CompileOptions;
class WorkGraph;

// An address in the memory of a device.
using DeviceAddress = uint64_t;

// A backend's own handle of a stream, a CUstream on cuda devices. Zero is the default stream.
enum class StreamHandle : uintptr_t { kDefault = 0 };
// A backend's own handle of an event, a CUevent on cuda devices.
enum class EventHandle : uintptr_t { kNone = 0 };

// What a copy to the host does with uninitialised bytes, which nothing has written. The interpreter
// gives an error (kError) or zeros (kAllow). A GPU copies what lies there.
enum class Unwritten : uint8_t { kError, kAllow };

// The functions of a device. Thread-safe. Errors name the call, the device and a cure. Functions
// that free something cannot fail: destructors call them, also after the device was lost.
class Backend {
 public:
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // What stands behind the device.
  BackendKind kind() const { return kind_; }
  // "cuda:0", "interp".
  const std::string& name() const { return name_; }
  // What the device has, and its limits.
  const DeviceInfo& info() const { return info_; }

  // OK, or why no call can succeed any more.
  virtual Status health() const = 0;
  // Free and total memory of the device.
  virtual StatusOr<MemoryUsage> memory_usage() = 0;
  // Waits for everything that was enqueued on any stream.
  virtual Status synchronize() = 0;

  // Allocates `bytes` > 0 of device memory, aligned to 256 bytes or more. kResourceExhausted says
  // how much was requested, is free, and exists.
  virtual StatusOr<DeviceAddress> allocate(size_t bytes) = 0;
  // Frees what allocate() gave.
  virtual void deallocate(DeviceAddress address) noexcept = 0;
  // Likewise in a stream's order: for work that is enqueued after it, and until what was enqueued
  // before it is freed is complete. Neither waits.
  virtual StatusOr<DeviceAddress> allocate_in(StreamHandle stream, size_t bytes) {
    (void)stream;
    return allocate(bytes);
  }
  virtual void deallocate_in(StreamHandle stream, DeviceAddress address) noexcept {
    (void)stream;
    deallocate(address);
  }
  // Allocates pinned host memory, which asynchronous copies do not have to stage.
  virtual StatusOr<void*> allocate_host(size_t bytes) = 0;
  // Frees what allocate_host() gave.
  virtual void deallocate_host(void* memory) noexcept = 0;

  // Makes and frees a stream; waits for it; asks whether its work is complete; lets its further
  // work wait for an event.
  virtual StatusOr<StreamHandle> create_stream() = 0;
  virtual void destroy_stream(StreamHandle stream) noexcept = 0;
  virtual Status synchronize_stream(StreamHandle stream) = 0;
  virtual StatusOr<bool> stream_done(StreamHandle stream) = 0;
  virtual Status stream_wait(StreamHandle stream, EventHandle event) = 0;

  // Makes and frees an event; records it in a stream; waits for it; asks whether it was reached;
  // gives the milliseconds between two.
  virtual StatusOr<EventHandle> create_event() = 0;
  virtual void destroy_event(EventHandle event) noexcept = 0;
  virtual Status record_event(EventHandle event, StreamHandle stream) = 0;
  virtual Status synchronize_event(EventHandle event) = 0;
  virtual StatusOr<bool> event_done(EventHandle event) = 0;
  virtual StatusOr<double> elapsed_ms(EventHandle start, EventHandle stop) = 0;

  // OK where every element of a range was written, or the device does not know. kFailedPrecondition
  // says how many were not, and which is the first. `padded`: elements have bytes that belong to no
  // member.
  virtual Status check_written(DeviceAddress address, size_t bytes, size_t element_bytes,
                               bool padded) {
    (void)address, (void)bytes, (void)element_bytes, (void)padded;
    return OkStatus();
  }
  // Asynchronous copies of `bytes` > 0, and fills of `count` > 0 bytes or 32-bit words, in stream
  // order. The interpreter refuses to copy uninitialised bytes to the host, unless kAllow.
  virtual Status copy_to_device(StreamHandle stream, DeviceAddress to, const void* from,
                                size_t bytes) = 0;
  virtual Status copy_to_host(StreamHandle stream, void* to, DeviceAddress from, size_t bytes,
                              Unwritten unwritten) = 0;
  virtual Status copy_on_device(StreamHandle stream, DeviceAddress to, DeviceAddress from,
                                size_t bytes) = 0;
  virtual Status fill8(StreamHandle stream, DeviceAddress to, uint8_t value, size_t count) = 0;
  virtual Status fill32(StreamHandle stream, DeviceAddress to, uint32_t value, size_t count) = 0;

  // Graphs (graph/work_graph.h): an empty one; recording what a stream and those that join it are
  // given, in place of running it; the end of that, and what was recorded.
  virtual StatusOr<std::unique_ptr<WorkGraph>> create_graph() = 0;
  virtual Status begin_capture(StreamHandle stream) = 0;
  virtual StatusOr<std::unique_ptr<WorkGraph>> end_capture(StreamHandle stream) = 0;

  // How launches on this device compile kernels: Device::set_launch_options(). nullptr: nobody said.
  std::shared_ptr<const CompileOptions> launch_options() const { return launch_options_.load(); }
  void set_launch_options(std::shared_ptr<const CompileOptions> options) {
    launch_options_.store(std::move(options));
  }

  // Encodes a tensor map for the device's copy engine, in 128 bytes (ir/launch/tensor_map.h).
  virtual Status encode_tensor_map(const ir::TensorMap& map, std::byte* to) {
    (void)map, (void)to;
    return FailedPreconditionError(name_ + " has no tensor maps");
  }

 protected:
  Backend(BackendKind kind, std::string name, DeviceInfo info)
      : kind_(kind), name_(std::move(name)), info_(std::move(info)) {}

 private:
  const BackendKind kind_;
  const std::string name_;
  const DeviceInfo info_;
  std::atomic<std::shared_ptr<const CompileOptions>> launch_options_;
};

}  // namespace heddle::runtime
