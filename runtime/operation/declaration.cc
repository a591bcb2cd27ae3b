#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "heddle/runtime/operation/declaration_internal.h"

namespace heddle::runtime {
namespace {

constexpr absl::string_view kInOutWord = "inout ";
constexpr absl::string_view kIfWord = " if ";
constexpr absl::string_view kAndWord = " and ";

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

// Whether a setting has a value of a condition: numbers count, not how they are written.
bool is_value(const std::string& setting, const std::string& value) {
  double a, b;
  return setting == value ||
         (absl::SimpleAtod(setting, &a) && absl::SimpleAtod(value, &b) && a == b);
}

}  // namespace

bool Condition::holds(const Settings& settings) const {
  return absl::c_all_of(terms, [&](const Term& term) {
    const std::string& setting = settings.find(term.setting)->second;
    return term.equal == absl::c_any_of(term.values, [&](const std::string& value) {
             return is_value(setting, value);
           });
  });
}

std::string describe(const Condition& condition) {
  return absl::StrJoin(condition.terms, kAndWord, [](std::string* out, const Condition::Term& t) {
    absl::StrAppend(out, t.setting, t.equal ? "=" : "!=", absl::StrJoin(t.values, "|"));
  });
}

std::string describe_dimensions(const OperationArgument& argument) {
  const auto one = [](std::string* out, const OperationArgument::Dimension& dimension) {
    absl::StrAppend(out, dimension.name);
    if (dimension.name.empty() || dimension.number != 0) {
      absl::StrAppend(out, dimension.name.empty() ? "" : " + ", dimension.number);
    }
  };
  return absl::StrCat("[", absl::StrJoin(argument.dimensions, ", ", one), "]");
}

StatusOr<Condition> read_condition(absl::string_view text) {
  Condition condition;
  for (const absl::string_view part : absl::StrSplit(text, kAndWord)) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    Condition::Term term;
    absl::string_view name = absl::StripAsciiWhitespace(sides.first);
    term.equal = !absl::ConsumeSuffix(&name, "!");
    term.setting = std::string(name);
    for (const absl::string_view value : absl::StrSplit(sides.second, '|')) {
      term.values.emplace_back(absl::StripAsciiWhitespace(value));
    }
    if (!is_name(name) || term.values.empty() || absl::c_linear_search(term.values, "")) {
      return InvalidArgumentError(
          absl::StrCat("'", absl::StripAsciiWhitespace(part),
                       "' is no condition; one is written \"setting=value|value\" or "
                       "\"setting!=value\", several with \"and\""));
    }
    condition.terms.push_back(std::move(term));
  }
  return condition;
}

StatusOr<OperationArgument> read_argument(absl::string_view text) {
  OperationArgument argument;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(kIfWord, 1));
  if (parts.first.size() != text.size()) {
    StatusOr<Condition> condition = read_condition(parts.second);
    if (!condition.ok()) return condition.status();
    argument.condition = *std::move(condition);
  }
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(parts.first, absl::MaxSplits(':', 1));
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

}  // namespace heddle::runtime
