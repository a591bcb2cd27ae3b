// What an operation's author writes, read: arguments and conditions (operation.h).
#pragma once

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"
#include "heddle/runtime/operation/operation.h"

namespace heddle::runtime {

// An argument's type that is no type: the place of a setting's value among its choices.
inline constexpr absl::string_view kChoiceWord = "choice";

// "x: inout f32[n, 4] if layout=nn|nt". An input is perhaps an output: the function knows.
StatusOr<OperationArgument> read_argument(absl::string_view text);
// "layout=nn|nt and beta!=0"
StatusOr<Condition> read_condition(absl::string_view text);

}  // namespace heddle::runtime
