// A WarmUpReport as text and as JSON.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/ahead/warm_up.h"
#include "nlohmann/json.hpp"

namespace heddle::runtime {
namespace {

using Json = nlohmann::ordered_json;

Json to_array(const std::vector<WarmUpReport::Line>& lines) {
  Json array = Json::array();
  for (const WarmUpReport::Line& line : lines) {
    array.push_back({{"line", line.number}, {"what", line.what}, {"why", line.why}});
  }
  return array;
}

// A message's heading and its first error; JSON has the rest.
std::string beginning_of(absl::string_view text) {
  constexpr int kLines = 4;
  size_t end = 0;
  for (int line = 0; line < kLines && end != absl::string_view::npos; ++line) {
    end = text.find('\n', end + 1);
  }
  if (end == absl::string_view::npos) return std::string(text);
  return absl::StrCat(text.substr(0, end), "\n  ...");
}

}  // namespace

std::string to_string(const WarmUpReport& report) {
  std::string text = absl::StrFormat(
      "%s in %.2f s: %d warmed (%s, %d of them from the disk), %d there already, %d skipped, %d "
      "failed",
      ir::counted(report.lines, "line"), report.seconds, report.warmed,
      ir::counted(report.kernels, "kernel"), report.from_disk, report.there, report.skipped.size(),
      report.failed.size());
  const auto add = [&](const std::vector<WarmUpReport::Line>& lines, const char* became) {
    for (const WarmUpReport::Line& line : lines) {
      absl::StrAppend(&text, "\nline ", line.number, " ", became, ", ", line.what, ": ",
                      beginning_of(line.why));
    }
  };
  add(report.skipped, "skipped");
  add(report.failed, "failed");
  return text;
}

std::string to_json(const WarmUpReport& report) {
  // Names and messages may have bytes that are no UTF-8.
  return Json{{"lines", report.lines},
              {"warmed", report.warmed},
              {"there", report.there},
              {"skipped", to_array(report.skipped)},
              {"failed", to_array(report.failed)},
              {"kernels", report.kernels},
              {"from_disk", report.from_disk},
              {"seconds", report.seconds}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace heddle::runtime
