#include "heddle/runtime/stream.h"

#include "absl/strings/str_cat.h"
#include "heddle/runtime/buffer.h"

namespace heddle::runtime {
namespace {

Status same_device(const Backend* a, const Backend* b, absl::string_view what) {
  if (a == nullptr || b == nullptr) return moved_from(what);
  if (a == b) return OkStatus();
  return InvalidArgumentError(
      absl::StrCat(what, ": one belongs to ", a->name(), ", the other to ", b->name()));
}

Status check_host_pointer(const void* pointer, absl::string_view what) {
  if (pointer != nullptr) return OkStatus();
  return InvalidArgumentError(absl::StrCat(what, ": the host pointer is null"));
}

}  // namespace

Status moved_from(absl::string_view what) {
  return FailedPreconditionError(
      absl::StrCat(what, " was used after it was moved from: use the one that it was moved to"));
}

Event& Event::operator=(Event&& other) noexcept {
  Event old(std::move(*this));
  backend_ = std::move(other.backend_);
  handle_ = std::exchange(other.handle_, EventHandle::kNone);
  recorded_ = other.recorded_;
  return *this;
}

Event::~Event() {
  if (handle_ != EventHandle::kNone) backend_->destroy_event(handle_);
}

Status Event::record(const Stream& stream) {
  if (Status s = same_device(backend_.get(), stream.backend().get(), "an event and its stream");
      !s.ok()) {
    return s;
  }
  if (Status s = stream.check(); !s.ok()) return s;
  if (Status s = backend_->record_event(handle_, stream.handle()); !s.ok()) return s;
  recorded_ = true;
  return OkStatus();
}

StatusOr<bool> Event::done() const {
  if (backend_ == nullptr) return moved_from("an Event");
  return backend_->event_done(handle_);
}

Status Event::synchronize() const {
  if (backend_ == nullptr) return moved_from("an Event");
  return backend_->synchronize_event(handle_);
}

StatusOr<double> Event::elapsed_ms(const Event& start, const Event& stop) {
  if (Status s = same_device(start.backend_.get(), stop.backend_.get(), "two events"); !s.ok()) {
    return s;
  }
  for (const Event* event : {&start, &stop}) {
    if (event->recorded_) continue;
    return FailedPreconditionError(
        absl::StrCat("no time between two events on ", event->backend_->name(), ": the ",
                     event == &start ? "first" : "second", " was never recorded on a stream"));
  }
  if (Status s = stop.synchronize(); !s.ok()) return s;
  return stop.backend_->elapsed_ms(start.handle_, stop.handle_);
}

Status Stream::check() const {
  if (backend_ == nullptr) return moved_from("a Stream");
  if (!launches_only_) return OkStatus();
  return InvalidArgumentError(
      "a graph's node of one launch enqueues something else, or waits; fix: add it by "
      "GraphBuilder::add()");
}

Status Stream::synchronize() const {
  if (Status s = check(); !s.ok()) return s;
  return backend_->synchronize_stream(handle_);
}

StatusOr<bool> Stream::done() const {
  if (Status s = check(); !s.ok()) return s;
  return backend_->stream_done(handle_);
}

Status Stream::wait(const Event& event) const {
  if (Status s = check(); !s.ok()) return s;
  if (Status s = same_device(event.backend_.get(), backend_.get(), "an event and its stream");
      !s.ok()) {
    return s;
  }
  return backend_->stream_wait(handle_, event.handle_);
}

StatusOr<Buffer> Stream::allocate(size_t bytes) const {
  if (backend_ == nullptr) return moved_from("a Stream");
  return Buffer::allocate(backend_, bytes, Buffer::FreedIn{handle_, owned_});
}

Status Stream::copy_to_device(DeviceAddress to, const void* from, size_t bytes) const {
  if (Status s = check(); !s.ok()) return s;
  if (bytes == 0) return OkStatus();
  if (Status s = check_host_pointer(from, "copy to the device"); !s.ok()) return s;
  return backend_->copy_to_device(handle_, to, from, bytes);
}

Status Stream::copy_to_host(void* to, DeviceAddress from, size_t bytes, Unwritten unwritten) const {
  if (Status s = check(); !s.ok()) return s;
  if (bytes == 0) return OkStatus();
  if (Status s = check_host_pointer(to, "copy to the host"); !s.ok()) return s;
  return backend_->copy_to_host(handle_, to, from, bytes, unwritten);
}

Status Stream::copy_on_device(DeviceAddress to, DeviceAddress from, size_t bytes) const {
  if (Status s = check(); !s.ok()) return s;
  if (bytes == 0) return OkStatus();
  // The driver leaves an overlap undefined instead of reporting it.
  const DeviceAddress distance = to > from ? to - from : from - to;
  if (distance < bytes) {
    return InvalidArgumentError(
        absl::StrCat("copy on ", backend_->name(), ": source and destination of ", bytes,
                     " bytes overlap, they are ", distance, " bytes apart"));
  }
  return backend_->copy_on_device(handle_, to, from, bytes);
}

Status Stream::fill8(DeviceAddress to, uint8_t value, size_t count) const {
  if (Status s = check(); !s.ok()) return s;
  if (count == 0) return OkStatus();
  return backend_->fill8(handle_, to, value, count);
}

Status Stream::fill32(DeviceAddress to, uint32_t value, size_t count) const {
  if (Status s = check(); !s.ok()) return s;
  if (count == 0) return OkStatus();
  return backend_->fill32(handle_, to, value, count);
}

}  // namespace heddle::runtime
