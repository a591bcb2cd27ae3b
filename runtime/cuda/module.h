// Machine code on a GPU: a Module is loaded from a cubin or from PTX, a Function is one kernel of
// it.
//
//   Module module = Module::load_cubin(device, cubin).value();
//   Function function = module.function("row_sum").value();
//   LaunchSite site("row_sum", "row_sum.cc", 14);
//   Status status = launch_raw(function, {.grid = 64, .block = 256}, &parameters,
//                              sizeof(parameters), &site, &stream);
//
// Both are cheap copyable handles; the code stays loaded while one of them exists. The interpreter
// runs kernels, not machine code: loading on it is kFailedPrecondition.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/launch_limits.h"

namespace heddle::codegen {
struct Assembly;
}

namespace heddle::runtime {

namespace cuda {
struct CheckedLaunch;
struct ModuleState;
struct FunctionState;
struct KernelParameters;
}  // namespace cuda

// What the driver says of a loaded kernel.
struct FunctionAttributes {
  // Of each thread.
  int registers = 0;
  int local_bytes = 0;
  // The largest block that its registers allow.
  int max_threads_per_block = 0;
  // Of each block; dynamic shared memory comes on top.
  int static_shared_bytes = 0;
  // The cluster that it was compiled for; one block when for none.
  Dim3 required_cluster;
};

class Function {
 public:
  const std::string& name() const;
  const FunctionAttributes& attributes() const;

  // Allows launches with up to this much dynamic shared memory, ahead of the first one: launch_raw
  // does the same when it has to. kInvalidArgument says the sum with static memory and the limit.
  Status reserve_dynamic_shared(int64_t bytes) const;

  // Blocks that can be resident on the device at once in a launch with this block, cluster and
  // dynamic shared memory; the grid is ignored. Answers are remembered.
  StatusOr<int64_t> max_resident_blocks(const LaunchShape& shape) const;

  // Says what its parameter block means, for reports (loss_report.h).
  void describe_parameters(std::shared_ptr<const cuda::KernelParameters> parameters) const;

 private:
  friend class Module;
  friend Status check_launch(const Function&, const LaunchShape&, const LaunchSite*,
                             cuda::CheckedLaunch&);
  friend Status launch_raw(const Function&, const LaunchShape&, const void*, size_t,
                           const LaunchSite*, const Stream*, absl::Span<const int>);
  explicit Function(std::shared_ptr<cuda::FunctionState> state) : state_(std::move(state)) {}

  std::shared_ptr<cuda::FunctionState> state_;
};

struct JitOptions {
  // 0 to 4.
  int optimization_level = 4;
  int max_registers = 0;  // of a thread; 0: as many as the PTX says
  // Keep .loc lines for profilers and debuggers.
  bool line_info = true;
};

class Module {
 public:
  // The driver copies the image. kInvalidArgument for bytes that are no ELF file, cut short, or for
  // another architecture.
  static StatusOr<Module> load_cubin(const Device& device, absl::Span<const uint8_t> image);

  // The cubin of an assembly, whose bytes were checked when ptxas had written them.
  static StatusOr<Module> load(const Device& device, const codegen::Assembly& assembly);

  // Assembled by the driver, for machines without ptxas. kInvalidArgument carries the assembler's
  // first complaint.
  static StatusOr<Module> load_ptx(const Device& device, const std::string& ptx,
                                   const JitOptions& options = {});

  // kNotFound when the module has no kernel of that name.
  StatusOr<Function> function(absl::string_view name) const;

  // What the driver's assembler reported; empty for a cubin, and for PTX that the driver found in
  // its own cache.
  const std::string& jit_log() const;

 private:
  explicit Module(std::shared_ptr<cuda::ModuleState> state) : state_(std::move(state)) {}
  static StatusOr<Module> load_checked(const std::shared_ptr<cuda::CudaBackend>& backend,
                                       const void* image);

  std::shared_ptr<cuda::ModuleState> state_;
};

// Enqueues one launch of a kernel on its GPU. `parameters` is the kernel's parameter block of
// `bytes` bytes, laid out as its PTX declares it; it is copied before this returns, and may be null
// when the kernel has none. `site` says in errors where the kernel comes from; null: by its name
// alone. Without a stream it is the device's default one. `places` says where in the block each
// parameter lies, where PTX does not declare them at the same distances: the driver then takes them
// one by one.
//
// Costs one driver call and no allocation, lock or text unless something is wrong. What the limits
// of the device or the kernel forbid is kInvalidArgument before the driver is asked, with value and
// limit. A fault inside the kernel surfaces at a later call on the device.
Status launch_raw(const Function& function, const LaunchShape& shape, const void* parameters,
                  size_t bytes, const LaunchSite* site, const Stream* stream = nullptr,
                  absl::Span<const int> places = {});

}  // namespace heddle::runtime

namespace heddle {
using runtime::Function;
using runtime::FunctionAttributes;
using runtime::LaunchSite;
using runtime::Module;
}  // namespace heddle
