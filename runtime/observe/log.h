// A log of what Heddle does: one line for each kernel that is compiled, each variant that a launch waits for and why it was needed,
// modules that are loaded, choices of tuning; of single launches at the finest level.
//
//   HEDDLE_LOG=info ./program         # to stderr
//   heddle: info: kernel 'row_sum' (row_sum.cc:14) compiled in 12.31 ms for sm_90a, block 512x1x1: ...
//
//   set_log(LogLevel::kInfo, [](LogLevel level, absl::string_view line) { my_log(name_of(level), line); });
//
// Levels are off (where nothing is said), error, warning, info and debug, and each shows those before it. What a level does not show
// costs a comparison, and a launch that is like one before it not even that.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace heddle::runtime {

// How much is told.
enum class LogLevel : uint8_t {
  kOff,
  kError,    // compilations that failed
  kWarning,  // registers that were spilled, and what ptxas says of a kernel that costs it speed
  kInfo,     // compilations, and launches that waited for one
  kDebug,    // each launch; the disk's cache; modules that are loaded; choices of tuning
};
// "off", "error", "warning", "info", "debug"
absl::string_view name_of(LogLevel level);

// Takes the lines: without a line end, and without the level in front. It may be called by several threads at once, and may use
// Heddle.
using LogSink = std::function<void(LogLevel level, absl::string_view line)>;

// From now on, in the whole process, in the place of HEDDLE_LOG. Lines go to `sink`, and to stderr as "heddle: info: …" where it is
// empty. Launches that a thread repeats are seen where the level was debug when it first made them.
void set_log(LogLevel level, LogSink sink = {});
// The level: of HEDDLE_LOG until set_log() is called. A word that is no level is said once, on stderr, and is as though it were off.
LogLevel log_level();

namespace detail {
inline constexpr uint8_t kUnread = 0xFF;
// kUnread until somebody has asked.
inline std::atomic<uint8_t> log_level{kUnread};
}  // namespace detail

// Whether lines of this level are shown.
inline bool logs(LogLevel level) {
  const uint8_t shown = detail::log_level.load(std::memory_order_relaxed);
  return shown == detail::kUnread ? log_level() >= level : shown >= static_cast<uint8_t>(level);
}
// Says a line, where its level is shown. Ends of lines in it become " | ".
void log(LogLevel level, absl::string_view line);

}  // namespace heddle::runtime

namespace heddle {
using runtime::LogLevel;
using runtime::set_log;
}  // namespace heddle
