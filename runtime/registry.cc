#include "heddle/runtime/registry.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace heddle::runtime {
namespace {

// Entries register from constructors of several libraries, in any order and from any thread that
// loads one.
struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<const KernelEntry>> entries;
};

Registry& registry() {
  static Registry* const instance = new Registry();
  return *instance;
}

}  // namespace

Registered::Registered(KernelEntry entry) {
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  entry_ = r.entries.emplace_back(std::make_unique<const KernelEntry>(std::move(entry))).get();
}

Registered::~Registered() {
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  r.entries.erase(std::find_if(r.entries.begin(), r.entries.end(),
                               [this](const auto& entry) { return entry.get() == entry_; }));
}

std::vector<const KernelEntry*> registered_kernels() {
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  std::map<absl::string_view, const KernelEntry*> by_name;
  for (const auto& entry : r.entries) by_name[entry->name] = entry.get();
  std::vector<const KernelEntry*> sorted;
  for (const auto& [name, entry] : by_name) sorted.push_back(entry);
  return sorted;
}

const KernelEntry* find_kernel(absl::string_view name) {
  for (const KernelEntry* entry : registered_kernels()) {
    if (entry->name == name) return entry;
  }
  return nullptr;
}

absl::StatusOr<Settings> resolve_settings(const KernelEntry& entry,
                                          const std::map<std::string, std::string>& given) {
  Settings settings;
  for (const Setting& setting : entry.settings) {
    settings[setting.name] = setting.default_value;
  }
  for (const auto& choice : given) {
    const std::string& name = choice.first;
    const std::string& value = choice.second;
    const auto setting = std::find_if(entry.settings.begin(), entry.settings.end(),
                                      [&](const Setting& s) { return s.name == name; });
    if (setting == entry.settings.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "kernel '", entry.name, "' has no setting '", name, "'; it has ",
          entry.settings.empty()
              ? "none"
              : absl::StrJoin(entry.settings, ", ",
                              [](std::string* out, const Setting& s) { out->append(s.name); })));
    }
    const std::vector<std::string>& choices = setting->choices;
    if (!choices.empty() && std::find(choices.begin(), choices.end(), value) == choices.end()) {
      return absl::InvalidArgumentError(absl::StrCat("setting '", name, "' of kernel '", entry.name,
                                                     "' cannot be '", value, "': it is one of ",
                                                     absl::StrJoin(choices, ", ")));
    }
    settings[name] = value;
  }
  return settings;
}

}  // namespace heddle::runtime
