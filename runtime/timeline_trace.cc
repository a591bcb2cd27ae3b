// A timeline as Chrome's trace events: one object of JSON.
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/runtime/timeline.h"
#include "nlohmann/json.hpp"

namespace heddle::runtime {
namespace {

// A string of JSON; bytes that are no UTF-8 are replaced.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Chrome's unit is the microsecond.
std::string microseconds(int64_t nanoseconds) {
  const int64_t magnitude = std::abs(nanoseconds);
  return absl::StrFormat("%s%d.%03d", nanoseconds < 0 ? "-" : "", magnitude / 1000,
                         magnitude % 1000);
}

// Names and orders a process or a thread of the trace; `what`: "process", "thread".
std::string named(const char* what, int64_t process, int64_t thread, const std::string& name,
                  int64_t order) {
  const std::string place = absl::StrCat("\"ph\":\"M\",\"pid\":", process, ",\"tid\":", thread);
  return absl::StrCat("{\"name\":\"", what, "_name\",", place, ",\"args\":{\"name\":", quoted(name),
                      "}},\n{\"name\":\"", what, "_sort_index\",", place,
                      ",\"args\":{\"sort_index\":", order, "}},\n");
}

std::string arguments(const TimelineSpan& span) {
  if (!span.argument && span.has_end) return "";
  std::string text;
  if (span.argument) absl::StrAppend(&text, "\"argument\":", *span.argument);
  if (!span.has_end) absl::StrAppend(&text, text.empty() ? "" : ",", "\"has_end\":false");
  return absl::StrCat(",\"args\":{", text, "}");
}

}  // namespace

std::string TimelineRecording::to_chrome_trace() const {
  std::string out = "{\"displayTimeUnit\":\"ns\",\n\"traceEvents\":[\n";
  std::set<int> processors;
  for (size_t i = 0; i < warps.size(); ++i) {
    const TimelineWarp& warp = warps[i];
    const int processor = warp.multiprocessor;
    if (processors.insert(processor).second) {
      out += named("process", processor, 0, absl::StrCat("multiprocessor ", processor), processor);
    }
    const auto row = static_cast<int64_t>(i);
    out += named("thread", processor, row, warp.describe(), row);
  }
  for (const TimelineSpan& span : spans) {
    const TimelineWarp& warp = warps[static_cast<size_t>(span.warp)];
    absl::StrAppend(&out, "{\"name\":", quoted(span.name), ",\"ph\":\"", span.mark ? "i" : "X",
                    "\",\"pid\":", warp.multiprocessor, ",\"tid\":", span.warp,
                    ",\"ts\":", microseconds(span.begin_ns));
    if (span.mark) {
      out += ",\"s\":\"t\"";
    } else {
      absl::StrAppend(&out, ",\"dur\":", microseconds(span.end_ns - span.begin_ns));
    }
    absl::StrAppend(&out, arguments(span), "},\n");
  }
  // No comma behind the last.
  if (!warps.empty()) out.erase(out.size() - 2, 1);
  absl::StrAppend(&out, "],\n\"otherData\":{\"clock_ghz\":", absl::StrFormat("%.6g", clock_ghz),
                  ",\"dropped_events\":", dropped_events,
                  ",\"warps_without_row\":", warps_without_row, ",\"problems\":[");
  for (size_t i = 0; i < problems.size(); ++i) {
    absl::StrAppend(&out, i == 0 ? "" : ",", quoted(problems[i]));
  }
  return absl::StrCat(out, "]}}\n");
}

Status TimelineRecording::write_chrome_trace(const std::string& path) const {
  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file << to_chrome_trace();
  file.close();
  if (file) return OkStatus();
  return UnknownError(absl::StrCat("the timeline cannot be written to '", path,
                                   "': ", errno != 0 ? std::strerror(errno) : "the disk failed"));
}

}  // namespace heddle::runtime
