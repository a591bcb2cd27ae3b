// Values of options that are more than one word.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"

namespace heddle::tools {

using Assignments = std::map<std::string, std::string>;

// The NAME=VALUE arguments of an option. kInvalidArgument for one without '=' or a name given
// twice. A VALUE may be empty.
StatusOr<Assignments> parse_assignments(absl::string_view option,
                                        const std::vector<std::string>& arguments);
// NAME=FILE arguments; a file has a name.
StatusOr<Assignments> parse_files(absl::string_view option,
                                  const std::vector<std::string>& arguments);
// NAME=N arguments, whole numbers from 0 up.
StatusOr<std::map<std::string, int64_t, std::less<>>> parse_sizes(
    absl::string_view option, const std::vector<std::string>& arguments);

// The words of "A,B,...", blanks around them removed; none in a blank list. kInvalidArgument where
// a comma has no word beside it: `noun` says what a word is.
StatusOr<std::vector<std::string>> split_list(absl::string_view option, absl::string_view noun,
                                              absl::string_view list);

}  // namespace heddle::tools
