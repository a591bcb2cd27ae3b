#include "heddle/codegen/toolchain/ptxas.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "heddle/codegen/environment.h"
#include "heddle/codegen/toolchain/cubin.h"
#include "heddle/codegen/toolchain/remembered_run.h"
#include "heddle/codegen/toolchain/subprocess.h"
#include "heddle/codegen/toolchain/tool_run.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {
namespace {

using absl::string_view;

constexpr size_t kMostErrorsInMessage = 5;
constexpr size_t kLongestQuote = 200;
// A shell says so when what it ran died of signal N: 128 + N.
constexpr int kShellSignalBase = 128;
constexpr int kLastSignal = 31;

// Line `number`, from 1, without its indentation; empty if there is none.
string_view line_of(string_view text, int number) {
  for (int line = 1; line < number; ++line) {
    const size_t end = text.find('\n');
    if (end == string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return absl::StripAsciiWhitespace(text.substr(0, text.find('\n')));
}

string_view shorten(string_view text) { return text.substr(0, kLongestQuote); }

// Writes the PTX where the user can pick it up; says where, or why not.
std::string keep_ptx(string_view ptx, const std::string& folder) {
  std::string path = absl::StrCat(folder, "/heddle-XXXXXX.ptx");
  const int file = mkostemps(path.data(), 4, O_CLOEXEC);
  bool written = file >= 0;
  for (string_view rest = ptx; written && !rest.empty();) {
    const ssize_t count = write(file, rest.data(), rest.size());
    written = count > 0 || (count < 0 && errno == EINTR);
    if (count > 0) rest.remove_prefix(static_cast<size_t>(count));
  }
  const int error = errno;
  if (file >= 0) close(file);
  if (written) return absl::StrCat("the PTX is kept in ", path);
  return std::string(
      ErrnoToStatus(error, absl::StrCat("the PTX could not be kept in ", folder)).message());
}

// One call: what was asked, who was asked, what came back.
class Run {
 public:
  Run(string_view ptx, const std::vector<std::string>& arguments, const AssembleOptions& options,
      Tool tool, ToolLocation ptxas)
      : ptx_(ptx), options_(options), tool_(tool), ptxas_(std::move(ptxas)) {
    command_.program = ptxas_.path;
    command_.arguments = arguments;
    command_.input = ptx_;
    command_.wants_output_file = true;
    command_.timeout = options_.timeout;
    if (options_.cache == nullptr) return;
    // Wherever it lies: a cache may move with its machine's image.
    const std::string program =
        absl::StrCat(tool_name(tool_), " ", ptxas_.version.to_string(), " ", ptxas_.version.build,
                     " of ", ptxas_.identity.size, " bytes, written ", ptxas_.identity.modified_ns);
    key_ = run_key(program, command_);
  }

  // Takes what an earlier run of the same gave, if that is known.
  bool recall() {
    if (options_.renew) return false;
    std::optional<Finished> known = recall_run(options_.cache, key_);
    if (known) finish(*std::move(known));
    return known.has_value();
  }
  // Runs it.
  Status execute() {
    StatusOr<Finished> finished = run_tool(tool_, command_);
    if (finished.ok()) finish(*std::move(finished));
    return finished.status();
  }
  // Keeps what it gave, or forgets that it was kept.
  void remember() const {
    const std::string label =
        absl::StrCat(absl::StrJoin(options_.entries, " "), ", ", options_.arch, ", ",
                     tool_name(tool_), " ", ptxas_.version.to_string());
    remember_run(options_.cache, key_, label, finished_);
  }
  void forget() const { options_.cache->forget(key_); }

  bool is_attributable() const { return ptxas_.is_unchanged(); }
  const std::vector<Diagnostic>& diagnostics() const { return report_.diagnostics; }
  StatusOr<Assembly> result() const;

 private:
  void finish(Finished finished) {
    finished_ = std::move(finished);
    report_ =
        parse_ptxas_output(absl::StrCat(finished_.standard_error, "\n", finished_.standard_output));
  }

  // An error: what happened, then who and for what, then where the PTX went.
  Status failure(StatusCode code, string_view what) const {
    std::string message = absl::StrCat(what, " (", ptxas_.path, " ", ptxas_.version.to_string(),
                                       ", target ", options_.arch);
    if (!options_.keep_ptx_dir.empty()) {
      absl::StrAppend(&message, "; ", keep_ptx(ptx_, options_.keep_ptx_dir));
    }
    return Status(code, absl::StrCat(message, ")"));
  }

  int ending_signal() const {
    const int code = finished_.exit_code;
    const bool from_shell = code > kShellSignalBase && code <= kShellSignalBase + kLastSignal;
    return from_shell ? code - kShellSignalBase : finished_.signal;
  }
  Status crashed(int signal) const;
  // Targets, PTX versions and flags that this ptxas does not know.
  Status check_known(const Diagnostic& error) const;
  std::string describe(const Diagnostic& error) const;
  Status refused() const;
  Status silent_failure() const;
  StatusOr<Cubin> checked_cubin() const;

  string_view ptx_;
  const AssembleOptions& options_;
  Tool tool_;
  ToolLocation ptxas_;
  Command command_;
  std::string key_;  // in the cache, where there is one
  Finished finished_;
  PtxasReport report_;
};

Status Run::crashed(int signal) const {
  Finished end;
  end.signal = signal;
  const std::string how = describe_end(end, options_.timeout);
  if (signal == SIGKILL) {
    return failure(StatusCode::kResourceExhausted,
                   absl::StrCat("ptxas ", how, ", as happens when memory runs out"));
  }
  if (signal == SIGXFSZ) {
    return failure(StatusCode::kResourceExhausted, "ptxas wrote more than a file may have");
  }
  return failure(
      StatusCode::kInternal,
      absl::StrCat("the assembler crashed: ptxas ", how,
                   "; this is a fault of ptxas, so try another version or a lower opt_level"));
}

Status Run::check_known(const Diagnostic& error) const {
  const string_view text = error.text;
  if (absl::StartsWith(text, "Value '") &&
      absl::StrContains(text, "is not defined for option 'gpu-name'")) {
    string_view renamed;
    if (absl::StartsWith(options_.arch, "sm_101"))
      renamed = " (since ptxas 13 it is called sm_110)";
    if (absl::StartsWith(options_.arch, "sm_110"))
      renamed = " (before ptxas 13 it was called sm_101)";
    return failure(StatusCode::kUnimplemented,
                   absl::StrCat("this ptxas does not know the target ", options_.arch, renamed,
                                "; use another version, or let the driver assemble the PTX"));
  }
  if (absl::StartsWith(text, "Unsupported .version ")) {
    return failure(StatusCode::kUnimplemented,
                   absl::StrCat("this ptxas does not know the PTX version: ", text,
                                "; use a newer one, or let the driver assemble the PTX"));
  }
  if (absl::StartsWith(text, "Unknown option ")) {
    return failure(StatusCode::kInvalidArgument,
                   absl::StrCat("this ptxas does not have a flag that was asked for: ", text));
  }
  return OkStatus();
}

std::string Run::describe(const Diagnostic& error) const {
  std::string text = error.text;
  if (!error.code.empty()) text = absl::StrCat("(", error.code, ") ", text);
  if (error.ptx_line == 0) return text;
  return absl::StrCat("PTX line ", error.ptx_line, ": ", text, " in `",
                      shorten(line_of(ptx_, error.ptx_line)), "`");
}

Status Run::refused() const {
  std::vector<std::string> errors;
  size_t left_out = 0;
  for (const Diagnostic& said : report_.diagnostics) {
    if (!said.is_error()) continue;
    if (Status known = check_known(said); !known.ok()) return known;
    // Follows every other error and adds nothing.
    if (!errors.empty() && absl::StrContains(said.text, "aborted due to errors")) continue;
    if (errors.size() < kMostErrorsInMessage) {
      errors.push_back(describe(said));
    } else {
      ++left_out;
    }
  }
  std::string list = absl::StrJoin(errors, "; ");
  if (left_out > 0) absl::StrAppend(&list, "; and ", left_out, " more");
  return failure(StatusCode::kInvalidArgument, absl::StrCat("ptxas refused the PTX: ", list));
}

Status Run::silent_failure() const {
  const string_view said = absl::StripAsciiWhitespace(report_.other);
  return failure(
      StatusCode::kUnknown,
      absl::StrCat("ptxas ", describe_end(finished_, options_.timeout), " and ",
                   said.empty() ? "printed no error" : absl::StrCat("printed: ", shorten(said))));
}

StatusOr<Cubin> Run::checked_cubin() const {
  const auto unusable = [this](string_view why) {
    return failure(StatusCode::kDataLoss,
                   absl::StrCat("ptxas reported success, but its cubin cannot be used: ", why));
  };
  StatusOr<Cubin> cubin = read_cubin(finished_.output_file);
  if (!cubin.ok()) return unusable(cubin.status().message());
  int wanted_sm = 0;
  const string_view number = absl::StripPrefix(options_.arch, "sm_");
  if (absl::SimpleAtoi(number.substr(0, number.find_first_of("af")), &wanted_sm) &&
      cubin->sm != wanted_sm) {
    return unusable(absl::StrCat("it is for sm_", cubin->sm));
  }
  for (const std::string& entry : options_.entries) {
    if (!cubin->has_entry(entry)) {
      return unusable(absl::StrCat("it holds no code of kernel '", entry, "'"));
    }
  }
  return cubin;
}

StatusOr<Assembly> Run::result() const {
  if (finished_.timed_out) {
    return failure(StatusCode::kDeadlineExceeded,
                   absl::StrCat("ptxas ", describe_end(finished_, options_.timeout),
                                "; raise the timeout or make the kernel smaller"));
  }
  if (const int signal = ending_signal(); signal != 0) return crashed(signal);
  if (absl::c_any_of(report_.diagnostics, [](const Diagnostic& d) { return d.is_error(); })) {
    return refused();
  }
  if (!finished_.succeeded()) return silent_failure();
  StatusOr<Cubin> cubin = checked_cubin();
  if (!cubin.ok()) return cubin.status();

  Assembly assembly;
  assembly.entries = report_.entries;
  for (EntryReport& entry : assembly.entries) {
    // Banks are numbered with one digit.
    for (int bank = 0; bank < 10; ++bank) {
      const CubinSection* constants =
          cubin->find(absl::StrCat(".nv.constant", bank, ".", entry.name));
      if (constants != nullptr) entry.constant_bytes += static_cast<int>(constants->size);
    }
    const CubinSection* code = cubin->find(absl::StrCat(".text.", entry.name));
    if (code != nullptr) entry.code_bytes = static_cast<int>(code->size);
  }
  assembly.cubin = finished_.output_file;
  assembly.diagnostics = report_.diagnostics;
  assembly.made_by = tool_;
  assembly.ptxas_path = ptxas_.path;
  assembly.ptxas_version = ptxas_.version;
  assembly.wall_time = finished_.wall_time;
  return assembly;
}

ToolSearch search_for(Tool tool, const AssembleOptions& options) {
  ToolSearch search = ToolSearch::from_environment(
      tool, tool == Tool::kPtxLibrary ? options.library_path : options.ptxas_path);
  search.cache = options.cache;
  return search;
}

// In the order tried.
std::vector<Tool> tools_of(const AssembleOptions& options) {
  switch (options.assembler) {
    case Assembler::kLibrary:
      return {Tool::kPtxLibrary};
    case Assembler::kPtxas:
      return {Tool::kPtxas};
    case Assembler::kAny:
    case Assembler::kDriver:
      break;
  }
  const bool program_is_named =
      !options.ptxas_path.empty() ||
      !environment_variable(std::string(tool_variable(Tool::kPtxas)).c_str()).empty();
  if (program_is_named) return {Tool::kPtxas};
  return {Tool::kPtxLibrary, Tool::kPtxas};
}

StatusOr<Assembly> assemble_by(const ToolSearch& search, Tool tool, absl::string_view ptx,
                               const std::vector<std::string>& arguments,
                               const AssembleOptions& options,
                               std::vector<Diagnostic>* diagnostics) {
  // A toolkit that is being updated changes under our hands; then the version, which is part of the
  // result, may not be that of the program which ran.
  for (int attempt = 0; attempt < 2; ++attempt) {
    StatusOr<ToolLocation> ptxas = find_tool(tool, search);
    if (!ptxas.ok()) return ptxas.status();
    Run run(ptx, arguments, options, tool, *std::move(ptxas));
    if (run.recall()) {
      StatusOr<Assembly> known = run.result();
      if (known.ok()) {
        known->from_cache = true;
        *diagnostics = run.diagnostics();
        return known;
      }
      run.forget();
    }
    const Status executed = run.execute();
    if (!run.is_attributable()) continue;
    if (!executed.ok()) return executed;
    *diagnostics = run.diagnostics();
    StatusOr<Assembly> made = run.result();
    if (made.ok()) run.remember();
    return made;
  }
  return AbortedError(absl::StrCat(tool_name(tool),
                                   " was replaced by another file while it ran, twice; try again"));
}

}  // namespace

const EntryReport* Assembly::find(string_view entry) const {
  const auto found =
      absl::c_find_if(entries, [&](const EntryReport& report) { return report.name == entry; });
  return found != entries.end() ? &*found : nullptr;
}

StatusOr<Assembly> assemble(string_view ptx, const AssembleOptions& options,
                            std::vector<Diagnostic>* diagnostics) {
  std::vector<Diagnostic> unwanted;
  if (diagnostics == nullptr) diagnostics = &unwanted;
  diagnostics->clear();
  const StatusOr<std::vector<std::string>> arguments = ptxas_arguments(options);
  if (!arguments.ok()) return arguments.status();
  if (options.assembler == Assembler::kDriver) {
    return InvalidArgumentError(
        "the driver assembles PTX when it loads it: there is no cubin before");
  }
  Status refused;
  for (const Tool tool : tools_of(options)) {
    const ToolSearch search = search_for(tool, options);
    StatusOr<Assembly> assembly = assemble_by(search, tool, ptx, *arguments, options, diagnostics);
    const bool absent = IsNotFound(assembly.status()) && !search.is_request();
    if (!absent && !IsUnimplemented(assembly.status())) return assembly;
    // Of two that fail, the one that is there has more to say; of two that are not, ptxas is better known.
    if (!absent || refused.ok() || IsNotFound(refused)) refused = assembly.status();
  }
  return refused;
}

}  // namespace heddle::codegen
