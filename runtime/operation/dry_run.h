// A device that runs nothing: it tells which kernels an operation launches, without data and without
// a GPU.
//
//   const Device device = open_dry_run(info, [&](const DryLaunch& launch) {
//     names.push_back(launch.source->name());
//     return OkStatus();
//   });
//   Status status = row_sum(device.default_stream(), x, y);   // names: {"row_sum"}
//
// Its memory has addresses and no bytes: copies to it and fills do nothing, and a copy to the host
// is kFailedPrecondition. An operation that reads results therefore cannot be run dry.
#pragma once

#include <atomic>
#include <functional>

#include "heddle/ir/kernel_source.h"
#include "heddle/ir/target.h"
#include "heddle/runtime/argument.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/launch_limits.h"

namespace heddle::runtime {

struct Compilation;

// A launch that would happen. Everything lives as long as the call that is told of it.
struct DryLaunch {
  const ir::KernelSource* source = nullptr;  // nullptr: a kernel that was compiled before
  const Compilation* compiled = nullptr;     // that one
  const LaunchShape& shape;                  // grid, block and the like
  Arguments arguments;                       // as the launch was given them
};

// Called for each launch, in order, on the thread that launches. The launch returns what it
// returns.
using OnDryLaunch = std::function<Status(const DryLaunch&)>;

// Opens a dry run of a device with these properties. Launches outside its limits fail as they would
// there.
Device open_dry_run(DeviceInfo info, OnDryLaunch on_launch);

// A device of that target, as far as operations ask: else as an H200.
DeviceInfo info_of(const ir::Target& target);

// Whether a dry run was asked for results. What the caller does behind that is not seen.
bool results_were_wanted(const Device& dry_run);

// What stands behind a dry run. open_dry_run() makes one; others may derive from it to see more than launches.
class DryRunBackend : public Backend {
 public:
  // For open_dry_run().
  DryRunBackend(DeviceInfo info, OnDryLaunch on_launch);

  // Calls the function for a launch.
  Status launch(const DryLaunch& launch) const;
  bool results_were_wanted() const { return results_were_wanted_.load(); }

  Status health() const override { return OkStatus(); }
  StatusOr<MemoryUsage> memory_usage() override;
  Status synchronize() override { return OkStatus(); }

  StatusOr<DeviceAddress> allocate(size_t bytes) override;
  void deallocate(DeviceAddress) noexcept override {}
  StatusOr<void*> allocate_host(size_t bytes) override;
  void deallocate_host(void* memory) noexcept override;

  StatusOr<StreamHandle> create_stream() override { return StreamHandle::kDefault; }
  void destroy_stream(StreamHandle) noexcept override {}
  Status synchronize_stream(StreamHandle) override { return OkStatus(); }
  StatusOr<bool> stream_done(StreamHandle) override { return true; }
  Status stream_wait(StreamHandle, EventHandle) override { return OkStatus(); }

  StatusOr<EventHandle> create_event() override { return EventHandle::kNone; }
  void destroy_event(EventHandle) noexcept override {}
  Status record_event(EventHandle, StreamHandle) override { return OkStatus(); }
  Status synchronize_event(EventHandle) override { return OkStatus(); }
  StatusOr<bool> event_done(EventHandle) override { return true; }
  StatusOr<double> elapsed_ms(EventHandle, EventHandle) override { return 0.0; }

  Status copy_to_device(StreamHandle, DeviceAddress, const void*, size_t) override {
    return OkStatus();
  }
  Status copy_to_host(StreamHandle, void*, DeviceAddress, size_t, Unwritten) override;
  Status copy_on_device(StreamHandle, DeviceAddress, DeviceAddress, size_t) override {
    return OkStatus();
  }
  Status fill8(StreamHandle, DeviceAddress, uint8_t, size_t) override { return OkStatus(); }
  Status fill32(StreamHandle, DeviceAddress, uint32_t, size_t) override { return OkStatus(); }

  StatusOr<std::unique_ptr<WorkGraph>> create_graph() override;
  Status begin_capture(StreamHandle) override;
  StatusOr<std::unique_ptr<WorkGraph>> end_capture(StreamHandle) override;

 private:
  OnDryLaunch on_launch_;
  std::atomic<DeviceAddress> next_address_;
  std::atomic<bool> results_were_wanted_{false};
};

}  // namespace heddle::runtime

namespace heddle {
using runtime::DryLaunch;
using runtime::open_dry_run;
}  // namespace heddle
