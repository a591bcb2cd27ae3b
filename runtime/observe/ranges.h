// Ranges of NVTX, which Nsight Systems and Nsight Compute show and select by: one around each compilation, "compile row_sum", and one
// around each launch, by the kernel's name; around a call from C or Python by the operation's. They are of the domain "heddle".
//
//   HEDDLE_NVTX=on nsys profile ./program
//   HEDDLE_NVTX=on ncu --nvtx --nvtx-include "heddle@softmax/" ./program
//
// Without HEDDLE_NVTX=on, or set_profiler_ranges(true), there are none. A profiler need not be there.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "heddle/ir/status.h"

namespace heddle::runtime {

namespace detail {
enum class Ranges : uint8_t { kNotAsked, kOff, kOn };
// kNotAsked until somebody has asked.
inline std::atomic<Ranges> ranges{Ranges::kNotAsked};
}  // namespace detail

// Whether this build can make ranges: NVTX's header was there when it was built.
bool has_profiler_ranges();
// From now on, in the whole process, in the place of HEDDLE_NVTX. kUnimplemented where this build has none. Launches that a thread
// repeats have ranges where they were on when it first made them.
Status set_profiler_ranges(bool on);
// Whether ranges are made: as HEDDLE_NVTX says until set_profiler_ranges() is called. What is wrong with the variable is said once.
bool profiler_ranges_are_on();

// A range of the calling thread, from its construction to its end; nothing where ranges are off.
class ProfilerRange {
 public:
  // `name` is copied where it has to be.
  explicit ProfilerRange(const std::string& name) : ProfilerRange("", name) {}
  // "<what> <name>".
  ProfilerRange(const char* what, const std::string& name);
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
  ~ProfilerRange();

 private:
  bool pushed_ = false;
};

}  // namespace heddle::runtime

namespace heddle {
using runtime::set_profiler_ranges;
}  // namespace heddle
