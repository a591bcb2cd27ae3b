#include "heddle/runtime/compile_option_text.h"

#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "heddle/codegen/environment.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/dump.h"

namespace heddle::runtime {
namespace {

using absl::string_view;

constexpr char kVariable[] = "HEDDLE_OPTIONS";

// A value of an enumeration, and its word.
template <typename E>
struct Word {
  string_view word;
  E value;
};
constexpr string_view kSwitchValues = "off|on";
constexpr Word<bool> kSwitch[] = {{"off", false}, {"on", true}};
constexpr Word<codegen::Assembler> kAssemblers[] = {{"any", codegen::Assembler::kAny},
                                                    {"library", codegen::Assembler::kLibrary},
                                                    {"ptxas", codegen::Assembler::kPtxas},
                                                    {"driver", codegen::Assembler::kDriver}};
constexpr Word<DiskCaching> kCachings[] = {
    {"off", DiskCaching::kOff}, {"use", DiskCaching::kUse}, {"renew", DiskCaching::kRenew}};
constexpr Word<Recall> kRecalls[] = {
    {"off", Recall::kOff}, {"use", Recall::kUse}, {"check", Recall::kCheck}};

// The rows of each kind of member.
template <auto kMember, const auto& kWords>
constexpr CompileOptionText word_row(string_view name, string_view values, string_view help) {
  return {name, values, help,
          [](const CompileOptions& options) {
            for (const auto& word : kWords) {
              if (word.value == options.*kMember) return std::string(word.word);
            }
            return std::string();
          },
          [](string_view text, CompileOptions& options) {
            for (const auto& word : kWords) {
              if (word.word != text) continue;
              options.*kMember = word.value;
              return OkStatus();
            }
            return InvalidArgumentError("");
          }};
}

template <auto kMember, int kLast>
constexpr CompileOptionText number_row(string_view name, string_view values, string_view help) {
  return {name, values, help,
          [](const CompileOptions& options) { return absl::StrCat(options.*kMember); },
          [](string_view text, CompileOptions& options) {
            int number = 0;
            if (!absl::SimpleAtoi(text, &number) || number < 0 || number > kLast) {
              return InvalidArgumentError("");
            }
            options.*kMember = number;
            return OkStatus();
          }};
}

template <auto kMember>
constexpr CompileOptionText text_row(string_view name, string_view values, string_view help) {
  return {name, values, help, [](const CompileOptions& options) { return options.*kMember; },
          [](string_view text, CompileOptions& options) {
            if (text.empty()) return InvalidArgumentError("");
            options.*kMember = std::string(text);
            return OkStatus();
          }};
}

std::string print_flags(const CompileOptions& options) {
  return absl::StrJoin(options.ptxas_flags, ",");
}
Status read_flags(string_view text, CompileOptions& options) {
  options.ptxas_flags = absl::StrSplit(text, ',', absl::SkipEmpty());
  return OkStatus();
}
std::string print_keep(const CompileOptions& options) { return options.keep; }
Status read_keep(string_view text, CompileOptions& options) {
  options.keep = std::string(text);
  return check_dump_stages(text);
}

using O = CompileOptions;
constexpr std::array kRows = {
    text_row<&O::target>("gpu-arch", "TARGET", "the architecture; unset: the device's"),
    text_row<&O::passes>("passes", "LEVEL,NAME,...", "the passes that run ('heddle passes')"),
    word_row<&O::device_checks, kSwitch>("device-checks", kSwitchValues,
                                         "check every access in the kernel, by assertions"),
    word_row<&O::assembler, kAssemblers>("assembler", "any|library|ptxas|driver",
                                         "who makes machine code of the PTX"),
    number_row<&O::opt_level, 3>("opt-level", "0|1|2|3", "of ptxas"),
    number_row<&O::max_registers, 255>("max-registers", "N",
                                       "of a thread, up to 255; 0: as many as the block allows"),
    word_row<&O::line_info, kSwitch>("line-info", kSwitchValues,
                                     "let profilers and debuggers show the kernel's C++ lines"),
    CompileOptionText{"ptxas-flags", "FLAG,...",
                      "further flags of ptxas, of those that it may have", &print_flags,
                      &read_flags},
    text_row<&O::ptxas_path>("ptxas", "FILE", "the program; unset: looked for"),
    text_row<&O::ptx_library_path>("ptx-library", "FILE", "the library; unset: looked for"),
    word_row<&O::allow_slow_wgmma, kSwitch>("allow-slow-wgmma", kSwitchValues,
                                            "take kernels whose wgmmas ptxas has made slow"),
    word_row<&O::disk_cache, kCachings>("cache", "off|use|renew",
                                        "the user's cache of assembled kernels"),
    word_row<&O::recall, kRecalls>("recall", "off|use|check",
                                   "launches take what another process has compiled, untraced"),
    CompileOptionText{"keep", "STAGE,...", "show stages: trace, ir, ptx, cubin, constants or all",
                      &print_keep, &read_keep},
    text_row<&O::keep_dir>("keep-dir", "FOLDER", "for what is kept; unset: stderr"),
};

// A row, and the value that it is given.
struct Assignment {
  const CompileOptionText* row;
  std::string value;
};

// Up to the next blank outside quotes, without them. nullopt: a quote is open.
std::optional<std::string> next_word(string_view& text) {
  std::string word;
  char quote = '\0';
  while (!text.empty() && (quote != '\0' || !absl::ascii_isspace(text[0]))) {
    const char c = text[0];
    text.remove_prefix(1);
    if (c == quote) {
      quote = '\0';
    } else if (quote == '\0' && (c == '"' || c == '\'')) {
      quote = c;
    } else {
      word += c;
    }
  }
  if (quote != '\0') return std::nullopt;
  return word;
}

Status unknown(string_view name) {
  std::vector<string_view> names;
  for (const CompileOptionText& row : kRows) names.push_back(row.name);
  return InvalidArgumentError(absl::StrCat("there is no option '--", name, "'",
                                           ir::suggest(name, names), "; there are --",
                                           absl::StrJoin(names, ", --")));
}

StatusOr<std::vector<Assignment>> parse(string_view text) {
  std::vector<Assignment> assignments;
  for (text = absl::StripLeadingAsciiWhitespace(text); !text.empty();
       text = absl::StripLeadingAsciiWhitespace(text)) {
    const std::optional<std::string> word = next_word(text);
    if (!word) return InvalidArgumentError("a quote is not closed");
    string_view option = *word;
    if (!absl::ConsumePrefix(&option, "--")) {
      return InvalidArgumentError(absl::StrCat(
          "'", *word, "' is no option; write --name=value, with blanks between options"));
    }
    const std::pair<string_view, string_view> parts =
        absl::StrSplit(option, absl::MaxSplits('=', 1));
    const auto row = absl::c_find_if(
        kRows, [&](const CompileOptionText& known) { return known.name == parts.first; });
    if (row == kRows.end()) return unknown(parts.first);
    const bool has_value = parts.first.size() < option.size();
    const bool is_switch = row->values == kSwitchValues;
    assignments.push_back({row, std::string(has_value ? parts.second : is_switch ? "on" : "")});
  }
  return assignments;
}

Status assign(const Assignment& assignment, CompileOptions& options) {
  const CompileOptionText& row = *assignment.row;
  const Status read = row.read(assignment.value, options);
  if (read.ok()) return read;
  return InvalidArgumentError(absl::StrCat("--", row.name, "=", assignment.value, ": ",
                                           read.message().empty()
                                               ? absl::StrCat("it takes ", row.values)
                                               : std::string(read.message())));
}

}  // namespace

absl::Span<const CompileOptionText> compile_option_texts() { return kRows; }

Status read_compile_options(string_view text, CompileOptions& options) {
  const StatusOr<std::vector<Assignment>> assignments = parse(text);
  if (!assignments.ok()) return assignments.status();
  CompileOptions changed = options;
  for (const Assignment& assignment : *assignments) {
    if (Status s = assign(assignment, changed); !s.ok()) return s;
  }
  options = std::move(changed);
  return OkStatus();
}

std::string print_compile_options(const CompileOptions& options) {
  std::vector<std::string> texts;
  for (const CompileOptionText& row : kRows) {
    const std::string value = row.print(options);
    if (value == row.print({})) continue;
    const bool plain = absl::c_none_of(
        value, [](char c) { return absl::ascii_isspace(c) || c == '"' || c == '\''; });
    const char* const quote = plain ? "" : absl::StrContains(value, '\'') ? "\"" : "'";
    texts.push_back(absl::StrCat("--", row.name, "=", quote, value, quote));
  }
  return absl::StrJoin(texts, " ");
}

StatusOr<CompileOptions> with_environment(const CompileOptions& options) {
  const std::string text = codegen::environment_variable(kVariable);
  if (text.empty()) return options;
  const auto blame = [](const Status& status) {
    return Status(status.code(), absl::StrCat(kVariable, ": ", status.message()));
  };
  const StatusOr<std::vector<Assignment>> assignments = parse(text);
  if (!assignments.ok()) return blame(assignments.status());
  CompileOptions changed = options;
  for (const Assignment& assignment : *assignments) {
    if (assignment.row->print(options) != assignment.row->print({})) continue;
    if (Status s = assign(assignment, changed); !s.ok()) return blame(s);
  }
  return changed;
}

}  // namespace heddle::runtime
