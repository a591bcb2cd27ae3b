// The library's messages, in the words of the command line.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace heddle::tools {

// Replaces calls by the command's options.
std::string advise(absl::string_view message);

}  // namespace heddle::tools
