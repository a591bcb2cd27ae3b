// How a failed expectation shows a scope.
#pragma once

#include <ostream>

#include "heddle/ir/op_info.h"

namespace heddle::ir {

inline void PrintTo(Scope scope, std::ostream* out) { *out << name_of(scope); }

}  // namespace heddle::ir
