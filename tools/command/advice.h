// The library's messages, in the words of the command line.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace heddle::tools {

// Names what is done here by an option instead of a call, and adds the cure for a variable such as
// HEDDLE_PTXAS that points to nothing usable.
std::string advise(absl::string_view message);

}  // namespace heddle::tools
