#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "heddle/runtime/registry.h"
#include "heddle/tools/command/commands.h"
#include "nlohmann/json.hpp"

namespace heddle::tools {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const runtime::KernelEntry& entry) {
  Json settings = Json::array();
  for (const runtime::Setting& setting : entry.settings) {
    settings.push_back({{"name", setting.name},
                        {"help", setting.help},
                        {"default", setting.default_value},
                        {"choices", setting.choices}});
  }
  return {{"name", entry.name},
          {"summary", entry.summary},
          {"settings", settings},
          {"can_run", entry.plan != nullptr},
          {"can_check", entry.reference != nullptr}};
}

void print(const runtime::KernelEntry& entry) {
  absl::PrintF("%-20s %s\n", entry.name, entry.summary);
  for (const runtime::Setting& setting : entry.settings) {
    absl::PrintF("  --set %s=%s", setting.name, setting.default_value);
    if (!setting.help.empty()) absl::PrintF("  %s", setting.help);
    if (!setting.choices.empty()) absl::PrintF(" (%s)", absl::StrJoin(setting.choices, ", "));
    absl::PrintF("\n");
  }
}

}  // namespace

Exit list_kernels(const ListOptions& options) {
  const std::vector<const runtime::KernelEntry*> entries = runtime::registered_kernels();
  if (options.json) {
    Json all = Json::array();
    for (const runtime::KernelEntry* entry : entries) all.push_back(to_json(*entry));
    absl::PrintF("%s\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
    return Exit::kDone;
  }
  for (const runtime::KernelEntry* entry : entries) print(*entry);
  if (entries.empty()) {
    absl::PrintF("no kernels are registered; --plugin LIBRARY loads more\n");
  }
  return Exit::kDone;
}

}  // namespace heddle::tools
