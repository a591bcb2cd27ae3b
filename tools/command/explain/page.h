// The page of `heddle explain`: page.html, compiled in.
#pragma once

#include "absl/strings/string_view.h"

namespace heddle::tools {

// HEDDLE_DATA stands where the explanation as JSON belongs.
extern const absl::string_view kExplainPage;

}  // namespace heddle::tools
