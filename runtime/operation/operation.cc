#include "heddle/runtime/operation/operation.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/ir/wording.h"

namespace heddle::runtime {
namespace {

constexpr absl::string_view kInOutWord = "inout ";

bool is_name(absl::string_view text) {
  return !text.empty() && !absl::ascii_isdigit(text[0]) &&
         absl::c_all_of(text, [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

StatusOr<OperationArgument::Dimension> read_dimension(absl::string_view text) {
  const std::vector<absl::string_view> sum = absl::StrSplit(text, '+');
  const absl::string_view first = absl::StripAsciiWhitespace(sum[0]);
  OperationArgument::Dimension dimension;
  if (is_name(first)) dimension.name = std::string(first);
  const bool is_number = sum.size() == 1 && !is_name(first);
  const bool is_sum = sum.size() == 2 && is_name(first);
  if ((is_number || is_sum) && absl::SimpleAtoi(sum.back(), &dimension.number) &&
      dimension.number >= 0) {
    return dimension;
  }
  if (sum.size() == 1 && is_name(first)) return dimension;
  return InvalidArgumentError(
      absl::StrCat("'", absl::StripAsciiWhitespace(text), "' is no dimension"));
}

// "x: inout f32[n, 4]"
StatusOr<OperationArgument> read_argument(absl::string_view text) {
  OperationArgument argument;
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  argument.name = std::string(absl::StripAsciiWhitespace(halves.first));
  absl::string_view type = absl::StripAsciiWhitespace(halves.second);
  argument.role = absl::ConsumePrefix(&type, kInOutWord) ? Role::kInOut : Role::kInput;
  const size_t open = type.find('[');
  argument.type = std::string(absl::StripAsciiWhitespace(type.substr(0, open)));
  if (!is_name(argument.name) || !is_name(argument.type)) {
    return InvalidArgumentError("it is written \"name: type[dimension, ...]\"");
  }
  if (open == absl::string_view::npos) {
    argument.role = Role::kNumber;
    return argument;
  }
  absl::string_view inside = type.substr(open + 1);
  if (!absl::ConsumeSuffix(&inside, "]")) {
    return InvalidArgumentError("its dimensions do not end with ']'");
  }
  for (const absl::string_view part : absl::StrSplit(inside, ',')) {
    StatusOr<OperationArgument::Dimension> dimension = read_dimension(part);
    if (!dimension.ok()) return dimension.status();
    argument.dimensions.push_back(*std::move(dimension));
  }
  return argument;
}

bool is_tensor(const OperationArgument& argument) { return argument.role != Role::kNumber; }

}  // namespace

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
  for (const HostFunction& function : spec_.functions) {
    if (status.ok()) status = check_function(function);
  }
  if (status.ok()) status = complete_settings();
  if (status.ok()) status = check_sizes();
  if (status.ok()) return;
  validity_ = Status(status.code(), absl::StrCat("kernel '", spec_.name,
                                                 "' is registered wrongly: ", status.message()));
}

const OperationArgument* Operation::find(absl::string_view argument) const {
  const auto found =
      absl::c_find_if(arguments_, [&](const OperationArgument& a) { return a.name == argument; });
  return found != arguments_.end() ? &*found : nullptr;
}

Status Operation::read_arguments() {
  for (const std::string& text : spec_.arguments) {
    StatusOr<OperationArgument> argument = read_argument(text);
    if (!argument.ok()) {
      return InvalidArgumentError(
          absl::StrCat("argument \"", text, "\": ", argument.status().message()));
    }
    if (find(argument->name) != nullptr) {
      return InvalidArgumentError(absl::StrCat("two arguments are named '", argument->name, "'"));
    }
    arguments_.push_back(*std::move(argument));
  }
  // What the function may write and the author does not call changed in place is an output.
  if (spec_.functions.empty()) return OkStatus();
  const std::vector<HostFunction::Parameter>& parameters = spec_.functions[0].parameters();
  for (size_t i = 0; i < std::min(arguments_.size(), parameters.size()); ++i) {
    if (arguments_[i].role == Role::kInput && !parameters[i].read_only) {
      arguments_[i].role = Role::kOutput;
    }
  }
  return OkStatus();
}

Status Operation::check_function(const HostFunction& function) const {
  const std::vector<HostFunction::Parameter>& parameters = function.parameters();
  if (parameters.size() != arguments_.size()) {
    return InvalidArgumentError(absl::StrCat(
        "it declares ", ir::counted(static_cast<int64_t>(arguments_.size()), "argument"),
        " for a function that takes ", parameters.size()));
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const OperationArgument& argument = arguments_[i];
    const HostFunction::Parameter& parameter = parameters[i];
    const auto refuse = [&](const auto&... why) {
      return InvalidArgumentError(absl::StrCat("argument '", argument.name, "' is ", why...));
    };
    const int rank = is_tensor(argument) ? static_cast<int>(argument.dimensions.size()) : -1;
    if (rank != parameter.rank) {
      return refuse("declared with ", ir::counted(std::max(rank, 0), "dimension"),
                    ", and the function's with ", std::max(parameter.rank, 0));
    }
    const std::optional<ir::Scalar> fixed = ir::scalar_from_name(argument.type);
    if (fixed && *fixed != parameter.scalar) {
      return refuse(argument.type, ", and the function's ", ir::info(parameter.scalar).name);
    }
    if (argument.is_written() && parameter.read_only) {
      return refuse("written, and the function's elements are const");
    }
    if (argument.role == Role::kInput && !parameter.read_only) {
      return refuse("read, and not every function's elements are const");
    }
  }
  return OkStatus();
}

Setting& Operation::setting(absl::string_view name) {
  const auto known =
      absl::c_find_if(spec_.settings, [&](const Setting& s) { return s.name == name; });
  if (known != spec_.settings.end()) return *known;
  spec_.settings.push_back({.name = std::string(name)});
  return spec_.settings.back();
}

Status Operation::complete_settings() {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    const OperationArgument& argument = arguments_[i];
    if (!is_tensor(argument)) {
      if (!ir::scalar_from_name(argument.type) || setting(argument.name).default_value.empty()) {
        return InvalidArgumentError(
            absl::StrCat("the number '", argument.name,
                         "' has an element type, and a setting of its name with a default value"));
      }
      continue;
    }
    if (ir::scalar_from_name(argument.type)) continue;
    Setting& choice = setting(argument.type);
    for (const HostFunction& function : spec_.functions) {
      const std::string name(ir::info(function.parameters()[i].scalar).name);
      if (!absl::c_linear_search(choice.choices, name)) choice.choices.push_back(name);
    }
    if (choice.default_value.empty()) choice.default_value = choice.choices[0];
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

StatusOr<Settings> Operation::resolve(const std::map<std::string, std::string>& given) const {
  Settings settings;
  for (const Setting& known : spec_.settings) settings[known.name] = known.default_value;
  for (const auto& [name, value] : given) {
    const auto known = absl::c_find_if(
        spec_.settings, [&wanted = name](const Setting& s) { return s.name == wanted; });
    if (known == spec_.settings.end()) {
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
  return settings;
}

ir::Scalar Operation::element_type(const OperationArgument& argument,
                                   const Settings& settings) const {
  const auto chosen = settings.find(argument.type);
  const absl::string_view name = chosen != settings.end() ? chosen->second : argument.type;
  return ir::scalar_from_name(name).value_or(ir::Scalar::kNone);
}

}  // namespace heddle::runtime
