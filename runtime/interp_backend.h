// The interpreter as a device: memory that knows what was written, and streams that run at once.
//
// Every operation is complete when the call that enqueued it returns, in program order; a stream is
// therefore always done, and an event holds the host's clock at the time it was recorded. Each
// "interp:N" has a memory of its own: an address of one device means nothing to another.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "heddle/ir/interp/interpreter.h"
#include "heddle/ir/interp/memory.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/graph/graph_memory.h"
#include "heddle/runtime/graph/interp_graph.h"
#include "heddle/runtime/programmatic_launches.h"

namespace heddle::runtime {

class InterpBackend final : public Backend {
 public:
  // A device of its own. `info` gives the limits that it pretends to have: launches and allocations
  // beyond them fail as on a GPU. The default resembles an H200.
  explicit InterpBackend(std::string name = "interp", DeviceInfo info = default_info());

  // The device "interp:<ordinal>" of this process: the same one while anybody holds it.
  static std::shared_ptr<InterpBackend> open(int ordinal);

  static DeviceInfo default_info();

  // What HEDDLE_INTERP_COMPLETION says, or the default where it is not set; kInvalidArgument where it
  // says something else.
  static StatusOr<ir::interp::Completion> completion_of_environment();

  ir::interp::Memory& memory() { return memory_; }
  // Executables note their launches here.
  ProgrammaticLaunches& launches() { return launches_; }
  // Runs an operation, or records it where the stream's work is being recorded.
  // `launch`: the shape of a kernel's launch.
  Status run_or_record(StreamHandle stream, const InterpWork& work,
                       const std::optional<LaunchShape>& launch = std::nullopt) {
    return captures_.record(stream, work, launch) ? OkStatus() : work(stream);
  }
  InterpCaptures& captures() { return captures_; }
  GraphMemory& graph_memory() { return graph_memory_; }

  // See Device::set_max_instructions.
  void set_max_instructions(int64_t count) { max_instructions_.store(count); }
  int64_t max_instructions() const { return max_instructions_.load(); }
  // See Device::set_completion.
  void set_completion(const ir::interp::Completion& completion) {
    when_.store(completion.when);
    seed_.store(completion.seed);
  }
  ir::interp::Completion completion() const { return {.when = when_.load(), .seed = seed_.load()}; }

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

  Status check_written(DeviceAddress address, size_t bytes, size_t element_bytes,
                       bool padded) override;
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

 private:
  // Copies and fills: `operation` is what of the memory to call, `what` names it in errors.
  template <class Operation, class... Args>
  Status enqueue(StreamHandle stream, const char* what, Operation operation, Args... arguments);

  ir::interp::Memory memory_;
  ProgrammaticLaunches launches_;
  GraphMemory graph_memory_;
  InterpCaptures captures_;
  std::atomic<int64_t> max_instructions_{ir::interp::kDefaultMaxInstructions};
  std::atomic<ir::interp::Completion::When> when_{ir::interp::Completion{}.when};
  std::atomic<uint64_t> seed_{0};
};

}  // namespace heddle::runtime
