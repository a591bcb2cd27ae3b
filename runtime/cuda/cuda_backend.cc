#include "heddle/runtime/cuda/cuda_backend.h"

#include <cstdlib>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/runtime/cuda/cuda_graph.h"
#include "heddle/runtime/cuda/loss_report.h"

namespace heddle::runtime::cuda {
namespace {

// Launches that a message about a fault lists.
constexpr size_t kListedLaunches = 4;

struct AttributeRow {
  DeviceAttribute attribute;
  void (*store)(int value, DeviceInfo& info);
};

constexpr AttributeRow kAttributes[] = {
    {DeviceAttribute::kComputeCapabilityMajor, [](int v, DeviceInfo& i) { i.compute_major = v; }},
    {DeviceAttribute::kComputeCapabilityMinor, [](int v, DeviceInfo& i) { i.compute_minor = v; }},
    {DeviceAttribute::kMultiprocessorCount, [](int v, DeviceInfo& i) { i.sm_count = v; }},
    {DeviceAttribute::kWarpSize, [](int v, DeviceInfo& i) { i.warp_size = v; }},
    {DeviceAttribute::kMaxThreadsPerMultiprocessor,
     [](int v, DeviceInfo& i) { i.max_threads_per_sm = v; }},
    {DeviceAttribute::kMaxRegistersPerMultiprocessor,
     [](int v, DeviceInfo& i) { i.registers_per_sm = v; }},
    {DeviceAttribute::kMaxSharedMemoryPerMultiprocessor,
     [](int v, DeviceInfo& i) { i.shared_per_sm = v; }},
    {DeviceAttribute::kL2CacheSize, [](int v, DeviceInfo& i) { i.l2_bytes = v; }},
    {DeviceAttribute::kClusterLaunch, [](int v, DeviceInfo& i) { i.cluster_launch = v != 0; }},
    {DeviceAttribute::kCooperativeLaunch,
     [](int v, DeviceInfo& i) { i.cooperative_launch = v != 0; }},
    {DeviceAttribute::kMaxGridDimX, [](int v, DeviceInfo& i) { i.limits.max_grid_x = v; }},
    {DeviceAttribute::kMaxGridDimY, [](int v, DeviceInfo& i) { i.limits.max_grid_y = v; }},
    {DeviceAttribute::kMaxGridDimZ, [](int v, DeviceInfo& i) { i.limits.max_grid_z = v; }},
    {DeviceAttribute::kMaxBlockDimX, [](int v, DeviceInfo& i) { i.limits.max_block_x = v; }},
    {DeviceAttribute::kMaxBlockDimY, [](int v, DeviceInfo& i) { i.limits.max_block_y = v; }},
    {DeviceAttribute::kMaxBlockDimZ, [](int v, DeviceInfo& i) { i.limits.max_block_z = v; }},
    {DeviceAttribute::kMaxThreadsPerBlock,
     [](int v, DeviceInfo& i) { i.limits.max_threads_per_block = v; }},
    {DeviceAttribute::kMaxSharedMemoryPerBlockOptin,
     [](int v, DeviceInfo& i) { i.limits.max_shared_per_block = v; }},
};

StatusOr<DeviceInfo> query_info(const Driver& driver, DeviceOrdinal device,
                                const std::string& name) {
  const DriverApi& api = driver.api();
  const auto error = [&](const char* symbol, Result result) {
    return driver_error(api, result, {.call = symbol, .device = name});
  };
  DeviceInfo info;
  info.driver_version = driver.version();
  char text[256] = {};
  Result result = api.device_get_name(text, sizeof(text) - 1, device);
  if (result != Result::kSuccess) return error(api.device_get_name.symbol, result);
  info.name = text;
  size_t total = 0;
  result = api.device_total_mem(&total, device);
  if (result != Result::kSuccess) return error(api.device_total_mem.symbol, result);
  info.total_memory = static_cast<int64_t>(total);
  for (const AttributeRow& row : kAttributes) {
    int value = 0;
    result = api.device_get_attribute(&value, row.attribute, device);
    if (result != Result::kSuccess) return error(api.device_get_attribute.symbol, result);
    row.store(value, info);
  }
  return info;
}

// Whether an environment variable is set, and not to 0.
bool is_on(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0' && std::string(value) != "0";
}

}  // namespace

StatusOr<int> CudaBackend::device_count() {
  const StatusOr<const Driver*> driver = Driver::get();
  if (!driver.ok()) return driver.status();
  const DriverApi& api = (*driver)->api();
  int count = 0;
  const Result result = api.device_get_count(&count);
  if (result == Result::kSuccess) return count;
  return driver_error(api, result, {.call = api.device_get_count.symbol});
}

StatusOr<std::shared_ptr<CudaBackend>> CudaBackend::open(int ordinal) {
  const StatusOr<const Driver*> driver = Driver::get();
  if (!driver.ok()) return driver.status();

  static std::mutex& mutex = *new std::mutex;
  static auto& opened = *new std::map<std::pair<const Driver*, int>, std::weak_ptr<CudaBackend>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::weak_ptr<CudaBackend>& slot = opened[{*driver, ordinal}];
  if (std::shared_ptr<CudaBackend> backend = slot.lock()) return backend;

  const std::string name = absl::StrCat("cuda:", ordinal);
  const StatusOr<int> count = device_count();
  if (!count.ok()) return count.status();
  if (ordinal >= *count) {
    return NotFoundError(absl::StrCat(name, " does not exist: the driver sees ", *count,
                                      *count == 1 ? " GPU" : " GPUs",
                                      " (CUDA_VISIBLE_DEVICES may hide some); ", kStillWorks));
  }
  const DriverApi& api = (*driver)->api();
  DeviceOrdinal device = 0;
  Result result = api.device_get(&device, ordinal);
  if (result != Result::kSuccess) {
    return driver_error(api, result, {.call = api.device_get.symbol, .device = name});
  }
  StatusOr<DeviceInfo> info = query_info(**driver, device, name);
  if (!info.ok()) return info.status();
  ContextHandle context = nullptr;
  result = api.primary_ctx_retain(&context, device);
  if (result != Result::kSuccess) {
    return driver_error(api, result, {.call = api.primary_ctx_retain.symbol, .device = name});
  }
  std::shared_ptr<CudaBackend> backend(
      new CudaBackend(**driver, device, context, name, *std::move(info)));
  slot = backend;
  return backend;
}

CudaBackend::CudaBackend(const Driver& driver, DeviceOrdinal device, ContextHandle context,
                         std::string name, DeviceInfo info)
    : Backend(BackendKind::kCuda, std::move(name), std::move(info)),
      driver_(driver),
      device_(device),
      context_(context),
      driver_blocks_(is_on("CUDA_LAUNCH_BLOCKING")),
      blocking_(driver_blocks_ || is_on("HEDDLE_LAUNCH_BLOCKING")),
      reporter_(LossReporter::from_environment()) {}

CudaBackend::~CudaBackend() {
  if (pool_.value_or(nullptr) != nullptr) release(api().mem_pool_destroy, *pool_);
  api().primary_ctx_release(device_);
}

Status CudaBackend::health() const {
  if (!lost()) return OkStatus();
  std::lock_guard<std::mutex> lock(loss_mutex_);
  return FailedPreconditionError(loss_);
}

std::string CudaBackend::blame() const {
  const std::vector<LaunchRecord> records = ring_.records();
  if (records.empty()) {
    return "no launch of this program is unfinished, so a copy or another user of the GPU failed";
  }
  const auto text = [](const LaunchRecord& record) {
    return absl::StrCat(record.site.describe(), " with ", describe(record.shape));
  };
  if (records.size() == 1) {
    return absl::StrCat("caused by ", text(records[0]), ", the only unfinished launch");
  }
  std::string list = "caused by one of the unfinished launches, newest first: ";
  for (size_t i = 0; i < records.size() && i < kListedLaunches; ++i) {
    absl::StrAppend(&list, i == 0 ? "" : " | ", text(records[i]));
  }
  if (records.size() > kListedLaunches) {
    absl::StrAppend(&list, " | and ", records.size() - kListedLaunches, " more");
  }
  return absl::StrCat(list, " (HEDDLE_LAUNCH_BLOCKING=1 tells which)");
}

std::string CudaBackend::to_text(Amount amount) {
  return amount.unit == nullptr ? "" : absl::StrCat(amount.count, " ", amount.unit);
}

std::string CudaBackend::report(const char* symbol, const ErrorInfo& info, absl::string_view cause,
                                const LaunchRecord* culprit) const {
  if (reporter_ == nullptr) return "";
  const char* text = nullptr;
  if (api().get_error_string(Result{info.code}, &text) != Result::kSuccess || text == nullptr) {
    text = "";
  }
  return reporter_->write(
      {.call = symbol,
       .code = info.code,
       .name = info.name,
       .text = text,
       .meaning = info.hint,
       .cause = cause,
       .device = name(),
       .info = &this->info(),
       .unfinished = culprit == nullptr ? ring_.records() : std::vector<LaunchRecord>{*culprit}});
}

Status CudaBackend::fail(const char* symbol, Result result, absl::string_view subject,
                         absl::string_view detail, const LaunchRecord* culprit) {
  DriverFailure failure{.call = symbol, .subject = subject, .device = name(), .detail = detail};
  const ErrorInfo info = error_info(result);
  if (!info.sticky) return driver_error(api(), result, failure);

  const std::string cause = culprit == nullptr
                                ? blame()
                                : absl::StrCat("caused by ", culprit->site.describe(), " with ",
                                               describe(culprit->shape));
  std::string hint = info.hint;
  {
    std::lock_guard<std::mutex> lock(loss_mutex_);
    if (loss_.empty()) {
      loss_ = absl::StrCat(name(), " is lost since ", call_name(symbol), " reported ", info.name,
                           " (", info.code, "), ", cause, "; restart the process to use it again");
      if (const std::string about = report(symbol, info, cause, culprit); !about.empty()) {
        absl::StrAppend(&loss_, "; ", about);
        absl::StrAppend(&hint, "; ", about);
      }
    }
  }
  lost_.store(true, std::memory_order_release);
  failure.detail = cause;
  failure.hint = hint;
  return driver_error(api(), result, failure);
}

StatusOr<MemoryUsage> CudaBackend::memory_usage() {
  size_t free = 0;
  size_t total = 0;
  if (Status s = call(api().mem_get_info, &free, &total); !s.ok()) return s;
  return MemoryUsage{free, total};
}

Status CudaBackend::synchronize() {
  const uint64_t before = ring_.next_ticket();
  Status status = call(api().ctx_synchronize);
  if (status.ok()) ring_.complete_all(before);
  return status;
}

// Memory that streams, or other users of the context (PyTorch's asynchronous allocator, say), have
// given back but that the driver still keeps in its pools.
void CudaBackend::trim_memory_pools() {
  MemoryPoolHandle pool = nullptr;
  if (api().device_get_default_mem_pool(&pool, device_) == Result::kSuccess) {
    api().mem_pool_trim_to(pool, 0);
  }
  const std::lock_guard<std::mutex> lock(pool_mutex_);
  if (pool_.value_or(nullptr) != nullptr) api().mem_pool_trim_to(*pool_, 0);
}

// A pool of its own, as how much the default one keeps is for the whole process to say.
StatusOr<MemoryPoolHandle> CudaBackend::memory_pool() {
  const std::lock_guard<std::mutex> lock(pool_mutex_);
  if (pool_) return *pool_;
  int supported = 0;
  if (Status s =
          call(api().device_get_attribute, &supported, DeviceAttribute::kMemoryPools, device_);
      !s.ok()) {
    return s;
  }
  if (supported == 0) return *(pool_ = nullptr);
  // A stream of this thread's may be being captured: of that, the pool is no part.
  CaptureMode mode = CaptureMode::kRelaxed;
  if (Status s = call(api().thread_exchange_capture_mode, &mode); !s.ok()) return s;
  MemoryPoolHandle made = nullptr;
  const PoolProperties properties{.device = device_};
  Status status = call(api().mem_pool_create, &made, &properties);
  if (status.ok()) {
    // Without it, what is given back leaves the pool whenever somebody waits for a stream.
    uint64_t keep = ~uint64_t{0};
    status = call(api().mem_pool_set_attribute, made, PoolAttribute::kReleaseThreshold, &keep);
    if (!status.ok()) release(api().mem_pool_destroy, made);
  }
  api().thread_exchange_capture_mode(&mode);  // also where the device was lost meanwhile
  if (!status.ok()) return status;
  return *(pool_ = made);
}

Status CudaBackend::out_of_memory(const char* symbol, size_t bytes) {
  std::string detail = absl::StrCat(bytes, " bytes requested");
  size_t free = 0;
  size_t total = 0;
  if (api().mem_get_info(&free, &total) == Result::kSuccess) {
    absl::StrAppend(&detail, ", ", free, " of ", total, " bytes free");
  }
  return fail(symbol, Result::kOutOfMemory, "", detail);
}

template <class... Args, class... Rest>
StatusOr<DeviceAddress> CudaBackend::allocate_by(
    const DriverFunction<Result(DevicePointer*, size_t, Args...)>& function, size_t bytes,
    Rest... rest) {
  if (lost()) return health();
  const Scope scope(*this);
  if (scope.result() != Result::kSuccess) return fail(scope.failed_call(), scope.result());
  DevicePointer address = 0;
  Result result = function(&address, bytes, rest...);
  // What pools keep is given back, and once more after what is still to be freed in streams' order; a wait would break captures.
  for (const bool wait : {false, true}) {
    if (result != Result::kOutOfMemory || (wait && recordings_.any())) break;
    if (wait) {
      const Result waited = api().ctx_synchronize();
      if (error_info(waited).sticky) return fail(api().ctx_synchronize.symbol, waited);
      if (waited != Result::kSuccess) break;
    }
    trim_memory_pools();
    result = function(&address, bytes, rest...);
  }
  if (result == Result::kSuccess) {
    if (reporter_ != nullptr) reporter_->allocated(address, bytes);
    return address;
  }
  if (result == Result::kOutOfMemory) return out_of_memory(function.symbol, bytes);
  return fail(function.symbol, result, to_text({bytes, "bytes"}));
}

StatusOr<DeviceAddress> CudaBackend::allocate(size_t bytes) {
  return allocate_by(api().mem_alloc, bytes);
}

void CudaBackend::deallocate(DeviceAddress address) noexcept {
  if (reporter_ != nullptr) reporter_->freed(address);
  release(api().mem_free, address);
}

StatusOr<DeviceAddress> CudaBackend::allocate_in(StreamHandle stream, size_t bytes) {
  if (recordings_.any()) {
    const StatusOr<std::shared_ptr<Recording>> recording = recordings_.of(stream);
    if (!recording.ok()) return recording.status();
    if (*recording != nullptr) {
      return graph_memory_.allocate(*this, recording->get(), stream, bytes);
    }
  }
  const StatusOr<MemoryPoolHandle> pool = memory_pool();
  if (!pool.ok()) return pool.status();
  if (*pool == nullptr) return allocate(bytes);
  return allocate_by(api().mem_alloc_from_pool_async, bytes, *pool, driver_stream(stream));
}

void CudaBackend::deallocate_in(StreamHandle stream, DeviceAddress address) noexcept {
  if (graph_memory_.give_back(*this, address)) return;
  // A capture would make a node of it, of memory that it does not know.
  if (recordings_.any()) {
    const StatusOr<std::shared_ptr<Recording>> recording = recordings_.of(stream);
    if (!recording.ok() || *recording != nullptr) return deallocate(address);
  }
  const StatusOr<MemoryPoolHandle> pool = memory_pool();
  if (!pool.ok() || *pool == nullptr) return deallocate(address);
  if (reporter_ != nullptr) reporter_->freed(address);
  release(api().mem_free_async, address, driver_stream(stream));
}

StatusOr<void*> CudaBackend::allocate_host(size_t bytes) {
  void* memory = nullptr;
  if (Status s = call_about(Amount{bytes, "bytes of pinned host memory"}, api().mem_host_alloc,
                            &memory, bytes, kMemHostAllocPortable);
      !s.ok()) {
    return s;
  }
  return memory;
}

void CudaBackend::deallocate_host(void* memory) noexcept { release(api().mem_free_host, memory); }

StatusOr<StreamHandle> CudaBackend::create_stream() {
  DriverStream stream = nullptr;
  if (Status s = call(api().stream_create, &stream, kStreamNonBlocking); !s.ok()) return s;
  return StreamHandle{reinterpret_cast<uintptr_t>(stream)};
}

void CudaBackend::destroy_stream(StreamHandle stream) noexcept {
  graph_memory_.forget(stream);
  release(api().stream_destroy, driver_stream(stream));
}

Status CudaBackend::synchronize_stream(StreamHandle stream) {
  const uint64_t before = ring_.next_ticket();
  Status status = call(api().stream_synchronize, driver_stream(stream));
  if (status.ok()) ring_.complete(stream, before);
  return status;
}

StatusOr<bool> CudaBackend::is_captured(StreamHandle stream) {
  CaptureStatus status = CaptureStatus::kNone;
  if (Status s = call(api().stream_is_capturing, driver_stream(stream), &status); !s.ok()) return s;
  return status != CaptureStatus::kNone;
}

StatusOr<bool> CudaBackend::query(const char* symbol, Result result) {
  if (result == Result::kSuccess) return true;
  if (result == Result::kNotReady) return false;
  return fail(symbol, result);
}

StatusOr<bool> CudaBackend::stream_done(StreamHandle stream) {
  if (lost()) return health();
  const Scope scope(*this);
  if (scope.result() != Result::kSuccess) return fail(scope.failed_call(), scope.result());
  const uint64_t before = ring_.next_ticket();
  StatusOr<bool> done = query(api().stream_query.symbol, api().stream_query(driver_stream(stream)));
  if (done.ok() && *done) ring_.complete(stream, before);
  return done;
}

Status CudaBackend::stream_wait(StreamHandle stream, EventHandle event) {
  return call(api().stream_wait_event, driver_stream(stream), driver_event(event),
              kEventWaitDefault);
}

StatusOr<EventHandle> CudaBackend::create_event() {
  auto state = std::make_unique<EventState>();
  if (Status s = call(api().event_create, &state->event, kEventDefault); !s.ok()) return s;
  return EventHandle{reinterpret_cast<uintptr_t>(state.release())};
}

void CudaBackend::destroy_event(EventHandle event) noexcept {
  const std::unique_ptr<EventState> state(&event_state(event));
  release(api().event_destroy, state->event);
}

Status CudaBackend::record_event(EventHandle event, StreamHandle stream) {
  const uint64_t before = ring_.next_ticket();
  Status status = call(api().event_record, driver_event(event), driver_stream(stream));
  if (status.ok()) {
    // No ticket while the two do not belong together.
    EventState& state = event_state(event);
    state.ticket.store(0);
    state.stream.store(stream);
    state.ticket.store(before);
  }
  return status;
}

void CudaBackend::event_reached(EventHandle event) {
  const EventState& state = event_state(event);
  ring_.complete(state.stream.load(), state.ticket.load());
}

Status CudaBackend::synchronize_event(EventHandle event) {
  Status status = call(api().event_synchronize, driver_event(event));
  if (status.ok()) event_reached(event);
  return status;
}

StatusOr<bool> CudaBackend::event_done(EventHandle event) {
  if (lost()) return health();
  const Scope scope(*this);
  if (scope.result() != Result::kSuccess) return fail(scope.failed_call(), scope.result());
  StatusOr<bool> done = query(api().event_query.symbol, api().event_query(driver_event(event)));
  if (done.ok() && *done) event_reached(event);
  return done;
}

StatusOr<double> CudaBackend::elapsed_ms(EventHandle start, EventHandle stop) {
  float milliseconds = 0;
  if (Status s =
          call(api().event_elapsed_time, &milliseconds, driver_event(start), driver_event(stop));
      !s.ok()) {
    return s;
  }
  return milliseconds;
}

Status CudaBackend::copy_to_device(StreamHandle stream, DeviceAddress to, const void* from,
                                   size_t bytes) {
  return call_about(Amount{bytes, "bytes"}, api().memcpy_htod_async, to, from, bytes,
                    driver_stream(stream));
}

Status CudaBackend::copy_to_host(StreamHandle stream, void* to, DeviceAddress from, size_t bytes,
                                 Unwritten) {
  return call_about(Amount{bytes, "bytes"}, api().memcpy_dtoh_async, to, from, bytes,
                    driver_stream(stream));
}

Status CudaBackend::copy_on_device(StreamHandle stream, DeviceAddress to, DeviceAddress from,
                                   size_t bytes) {
  return call_about(Amount{bytes, "bytes"}, api().memcpy_dtod_async, to, from, bytes,
                    driver_stream(stream));
}

Status CudaBackend::fill8(StreamHandle stream, DeviceAddress to, uint8_t value, size_t count) {
  return call_about(Amount{count, "bytes"}, api().memset_d8_async, to, value, count,
                    driver_stream(stream));
}

Status CudaBackend::fill32(StreamHandle stream, DeviceAddress to, uint32_t value, size_t count) {
  return call_about(Amount{count, "words"}, api().memset_d32_async, to, value, count,
                    driver_stream(stream));
}

StatusOr<std::unique_ptr<WorkGraph>> CudaBackend::create_graph() {
  GraphHandle graph = nullptr;
  if (Status s = call(api().graph_create, &graph, 0U); !s.ok()) return s;
  return std::make_unique<CudaGraph>(*this, graph, nullptr);
}

Status CudaBackend::begin_capture(StreamHandle stream) { return recordings_.begin_capture(stream); }

StatusOr<std::unique_ptr<WorkGraph>> CudaBackend::end_capture(StreamHandle stream) {
  GraphHandle graph = nullptr;
  StatusOr<std::shared_ptr<Recording>> recording = recordings_.end_capture(stream, &graph);
  if (recording.ok()) return std::make_unique<CudaGraph>(*this, graph, *std::move(recording));
  if (graph != nullptr) release(api().graph_destroy, graph);
  return recording.status();
}

}  // namespace heddle::runtime::cuda
