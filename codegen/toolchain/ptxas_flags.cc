#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/codegen/toolchain/ptxas.h"
#include "heddle/codegen/toolchain/subprocess.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {
namespace {

// The long names alone: short ones differ between versions and take their value as the next word.
struct Flag {
  absl::string_view name;
  absl::string_view values;  // separated by '|'; empty = takes none; "N" = a number
};
constexpr std::array<Flag, 19> kFlags = {{
    {"--Ofast-compile", "0|min|mid|max"},
    {"--allow-expensive-optimizations", "true|false"},
    {"--device-debug", ""},
    {"--device-stack-protector", "true|false"},
    {"--disable-optimizer-constants", ""},
    {"--disable-warnings", ""},
    {"--dont-merge-basicblocks", ""},
    {"--fmad", "true|false"},
    {"--make-errors-visible-at-exit", ""},
    {"--optimize-float-atomics", ""},
    {"--register-usage-level", "N"},
    {"--return-at-end", ""},
    {"--sp-bounds-check", ""},
    {"--split-compile", "N"},
    {"--suppress-debug-info", ""},
    {"--warn-on-double-precision-use", ""},
    {"--warn-on-local-memory-usage", ""},
    {"--warn-on-spills", ""},
    {"--warning-as-error", ""},
}};

constexpr int kMostRegisters = 255;
constexpr size_t kLongestNumber = 6;

bool all_digits(absl::string_view text) {
  return !text.empty() && absl::c_all_of(text, absl::ascii_isdigit);
}

bool is_value(absl::string_view value, absl::string_view values) {
  if (values == "N") return all_digits(value) && value.size() <= kLongestNumber;
  return absl::c_linear_search(std::vector<absl::string_view>(absl::StrSplit(values, '|')), value);
}

bool is_allowed(absl::string_view flag) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(flag, absl::MaxSplits('=', 1));
  const bool has_value = parts.first.size() < flag.size();
  return absl::c_any_of(kFlags, [&](const Flag& allowed) {
    if (allowed.name != parts.first) return false;
    return has_value ? !allowed.values.empty() && is_value(parts.second, allowed.values)
                     : allowed.values.empty();
  });
}

// "sm_90", "sm_90a", "sm_100f"
bool is_arch(absl::string_view arch) {
  if (!absl::ConsumePrefix(&arch, "sm_")) return false;
  if (!absl::ConsumeSuffix(&arch, "a")) absl::ConsumeSuffix(&arch, "f");
  return all_digits(arch) && arch.size() <= kLongestNumber;
}

}  // namespace

std::vector<std::string> allowed_ptxas_flags() {
  std::vector<std::string> flags;
  for (const Flag& flag : kFlags) {
    flags.push_back(absl::StrCat(flag.name, flag.values.empty() ? "" : "=", flag.values));
  }
  return flags;
}

StatusOr<std::vector<std::string>> ptxas_arguments(const AssembleOptions& options) {
  if (!is_arch(options.arch)) {
    return InvalidArgumentError(
        absl::StrCat("'", options.arch, "' is not a target; write it as in sm_90a"));
  }
  if (options.opt_level < 0 || options.opt_level > 3) {
    return InvalidArgumentError(
        absl::StrCat("ptxas has the optimisation levels 0 to 3, not ", options.opt_level));
  }
  if (options.max_registers < 0 || options.max_registers > kMostRegisters) {
    return InvalidArgumentError(absl::StrCat("a thread can have 1 to ", kMostRegisters,
                                             " registers, not ", options.max_registers));
  }
  std::vector<std::string> arguments = {absl::StrCat("--gpu-name=", options.arch),
                                        absl::StrCat("--opt-level=", options.opt_level),
                                        "--verbose"};
  if (options.line_info) arguments.push_back("--generate-line-info");
  if (options.max_registers > 0) {
    // Alone, the limit is ignored for every kernel that has .reqntid or .maxntid, without a word.
    arguments.push_back(absl::StrCat("--maxrregcount=", options.max_registers));
    arguments.push_back("--override-directive-values");
  }
  for (const std::string& flag : options.extra_flags) {
    if (!is_allowed(flag)) {
      return InvalidArgumentError(absl::StrCat("ptxas flag '", flag, "' is not one of ",
                                               absl::StrJoin(allowed_ptxas_flags(), ", ")));
    }
    arguments.push_back(flag);
  }
  arguments.push_back(absl::StrCat("--output-file=", kOutputFile));
  // A file, because ptxas copies a PTX that comes as `-` to a name in /tmp that anybody can guess.
  arguments.push_back(kInputFile);
  return arguments;
}

}  // namespace heddle::codegen
