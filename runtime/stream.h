// Streams: work in order; events: points in a stream, to wait for or to measure between.
//
//   Stream stream = device.create_stream().value();
//   Event start = device.create_event().value(), stop = device.create_event().value();
//   start.record(stream);
//   row_sum.launch(stream, ...);
//   stop.record(stream);
//   double ms = Event::elapsed_ms(start, stop).value();     // waits for stop
//
// Both belong to the device that made them and keep it open. On the interpreter every operation is
// complete when its call returns, and events hold the host's clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "heddle/ir/status.h"
#include "heddle/runtime/backend.h"

namespace heddle::runtime {

class Buffer;
class Device;
class Stream;

// The kFailedPrecondition of calls on an object that was moved from; `what` names its kind.
Status moved_from(absl::string_view what);

// A point in a stream. Movable; the destructor frees it, and work that waits for it is unaffected.
class Event {
 public:
  Event(Event&& other) noexcept
      : backend_(std::move(other.backend_)),
        handle_(std::exchange(other.handle_, EventHandle::kNone)),
        recorded_(other.recorded_) {}
  Event& operator=(Event&& other) noexcept;
  ~Event();

  // Marks the point after everything that was enqueued on the stream so far. A second record moves
  // the event.
  Status record(const Stream& stream);
  // Whether that point was reached; true before the first record.
  StatusOr<bool> done() const;
  // Waits on the host until it is reached.
  Status synchronize() const;

  // Milliseconds from one event to another of the same device; waits for `stop`.
  // kFailedPrecondition when one was never recorded.
  static StatusOr<double> elapsed_ms(const Event& start, const Event& stop);

 private:
  friend class Device;
  friend class Stream;
  Event(std::shared_ptr<Backend> backend, EventHandle handle)
      : backend_(std::move(backend)), handle_(handle) {}

  std::shared_ptr<Backend> backend_;
  EventHandle handle_;
  bool recorded_ = false;
};

// The device's stream, destroyed with the last Stream and Buffer that refer to it.
class OwnedStream {
 public:
  // Owns the backend's stream from now on.
  OwnedStream(std::shared_ptr<Backend> backend, StreamHandle handle)
      : backend_(std::move(backend)), handle_(handle) {}
  OwnedStream(const OwnedStream&) = delete;
  OwnedStream& operator=(const OwnedStream&) = delete;
  ~OwnedStream() { backend_->destroy_stream(handle_); }

 private:
  const std::shared_ptr<Backend> backend_;
  const StreamHandle handle_;
};

// A queue of work, which runs in order. Movable; one that was moved from fails every call. The
// destructor lets enqueued work finish and does not wait for it. Streams that Heddle makes do not
// wait for the default stream, nor it for them.
class Stream {
 public:
  Stream(Stream&&) = default;
  Stream& operator=(Stream&&) = default;
  ~Stream() = default;

  // Waits on the host for everything that was enqueued. It returns errors of earlier kernels.
  Status synchronize() const;
  // Whether everything that was enqueued is complete.
  StatusOr<bool> done() const;
  // Work enqueued from now on starts after the event, which may belong to another stream of the
  // same device.
  Status wait(const Event& event) const;

  // Copies and fills by device address, in stream order; 0 bytes are nothing to do. Host memory
  // must stay as it is until the copy is complete; with pageable memory the call itself waits for
  // that. Only the interpreter checks that the range belongs to this device. Buffer has the same
  // functions with bounds.
  Status copy_to_device(DeviceAddress to, const void* from, size_t bytes) const;
  // The interpreter gives an error where some of the bytes are uninitialised, unless kAllow.
  Status copy_to_host(void* to, DeviceAddress from, size_t bytes,
                      Unwritten unwritten = Unwritten::kError) const;
  // Between two places of the device. The ranges must not overlap.
  Status copy_on_device(DeviceAddress to, DeviceAddress from, size_t bytes) const;
  // Sets `count` bytes.
  Status fill8(DeviceAddress to, uint8_t value, size_t count) const;
  // Sets `count` 32-bit words, from an address that is a multiple of 4.
  Status fill32(DeviceAddress to, uint32_t value, size_t count) const;

  // Device memory for work that is enqueued on this stream from now on: scratch of an operation of
  // several launches. The buffer may go as soon as they are enqueued: its memory is freed after
  // them, in the stream's order, and stays with the device for the next such call. Neither waits,
  // and both can be captured in a graph, the one with the other. Other streams that use the buffer have to be waited for
  // before it goes, and a borrowed stream's handle (Device::borrow_stream) has to outlive it.
  // Uninitialised; errors are those of Device::allocate. Devices without memory pools allocate as
  // Device::allocate does.
  StatusOr<Buffer> allocate(size_t bytes) const;

  // The stream's device. The stream may not have been moved from.
  Device device() const;
  // The device's own handle: a CUstream on cuda devices.
  StreamHandle handle() const { return handle_; }
  // The device's implementation; null for a stream that was moved from.
  const std::shared_ptr<Backend>& backend() const { return backend_; }

 private:
  friend class Device;
  friend class Event;
  friend class Graph;
  friend class GraphBuilder;
  Stream(std::shared_ptr<Backend> backend, StreamHandle handle,
         std::shared_ptr<const OwnedStream> owned, bool launches_only = false)
      : backend_(std::move(backend)),
        handle_(handle),
        owned_(std::move(owned)),
        launches_only_(launches_only) {}
  // Whether work other than launches can be enqueued on it.
  Status check() const;

  std::shared_ptr<Backend> backend_;
  StreamHandle handle_;
  std::shared_ptr<const OwnedStream> owned_;  // nothing where the handle is somebody else's
  bool launches_only_ = false;                // a node of a graph is made of what is launched
};

}  // namespace heddle::runtime

namespace heddle {
using runtime::Event;
using runtime::Stream;
using runtime::Unwritten;
}  // namespace heddle
