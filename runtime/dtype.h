// Element types that are chosen at run time: one generic body, made for each type that is named.
//
//   absl::Status scale(const Stream& stream, const Buffer& x, int64_t n, DType dtype) {
//     return for_dtype<float, half, bfloat16>(dtype, [&](auto type) {
//       using T = typename decltype(type)::type;
//       static const auto kernel = define_kernel("scale(x)", scale_body<T>);  // captures nothing
//       return kernel.launch(stream, {.block = 256}, as_tensor<T>(x, {n}));
//     });
//   }
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "heddle/dsl/scalar.h"
#include "heddle/ir/type.h"

namespace heddle {

// kF32, kBF16, kI64, …
using DType = ir::Scalar;

// A type as a value.
template <class T>
struct TypeTag {
  using type = T;
};

template <class T>
DType dtype_of() {
  return detail::scalar_of<T>();
}
// "f32", "bf16", "i64", …
inline absl::string_view name_of(DType dtype) { return ir::info(dtype).name; }
absl::StatusOr<DType> dtype_from_name(absl::string_view name);

// Calls f(TypeTag<T>()), which returns a Status, for the T that `dtype` says. InvalidArgument where
// it is none of them.
template <class... T, class F>
absl::Status for_dtype(DType dtype, F&& f) {
  absl::Status status;
  const bool found = ((dtype == dtype_of<T>() && (status = f(TypeTag<T>()), true)) || ...);
  if (found) return status;
  std::string choices;
  ((absl::StrAppend(&choices, choices.empty() ? "" : ", ", name_of(dtype_of<T>()))), ...);
  return absl::InvalidArgumentError(
      absl::StrCat("no kernel for elements of ", name_of(dtype), "; there is one for ", choices));
}

}  // namespace heddle
