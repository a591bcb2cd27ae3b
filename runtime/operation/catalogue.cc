#include "heddle/runtime/operation/catalogue.h"

#include "nlohmann/json.hpp"

namespace heddle::runtime {
namespace {

using Json = nlohmann::ordered_json;

Json describe(const Operation& operation) {
  const OperationSpec& spec = operation.spec();
  Json settings = Json::array();
  for (const Setting& setting : spec.settings) {
    settings.push_back({{"name", setting.name},
                        {"help", setting.help},
                        {"default", setting.default_value},
                        {"choices", setting.choices}});
  }
  Json refusals = Json::array();
  for (const Refusal& refusal : spec.refusals) {
    refusals.push_back({{"condition", refusal.condition}, {"why", refusal.why}});
  }
  return {{"name", spec.name},
          {"summary", spec.summary},
          {"arguments", spec.arguments},
          {"settings", settings},
          {"refusals", refusals},
          {"sizes", spec.sizes},
          {"can_run", operation.validity().ok()},
          {"can_check", spec.reference != nullptr}};
}

// Texts of authors need not be UTF-8.
std::string print(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string to_json(absl::Span<const Operation* const> operations) {
  Json all = Json::array();
  for (const Operation* operation : operations) all.push_back(describe(*operation));
  return print(all);
}

std::string to_json(const BoundCall& call) {
  Json tensors = Json::array();
  for (const BoundCall::Value& value : call.values) {
    if (!value.argument->is_tensor()) continue;
    tensors.push_back({{"name", value.argument->name},
                       {"dtype", ir::info(value.shape.dtype).name},
                       {"extents", value.shape.extents},
                       {"reads", value.argument->is_read()},
                       {"writes", value.argument->is_written()}});
  }
  return print({{"tensors", tensors}, {"sizes", call.sizes}});
}

}  // namespace heddle::runtime
