// What cross_entropy and its gradient take.
#pragma once

#include <initializer_list>
#include <utility>

#include "heddle/kernels/rows/row_kernel.h"

namespace heddle::kernels {

// kInvalidArgument where a vector, given by its name and elements, has not an element for each row of x, or where x
// has rows and no classes.
template <class T>
Status check_rows_and_classes(const char* kernel, const TensorRef<const T, 2>& x,
                              std::initializer_list<std::pair<const char*, int64_t>> vectors) {
  const int64_t rows = x.extents[0];
  for (const auto& [name, elements] : vectors) {
    if (elements == rows) continue;
    return InvalidArgumentError(absl::StrCat(kernel, ": x has ", rows, " rows and ", name, " ",
                                             elements, " elements; ", name,
                                             " takes one element a row"));
  }
  if (rows != 0 && x.extents[1] == 0) {
    return InvalidArgumentError(
        absl::StrCat(kernel, ": x has rows and no columns, so that no class is right"));
  }
  return OkStatus();
}

}  // namespace heddle::kernels
