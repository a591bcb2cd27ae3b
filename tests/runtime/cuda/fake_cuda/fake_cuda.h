// How tests steer the stand-in for libcuda, and what it tells them.
//
// The library exports the driver functions that Heddle calls. "Device" memory is host memory,
// copies are immediate, launches only leave a record. It insists on what the real driver insists
// on: a current context, live handles, initialisation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "heddle/runtime/cuda/driver_api.h"

namespace heddle::runtime::cuda {

struct FakeLaunch {
  DriverLaunchConfig config;
  std::vector<LaunchAttribute> attributes;
  // The parameter block; empty when none was passed.
  std::vector<uint8_t> parameters;
  std::string kernel;
};

// Objects that were made and not given back.
struct FakeLive {
  int allocations = 0;
  int host_allocations = 0;
  int pools = 0;
  int streams = 0;
  int events = 0;
  int modules = 0;
  int graphs = 0;  // executables among them
  int contexts = 0;
};

class FakeCuda {
 public:
  virtual ~FakeCuda() = default;

  // Forgets everything but live objects.
  virtual void reset() = 0;
  // Calls of an exported function fail with `code`, the first `after` of them excepted.
  virtual void fail(const char* symbol, int code, int after = 0) = 0;
  // As if a kernel had gone wrong: waits, queries and everything that follows report `code`.
  virtual void fault(int code) = 0;
  virtual void set_version(int version) = 0;
  virtual void set_device_count(int count) = 0;
  virtual void set_device_attribute(DeviceAttribute attribute, int value) = 0;
  virtual void set_memory(size_t total) = 0;
  // What the occupancy queries answer.
  virtual void set_blocks_per_sm(int blocks) = 0;
  virtual void set_active_clusters(int clusters) = 0;
  // How many parameters kernels have that are launched with them one by one.
  virtual void set_parameter_count(int count) = 0;
  // The kernels that a loaded module has are those whose names this text holds, one a line; in programs that do not
  // steer it, any.
  virtual void set_kernels(const char* names) = 0;
  virtual void set_function_attribute(FunctionAttribute attribute, int value) = 0;
  // Makes streams look as if they were being captured.
  virtual void set_capturing(bool capturing) = 0;
  // Makes queries answer that work is unfinished.
  virtual void set_busy(bool busy) = 0;

  // Exported names in the order in which they were called, with the arguments that matter.
  virtual std::vector<std::string> calls() = 0;
  virtual int call_count() = 0;
  virtual std::vector<FakeLaunch> launches() = 0;
  virtual FakeLive live() = 0;
  // Frees what is live.
  virtual void drop_live() = 0;
  // The calling thread's current context, and another one to set as such.
  virtual ContextHandle current_context() = 0;
  virtual void set_current_context(ContextHandle context) = 0;
  virtual ContextHandle foreign_context() = 0;
  // As if devices had been reset: contexts at the same addresses are others.
  virtual void renew_contexts() = 0;
  // As if an allocation were another device's, 1's.
  virtual void set_foreign(DevicePointer address) = 0;
};

}  // namespace heddle::runtime::cuda

extern "C" heddle::runtime::cuda::FakeCuda* heddle_fake_cuda();
// For tests in other languages: the driver's version, 1000 × major + 10 × minor, and the devices' compute capability.
extern "C" void heddle_fake_cuda_pretend(int version, int major, int minor);
