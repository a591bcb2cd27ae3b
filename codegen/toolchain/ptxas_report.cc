#include "heddle/codegen/toolchain/ptxas_report.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace heddle::codegen {
namespace {

using absl::string_view;

constexpr std::array<string_view, 4> kSeverityNames = {"info", "warning", "error", "fatal"};

// Cuts a decimal number off the front of `text`.
bool consume_number(string_view* text, int* number) {
  const size_t digits = std::min(text->find_first_not_of("0123456789"), text->size());
  if (!absl::SimpleAtoi(text->substr(0, digits), number)) return false;
  text->remove_prefix(digits);
  return true;
}

// Cuts "error   : " off the front of `text`.
std::optional<Severity> consume_severity(string_view* text) {
  for (size_t i = 0; i < kSeverityNames.size(); ++i) {
    string_view rest = *text;
    if (!absl::ConsumePrefix(&rest, kSeverityNames[i])) continue;
    rest = absl::StripLeadingAsciiWhitespace(rest);
    if (!absl::ConsumePrefix(&rest, ":")) continue;
    *text = absl::StripLeadingAsciiWhitespace(rest);
    return static_cast<Severity>(i);
  }
  return std::nullopt;
}

// "…is injected in around line 22 by…": where a message is not about a place but tells one.
int line_in_text(string_view text) {
  constexpr string_view kMarker = " line ";
  const size_t at = text.find(kMarker);
  if (at == string_view::npos) return 0;
  text.remove_prefix(at + kMarker.size());
  int line = 0;
  return consume_number(&text, &line) ? line : 0;
}

// "ptxas info    : (C7508) text" or "ptxas kernel.ptx, line 17; error   : text".
std::optional<Diagnostic> parse_diagnostic(string_view line) {
  if (!absl::ConsumePrefix(&line, "ptxas ")) return std::nullopt;
  Diagnostic result;
  std::optional<Severity> severity = consume_severity(&line);
  // The file's name may hold anything, so a place is recognised by what follows it.
  constexpr string_view kPlace = ", line ";
  for (size_t at = line.find(kPlace); !severity.has_value() && at != string_view::npos;
       at = line.find(kPlace, at + 1)) {
    string_view rest = line.substr(at + kPlace.size());
    if (consume_number(&rest, &result.ptx_line) && absl::ConsumePrefix(&rest, "; ")) {
      severity = consume_severity(&rest);
      if (severity.has_value()) line = rest;
    }
  }
  if (!severity.has_value()) return std::nullopt;
  result.severity = *severity;
  if (absl::StartsWith(line, "(C")) {
    if (const size_t end = line.find(") "); end != string_view::npos) {
      result.code = std::string(line.substr(1, end - 1));
      line.remove_prefix(end + 2);
    }
  }
  result.text = std::string(line);
  if (result.ptx_line == 0) result.ptx_line = line_in_text(line);
  return result;
}

// The text between the first pair of quotes.
string_view quoted(string_view text) {
  const std::vector<string_view> parts = absl::StrSplit(text, absl::MaxSplits('\'', 2));
  return parts.size() == 3 ? parts[1] : string_view();
}

// "12 bytes smem" or "used 4 barriers": a number, and what it counts.
struct Count {
  string_view what;
  int EntryReport::*member;
};
constexpr std::array<Count, 5> kCounts = {{
    {"registers", &EntryReport::registers},
    {"bytes smem", &EntryReport::shared_bytes},
    {"bytes stack frame", &EntryReport::stack_frame_bytes},
    {"bytes spill stores", &EntryReport::spill_store_bytes},
    {"bytes spill loads", &EntryReport::spill_load_bytes},
}};

// "Used 8 registers, used 1 barriers, 256 bytes smem, 560 bytes cmem[0]"
void read_counts(string_view line, EntryReport* entry) {
  for (string_view part : absl::StrSplit(line, ',')) {
    part = absl::StripAsciiWhitespace(part);
    if (!absl::ConsumePrefix(&part, "Used ")) absl::ConsumePrefix(&part, "used ");
    int number = 0;
    if (!consume_number(&part, &number)) continue;
    part = absl::StripAsciiWhitespace(part);
    if (part == "barriers") entry->barriers = number;
    for (const Count& count : kCounts) {
      if (part == count.what) entry->*count.member = number;
    }
  }
}

// A line that goes on with the one before: indented, and in the library's log behind "ptxas         .".
string_view continuation(string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  string_view rest = line;
  if (!absl::ConsumePrefix(&rest, "ptxas ")) return line;
  rest = absl::StripLeadingAsciiWhitespace(rest);
  return absl::ConsumePrefix(&rest, ". ") ? absl::StripLeadingAsciiWhitespace(rest) : line;
}

// Reads the statistics of --verbose line by line.
class Statistics {
 public:
  explicit Statistics(PtxasReport* report) : report_(report) {}

  // Whether the text of an info line, or a whole line that goes on with one, belongs to them.
  bool take(string_view text) {
    if (absl::ConsumePrefix(&text, "Compiling entry function ")) {
      EntryReport entry;
      entry.name = std::string(quoted(text));
      compiled_ = entry.name;
      report_->entries.push_back(std::move(entry));
      return true;
    }
    if (absl::ConsumePrefix(&text, "Function properties for ")) {
      described_ = std::string(text);  // may be a device function, which has no report
      return true;
    }
    if (absl::StrContains(text, " bytes stack frame, ")) return count(text, described_);
    if (absl::StartsWith(text, "Used ")) return count(text, compiled_);
    return absl::StartsWith(text, "Compile time = ") || absl::StrContains(text, " bytes gmem");
  }

 private:
  bool count(string_view text, const std::string& name) {
    if (EntryReport* entry = report_->find(name)) read_counts(text, entry);
    return true;
  }

  PtxasReport* report_;
  std::string compiled_, described_;
};

}  // namespace

string_view severity_name(Severity severity) {
  return kSeverityNames[static_cast<size_t>(severity)];
}

bool Diagnostic::is_performance_note() const {
  return severity == Severity::kInfo &&
         (absl::StartsWith(code, "C75") || absl::StrContains(text, "Potential Performance Loss") ||
          absl::StrContains(text, " is injected in around line "));
}

EntryReport* PtxasReport::find(string_view entry) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const EntryReport& report) { return report.name == entry; });
  return found != entries.end() ? &*found : nullptr;
}

PtxasReport parse_ptxas_output(string_view printed) {
  PtxasReport report;
  Statistics statistics(&report);
  for (string_view line : absl::StrSplit(printed, '\n')) {
    line = absl::StripTrailingAsciiWhitespace(line);
    if (line.empty()) continue;
    std::optional<Diagnostic> said = parse_diagnostic(line);
    if (!said.has_value()) {
      if (!statistics.take(continuation(line))) {
        absl::StrAppend(&report.other, line, "\n");
      }
    } else if (said->severity != Severity::kInfo || !statistics.take(said->text)) {
      report.diagnostics.push_back(*std::move(said));
    }
  }
  return report;
}

}  // namespace heddle::codegen
