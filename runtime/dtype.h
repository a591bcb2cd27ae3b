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

// An element type as a value: DType::kF32, kBF16, kI64, ….
using DType = ir::Scalar;

// A C++ type as a value, which for_dtype() passes.
template <class T>
struct TypeTag {
  using type = T;  // the type
};

// The element type of a host type.
template <class T>
DType dtype_of() {
  return detail::scalar_of<T>();
}
// An element type's name, "f32", "bf16", "i64", …, and back. kInvalidArgument for another name.
inline absl::string_view name_of(DType dtype) { return ir::info(dtype).name; }
StatusOr<DType> dtype_from_name(absl::string_view name);

namespace detail {
// No kernel for `dtype`; there are some for `choices`.
Status no_choice(DType dtype, std::initializer_list<DType> choices);
}  // namespace detail

// Dispatch by element type: calls f(TypeTag<T>()), which returns a Status, for the T of the list
// that is `dtype`. kInvalidArgument where it is none of them.
template <class... T, class F>
Status for_dtype(DType dtype, F&& f) {
  Status status;
  const bool found = ((dtype == dtype_of<T>() && (status = f(TypeTag<T>()), true)) || ...);
  if (found) return status;
  return detail::no_choice(dtype, {dtype_of<T>()...});
}

}  // namespace heddle
