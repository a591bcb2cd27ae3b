// The language reference, made of ir/ops.def and dsl/math/math.def: what dsl/REFERENCE.md holds.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace heddle::tools {

// Markdown. The same text in every run.
absl::StatusOr<std::string> reference_page();

}  // namespace heddle::tools
