#include "heddle/runtime/programmatic_launches.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace heddle::runtime {

bool may_wait_for_launch_before(const ir::Kernel& kernel) {
  bool waits = false;
  kernel.walk([&](ir::OpId id) {
    const ir::Opcode opcode = kernel.op(id).opcode;
    waits |= opcode == ir::Opcode::kGridDependencyWait || opcode == ir::Opcode::kInlinePtxVolatile;
  });
  return waits;
}

Status ProgrammaticLaunches::note(StreamHandle stream, const LaunchSite& site, bool runs_beside,
                                  bool waits, absl::Span<const ir::ParamInfo> params,
                                  Arguments arguments) {
  Launched launched{site.describe(), {}};
  for (size_t i = 0; i < params.size(); ++i) {
    // A pointer reaches all of memory: nothing is known of it.
    if (arguments[i].extents == nullptr) continue;
    launched.reaches.push_back(
        {params[i].name, arguments[i].begin, arguments[i].end, !params[i].type.read_only});
  }
  std::lock_guard<std::mutex> lock(mutex_);
  Launched& before = last_[stream];
  for (const Reach& ours : launched.reaches) {
    for (const Reach& theirs : before.reaches) {
      const bool apart = ours.end <= theirs.begin || theirs.end <= ours.begin;
      const bool read_only = !ours.written && !theirs.written;
      if (!runs_beside || waits || apart || read_only) continue;
      return FailedPreconditionError(
          absl::StrCat(launched.kernel, " is launched with .programmatic and never waits for ",
                       before.kernel, ", the launch before it, beside which it may run: its '",
                       ours.name, "' ", ours.written ? "may write" : "reads", " memory that '",
                       theirs.name, "' there ", theirs.written ? "may write" : "reads",
                       "\n  fix: call grid_dependency_wait() in front of the first access, or "
                       "launch it without .programmatic"));
    }
  }
  before = std::move(launched);
  return OkStatus();
}

void ProgrammaticLaunches::forget(StreamHandle stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  last_.erase(stream);
}

void ProgrammaticLaunches::forget_all() {
  std::lock_guard<std::mutex> lock(mutex_);
  last_.clear();
}

}  // namespace heddle::runtime
