// Operations and their calls as JSON, for tools and other languages.
#pragma once

#include <string>

#include "absl/types/span.h"
#include "heddle/runtime/operation/bound_call.h"
#include "heddle/runtime/operation/operation.h"

namespace heddle::runtime {

// An array: of each operation its name, summary, arguments, settings, refusals, example sizes, and whether it can be
// run and checked. Two blanks of indentation.
std::string to_json(absl::Span<const Operation* const> operations);

// {"tensors": [{"name", "dtype", "extents", "reads", "writes"}, …], "sizes": {…}}, tensors in the operation's order.
std::string to_json(const BoundCall& call);

}  // namespace heddle::runtime
