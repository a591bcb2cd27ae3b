#include "support/filetest.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/ir/passes/pipeline.h"
#include "heddle/ir/text/parser.h"
#include "heddle/ir/text/printer.h"
#include "heddle/ir/verify/verifier.h"

namespace heddle::test {
namespace {

constexpr absl::string_view kGoldenMark = "; | ";
constexpr absl::string_view kExact = "; check-exact";

struct Line {
  int number = 0;
  absl::string_view text;
};

// A mistake that was found, or one that is expected.
struct Error {
  int line = 0;
  std::string text;
};

// The comment of a line, without its semicolon; nullopt where there is none.
std::optional<absl::string_view> comment_of(absl::string_view line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\\' && quoted) {
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == ';' && !quoted) {
      return absl::StripAsciiWhitespace(line.substr(i + 1));
    }
  }
  return std::nullopt;
}

class Filetest {
 public:
  Filetest(absl::string_view text, absl::string_view name) : text_(text), name_(name) {}

  FiletestResult run() {
    read_directives();
    if (failures_.empty()) judge();
    return {std::move(failures_), std::move(blessed_)};
  }

 private:
  void fail(int line, absl::string_view what) {
    failures_.push_back(absl::StrCat(name_, ":", line, ": ", what));
  }

  // --- What the file asks for ---

  void read_directives() {
    blessed_ = std::string(text_);
    std::vector<absl::string_view> lines = absl::StrSplit(text_, '\n');
    int number = 0;
    for (const absl::string_view line : lines) {
      ++number;
      if (kernel_line_ == 0 && absl::StartsWith(line, "kernel")) kernel_line_ = number;
      if (golden_) {
        read_golden({number, line});
      } else if (line == kExact) {
        golden_.emplace();
        golden_line_ = number;
        before_golden_ = text_.substr(0, static_cast<size_t>(line.end() - text_.begin()));
      } else if (const auto comment = comment_of(line)) {
        read_directive({number, *comment}, absl::StartsWith(line, ";"));
      }
    }
    const bool expects =
        verify_ || golden_ || !checks_.empty() || !forbidden_.empty() || !expected_errors_.empty();
    if (!expects) {
      fail(1, "this file expects nothing; add '; verify', '; check: ...' or '; error: ...'");
    }
    const bool output = golden_ || !checks_.empty() || !forbidden_.empty();
    if (output && !expected_errors_.empty()) {
      fail(expected_errors_[0].line, "a kernel with errors has no result to check");
    }
  }

  void read_golden(Line line) {
    if (absl::StartsWith(line.text, kGoldenMark)) {
      absl::StrAppend(&*golden_, line.text.substr(kGoldenMark.size()), "\n");
    } else if (!line.text.empty()) {
      fail(line.number,
           "only the golden result, lines that begin with '; | ', follows check-exact");
    }
  }

