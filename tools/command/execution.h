// Calls an operation on a device, from host arrays to host arrays, and times every step.
//
//   StatusOr<BoundCall> call = bind_inputs(kernel, inputs);
//   StatusOr<Execution> done = execute(device, *call, inputs, /*repeat=*/20);
//   use(done->outputs.at("y"), done->compilations[0]->times, done->repeats_us);
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "heddle/ir/status.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/operation/bound_call.h"
#include "heddle/tools/command/kernel_choice.h"
#include "heddle/tools/npy.h"

namespace heddle::tools {

using HostArrays = std::map<std::string, HostArray, std::less<>>;

// By name; without one, cuda:0 where there is a GPU, else the interpreter.
StatusOr<Device> open_device(const std::string& name);

// The call on these inputs. kInvalidArgument where they are not exactly what the kernel reads, or do
// not fit it or each other (bind()).
StatusOr<runtime::BoundCall> bind_inputs(const ChosenKernel& kernel, const HostArrays& inputs);

// Tensors on a device and numbers, as a host function takes them.
class DeviceArguments {
 public:
  // Uninitialised memory for every tensor of the call. The call must outlive them.
  static StatusOr<DeviceArguments> allocate(const Device& device, const runtime::BoundCall& call);

  // Of each argument; a number has none.
  std::vector<Buffer>& buffers() { return buffers_; }
  runtime::Arguments arguments() const { return arguments_; }
  uint64_t tensor_bytes() const;

 private:
  std::vector<Buffer> buffers_;
  std::vector<std::vector<int64_t>> strides_;
  std::vector<runtime::Argument> arguments_;
};

struct Execution {
  // The tensors that the kernel may write, inputs changed in place included.
  HostArrays outputs;
  // What was compiled for the call, each once, and how many launches the call has. Empty where the
  // operation reads results between launches, so that a dry run cannot know them.
  std::vector<std::shared_ptr<const runtime::Compilation>> compilations;
  int launches = 0;
  // Microseconds. Compiling includes loading; the launches are those of the first call, by events.
  double upload_us = 0;
  double compile_us = 0;
  double launch_us = 0;
  double download_us = 0;
  // Each of the further calls, by events.
  std::vector<double> repeats_us;
  // Of all tensors together.
  uint64_t tensor_bytes = 0;
};

// The call must have been bound to these inputs. Its kernels are compiled by a dry run; it runs once,
// its outputs are fetched, and then it runs `repeat` more times.
StatusOr<Execution> execute(const Device& device, const runtime::BoundCall& call,
                            const HostArrays& inputs, int repeat);

// "20 launches: median 12.50 us (335.1 GB/s of inputs and outputs), least 12.10 us (346.2 GB/s)";
// there must have been one.
std::string describe_repeats(const Execution& execution);
// The steps with their times, a line each.
std::string describe_times(const Execution& execution);

}  // namespace heddle::tools
