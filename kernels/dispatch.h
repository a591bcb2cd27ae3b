// From an element type that is known at run time to the instance of a generic kernel.
//
//   absl::Status s = dispatch<float, half, bfloat16>(dtype, [&]<class T>(TypeTag<T>) {
//     return launch(row_sum_kernel<T>(), …);
//   });
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "heddle/dsl/scalar.h"
#include "heddle/runtime/registry.h"

namespace heddle::kernels {

template <class T>
struct TypeTag {
  using type = T;
};

// Calls f(TypeTag<T>) for the T that `dtype` names, and returns what it returns: a Status or
// StatusOr. kInvalidArgument, with what there is, where none of the types is meant.
template <class... T, class F>
auto dispatch(ir::Scalar dtype, F&& f) {
  using Result = std::common_type_t<decltype(f(TypeTag<T>()))...>;
  std::string known;
  Result result(absl::UnknownError("no type was tried"));
  const auto try_type = [&]<class U>(TypeTag<U> tag) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", ir::info(detail::scalar_of<U>()).name);
    if (detail::scalar_of<U>() != dtype) return false;
    result = f(tag);
    return true;
  };
  if ((try_type(TypeTag<T>()) || ...)) return result;
  return Result(absl::InvalidArgumentError(absl::StrCat(
      "element type ", ir::info(dtype).name, " is not one that this kernel takes: ", known)));
}

}  // namespace heddle::kernels
