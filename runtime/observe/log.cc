#include "heddle/runtime/observe/log.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "heddle/codegen/environment.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/observe/observed_launch.h"

namespace heddle::runtime {
namespace {

constexpr absl::string_view kNames[] = {"off", "error", "warning", "info", "debug"};

// Where lines go; the level stands in detail::log_level, which may be read without a lock.
struct Log {
  std::mutex mutex;
  std::shared_ptr<const LogSink> sink;  // nullptr: stderr
};
Log& the_log() {
  static Log& log = *new Log;
  return log;
}

// One call, so that lines of several threads do not mix.
void to_stderr(LogLevel level, absl::string_view line) {
  const std::string text = absl::StrCat("heddle: ", name_of(level), ": ", line, "\n");
  std::fwrite(text.data(), 1, text.size(), stderr);
}

LogLevel level_of_environment() {
  const std::string word = codegen::environment_variable("HEDDLE_LOG");
  if (word.empty()) return LogLevel::kOff;
  const auto name = std::find(std::begin(kNames), std::end(kNames), word);
  if (name != std::end(kNames)) return static_cast<LogLevel>(name - std::begin(kNames));
  std::fprintf(stderr, "heddle: HEDDLE_LOG: '%s' ignored%s; it takes %s\n", word.c_str(),
               ir::suggest(word, kNames).c_str(), absl::StrJoin(kNames, ", ").c_str());
  return LogLevel::kOff;
}

}  // namespace

absl::string_view name_of(LogLevel level) { return kNames[static_cast<size_t>(level)]; }

void set_log(LogLevel level, LogSink sink) {
  Log& log = the_log();
  const std::lock_guard<std::mutex> lock(log.mutex);
  log.sink = sink ? std::make_shared<const LogSink>(std::move(sink)) : nullptr;
  detail::log_level.store(static_cast<uint8_t>(level));
  ask_again_who_observes_launches();
}

LogLevel log_level() {
  Log& log = the_log();
  const std::lock_guard<std::mutex> lock(log.mutex);
  if (detail::log_level.load() == detail::kUnread) {
    detail::log_level.store(static_cast<uint8_t>(level_of_environment()));
  }
  return static_cast<LogLevel>(detail::log_level.load());
}

void log(LogLevel level, absl::string_view line) {
  if (level == LogLevel::kOff || !logs(level)) return;
  std::shared_ptr<const LogSink> sink;
  {
    Log& log = the_log();
    const std::lock_guard<std::mutex> lock(log.mutex);
    sink = log.sink;
  }
  const std::string one = absl::StrReplaceAll(line, {{"\n  ", " | "}, {"\n", " | "}});
  if (sink != nullptr) {
    (*sink)(level, one);
  } else {
    to_stderr(level, one);
  }
}

}  // namespace heddle::runtime
