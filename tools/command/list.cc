#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "heddle/runtime/operation/catalogue.h"
#include "heddle/runtime/operation/registry.h"
#include "heddle/tools/command/commands.h"

namespace heddle::tools {
namespace {

void print(const runtime::Operation& operation) {
  absl::PrintF("%-20s %s\n", operation.name(), operation.spec().summary);
  for (const runtime::Setting& setting : operation.spec().settings) {
    absl::PrintF("  --set %s=%s", setting.name, setting.default_value);
    if (!setting.help.empty()) absl::PrintF("  %s", setting.help);
    if (!setting.choices.empty()) absl::PrintF(" (%s)", absl::StrJoin(setting.choices, ", "));
    absl::PrintF("\n");
  }
}

// And its tensors, sizes and what it refuses.
void print_all(const runtime::Operation& operation) {
  print(operation);
  for (const runtime::OperationArgument& argument : operation.declared()) {
    if (!argument.is_tensor()) continue;
    const char* const how = !argument.is_written() ? "--in"
                            : !argument.is_read()  ? "--out"
                                                   : "--in --out";
    const bool is_other =
        absl::c_any_of(operation.declared(), [&](const runtime::OperationArgument& before) {
          return before.place == argument.place && &before < &argument;
        });
    std::string when = describe(argument.condition);
    if (!when.empty()) when = absl::StrCat(" if ", when);
    if (when.empty() && is_other) when = " otherwise";
    absl::PrintF("  %s %s=FILE  %s%s%s\n", how, argument.name, argument.type,
                 describe_dimensions(argument), when);
  }
  for (const auto& [name, size] : operation.spec().sizes) {
    absl::PrintF("  --size %s=%d  where no input tells it\n", name, size);
  }
  for (const Refusal& refusal : operation.spec().refusals) {
    absl::PrintF("  not %s: %s\n", refusal.condition, refusal.why);
  }
}

}  // namespace

Exit list_kernels(const ListOptions& options) {
  std::vector<const runtime::Operation*> operations = runtime::registered_operations();
  if (!options.kernel.empty()) {
    const StatusOr<const runtime::Operation*> chosen = find_kernel(options.kernel);
    if (!chosen.ok()) return misused(chosen.status());
    if (!options.json) {
      print_all(**chosen);
      return Exit::kDone;
    }
    operations = {*chosen};
  }
  if (options.json) {
    absl::PrintF("%s\n", runtime::to_json(operations));
    return Exit::kDone;
  }
  for (const runtime::Operation* operation : operations) print(*operation);
  if (operations.empty()) {
    absl::PrintF("no kernels are registered; --plugin LIBRARY loads more\n");
  }
  return Exit::kDone;
}

}  // namespace heddle::tools
