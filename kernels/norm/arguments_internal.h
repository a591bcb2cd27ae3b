// What the norms say of their arguments. Internal to the kernels.
#pragma once

#include "absl/strings/str_cat.h"
#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// What is wrong with a vector of columns.
inline Status check_columns(const char* kernel, const char* name, int64_t elements,
                            int64_t columns) {
  if (elements == columns) return OkStatus();
  return InvalidArgumentError(absl::StrCat(kernel, ": ", name, " has ", elements,
                                           " elements and x ", columns, " columns; ", name,
                                           " takes one element a column"));
}

}  // namespace heddle::kernels
