// A compilation that is ready to run on one device: machine code loaded by the driver, or linear
// code of the interpreter.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "heddle/ir/interp/interpreter.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/argument_plan.h"
#include "heddle/runtime/compile.h"
#include "heddle/runtime/cuda/checked_launch.h"
#include "heddle/runtime/cuda/module.h"
#include "heddle/runtime/device.h"
#include "heddle/runtime/launch_limits.h"
#include "heddle/runtime/observe/observed_launch.h"

namespace heddle::runtime {

// What a launch on a GPU passes to the driver, worked out.
struct PreparedLaunch {
  cuda::CheckedLaunch checked;
  absl::InlinedVector<std::byte, 256> block;  // of parameters, with kPackSlack bytes behind
  size_t bytes = 0;                           // of parameters
  absl::Span<const int> places;               // Compilation::places
  // Whether enqueue() launches it again: not of a kernel without blocks to run.
  bool again = false;

  Status enqueue(StreamHandle stream) const {
    return runtime::enqueue(checked, stream, block.data(), bytes, places);
  }
};

class Executable {
 public:
  // What a device needs of a compilation: the stage, and its own architecture unless the caller or
  // HEDDLE_OPTIONS names one.
  static CompileOptions options_for(const Backend& backend, CompileOptions options);
  // What launches on a device compile with, but for block and cluster: Device::set_launch_options(), and what it needs.
  static CompileOptions launch_options_for(const Backend& backend);

  // Loads a compilation. Where it holds no cubin, the driver assembles the PTX itself.
  static StatusOr<std::unique_ptr<Executable>> load(const std::shared_ptr<Backend>& backend,
                                                    std::shared_ptr<const Compilation> compilation);

  const Backend* backend() const { return backend_.get(); }
  const Compilation& compilation() const { return *compilation_; }
  const std::shared_ptr<const Compilation>& shared_compilation() const { return compilation_; }
  // Whether a trace of these arguments would come out the same.
  bool matches_exactly(Arguments arguments) const;

  // Enqueues it. The arguments must satisfy the guards. On the interpreter it has run on return.
  Status launch(const Stream& stream, const LaunchShape& shape, Arguments arguments) const {
    PreparedLaunch prepared;
    return launch(stream, shape, arguments, prepared);
  }
  // Likewise; on a GPU what was worked out lies in `prepared` then. The executable outlives it.
  Status launch(const Stream& stream, const LaunchShape& shape, Arguments arguments,
                PreparedLaunch& prepared) const {
    if (launches_may_be_observed()) return launch_observed(stream, shape, arguments, prepared);
    return launch_unobserved(stream, shape, arguments, prepared);
  }

 private:
  Executable(std::shared_ptr<Backend> backend, std::shared_ptr<const Compilation> compilation);

  // Of a launch that may be observed (observe/observed_launch.h).
  Status launch_observed(const Stream& stream, const LaunchShape& shape, Arguments arguments,
                         PreparedLaunch& prepared) const;
  Status launch_unobserved(const Stream& stream, const LaunchShape& shape, Arguments arguments,
                           PreparedLaunch& prepared) const;

  Status launch_on_interp(const Stream& stream, const LaunchShape& shape, Arguments arguments,
                          const std::byte* block) const;

  std::shared_ptr<Backend> backend_;
  std::shared_ptr<const Compilation> compilation_;
  LaunchSite site_;
  ArgumentPlan plan_;
  std::optional<Function> function_;                    // cuda
  std::shared_ptr<const ir::interp::Program> program_;  // interp
  bool may_wait_ = false;                               // for the launch before, likewise
};

}  // namespace heddle::runtime
