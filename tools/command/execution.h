// Runs a launch plan on a device, from host arrays to host arrays, and times every step.
//
//   absl::StatusOr<LaunchPlan> plan = make_plan(kernel, inputs);
//   absl::StatusOr<Execution> done = execute(device, *plan, inputs, /*repeat=*/20);
//   use(done->outputs.at("y"), done->compilation->times, done->repeats_us);
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/registry.h"
#include "heddle/tools/command/kernel_choice.h"
#include "heddle/tools/npy.h"

namespace heddle::tools {

using HostArrays = std::map<std::string, HostArray, std::less<>>;

// By name; without one, cuda:0 where there is a GPU, else the interpreter.
absl::StatusOr<Device> open_device(const std::string& name);

// How the kernel launches on these inputs. kInvalidArgument where they are not what its parameters
// need, neither more nor less (input_check.h).
absl::StatusOr<runtime::LaunchPlan> make_plan(const ChosenKernel& kernel, const HostArrays& inputs);

struct Execution {
  // The tensors that the kernel may write, inputs changed in place included.
  HostArrays outputs;
  // What ran; belongs to the kernel.
  const runtime::Compilation* compilation = nullptr;
  // Microseconds. Compiling includes loading; the launch is the first one, by events.
  double upload_us = 0;
  double compile_us = 0;
  double launch_us = 0;
  double download_us = 0;
  // Each of the further launches, by events.
  std::vector<double> repeats_us;
  // Of all tensors together.
  uint64_t tensor_bytes = 0;
};

// The plan must have been made for these inputs. The kernel runs once, its outputs are fetched, and
// then it runs `repeat` more times. A plan with an empty grid runs nothing.
absl::StatusOr<Execution> execute(const Device& device, const runtime::LaunchPlan& plan,
                                  const HostArrays& inputs, int repeat);

// "20 launches: median 12.50 us (335.1 GB/s of inputs and outputs), least 12.10 us (346.2 GB/s)";
// there must have been one.
std::string describe_repeats(const Execution& execution);
// The steps with their times, a line each.
std::string describe_times(const Execution& execution);

}  // namespace heddle::tools
