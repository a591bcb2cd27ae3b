// How two texts differ, line by line.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace heddle::tools {

// As `diff -u` has it, with three lines around each change; empty where they are the same.
std::string unified_diff(absl::string_view before, absl::string_view after);

// Beside each other, in columns of so many characters; lines that differ are marked between them: '|' changed, '<'
// and '>' on one side alone. Longer lines are cut. Names of registers, such as %r12 and R7, make no
// difference, nor do the addresses of machine instructions.
std::string side_by_side(absl::string_view left, absl::string_view right, int column_width);

}  // namespace heddle::tools
