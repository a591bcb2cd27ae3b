#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "heddle/runtime/operation/registry.h"
#include "heddle/tools/command/commands.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const runtime::Operation& operation) {
  Json settings = Json::array();
  for (const runtime::Setting& setting : operation.spec().settings) {
    settings.push_back({{"name", setting.name},
                        {"help", setting.help},
                        {"default", setting.default_value},
                        {"choices", setting.choices}});
  }
  const runtime::OperationSpec& spec = operation.spec();
  return {{"name", spec.name},
          {"summary", spec.summary},
          {"arguments", spec.arguments},
          {"settings", settings},
          {"sizes", spec.sizes},
          {"can_run", operation.validity().ok()},
          {"can_check", spec.reference != nullptr}};
}

void print(const runtime::Operation& operation) {
  absl::PrintF("%-20s %s\n", operation.name(), operation.spec().summary);
  for (const runtime::Setting& setting : operation.spec().settings) {
    absl::PrintF("  --set %s=%s", setting.name, setting.default_value);
    if (!setting.help.empty()) absl::PrintF("  %s", setting.help);
    if (!setting.choices.empty()) absl::PrintF(" (%s)", absl::StrJoin(setting.choices, ", "));
    absl::PrintF("\n");
  }
}

}  // namespace

Exit list_kernels(const ListOptions& options) {
  const std::vector<const runtime::Operation*> operations = runtime::registered_operations();
  if (options.json) {
    Json all = Json::array();
    for (const runtime::Operation* operation : operations) all.push_back(to_json(*operation));
    absl::PrintF("%s\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
    return Exit::kDone;
  }
  for (const runtime::Operation* operation : operations) print(*operation);
  if (operations.empty()) {
    absl::PrintF("no kernels are registered; --plugin LIBRARY loads more\n");
  }
  return Exit::kDone;
}

}  // namespace heddle::tools
