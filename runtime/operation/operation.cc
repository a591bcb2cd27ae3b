#include "heddle/runtime/operation/operation.h"

#include <algorithm>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/operation/declaration_internal.h"

namespace heddle::runtime {
std::string describe(const TensorShape& shape) {
  return absl::StrCat(ir::info(shape.dtype).name, "[", absl::StrJoin(shape.extents, ", "), "]");
}

Status HostFunction::call(const Stream& stream, Arguments arguments) const {
  if (arguments.size() != parameters_.size()) {
    return InvalidArgumentError(absl::StrCat("the function takes ",
                                             ir::counted(parameters_.size(), "argument"),
                                             " and was given ", arguments.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].misfit != Misfit::kFits) {
      return InvalidArgumentError(absl::StrCat(
          "argument ", i, " of the function is a number that does not fit in its type"));
    }
    if (arguments[i].rank > 0 && arguments[i].extents == nullptr) {
      return InvalidArgumentError(absl::StrCat(
          "argument ", i, " of the function is a pointer, of which nobody knows the extents"));
    }
    if (arguments[i].rank == parameters_[i].rank) continue;
    if (parameters_[i].optional && arguments[i].rank < 0) continue;
    const auto kind = [](int rank) {
      return rank < 0 ? std::string("a number")
                      : absl::StrCat("a tensor of ", ir::counted(rank, "mode"));
    };
    return InvalidArgumentError(absl::StrCat("argument ", i, " of the function is ",
                                             kind(parameters_[i].rank), ", not ",
                                             kind(arguments[i].rank)));
  }
  return body_(stream, arguments);
}

Operation::Operation(OperationSpec spec) : spec_(std::move(spec)) {
  Status status = read_arguments();
  if (status.ok() && spec_.functions.empty()) {
    status = InvalidArgumentError("it has no function");
  }
  if (status.ok()) status = add_absent_arguments();
  for (const HostFunction& function : spec_.functions) {
    if (status.ok()) status = check_function(function);
  }
  if (status.ok()) status = check_types();
  if (status.ok()) status = complete_settings();
  if (status.ok()) status = read_refusals();
  for (const OperationArgument& argument : arguments_) {
    if (status.ok()) status = check_condition(argument.condition);
  }
  if (status.ok()) status = check_sizes();
  if (status.ok()) return;
  validity_ = Status(status.code(), absl::StrCat("kernel '", spec_.name,
                                                 "' is registered wrongly: ", status.message()));
}

std::vector<const OperationArgument*> Operation::arguments(const Settings& settings) const {
  std::vector<const OperationArgument*> chosen(places_);
  for (const OperationArgument& argument : arguments_) {
    const OperationArgument*& at = chosen[argument.place];
    if (at == nullptr && argument.condition.holds(settings)) at = &argument;
  }
  return chosen;
}

const OperationArgument* Operation::find(absl::string_view argument,
                                         const Settings& settings) const {
  const auto found = absl::c_find_if(arguments_, [&](const OperationArgument& a) {
    return a.name == argument && a.condition.holds(settings);
  });
  return found != arguments_.end() ? &*found : nullptr;
}

Status Operation::read_arguments() {
  for (const std::string& text : spec_.arguments) {
    StatusOr<OperationArgument> argument = read_argument(text);
    if (!argument.ok()) {
      return InvalidArgumentError(
          absl::StrCat("argument \"", text, "\": ", argument.status().message()));
    }
    argument->place = places_;
    for (const OperationArgument& before : arguments_) {
      if (before.name != argument->name) continue;
      if (before.condition.terms.empty()) {
        return InvalidArgumentError(absl::StrCat("two arguments are named '", argument->name,
                                                 "', and the first has no condition"));
      }
      argument->place = before.place;
    }
    places_ = std::max(places_, argument->place + 1);
    arguments_.push_back(*std::move(argument));
  }
  // What the function may write and the author does not call changed in place is an output.
  if (spec_.functions.empty()) return OkStatus();
  const std::vector<HostFunction::Parameter>& parameters = spec_.functions[0].parameters();
  for (OperationArgument& argument : arguments_) {
    if (argument.role == Role::kInput && argument.place < parameters.size() &&
        !parameters[argument.place].read_only) {
      argument.role = Role::kOutput;
    }
  }
  return OkStatus();
}

// Where none of an argument's conditions holds it is absent.
Status Operation::add_absent_arguments() {
  std::vector<const OperationArgument*> last(places_);
  for (const OperationArgument& argument : arguments_) last[argument.place] = &argument;
  std::vector<OperationArgument> absent;
  for (const OperationArgument* const argument : last) {
    if (argument->condition.terms.empty()) continue;
    if (argument->role == Role::kNumber) {
      return InvalidArgumentError(
          absl::StrCat("the number '", argument->name, "' has a condition; it is always there"));
    }
    absent.push_back(*argument);
    absent.back().role = Role::kAbsent;
    absent.back().condition = {};
  }
  arguments_.insert(arguments_.end(), absent.begin(), absent.end());
  return OkStatus();
}

// The element types of the arguments at a place, where settings decide between them; none where a setting is the type.
std::vector<std::string> Operation::fixed_types(size_t place) const {
  std::vector<std::string> types;
  for (const OperationArgument& argument : arguments_) {
    if (argument.place != place || absl::c_linear_search(types, argument.type)) continue;
    if (!ir::scalar_from_name(argument.type)) return {};
    types.push_back(argument.type);
  }
  return types;
}

Status Operation::check_function(const HostFunction& function) const {
  const std::vector<HostFunction::Parameter>& parameters = function.parameters();
  if (parameters.size() != places_) {
    return InvalidArgumentError(absl::StrCat("it declares ",
                                             ir::counted(static_cast<int64_t>(places_), "argument"),
                                             " for a function that takes ", parameters.size()));
  }
  for (const OperationArgument& argument : arguments_) {
    const HostFunction::Parameter& parameter = parameters[argument.place];
    const auto refuse = [&](const auto&... why) {
      return InvalidArgumentError(absl::StrCat("argument '", argument.name, "' is ", why...));
    };
    const bool is_number = argument.role == Role::kNumber;
    const int rank = is_number ? -1 : static_cast<int>(argument.dimensions.size());
    if (rank != parameter.rank) {
      return refuse("declared with ", ir::counted(std::max(rank, 0), "dimension"),
                    ", and the function's with ", std::max(parameter.rank, 0));
    }
    if (is_number && (argument.type == kChoiceWord) != (parameter.scalar == ir::Scalar::kNone)) {
      return refuse(argument.type == kChoiceWord
                        ? "a choice, and the function's a number"
                        : "a number, and the function's an enumeration, which is a choice");
    }
    const std::vector<std::string> fixed = fixed_types(argument.place);
    const absl::string_view type = ir::info(parameter.scalar).name;
    if (!fixed.empty() && !absl::c_linear_search(fixed, type)) {
      return refuse(absl::StrJoin(fixed, " or "), ", and the function's ", type);
    }
    if (argument.is_written() && parameter.read_only) {
      return refuse("written, and the function's elements are const");
    }
    if (argument.role == Role::kInput && !parameter.read_only) {
      return refuse("read, and not every function's elements are const");
    }
    if (argument.role == Role::kAbsent && !parameter.optional) {
      return refuse("left out by some settings, and the function's is no std::optional");
    }
  }
  return OkStatus();
}

// Every element type that an argument is declared with has a function.
Status Operation::check_types() const {
  for (const OperationArgument& argument : arguments_) {
    if (!ir::scalar_from_name(argument.type)) continue;
    const bool has_one = absl::c_any_of(spec_.functions, [&](const HostFunction& function) {
      return ir::info(function.parameters()[argument.place].scalar).name == argument.type;
    });
    if (has_one) continue;
    return InvalidArgumentError(
        absl::StrCat("no function has '", argument.name, "' as ", argument.type));
  }
  return OkStatus();
}

const Setting* Operation::find_setting(absl::string_view name) const {
  const auto known =
      absl::c_find_if(spec_.settings, [&](const Setting& s) { return s.name == name; });
  return known != spec_.settings.end() ? &*known : nullptr;
}

Setting& Operation::setting(absl::string_view name) {
  if (const Setting* known = find_setting(name)) {
    return spec_.settings[static_cast<size_t>(known - spec_.settings.data())];
  }
  spec_.settings.push_back({.name = std::string(name)});
  return spec_.settings.back();
}

Status Operation::complete_settings() {
  for (const OperationArgument& argument : arguments_) {
    if (argument.role == Role::kNumber) {
      const Setting& value = setting(argument.name);
      if (argument.type == kChoiceWord) {
        if (absl::c_linear_search(value.choices, value.default_value)) continue;
        return InvalidArgumentError(
            absl::StrCat("the choice '", argument.name,
                         "' has a setting of its name with choices, one of them the default"));
      }
      if (!ir::scalar_from_name(argument.type) || value.default_value.empty()) {
        return InvalidArgumentError(
            absl::StrCat("the number '", argument.name,
                         "' has an element type, and a setting of its name with a default value"));
      }
      continue;
    }
    if (ir::scalar_from_name(argument.type)) continue;
    Setting& choice = setting(argument.type);
    types_.emplace(choice.name, choice.default_value);
    for (const HostFunction& function : spec_.functions) {
      const std::string name(ir::info(function.parameters()[argument.place].scalar).name);
      if (!absl::c_linear_search(choice.choices, name)) choice.choices.push_back(name);
    }
    if (choice.default_value.empty()) choice.default_value = choice.choices[0];
  }
  return OkStatus();
}

Status Operation::read_refusals() {
  for (const Refusal& refusal : spec_.refusals) {
    StatusOr<Condition> condition = read_condition(refusal.condition);
    if (!condition.ok()) return condition.status();
    if (Status s = check_condition(*condition); !s.ok()) return s;
    refusals_.push_back({*std::move(condition), refusal.why});
  }
  return OkStatus();
}

Status Operation::check_condition(const Condition& condition) const {
  for (const Condition::Term& term : condition.terms) {
    const Setting* const known = find_setting(term.setting);
    if (known == nullptr) {
      return InvalidArgumentError(absl::StrCat("the condition \"", describe(condition),
                                               "\" is about '", term.setting,
                                               "', which is no setting"));
    }
    for (const std::string& value : term.values) {
      if (known->choices.empty() || absl::c_linear_search(known->choices, value)) continue;
      return InvalidArgumentError(absl::StrCat("the condition \"", describe(condition),
                                               "\" is about a value that '", term.setting,
                                               "' cannot have: ", value));
    }
  }
  return OkStatus();
}

Status Operation::check_sizes() const {
  for (const OperationArgument& argument : arguments_) {
    for (const OperationArgument::Dimension& dimension : argument.dimensions) {
      if (dimension.name.empty() || spec_.sizes.count(dimension.name) != 0) continue;
      return InvalidArgumentError(
          absl::StrCat("its sizes say nothing of the dimension '", dimension.name, "'"));
    }
  }
  return OkStatus();
}

// Whether the function has these element types, of those settings that are some.
bool Operation::has_types(const HostFunction& function, const Settings& types) const {
  return absl::c_all_of(arguments_, [&](const OperationArgument& argument) {
    const auto wanted = types.find(argument.type);
    return wanted == types.end() ||
           wanted->second == ir::info(function.parameters()[argument.place].scalar).name;
  });
}

// The element types that are not given: those of the first function that has the given ones, and
// the author's defaults where there is such a function.
Status Operation::choose_types(const std::map<std::string, std::string>& given,
                               Settings& settings) const {
  Settings wanted, with_defaults;
  for (const auto& [name, by_default] : types_) {
    const auto said = given.find(name);
    if (said != given.end()) wanted[name] = said->second;
    if (said != given.end() || !by_default.empty()) {
      with_defaults[name] = said != given.end() ? said->second : by_default;
    }
  }
  for (const Settings* const types : {&with_defaults, &wanted}) {
    for (const HostFunction& function : spec_.functions) {
      if (!has_types(function, *types)) continue;
      for (const OperationArgument& argument : arguments_) {
        if (types_.count(argument.type) == 0) continue;
        settings[argument.type] =
            std::string(ir::info(function.parameters()[argument.place].scalar).name);
      }
      return OkStatus();
    }
  }
  // What each could be beside the others.
  std::vector<std::string> fixes;
  for (const auto& [name, value] : wanted) {
    Settings others = wanted;
    std::vector<std::string> values;
    for (const std::string& choice : find_setting(name)->choices) {
      others[name] = choice;
      if (absl::c_any_of(spec_.functions,
                         [&](const HostFunction& f) { return has_types(f, others); })) {
        values.push_back(choice);
      }
    }
    if (!values.empty()) fixes.push_back(absl::StrCat(name, "=", absl::StrJoin(values, "|")));
  }
  return InvalidArgumentError(absl::StrCat(
      "kernel '", spec_.name, "' does not exist for ",
      absl::StrJoin(wanted, " with ", absl::PairFormatter("=")),
      fixes.empty() ? "" : absl::StrCat("; fix: set ", absl::StrJoin(fixes, ", or "))));
}

StatusOr<Settings> Operation::resolve(const std::map<std::string, std::string>& given) const {
  Settings settings;
  for (const Setting& known : spec_.settings) settings[known.name] = known.default_value;
  for (const auto& [name, value] : given) {
    const Setting* const known = find_setting(name);
    if (known == nullptr) {
      return InvalidArgumentError(absl::StrCat(
          "kernel '", spec_.name, "' has no setting '", name, "'; it has ",
          spec_.settings.empty()
              ? "none"
              : absl::StrJoin(spec_.settings, ", ",
                              [](std::string* out, const Setting& s) { out->append(s.name); })));
    }
    if (!known->choices.empty() && !absl::c_linear_search(known->choices, value)) {
      return InvalidArgumentError(absl::StrCat("setting '", name, "' of kernel '", spec_.name,
                                               "' cannot be '", value, "': it is one of ",
                                               absl::StrJoin(known->choices, ", ")));
    }
    settings[name] = value;
  }
  if (Status s = choose_types(given, settings); !s.ok()) return s;
  for (const Refused& refused : refusals_) {
    if (!refused.condition.holds(settings)) continue;
    const auto value = [&](std::string* out, const Condition::Term& term) {
      absl::StrAppend(out, term.setting, "=", settings.find(term.setting)->second);
    };
    return InvalidArgumentError(
        absl::StrCat("kernel '", spec_.name, "' does not exist for ",
                     absl::StrJoin(refused.condition.terms, " with ", value), ": ", refused.why));
  }
  return settings;
}

ir::Scalar Operation::element_type(const OperationArgument& argument,
                                   const Settings& settings) const {
  const auto chosen = settings.find(argument.type);
  const absl::string_view name = chosen != settings.end() ? chosen->second : argument.type;
  return ir::scalar_from_name(name).value_or(ir::Scalar::kNone);
}

}  // namespace heddle::runtime
