#include "heddle/runtime/dtype.h"

namespace heddle {

absl::StatusOr<DType> dtype_from_name(absl::string_view name) {
  const std::optional<DType> dtype = ir::scalar_from_name(name);
  if (dtype && *dtype != DType::kNone) return *dtype;
  std::string names;
  for (int i = 1; i < ir::kScalarCount; ++i) {
    absl::StrAppend(&names, i == 1 ? "" : ", ", name_of(static_cast<DType>(i)));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", name, "' is no element type; there are ", names));
}

}  // namespace heddle
