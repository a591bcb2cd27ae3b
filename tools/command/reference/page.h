// The language reference, made of ir/ops.def and dsl/math/math.def: what dsl/REFERENCE.md holds.
#pragma once

#include <string>

#include "heddle/ir/status.h"

namespace heddle::tools {

// Markdown. The same text in every run.
StatusOr<std::string> reference_page();

}  // namespace heddle::tools
