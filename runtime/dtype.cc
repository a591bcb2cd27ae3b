#include "heddle/runtime/dtype.h"

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace heddle {

StatusOr<DType> dtype_from_name(absl::string_view name) {
  const std::optional<DType> dtype = ir::scalar_from_name(name);
  if (dtype && *dtype != DType::kNone) return *dtype;
  std::string names;
  for (int i = 1; i < ir::kScalarCount; ++i) {
    absl::StrAppend(&names, i == 1 ? "" : ", ", name_of(static_cast<DType>(i)));
  }
  return InvalidArgumentError(absl::StrCat("'", name, "' is no element type; there are ", names));
}

namespace detail {

Status no_choice(DType dtype, std::initializer_list<DType> choices) {
  const auto append_name = [](std::string* out, DType choice) {
    out->append(std::string(name_of(choice)));
  };
  return InvalidArgumentError(absl::StrCat("no kernel for elements of ", name_of(dtype),
                                           "; there is one for ",
                                           absl::StrJoin(choices, ", ", append_name)));
}

}  // namespace detail
}  // namespace heddle
