// Whether anybody wants to see launches, and what they are shown: a line of the log at its level debug (log.h), a range of a profiler
// (ranges.h). Where nobody does, a launch asks this once, and one that the thread remembers (launch_memo.h) not at all: what is
// observed is not remembered.
#pragma once

#include <atomic>
#include <string>

#include "heddle/ir/status.h"
#include "heddle/runtime/launch_limits.h"

namespace heddle::runtime {

namespace detail {
// Until somebody has asked who does, it may be that somebody does.
inline std::atomic<bool> launches_may_be_observed{true};
}  // namespace detail

inline bool launches_may_be_observed() {
  return detail::launches_may_be_observed.load(std::memory_order_relaxed);
}
// Asks the log and the ranges; remembers the answer until ask_again_who_observes_launches().
bool launches_are_observed();
void ask_again_who_observes_launches();

// Says that a kernel was launched, or why not.
void log_launch(const LaunchSite& site, const std::string& device, const LaunchShape& shape,
                const Status& status);

}  // namespace heddle::runtime
