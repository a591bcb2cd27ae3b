#include "heddle/runtime/operation/registry.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace heddle::runtime {
namespace {

// Operations register from constructors of several libraries, in any order and from any thread that
// loads one.
struct Registry {
  std::mutex mutex;
  std::vector<std::unique_ptr<const Operation>> operations;
};

Registry& registry() {
  static Registry* const instance = new Registry();
  return *instance;
}

}  // namespace

Registered::Registered(OperationSpec spec) {
  auto operation = std::make_unique<const Operation>(std::move(spec));
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  operation_ = r.operations.emplace_back(std::move(operation)).get();
}

Registered::~Registered() {
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  r.operations.erase(std::find_if(r.operations.begin(), r.operations.end(),
                                  [this](const auto& known) { return known.get() == operation_; }));
}

std::vector<const Operation*> registered_operations() {
  Registry& r = registry();
  const std::lock_guard<std::mutex> lock(r.mutex);
  std::map<absl::string_view, const Operation*> by_name;
  for (const auto& operation : r.operations) by_name[operation->name()] = operation.get();
  std::vector<const Operation*> sorted;
  for (const auto& [name, operation] : by_name) sorted.push_back(operation);
  return sorted;
}

const Operation* find_operation(absl::string_view name) {
  for (const Operation* operation : registered_operations()) {
    if (operation->name() == name) return operation;
  }
  return nullptr;
}

}  // namespace heddle::runtime
