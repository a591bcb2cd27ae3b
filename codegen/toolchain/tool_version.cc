#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/codegen/toolchain/remembered_run.h"
#include "heddle/codegen/toolchain/subprocess.h"
#include "heddle/codegen/toolchain/tool_path.h"
#include "heddle/codegen/toolchain/tool_run.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {
namespace {

// The word after `marker`, which is cut off `text`; empty if there is no marker.
absl::string_view word_after(absl::string_view text, absl::string_view marker) {
  const size_t at = text.find(marker);
  if (at == absl::string_view::npos) return {};
  text.remove_prefix(at + marker.size());
  return text.substr(0, text.find_first_of(" \t\r\n,"));
}

absl::string_view first_line(absl::string_view text) {
  return absl::StripTrailingAsciiWhitespace(text.substr(0, text.find('\n')));
}

// A script answers as the program does that it starts, which may be replaced while the script stays as it is.
bool is_script(const std::string& path) {
  char begin[2] = {};
  std::ifstream(path, std::ios::binary).read(begin, sizeof(begin));
  return begin[0] == '#' && begin[1] == '!';
}

}  // namespace

std::string ToolVersion::to_string() const { return absl::StrCat(major, ".", minor, ".", patch); }

std::strong_ordering compare(const ToolVersion& a, const ToolVersion& b) {
  const auto numbers = [](const ToolVersion& v) { return std::array{v.major, v.minor, v.patch}; };
  return numbers(a) <=> numbers(b);
}

std::optional<ToolVersion> parse_tool_version(Tool tool, absl::string_view printed) {
  // "ptxas: NVIDIA (R) Ptx optimizing assembler" keeps a disassembler from passing for ptxas.
  if (!absl::StartsWith(printed, absl::StrCat(tool_name(tool), ":"))) return std::nullopt;
  const std::vector<absl::string_view> numbers =
      absl::StrSplit(word_after(printed, ", V"), '.', absl::SkipEmpty());
  ToolVersion version;
  if (numbers.size() != 3 || !absl::SimpleAtoi(numbers[0], &version.major) ||
      !absl::SimpleAtoi(numbers[1], &version.minor) ||
      !absl::SimpleAtoi(numbers[2], &version.patch)) {
    return std::nullopt;
  }
  version.build = std::string(word_after(printed, "\nBuild "));
  return version;
}

StatusOr<ToolVersion> read_tool_version(Tool tool, const std::string& path,
                                        std::chrono::milliseconds timeout, DiskCache* cache) {
  Command command;
  command.program = path;
  command.arguments = {"--version"};
  command.timeout = timeout;
  if (is_script(path)) cache = nullptr;
  // Before it runs, so that a file replaced in between is found to have changed.
  const std::optional<FileIdentity> file = FileIdentity::of(path);
  const std::string key = file ? run_key(absl::StrCat(path, file->to_string()), command) : "";
  if (file) {
    const std::optional<Finished> known = recall_run(cache, key);
    if (known) {
      std::optional<ToolVersion> version = parse_tool_version(tool, known->standard_output);
      if (version) return *std::move(version);
    }
  }
  StatusOr<Finished> run = run_tool(tool, command);
  if (!run.ok()) return FailedPreconditionError(run.status().message());
  if (!run->succeeded()) {
    return FailedPreconditionError(
        absl::StrCat("'", path, " --version' ", describe_end(*run, timeout)));
  }
  std::optional<ToolVersion> version = parse_tool_version(tool, run->standard_output);
  if (!version.has_value()) {
    return FailedPreconditionError(absl::StrCat("'", path, " --version' does not answer as ",
                                                tool_name(tool), " does, but '",
                                                first_line(run->standard_output), "'"));
  }
  if (file && FileIdentity::of(path) == file) {
    remember_run(cache, key, absl::StrCat("version of ", path), *run);
  }
  return *std::move(version);
}

}  // namespace heddle::codegen
