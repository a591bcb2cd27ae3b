#include "heddle/codegen/toolchain/disassemble.h"

#include <stdlib.h>

#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/codegen/toolchain/cubin.h"
#include "heddle/codegen/toolchain/subprocess.h"
#include "heddle/codegen/toolchain/tool_path.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {
namespace {

using absl::string_view;

constexpr size_t kLongestListing = size_t{1} << 30;
constexpr size_t kLongestQuote = 200;

StatusOr<std::string> listing_of(Command command, const DisassembleOptions& options) {
  command.timeout = options.timeout;
  command.max_captured = kLongestListing;
  StatusOr<Finished> run = run_command(command);
  if (!run.ok()) return run.status();
  if (run->succeeded()) return std::move(run->standard_output);
  const string_view said = absl::StripAsciiWhitespace(run->standard_error);
  return Status(run->timed_out ? StatusCode::kDeadlineExceeded : StatusCode::kUnknown,
                absl::StrCat(command.program, " ", describe_end(*run, options.timeout),
                             said.empty() ? "" : " and printed: ", said.substr(0, kLongestQuote)));
}

StatusOr<std::string> run_nvdisasm(const std::string& path, string_view cubin,
                                   const DisassembleOptions& options) {
  Command command;
  command.program = path;
  command.arguments = {"--print-code", "--print-line-info", kInputFile};
  command.input = cubin;
  return listing_of(std::move(command), options);
}

// cuobjdump runs nvdisasm over copies that it puts into TMPDIR under names that can be guessed, so
// it gets a folder of its own.
StatusOr<std::string> run_cuobjdump(const std::string& path, string_view cubin,
                                    const DisassembleOptions& options) {
  std::error_code error;
  std::string folder = (std::filesystem::temp_directory_path(error) / "heddle-XXXXXX").string();
  if (error || mkdtemp(folder.data()) == nullptr) {
    return UnavailableError(absl::StrCat("cannot create the temporary folder ", folder));
  }
  const auto remove = absl::MakeCleanup([&folder] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  });
  Command command;
  command.program = path;
  command.arguments = {"--dump-sass", kInputFile};
  command.input = cubin;
  command.environment.push_back(absl::StrCat("TMPDIR=", folder));
  return listing_of(std::move(command), options);
}

// The text between `before` and `after`; nullopt without both.
std::optional<string_view> between(string_view text, string_view before, string_view after) {
  const size_t start = text.find(before);
  if (start == string_view::npos) return std::nullopt;
  text.remove_prefix(start + before.size());
  const size_t end = text.find(after);
  if (end == string_view::npos) return std::nullopt;
  return text.substr(0, end);
}

// `//## File "/src/kernel.cc", line 42 inlined at …`
void read_source_line(string_view line, SassInstruction* here) {
  const std::optional<string_view> file = between(line, "File \"", "\", line ");
  if (!file.has_value()) return;
  here->file = std::string(*file);
  line.remove_prefix(static_cast<size_t>(file->data() - line.data()) + file->size());
  absl::ConsumePrefix(&line, "\", line ");
  if (!absl::SimpleAtoi(line.substr(0, line.find_first_not_of("0123456789")), &here->line)) {
    here->line = 0;
  }
}

// "/*0050*/  @P0 LDG.E R0, desc[UR6][R2.64] ;", with the encoding behind it or not
bool read_instruction(string_view line, SassInstruction* here) {
  if (!absl::ConsumePrefix(&line, "/*")) return false;
  const size_t end = line.find("*/");
  if (end == string_view::npos || !absl::SimpleHexAtoi(line.substr(0, end), &here->offset)) {
    return false;
  }
  line = absl::StripLeadingAsciiWhitespace(line.substr(end + 2));
  here->text = std::string(absl::StripTrailingAsciiWhitespace(line.substr(0, line.find(';'))));
  if (absl::StartsWith(line, "@")) {
    line.remove_prefix(std::min(line.find(' '), line.size()));
    line = absl::StripLeadingAsciiWhitespace(line);
  }
  // Without an instruction it is the second half of an encoding.
  here->opcode = std::string(line.substr(0, line.find_first_of(" ;")));
  return !here->opcode.empty() && line.find(';') != string_view::npos;
}

}  // namespace

StatusOr<std::string> disassemble(string_view cubin, const DisassembleOptions& options) {
  if (StatusOr<Cubin> checked = read_cubin(cubin); !checked.ok()) {
    return DataLossError(
        absl::StrCat("the cubin cannot be disassembled: ", checked.status().message()));
  }
  const auto nvdisasm_search = ToolSearch::from_environment(Tool::kNvdisasm, options.nvdisasm_path);
  const auto cuobjdump_search =
      ToolSearch::from_environment(Tool::kCuobjdump, options.cuobjdump_path);
  // What was asked for is not silently replaced.
  const bool wants_cuobjdump = cuobjdump_search.is_request() && !nvdisasm_search.is_request();
  Status missing;
  if (!wants_cuobjdump) {
    const StatusOr<ToolLocation> nvdisasm = find_tool(Tool::kNvdisasm, nvdisasm_search);
    if (nvdisasm.ok()) return run_nvdisasm(nvdisasm->path, cubin, options);
    if (nvdisasm_search.is_request()) return nvdisasm.status();
    missing = nvdisasm.status();
  }
  const StatusOr<ToolLocation> cuobjdump = find_tool(Tool::kCuobjdump, cuobjdump_search);
  if (cuobjdump.ok()) return run_cuobjdump(cuobjdump->path, cubin, options);
  return wants_cuobjdump ? cuobjdump.status() : missing;
}

std::vector<SassInstruction> sass_opcodes(string_view listing) {
  std::vector<SassInstruction> result;
  SassInstruction here;
  for (string_view line : absl::StrSplit(listing, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    string_view kernel = line;
    const bool starts_kernel =
        (absl::ConsumePrefix(&kernel, ".text.") && absl::ConsumeSuffix(&kernel, ":")) ||
        absl::ConsumePrefix(&kernel, "Function : ");
    if (starts_kernel) {
      here = SassInstruction();
      here.kernel = std::string(kernel);
    } else if (absl::StartsWith(line, "//## File ")) {
      read_source_line(line, &here);
    } else if (read_instruction(line, &here)) {
      result.push_back(here);
    }
  }
  return result;
}

std::map<std::string, int> count_opcodes(const std::vector<SassInstruction>& instructions) {
  std::map<std::string, int> counts;
  for (const SassInstruction& instruction : instructions) ++counts[instruction.opcode];
  return counts;
}

}  // namespace heddle::codegen
