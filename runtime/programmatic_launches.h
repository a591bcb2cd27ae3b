// What the interpreter says of programmatic launches, whose kernels may run beside the one before: it runs one kernel after
// the other, so that a missing wait would show nowhere.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "heddle/ir/kernel.h"
#include "heddle/ir/kernel_source.h"
#include "heddle/runtime/argument.h"
#include "heddle/runtime/backend.h"
#include "heddle/runtime/launch_limits.h"

namespace heddle::runtime {

// Whether a kernel waits for the one before, or may: what inline PTX does is not known.
bool may_wait_for_launch_before(const ir::Kernel& kernel);

// The last launch of each stream. Thread-safe.
class ProgrammaticLaunches {
 public:
  // Notes a launch. kFailedPrecondition where it is programmatic, its kernel does not wait, and one of the two writes
  // memory that the other's parameters reach.
  Status note(StreamHandle stream, const LaunchSite& site, bool runs_beside, bool waits,
              absl::Span<const ir::ParamInfo> params, Arguments arguments);
  // Something else was enqueued, which the next launch waits for; or the host has waited.
  void forget(StreamHandle stream);
  void forget_all();

 private:
  // What a parameter reaches.
  struct Reach {
    std::string name;
    uint64_t begin, end;
    bool written;
  };
  struct Launched {
    std::string kernel;
    std::vector<Reach> reaches;
  };
  std::mutex mutex_;
  std::map<StreamHandle, Launched> last_;
};

}  // namespace heddle::runtime
