#include "heddle/tools/command/kernel_choice.h"

#include <dlfcn.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "heddle/ir/wording.h"

namespace heddle::tools {

using runtime::KernelEntry;

absl::StatusOr<ChosenKernel> choose_kernel(const KernelChoice& choice) {
  const KernelEntry* const entry = runtime::find_kernel(choice.kernel);
  if (entry == nullptr) {
    std::vector<absl::string_view> names;
    for (const KernelEntry* known : runtime::registered_kernels()) names.push_back(known->name);
    return absl::NotFoundError(absl::StrCat("unknown kernel '", choice.kernel, "'",
                                            ir::suggest(choice.kernel, names),
                                            " ('heddle list' shows all)"));
  }
  const absl::StatusOr<std::map<std::string, std::string>> given =
      parse_assignments("--set", choice.settings);
  if (!given.ok()) return given.status();
  absl::StatusOr<runtime::Settings> settings = runtime::resolve_settings(*entry, *given);
  if (!settings.ok()) return settings.status();
  return ChosenKernel{entry, *std::move(settings)};
}

absl::StatusOr<std::map<std::string, std::string>> parse_assignments(
    absl::string_view option, const std::vector<std::string>& arguments) {
  std::map<std::string, std::string> pairs;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat(option, " wants NAME=VALUE, not '", argument, "'"));
    }
    const std::string name = argument.substr(0, equals);
    if (!pairs.emplace(name, argument.substr(equals + 1)).second) {
      return absl::InvalidArgumentError(absl::StrCat(option, " gives '", name, "' twice"));
    }
  }
  return pairs;
}

absl::Status load_plugin(const std::string& path) {
  const auto refused = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("plug-in ", path, " ", absl::StrReplaceAll(why, {{"\n", " "}})));
  };
  // A bare name would send dlopen to the system's folders.
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error) return refused(absl::StrCat("cannot be opened: ", error.message()));
  const std::vector<const KernelEntry*> before = runtime::registered_kernels();
  try {
    if (dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr) {
      return refused(absl::StrCat("cannot be loaded: ", dlerror()));
    }
  } catch (const std::exception& thrown) {  // from a constructor of its own
    return refused(absl::StrCat("failed while it was loaded: ", thrown.what()));
  }
  // A plug-in may replace a kernel, so names alone do not tell.
  for (const KernelEntry* entry : runtime::registered_kernels()) {
    if (std::find(before.begin(), before.end(), entry) == before.end()) return absl::OkStatus();
  }
  return refused(
      "registers no kernels with this program; does it hold a Registered constant, and "
      "was this program linked with ENABLE_EXPORTS?");
}

}  // namespace heddle::tools
