#include "heddle/runtime/interp_backend.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"

namespace heddle::runtime {
namespace {

constexpr size_t kHostAlignment = 4096;
// More is a mistake; allocators differ in what they make of it.
constexpr size_t kLargestHostBytes = size_t{1} << 40;

// Host time in nanoseconds; 0 before the first record. And where in a capture it was recorded.
struct InterpEvent {
  std::atomic<int64_t> time_ns{0};
  std::mutex mutex;
  InterpCaptures::Point point;

  InterpCaptures::Point where() {
    const std::lock_guard<std::mutex> lock(mutex);
    return point;
  }
  void record(const InterpCaptures::Point& at, int64_t now) {
    const std::lock_guard<std::mutex> lock(mutex);
    point = at;
    time_ns.store(now);
  }
};

InterpEvent* event_of(EventHandle handle) {
  return reinterpret_cast<InterpEvent*>(static_cast<uintptr_t>(handle));
}

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// An event of recorded work is never reached.
Status check_reached(EventHandle event) {
  if (event_of(event)->where().stream == StreamHandle::kDefault) return OkStatus();
  return FailedPreconditionError(
      "the event was last recorded on a stream whose work was being recorded, and is never "
      "reached; "
      "fix: record it outside the capture");
}

// Says on which device and in which operation an address was wrong.
Status located(const Status& status, absl::string_view what, const std::string& device) {
  if (status.ok()) return status;
  return Status(status.code(), absl::StrCat(what, " on ", device, " failed: ", status.message()));
}

}  // namespace

InterpBackend::InterpBackend(std::string name, DeviceInfo info)
    : Backend(BackendKind::kInterp, std::move(name), std::move(info)),
      memory_(static_cast<uint64_t>(this->info().total_memory)) {
  const StatusOr<ir::interp::Completion> completion = completion_of_environment();
  if (completion.ok()) set_completion(*completion);
}

StatusOr<ir::interp::Completion> InterpBackend::completion_of_environment() {
  const char* const text = std::getenv("HEDDLE_INTERP_COMPLETION");
  if (text == nullptr || *text == 0) return ir::interp::Completion{};
  const StatusOr<ir::interp::Completion> completion = ir::interp::parse_completion(text);
  if (completion.ok()) return completion;
  return InvalidArgumentError(
      absl::StrCat("HEDDLE_INTERP_COMPLETION: ", completion.status().message()));
}

std::shared_ptr<InterpBackend> InterpBackend::open(int ordinal) {
  static std::mutex& mutex = *new std::mutex;
  static auto& devices = *new std::map<int, std::weak_ptr<InterpBackend>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<InterpBackend> device = devices[ordinal].lock();
  if (device == nullptr) {
    device =
        std::make_shared<InterpBackend>(ordinal == 0 ? "interp" : absl::StrCat("interp:", ordinal));
    devices[ordinal] = device;
  }
  return device;
}

DeviceInfo InterpBackend::default_info() {
  DeviceInfo info;
  info.name = "Heddle interpreter";
  return info;
}

Status InterpBackend::health() const { return OkStatus(); }

StatusOr<MemoryUsage> InterpBackend::memory_usage() {
  const uint64_t total = memory_.capacity();
  return MemoryUsage{total - memory_.allocated_bytes(), total};
}

Status InterpBackend::synchronize() {
  if (Status s = captures_.refuse_any_wait("synchronize()"); !s.ok()) return s;
  launches_.forget_all();
  return OkStatus();
}

StatusOr<DeviceAddress> InterpBackend::allocate(size_t bytes) {
  StatusOr<uint64_t> address = memory_.allocate(bytes);
  if (!address.ok()) return located(address.status(), "allocation", name());
  return address;
}

// As a GPU's, it waits for all launches.
void InterpBackend::deallocate(DeviceAddress address) noexcept {
  launches_.forget_all();
  (void)memory_.free(address);
}

template <class Operation, class... Args>
Status InterpBackend::enqueue(StreamHandle stream, const char* what, Operation operation,
                              Args... arguments) {
  return run_or_record(stream, [=, this](StreamHandle on) {
    launches_.forget(on);
    return located((memory_.*operation)(arguments...), what, name());
  });
}

StatusOr<DeviceAddress> InterpBackend::allocate_in(StreamHandle stream, size_t bytes) {
  const std::shared_ptr<InterpCapture> capture = captures_.of(stream);
  if (capture == nullptr) return allocate(bytes);
  const StatusOr<DeviceAddress> address =
      graph_memory_.allocate(*this, capture.get(), stream, bytes);
  if (!address.ok()) return address;
  // Each time that the work runs.
  const Status recorded = enqueue(stream, "allocation", &ir::interp::Memory::mark_uninitialized,
                                  *address, uint64_t{bytes});
  if (!recorded.ok()) return recorded;
  return address;
}

void InterpBackend::deallocate_in(StreamHandle, DeviceAddress address) noexcept {
  if (!graph_memory_.give_back(*this, address)) deallocate(address);
}

StatusOr<void*> InterpBackend::allocate_host(size_t bytes) {
  const size_t rounded = (bytes + kHostAlignment - 1) / kHostAlignment * kHostAlignment;
  void* memory = bytes > kLargestHostBytes ? nullptr : std::aligned_alloc(kHostAlignment, rounded);
  if (memory == nullptr) {
    return ResourceExhaustedError(absl::StrCat("cannot allocate ", bytes, " bytes of host memory"));
  }
  return memory;
}

void InterpBackend::deallocate_host(void* memory) noexcept { std::free(memory); }

StatusOr<StreamHandle> InterpBackend::create_stream() {
  // Streams have no state; a number of their own keeps them apart from the default stream.
  static std::atomic<uintptr_t> next{1};
  return StreamHandle{next.fetch_add(1)};
}

// Its number is never given again: this only frees memory.
void InterpBackend::destroy_stream(StreamHandle stream) noexcept {
  graph_memory_.forget(stream);
  launches_.forget(stream);
}

Status InterpBackend::synchronize_stream(StreamHandle stream) {
  if (Status s = captures_.refuse_wait(stream, "synchronize()"); !s.ok()) return s;
  launches_.forget(stream);
  return OkStatus();
}

StatusOr<bool> InterpBackend::stream_done(StreamHandle stream) {
  if (Status s = captures_.refuse_wait(stream, "done()"); !s.ok()) return s;
  return true;
}

Status InterpBackend::stream_wait(StreamHandle stream, EventHandle event) {
  if (event_of(event)->time_ns.load() == 0) return OkStatus();
  return captures_.join(stream, event_of(event)->where());
}

StatusOr<EventHandle> InterpBackend::create_event() {
  return EventHandle{reinterpret_cast<uintptr_t>(new InterpEvent)};
}

void InterpBackend::destroy_event(EventHandle event) noexcept { delete event_of(event); }

Status InterpBackend::record_event(EventHandle event, StreamHandle stream) {
  event_of(event)->record(captures_.point(stream), now_ns());
  return OkStatus();
}

Status InterpBackend::synchronize_event(EventHandle event) { return check_reached(event); }

StatusOr<bool> InterpBackend::event_done(EventHandle event) {
  if (Status s = check_reached(event); !s.ok()) return s;
  return true;
}

StatusOr<double> InterpBackend::elapsed_ms(EventHandle start, EventHandle stop) {
  for (const EventHandle event : {start, stop}) {
    if (Status s = check_reached(event); !s.ok()) return s;
  }
  const int64_t from = event_of(start)->time_ns.load();
  const int64_t to = event_of(stop)->time_ns.load();
  return static_cast<double>(to - from) * 1e-6;
}

Status InterpBackend::check_written(DeviceAddress address, size_t bytes, size_t element_bytes,
                                    bool padded) {
  const Status status = memory_.check_written(address, bytes, element_bytes, padded);
  if (status.code() != StatusCode::kFailedPrecondition) {
    return located(status, "copy to the host", name());
  }
  return FailedPreconditionError(
      absl::StrCat("copy to the host on ", name(), ": ", status.message(),
                   "; fix: let the kernel write all of it, fill the buffer before the launch, or "
                   "pass Unwritten::kAllow where it does not matter"));
}

Status InterpBackend::copy_to_device(StreamHandle stream, DeviceAddress to, const void* from,
                                     size_t bytes) {
  return enqueue(stream, "copy to the device", &ir::interp::Memory::copy_from_host, to, from,
                 bytes);
}

Status InterpBackend::copy_to_host(StreamHandle stream, void* to, DeviceAddress from, size_t bytes,
                                   Unwritten unwritten) {
  return run_or_record(stream, [=, this](StreamHandle on) {
    if (unwritten == Unwritten::kError) {
      Status s = check_written(from, bytes, /*element_bytes=*/1, /*padded=*/false);
      if (!s.ok()) return s;
    }
    launches_.forget(on);
    return located(memory_.copy_to_host(to, from, bytes), "copy to the host", name());
  });
}

Status InterpBackend::copy_on_device(StreamHandle stream, DeviceAddress to, DeviceAddress from,
                                     size_t bytes) {
  return enqueue(stream, "copy", &ir::interp::Memory::copy, to, from, bytes);
}

Status InterpBackend::fill8(StreamHandle stream, DeviceAddress to, uint8_t value, size_t count) {
  return enqueue(stream, "fill", &ir::interp::Memory::fill, to, value, 1, count);
}

Status InterpBackend::fill32(StreamHandle stream, DeviceAddress to, uint32_t value, size_t count) {
  return enqueue(stream, "fill", &ir::interp::Memory::fill, to, value, 4, count);
}

StatusOr<std::unique_ptr<WorkGraph>> InterpBackend::create_graph() {
  return std::make_unique<InterpGraph>(*this);
}

Status InterpBackend::begin_capture(StreamHandle stream) { return captures_.begin(*this, stream); }

StatusOr<std::unique_ptr<WorkGraph>> InterpBackend::end_capture(StreamHandle stream) {
  StatusOr<std::shared_ptr<InterpCapture>> capture = captures_.end(stream);
  if (!capture.ok()) return capture.status();
  return std::make_unique<InterpGraph>(*this, *std::move(capture));
}

}  // namespace heddle::runtime
