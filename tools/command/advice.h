// The library's messages, in the words of the command line.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace heddle::tools {

// Replaces calls by the command's options, and adds a fix where a variable such as HEDDLE_PTXAS names a
// program that cannot be used.
std::string advise(absl::string_view message);

}  // namespace heddle::tools
