#include "heddle/runtime/device_array.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/wording.h"

namespace heddle::runtime {
namespace {

// "an array of 2x3"
std::string describe(absl::Span<const int64_t> extents) {
  return absl::StrCat("an array of ", absl::StrJoin(extents, "x"));
}

}  // namespace

StatusOr<ArraySize> array_size(absl::Span<const int64_t> extents, size_t element_bytes) {
  ArraySize size{.elements = 1};
  bool fits = true;
  for (const int64_t extent : extents) {
    if (extent < 0) {
      return InvalidArgumentError(absl::StrCat(describe(extents), ": extents are 0 or more"));
    }
    fits &= !__builtin_mul_overflow(size.elements, extent, &size.elements);
  }
  fits &= !__builtin_mul_overflow(static_cast<size_t>(size.elements), element_bytes, &size.bytes);
  if (!fits) {
    return InvalidArgumentError(absl::StrCat(describe(extents), " elements of ", element_bytes,
                                             " bytes has more bytes than 64 bits can count"));
  }
  return size;
}

Status check_value_count(absl::Span<const int64_t> extents, int64_t elements, size_t values) {
  if (static_cast<size_t>(elements) == values) return OkStatus();
  return InvalidArgumentError(
      absl::StrCat(describe(extents), " has ", ir::counted(elements, "element"), ", and ",
                   ir::counted(static_cast<int64_t>(values), "value"),
                   values == 1 ? " was" : " were", " given; fix: give one for each element"));
}

}  // namespace heddle::runtime
