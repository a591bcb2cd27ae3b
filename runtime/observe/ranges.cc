#include "heddle/runtime/observe/ranges.h"

#include <cstdio>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "heddle/codegen/environment.h"
#include "heddle/runtime/observe/observed_launch.h"

#ifdef HEDDLE_HAVE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace heddle::runtime {
namespace {

constexpr char kMissing[] =
    "this build makes no ranges for profilers, since nvtx3/nvToolsExt.h was missing when it was "
    "built; fix: run tools/setup.sh and "
    "build again";

using detail::Ranges;

bool wanted_by_environment() {
  const std::string word = codegen::environment_variable("HEDDLE_NVTX");
  if (word.empty() || word == "off" || word == "0") return false;
  if (word != "on" && word != "1") {
    std::fprintf(stderr, "heddle: HEDDLE_NVTX: '%s' ignored; it takes on and off\n", word.c_str());
    return false;
  }
  if (!has_profiler_ranges()) std::fprintf(stderr, "heddle: HEDDLE_NVTX: %s\n", kMissing);
  return has_profiler_ranges();
}

#ifdef HEDDLE_HAVE_NVTX
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t handle = nvtxDomainCreateA("heddle");
  return handle;
}
void push(const std::string& name) {
  nvtxEventAttributes_t range = {};
  range.version = NVTX_VERSION;
  range.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  range.messageType = NVTX_MESSAGE_TYPE_ASCII;
  range.message.ascii = name.c_str();
  nvtxDomainRangePushEx(domain(), &range);
}
void pop() { nvtxDomainRangePop(domain()); }
#else
void push(const std::string&) {}
void pop() {}
#endif

}  // namespace

bool has_profiler_ranges() {
#ifdef HEDDLE_HAVE_NVTX
  return true;
#else
  return false;
#endif
}

Status set_profiler_ranges(bool on) {
  if (on && !has_profiler_ranges()) return UnimplementedError(kMissing);
  detail::ranges.store(on ? Ranges::kOn : Ranges::kOff);
  ask_again_who_observes_launches();
  return OkStatus();
}

bool profiler_ranges_are_on() {
  if (detail::ranges.load(std::memory_order_relaxed) == Ranges::kNotAsked) {
    // What is wrong is said by one thread.
    static std::mutex& mutex = *new std::mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    Ranges unread = Ranges::kNotAsked;
    if (detail::ranges.load() == Ranges::kNotAsked) {
      const Ranges wanted = wanted_by_environment() ? Ranges::kOn : Ranges::kOff;
      detail::ranges.compare_exchange_strong(unread, wanted);
    }
  }
  return detail::ranges.load(std::memory_order_relaxed) == Ranges::kOn;
}

ProfilerRange::ProfilerRange(const char* what, const std::string& name)
    : pushed_(profiler_ranges_are_on()) {
  if (pushed_) push(*what == '\0' ? name : absl::StrCat(what, " ", name));
}

ProfilerRange::~ProfilerRange() {
  if (pushed_) pop();
}

}  // namespace heddle::runtime
