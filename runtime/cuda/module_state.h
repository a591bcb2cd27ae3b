// What stands behind Module and Function.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "heddle/runtime/cuda/cuda_backend.h"
#include "heddle/runtime/cuda/module.h"

namespace heddle::runtime::cuda {

struct FunctionState;
struct KernelParameters;

struct ModuleState {
  ModuleState(std::shared_ptr<CudaBackend> owner, ModuleHandle loaded, std::string jit_log)
      : backend(std::move(owner)), handle(loaded), log(std::move(jit_log)) {}
  ~ModuleState() { backend->release(backend->api().module_unload, handle); }
  ModuleState(const ModuleState&) = delete;
  ModuleState& operator=(const ModuleState&) = delete;

  const std::shared_ptr<CudaBackend> backend;
  const ModuleHandle handle;
  const std::string log;

  // One state for each kernel: two would undo each other's settings of the one driver function.
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<FunctionState>> functions;
};

struct FunctionState {
  FunctionState(std::shared_ptr<ModuleState> owner, FunctionHandle loaded, const std::string& name,
                const FunctionAttributes& known, int dynamic_shared)
      : module(std::move(owner)),
        handle(loaded),
        site(name, "", 0),
        attributes(known),
        dynamic_shared_allowed(dynamic_shared) {}

  CudaBackend& backend() const { return *module->backend; }

  const std::shared_ptr<ModuleState> module;
  const FunctionHandle handle;
  // For launches that give none.
  const LaunchSite site;
  const FunctionAttributes attributes;

  // Launches with more dynamic shared memory have to ask the driver first. Only grows.
  std::atomic<int64_t> dynamic_shared_allowed;

  // Taken to change the function's attributes and to look at what follows; never by a plain launch.
  std::mutex mutex;
  bool large_cluster_allowed = false;
  // Blocks resident at once, by cluster extents, threads of a block and dynamic shared bytes.
  using OccupancyKey = std::array<int64_t, 5>;
  std::map<OccupancyKey, int64_t> resident_blocks;
  // What reports say of arguments; null where nobody has said it.
  std::shared_ptr<const KernelParameters> described;

  std::shared_ptr<const KernelParameters> parameters() {
    const std::lock_guard<std::mutex> lock(mutex);
    return described;
  }
};

// Function's operations with a site for their messages.
Status reserve_dynamic_shared(FunctionState& state, int64_t bytes, const LaunchSite& site);
StatusOr<int64_t> max_resident_blocks(FunctionState& state, const LaunchShape& shape,
                                      const LaunchSite& site);

}  // namespace heddle::runtime::cuda
