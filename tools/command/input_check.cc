#include "heddle/tools/command/input_check.h"

#include <algorithm>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/wording.h"

namespace heddle::tools {
namespace {

using runtime::LaunchPlan;
using runtime::TensorShape;
using Params = absl::Span<const ir::ParamInfo>;

// The parameters of the kernel that these settings choose; none where they choose nothing.
Params params_of(const runtime::KernelEntry& entry, const runtime::Settings& settings) {
  if (entry.variant == nullptr) return {};
  const absl::StatusOr<runtime::Variant> variant = entry.variant(settings);
  if (!variant.ok() || variant->source == nullptr) return {};
  return variant->source->params();
}

std::string called(const ir::KernelSource& source) {
  return absl::StrCat("kernel '", source.name(), "'");
}

// What a parameter's element type is under each choice that the kernel offers, and how to choose
// the one that is wanted.
struct Choices {
  std::vector<absl::string_view> dtypes;
  std::string setting;  // "dtype=bf16"; empty: no choice gives it
};

Choices choices_for(const ChosenKernel& kernel, size_t index, ir::Type now, ir::Scalar wanted) {
  Choices choices;
  choices.dtypes.push_back(ir::info(now.scalar).name);
  for (const runtime::Setting& setting : kernel.entry->settings) {
    for (const std::string& choice : setting.choices) {
      runtime::Settings settings = kernel.settings;
      settings[setting.name] = choice;
      const Params params = params_of(*kernel.entry, settings);
      if (index >= params.size() || !params[index].type.is_view()) continue;
      const ir::Scalar dtype = params[index].type.scalar;
      const absl::string_view name = ir::info(dtype).name;
      if (!absl::c_linear_search(choices.dtypes, name)) choices.dtypes.push_back(name);
      if (dtype == wanted && choices.setting.empty()) {
        choices.setting = absl::StrCat(setting.name, "=", choice);
      }
    }
  }
  return choices;
}

absl::Status wrong_type(const ChosenKernel& kernel, const ir::KernelSource& source, size_t index,
                        absl::string_view name, const TensorShape& shape) {
  const ir::Type type = source.params()[index].type;
  const Choices choices = choices_for(kernel, index, type, shape.dtype);
  return absl::InvalidArgumentError(absl::StrCat(
      "'", name, "' is ", describe(shape), ", and ", called(source), " takes ",
      choices.setting.empty()
          ? absl::StrCat(absl::StrJoin(choices.dtypes, ", "), "; fix: convert the file")
          : absl::StrCat(ir::info(type.scalar).name, "; fix: --set ", choices.setting,
                         ", or convert the file")));
}

// Names, element types and modes; `names` are the parameters', in the kernel's order.
absl::Status check_tensors(const ChosenKernel& kernel, const ir::KernelSource& source,
                           const std::vector<std::string>& names, const InputShapes& inputs) {
  for (const auto& [name, shape] : inputs) {
    const auto place = absl::c_find(names, name);
    if (place == names.end()) {
      return absl::InvalidArgumentError(absl::StrCat(called(source), " has no parameter '", name,
                                                     "'; it has ", absl::StrJoin(names, ", ")));
    }
    const auto index = static_cast<size_t>(place - names.begin());
    const ir::ParamInfo& param = source.params()[index];
    if (!param.type.is_view()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' is a scalar of ", called(source), ", not an input"));
    }
    if (shape.dtype != param.type.scalar) return wrong_type(kernel, source, index, name, shape);
    if (!param.unbounded && shape.extents.size() != param.type.rank) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", name, "' is ", describe(shape), ", and ", called(source),
                       " takes a tensor of ", ir::counted(param.type.rank, "mode"), ", not of ",
                       shape.extents.size(), "; fix: reshape what is in the file"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string describe(const TensorShape& shape) {
  return absl::StrCat(ir::info(shape.dtype).name, "[", absl::StrJoin(shape.extents, ", "), "]");
}

absl::Status check_inputs(const ChosenKernel& kernel, const LaunchPlan& plan,
                          const InputShapes& inputs) {
  std::vector<std::string> names;
  for (const LaunchPlan::Parameter& parameter : plan.parameters) names.push_back(parameter.name);
  const auto given = [&](const LaunchPlan::Parameter& parameter) {
    return inputs.count(parameter.name) != 0;
  };
  for (const LaunchPlan::Parameter& parameter : plan.parameters) {
    if (!parameter.output || !given(parameter)) continue;
    return absl::InvalidArgumentError(absl::StrCat("'", parameter.name, "' is an output of ",
                                                   called(*plan.source), ", not an input"));
  }
  if (absl::Status s = check_tensors(kernel, *plan.source, names, inputs); !s.ok()) return s;
  for (const LaunchPlan::Parameter& parameter : plan.parameters) {
    if (parameter.output || parameter.is_scalar || given(parameter)) continue;
    return absl::InvalidArgumentError(absl::StrCat(called(*plan.source), " needs the input '",
                                                   parameter.name, "'; fix: --in ", parameter.name,
                                                   "=FILE"));
  }
  return absl::OkStatus();
}

absl::Status check_inputs(const ChosenKernel& kernel, const InputShapes& inputs) {
  if (kernel.entry->variant == nullptr) return absl::OkStatus();
  const absl::StatusOr<runtime::Variant> variant = kernel.entry->variant(kernel.settings);
  if (!variant.ok() || variant->source == nullptr) return absl::OkStatus();
  std::vector<std::string> names;
  for (const ir::ParamInfo& param : variant->source->params()) names.push_back(param.name);
  return check_tensors(kernel, *variant->source, names, inputs);
}

}  // namespace heddle::tools
