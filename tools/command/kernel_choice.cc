#include "heddle/tools/command/kernel_choice.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "heddle/ir/custom_op.h"
#include "heddle/ir/passes/pass.h"
#include "heddle/ir/wording.h"
#include "heddle/tools/command/option_values.h"
#include "heddle/tools/command/outcome.h"

namespace heddle::tools {
namespace {

thread_local const char* loading = "";

// An exception of a library's constructors cannot pass through the loader, so the program ends here, with
// a message.
[[noreturn]] void give_up_loading() {
  std::string why = "it called std::terminate";
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      why = error.what();
    } catch (...) {
      why = "it threw something that is no std::exception";
    }
  }
  std::_Exit(static_cast<int>(
      misused(absl::StrCat("plug-in ", loading, " failed while it was loaded: ", why))));
}

}  // namespace

using runtime::Operation;

StatusOr<const Operation*> find_kernel(const std::string& name) {
  const Operation* const operation = runtime::find_operation(name);
  if (operation == nullptr) {
    std::vector<absl::string_view> names;
    for (const Operation* known : runtime::registered_operations()) names.push_back(known->name());
    return NotFoundError(absl::StrCat("unknown kernel '", name, "'", ir::suggest(name, names),
                                      " ('heddle list' shows all)"));
  }
  if (!operation->validity().ok()) return operation->validity();
  return operation;
}

StatusOr<ChosenKernel> choose_kernel(const KernelChoice& choice) {
  const StatusOr<const Operation*> found = find_kernel(choice.kernel);
  if (!found.ok()) return found.status();
  const Operation* const operation = *found;
  const StatusOr<Assignments> given = parse_assignments("--set", choice.settings);
  if (!given.ok()) return given.status();
  StatusOr<runtime::Settings> settings = operation->resolve(*given);
  if (!settings.ok()) return settings.status();
  StatusOr<runtime::Sizes> sizes = parse_sizes("--size", choice.sizes);
  if (!sizes.ok()) return sizes.status();
  return ChosenKernel{operation, *std::move(settings), *std::move(sizes)};
}

namespace {

// An exception of a library's constants ends here, in the terminate handler. The header says that dlopen throws
// none, so that compilers would leave the check out.
void* open_library(const char* file) noexcept {
  void* (*volatile open)(const char*, int) = &dlopen;
  return open(file, RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

Status load_plugin(const std::string& path) {
  const auto refused = [&](absl::string_view why) {
    return InvalidArgumentError(
        absl::StrCat("plug-in ", path, " ", absl::StrReplaceAll(why, {{"\n", " "}})));
  };
  // With a bare name dlopen would search the system's folders.
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error) return refused(absl::StrCat("cannot be opened: ", error.message()));
  static std::set<std::filesystem::path>& loaded = *new std::set<std::filesystem::path>();
  if (loaded.contains(file)) return OkStatus();  // named twice
  const std::vector<const Operation*> before = runtime::registered_operations();
  const auto passes_before = ir::process_passes();
  const size_t ops_before = ir::all_opcodes().size();
  const size_t refused_before = ir::refused_ops().size();
  loading = path.c_str();
  const std::terminate_handler previous = std::set_terminate(give_up_loading);
  void* const library = open_library(file.c_str());
  std::set_terminate(previous);
  if (library == nullptr) return refused(absl::StrCat("cannot be loaded: ", dlerror()));
  const std::vector<ir::RefusedOp> refused_ops = ir::refused_ops();
  if (refused_ops.size() > refused_before) {
    const std::vector<ir::RefusedOp> here(
        refused_ops.begin() + static_cast<ptrdiff_t>(refused_before), refused_ops.end());
    return refused(
        absl::StrCat("has ", here.size() == 1 ? "a mistake: " : "mistakes: ",
                     absl::StrJoin(here, "; ", [](std::string* out, const ir::RefusedOp& op) {
                       absl::StrAppend(out, op.why.message());
                     })));
  }
  const auto accepted = [&] {
    loaded.insert(file);
    return OkStatus();
  };
  // A plug-in may replace a kernel, so comparing names is not enough.
  for (const Operation* operation : runtime::registered_operations()) {
    if (std::find(before.begin(), before.end(), operation) == before.end()) return accepted();
  }
  const auto passes = ir::process_passes();
  if (!passes.ok()) return refused(absl::StrCat("has a mistake: ", passes.status().message()));
  // The registry is made anew where something has been registered.
  if (passes_before.ok() && *passes != *passes_before) return accepted();
  if (ir::all_opcodes().size() != ops_before) return accepted();
  return refused(
      "registers no kernels, passes or ops with this program; does it hold a Registered, "
      "RegisteredPass or RegisteredOp constant, and was this program linked with ENABLE_EXPORTS?");
}

}  // namespace heddle::tools