  void read_directive(Line line, bool own_line) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line.text, absl::MaxSplits(':', 1));
    const absl::string_view word = parts.first;
    const absl::string_view rest = absl::StripAsciiWhitespace(parts.second);
    const bool has_colon = word.size() < line.text.size();
    if (word == "verify" && !has_colon) {
      verify_ = true;
    } else if (word == "verify pure_ssa" && !has_colon) {
      verify_ = true;
      stage_ = ir::Stage::kPureSsa;
    } else if (word == "verify emittable" && !has_colon) {
      verify_ = true;
      stage_ = ir::Stage::kEmittable;
    } else if (word == "error" && has_colon && !own_line) {
      expected_errors_.push_back({line.number, std::string(rest)});
    } else if (word == "run" && has_colon) {
      passes_ = std::string(rest);
    } else if (word == "check" && has_colon) {
      checks_.push_back({line.number, rest});
    } else if (word == "check-not" && has_colon) {
      forbidden_.push_back({line.number, rest});
    } else if (has_colon && is_directive_like(word)) {
      // A misspelt directive would make the test pass for nothing.
      fail(line.number, word == "error" ? "an error stands on the line that is wrong"
                                        : absl::StrCat("unknown directive '", word, "'"));
    }
  }

  static bool is_directive_like(absl::string_view word) {
    return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return absl::ascii_islower(static_cast<unsigned char>(c)) || c == '-';
    });
  }

  // --- What comes of it ---

  void judge() {
    absl::StatusOr<ir::Kernel> kernel = ir::parse(text_, name_, {.text_as_source = true});
    if (!kernel.ok()) return compare_errors({parse_error(kernel.status().message())});
    std::vector<Error> found;
    for (const ir::Diagnostic& wrong : ir::verify(*kernel, stage_)) {
      found.push_back(
          {wrong.place.file.empty() ? kernel_line_ : wrong.place.line, ir::to_string(wrong)});
    }
    compare_errors(found);
    if (!found.empty() || !expected_errors_.empty()) return;
    if (passes_) {
      const absl::Status status = ir::run_pipeline(*kernel, *passes_, {.verify_each = true});
      if (!status.ok()) return fail(kernel_line_, status.message());
    }
    const std::string result = ir::print(*kernel);
    check_reads_back(result);
    check_lines(result);
    check_golden(result);
  }

  // "name:line:column: message", as the parser writes it.
  Error parse_error(absl::string_view message) const {
    absl::string_view rest = message;
    int line = 1;
    if (absl::ConsumePrefix(&rest, absl::StrCat(name_, ":"))) {
      (void)absl::SimpleAtoi(rest.substr(0, rest.find(':')), &line);
    }
    return {line, std::string(message)};
  }

  void compare_errors(const std::vector<Error>& found) {
    std::vector<bool> expected(found.size(), false);
    for (const Error& wanted : expected_errors_) {
      bool met = false;
      for (size_t i = 0; i < found.size(); ++i) {
        if (expected[i] || found[i].line != wanted.line ||
            !absl::StrContains(found[i].text, wanted.text)) {
          continue;
        }
        expected[i] = met = true;
        break;
      }
      if (!met) fail(wanted.line, absl::StrCat("expected an error that says: ", wanted.text));
    }
    for (size_t i = 0; i < found.size(); ++i) {
      if (!expected[i]) fail(found[i].line, absl::StrCat("unexpected error: ", found[i].text));
    }
  }

  void check_reads_back(const std::string& result) {
    const absl::StatusOr<ir::Kernel> again = ir::parse(result, "result");
    if (!again.ok()) {
      fail(kernel_line_, absl::StrCat("the result does not read back: ", again.status().message()));
    } else if (ir::print(*again) != result) {
      fail(kernel_line_, absl::StrCat("the result reads back as:\n", ir::print(*again)));
    }
  }

  void check_lines(const std::string& result) {
    const std::vector<absl::string_view> lines = absl::StrSplit(result, '\n');
    size_t at = 0;
    for (const Line& wanted : checks_) {
      size_t match = at;
      while (match < lines.size() && !absl::StrContains(lines[match], wanted.text)) ++match;
      if (match == lines.size()) {
        fail(wanted.number, absl::StrCat("no line", at == 0 ? "" : " behind the last match",
                                         " has: ", wanted.text, "\n", result));
        return;
      }
      at = match + 1;
    }
    for (const Line& unwanted : forbidden_) {
      for (const absl::string_view line : lines) {
        if (!absl::StrContains(line, unwanted.text)) continue;
        fail(unwanted.number, absl::StrCat("unwanted: ", absl::StripAsciiWhitespace(line)));
        break;
      }
    }
  }

  void check_golden(const std::string& result) {
    if (!golden_) return;
    blessed_ = absl::StrCat(before_golden_, "\n");
    for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(result, "\n"), '\n')) {
      absl::StrAppend(&blessed_, kGoldenMark, line, "\n");
    }
    if (*golden_ == result) return;
    fail(golden_line_, absl::StrCat(golden_->empty() ? "the golden result is missing"
                                                     : "the golden result differs",
                                    "; HEDDLE_BLESS=1 writes this one:\n", result));
  }

  const absl::string_view text_;
  const absl::string_view name_;
  std::vector<std::string> failures_;
  std::string blessed_;
  int kernel_line_ = 0;
  bool verify_ = false;
  ir::Stage stage_ = ir::Stage::kTraced;
  std::optional<std::string> passes_;
  std::vector<Error> expected_errors_;
  std::vector<Line> checks_;
  std::vector<Line> forbidden_;
  std::optional<std::string> golden_;
  int golden_line_ = 0;
  absl::string_view before_golden_;
};

}  // namespace

FiletestResult run_filetest_text(absl::string_view text, absl::string_view name) {
  return Filetest(text, name).run();
}

std::vector<std::string> run_filetest(const std::string& path, bool bless) {
  const std::string name = std::filesystem::path(path).filename().string();
  std::ifstream in(path, std::ios::binary);
  if (!in) return {absl::StrCat(path, ": cannot be read")};
  std::stringstream text;
  text << in.rdbuf();
  FiletestResult result = run_filetest_text(text.str(), name);
  if (!bless || result.blessed == text.str()) return result.failures;
  std::ofstream out(path, std::ios::binary);
  out << result.blessed;
  if (!out.flush()) return {absl::StrCat(path, ": cannot be written")};
  return run_filetest_text(result.blessed, name).failures;
}

std::vector<std::string> find_filetests(const std::string& folder) {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".ir") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace heddle::test
