#include "heddle/runtime/testing/found.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace heddle::filetest {
namespace {

// The number in "t.ir:3: …" or "t.ir:3:10: …".
std::optional<int> line_in(absl::string_view text, absl::string_view file, char end = ':') {
  int line = 0;
  if (!absl::ConsumePrefix(&text, file) || !absl::ConsumePrefix(&text, ":")) return std::nullopt;
  if (!absl::SimpleAtoi(text.substr(0, text.find(end)), &line)) return std::nullopt;
  return line;
}

// What a launch is refused with has its place behind it, "… (t.ir:3); fix: …"; 0 where there is none.
int line_behind(absl::string_view text, absl::string_view file) {
  const size_t at = text.find(absl::StrCat(" (", file, ":"));
  return at == text.npos ? 0 : line_in(text.substr(at + 2), file, ')').value_or(0);
}

std::string fix_behind(absl::string_view text) {
  const size_t at = text.find("; fix: ");
  return at == text.npos ? "" : std::string(text.substr(at + 2));
}

}  // namespace

std::vector<Found> found_in(absl::string_view message, absl::string_view file, int kernel_line) {
  std::vector<Found> all;
  for (const absl::string_view line : absl::StrSplit(message, '\n', absl::SkipEmpty())) {
    const absl::string_view text = absl::StripLeadingAsciiWhitespace(line);
    const bool indented = text.size() < line.size();
    const std::optional<int> place = line_in(text, file);
    if (!indented && (place || all.empty())) {
      // A headline, "kernel 'k' has 2 errors:", says nothing of its own.
      const bool headline = !all.empty() && all.back().line == 0;
      if (headline) all.pop_back();
      const int number = place ? *place : line_behind(line, file);
      all.push_back({number, std::string(line), {}, fix_behind(line)});
      continue;
    }
    Found& mistake = all.back();
    if (indented && place && mistake.line == 0) {  // a list below a headline
      mistake = {*place, std::string(text), {}, {}};
      continue;
    }
    absl::StrAppend(&mistake.text, "\n", line);
    if (place) mistake.notes.push_back({*place, std::string(text)});
    if (absl::StartsWith(text, "fix: ")) mistake.fix = std::string(text);
  }
  for (Found& mistake : all) {
    if (mistake.line == 0) mistake.line = kernel_line;
  }
  return all;
}

void compare_found(absl::string_view kind, const std::vector<Found>& found,
                   const std::vector<Fault>& wanted, const std::vector<Fault>& notes,
                   const std::vector<Fault>& fixes, std::vector<Fault>& faults) {
  std::vector<bool> expected(found.size(), false);
  for (const Fault& one : wanted) {
    size_t i = 0;
    while (i < found.size() && (expected[i] || found[i].line != one.line ||
                                !absl::StrContains(found[i].text, one.text))) {
      ++i;
    }
    if (i < found.size()) {
      expected[i] = true;
    } else {
      faults.push_back({one.line, absl::StrCat("expected ", kind, " is not there: ", one.text)});
    }
  }
  for (size_t i = 0; i < found.size(); ++i) {
    if (!expected[i])
      faults.push_back({found[i].line, absl::StrCat("unexpected ", kind, ": ", found[i].text)});
  }
  const auto any_note = [&](const Fault& one) {
    return std::any_of(found.begin(), found.end(), [&](const Found& mistake) {
      return std::any_of(mistake.notes.begin(), mistake.notes.end(), [&](const Fault& note) {
        return note.line == one.line && absl::StrContains(note.text, one.text);
      });
    });
  };
  for (const Fault& one : notes) {
    if (!any_note(one))
      faults.push_back({one.line, absl::StrCat("expected note is not there: ", one.text)});
  }
  for (const Fault& one : fixes) {
    const bool met = std::any_of(found.begin(), found.end(), [&](const Found& mistake) {
      return absl::StrContains(mistake.fix, one.text);
    });
    if (!met) faults.push_back({one.line, absl::StrCat("expected fix is not there: ", one.text)});
  }
}

}  // namespace heddle::filetest
