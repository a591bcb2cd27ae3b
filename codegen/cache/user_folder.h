// Where a user's caches lie.
#pragma once

#include <string>

#include "heddle/ir/status.h"

namespace heddle::codegen {

// HEDDLE_CACHE_DIR, else heddle below XDG_CACHE_HOME or below .cache in the home folder. It need not exist.
// kFailedPrecondition where none of these variables is set, since there is no other place that is the user's alone, and
// where the first of the others names another user's folder.
StatusOr<std::string> user_cache_folder();

}  // namespace heddle::codegen
