// Element types that are chosen at run time: one generic body, made for each type that is named.
//
//   Status scale(const Stream& stream, const Buffer& x, int64_t n, DType dtype) {
//     return for_dtype<float, half, bfloat16>(dtype, [&](auto type) {
//       using T = typename decltype(type)::type;
//       static const auto kernel = define_kernel("scale(x)", scale_body<T>);  // captures nothing
//       return kernel.launch(stream, {.block = 256}, as_tensor<T>(x, {n}));
//     });
//   }
#pragma once

#include <initializer_list>

#include "absl/strings/string_view.h"
#include "heddle/dsl/scalar.h"
#include "heddle/ir/status.h"
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
StatusOr<DType> dtype_from_name(absl::string_view name);

namespace detail {
// No kernel for `dtype`; there are some for `choices`.
Status no_choice(DType dtype, std::initializer_list<DType> choices);
}  // namespace detail

// Calls f(TypeTag<T>()), which returns a Status, for the T that `dtype` says. InvalidArgument where
// it is none of them.
template <class... T, class F>
Status for_dtype(DType dtype, F&& f) {
  Status status;
  const bool found = ((dtype == dtype_of<T>() && (status = f(TypeTag<T>()), true)) || ...);
  if (found) return status;
  return detail::no_choice(dtype, {dtype_of<T>()...});
}

}  // namespace heddle
