// A GPU through the driver API and its primary context.
//
// The context is current on a thread only inside a call: if it was not current before, the call
// makes it so and undoes that. After an error that the driver calls sticky the backend is lost:
// every later call fails at once, with the launch that is to blame.
//
// HEDDLE_LAUNCH_BLOCKING=1 in the environment waits after every launch, so that the blame is exact. So does
// CUDA_LAUNCH_BLOCKING=1, with which the driver waits too, and every other user of CUDA in the process.
// HEDDLE_REPORT_DIR has a report written when the device is lost (loss_report.h).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "heddle/runtime/backend.h"
#include "heddle/runtime/cuda/driver.h"
#include "heddle/runtime/cuda/errors.h"
#include "heddle/runtime/cuda/launch_ring.h"
#include "heddle/runtime/cuda/recording.h"
#include "heddle/runtime/graph/graph_memory.h"

namespace heddle::runtime::cuda {

class LossReporter;

inline DriverStream driver_stream(StreamHandle handle) {
  return reinterpret_cast<DriverStream>(static_cast<uintptr_t>(handle));
}

// What an event's handle points to: the driver's event, and the launches that are done once it is
// reached, which are those of a stream before a ticket.
struct EventState {
  DriverEvent event = nullptr;
  std::atomic<StreamHandle> stream{StreamHandle::kDefault};
  std::atomic<uint64_t> ticket{0};
};
inline EventState& event_state(EventHandle handle) {
  return *reinterpret_cast<EventState*>(static_cast<uintptr_t>(handle));
}
inline DriverEvent driver_event(EventHandle handle) { return event_state(handle).event; }

class CudaBackend final : public Backend {
 public:
  // The GPU with this number: the same backend while anybody holds it. kNotFound without a driver
  // or without that GPU.
  static StatusOr<std::shared_ptr<CudaBackend>> open(int ordinal);
  static StatusOr<int> device_count();

  // Gives the context back to the driver.
  ~CudaBackend() override;

  Status health() const override;
  StatusOr<MemoryUsage> memory_usage() override;
  Status synchronize() override;

  StatusOr<DeviceAddress> allocate(size_t bytes) override;
  void deallocate(DeviceAddress address) noexcept override;
  StatusOr<DeviceAddress> allocate_in(StreamHandle stream, size_t bytes) override;
  void deallocate_in(StreamHandle stream, DeviceAddress address) noexcept override;
  StatusOr<void*> allocate_host(size_t bytes) override;
  void deallocate_host(void* memory) noexcept override;

  StatusOr<StreamHandle> create_stream() override;
  void destroy_stream(StreamHandle stream) noexcept override;
  Status synchronize_stream(StreamHandle stream) override;
  StatusOr<bool> stream_done(StreamHandle stream) override;
  Status stream_wait(StreamHandle stream, EventHandle event) override;

  StatusOr<EventHandle> create_event() override;
  void destroy_event(EventHandle event) noexcept override;
  Status record_event(EventHandle event, StreamHandle stream) override;
  Status synchronize_event(EventHandle event) override;
  StatusOr<bool> event_done(EventHandle event) override;
  StatusOr<double> elapsed_ms(EventHandle start, EventHandle stop) override;

  Status copy_to_device(StreamHandle stream, DeviceAddress to, const void* from,
                        size_t bytes) override;
  Status copy_to_host(StreamHandle stream, void* to, DeviceAddress from, size_t bytes,
                      Unwritten unwritten) override;
  Status copy_on_device(StreamHandle stream, DeviceAddress to, DeviceAddress from,
                        size_t bytes) override;
  Status fill8(StreamHandle stream, DeviceAddress to, uint8_t value, size_t count) override;
  Status fill32(StreamHandle stream, DeviceAddress to, uint32_t value, size_t count) override;
  StatusOr<std::unique_ptr<WorkGraph>> create_graph() override;
  Status begin_capture(StreamHandle stream) override;
  StatusOr<std::unique_ptr<WorkGraph>> end_capture(StreamHandle stream) override;
  Status encode_tensor_map(const ir::TensorMap& map, std::byte* to) override;

  // For the code that loads modules and launches.

