#include "heddle/tools/command/option_values.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace heddle::tools {
namespace {

StatusOr<Assignments> parse(absl::string_view option, absl::string_view form, bool empty_values,
                            const std::vector<std::string>& arguments) {
  Assignments pairs;
  for (const std::string& argument : arguments) {
    const size_t equals = argument.find('=');
    const bool whole = equals != 0 && equals != std::string::npos &&
                       (empty_values || equals + 1 < argument.size());
    if (!whole) {
      return InvalidArgumentError(absl::StrCat(option, " wants ", form, ", not '", argument, "'"));
    }
    const std::string name = argument.substr(0, equals);
    if (!pairs.emplace(name, argument.substr(equals + 1)).second) {
      return InvalidArgumentError(absl::StrCat(option, " gives '", name, "' twice"));
    }
  }
  return pairs;
}

}  // namespace

StatusOr<Assignments> parse_assignments(absl::string_view option,
                                        const std::vector<std::string>& arguments) {
  return parse(option, "NAME=VALUE", /*empty_values=*/true, arguments);
}

StatusOr<Assignments> parse_files(absl::string_view option,
                                  const std::vector<std::string>& arguments) {
  return parse(option, "NAME=FILE", /*empty_values=*/false, arguments);
}

StatusOr<std::map<std::string, int64_t, std::less<>>> parse_sizes(
    absl::string_view option, const std::vector<std::string>& arguments) {
  const StatusOr<Assignments> given = parse(option, "NAME=N", /*empty_values=*/false, arguments);
  if (!given.ok()) return given.status();
  std::map<std::string, int64_t, std::less<>> sizes;
  for (const auto& [name, text] : *given) {
    if (absl::SimpleAtoi(text, &sizes[name]) && sizes[name] >= 0) continue;
    return InvalidArgumentError(
        absl::StrCat(option, ": '", text, "' is no size; it takes a whole number from 0 up"));
  }
  return sizes;
}

StatusOr<std::vector<std::string>> split_list(absl::string_view option, absl::string_view noun,
                                              absl::string_view list) {
  std::vector<std::string> words;
  if (absl::StripAsciiWhitespace(list).empty()) return words;
  for (const absl::string_view word : absl::StrSplit(list, ',')) {
    words.emplace_back(absl::StripAsciiWhitespace(word));
    if (!words.back().empty()) continue;
    return InvalidArgumentError(absl::StrCat("empty ", noun, " name in ", option, " '", list,
                                             "'; fix: leave out the extra comma"));
  }
  return words;
}

}  // namespace heddle::tools
