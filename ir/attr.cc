#include "heddle/ir/attr.h"

namespace heddle::ir {

std::optional<AttrKey> attr_from_name(absl::string_view name) {
  for (int i = 0; i < kAttrKeyCount; ++i) {
    if (kAttrs[i].name == name) return static_cast<AttrKey>(i);
  }
  return std::nullopt;
}

}  // namespace heddle::ir