  // Makes the context current for a scope.
  class Scope {
   public:
    explicit Scope(const CudaBackend& backend) : backend_(backend) {
      const DriverApi& api = backend.driver_.api();
      ContextHandle current = nullptr;
      failed_call_ = api.ctx_get_current.symbol;
      result_ = api.ctx_get_current(&current);
      if (result_ != Result::kSuccess || current == backend.context_) return;
      failed_call_ = api.ctx_push_current.symbol;
      result_ = api.ctx_push_current(backend.context_);
      pushed_ = result_ == Result::kSuccess;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope() {
      ContextHandle popped = nullptr;
      if (pushed_) backend_.driver_.api().ctx_pop_current(&popped);
    }

    Result result() const { return result_; }
    // The call that `result` is of.
    const char* failed_call() const { return failed_call_; }

   private:
    const CudaBackend& backend_;
    const char* failed_call_;
    Result result_;
    bool pushed_ = false;
  };

  // How much a call was about, for its message: {4096, "bytes"}.
  struct Amount {
    size_t count;
    const char* unit;
  };

  // Calls a driver function with the context current. Fails at once when the device is lost.
  template <class... Args, class... Actual>
  Status call(const DriverFunction<Result(Args...)>& function, Actual... arguments) {
    return call_about(Amount{0, nullptr}, function, arguments...);
  }
  template <class... Args, class... Actual>
  Status call_about(Amount amount, const DriverFunction<Result(Args...)>& function,
                    Actual... arguments) {
    if (lost()) return health();
    const Scope scope(*this);
    if (scope.result() != Result::kSuccess) return fail(scope.failed_call(), scope.result());
    const Result result = function(arguments...);
    if (result == Result::kSuccess) return OkStatus();
    return fail(function.symbol, result, to_text(amount));
  }

  // Calls a function that gives something back. What goes wrong is told by later calls.
  template <class... Args, class... Actual>
  void release(const DriverFunction<Result(Args...)>& function, Actual... arguments) noexcept {
    const Scope scope(*this);
    if (scope.result() != Result::kSuccess) return;
    // Giving back can bring an earlier kernel's fault to light.
    const Result result = function(arguments...);
    if (error_info(result).sticky && !lost()) (void)fail(function.symbol, result);
  }

  // The status of a failed call. A sticky error makes the backend lost and is attributed to
  // `culprit` or, without one, to the launches that nobody has waited for.
  Status fail(const char* symbol, Result result, absl::string_view subject = "",
              absl::string_view detail = "", const LaunchRecord* culprit = nullptr);

  // Whether a stream's work is recorded, by Heddle or by anybody else.
  StatusOr<bool> is_captured(StreamHandle stream);

  // OK where kernels reach the memory at an address, or the driver does not know. kInvalidArgument says whose memory it
  // is instead, from "lies in memory of" on: the host's, or another GPU's. Asks the driver.
  Status check_reach(DeviceAddress address);

  bool lost() const { return lost_.load(std::memory_order_acquire); }
  const DriverApi& api() const { return driver_.api(); }
  LaunchRing& ring() { return ring_; }
  Recordings& recordings() { return recordings_; }
  GraphMemory& graph_memory() { return graph_memory_; }
  // Whether each launch is waited for; and whether the driver does so before its call returns.
  bool blocking() const { return blocking_; }
  bool driver_blocks() const { return driver_blocks_; }
  // Null where no report is asked for.
  LossReporter* reporter() const { return reporter_.get(); }

 private:
  CudaBackend(const Driver& driver, DeviceOrdinal device, ContextHandle context, std::string name,
              DeviceInfo info);

  static std::string to_text(Amount amount);

  StatusOr<bool> query(const char* symbol, Result result);
  template <class... Args, class... Rest>
  StatusOr<DeviceAddress> allocate_by(
      const DriverFunction<Result(DevicePointer*, size_t, Args...)>& function, size_t bytes,
      Rest... rest);
  Status out_of_memory(const char* symbol, size_t bytes);
  void trim_memory_pools();
  StatusOr<MemoryPoolHandle> memory_pool();
  void event_reached(EventHandle event);
  std::string blame() const;
  // What a message says of the report; empty where none is asked for.
  std::string report(const char* symbol, const ErrorInfo& info, absl::string_view cause,
                     const LaunchRecord* culprit) const;

  const Driver& driver_;
  const DeviceOrdinal device_;
  const ContextHandle context_;
  const bool driver_blocks_;
  const bool blocking_;
  const std::unique_ptr<LossReporter> reporter_;
  LaunchRing ring_;
  Recordings recordings_{*this};
  GraphMemory graph_memory_;

  std::mutex pool_mutex_;
  // What Stream::allocate() takes memory from, and gives it back to; nothing before it is first asked
  // for, nullptr on devices without pools.
  std::optional<MemoryPoolHandle> pool_;

  std::atomic<bool> lost_{false};
  mutable std::mutex loss_mutex_;
  // Why every call fails; written once.
  std::string loss_;
};

}  // namespace heddle::runtime::cuda
