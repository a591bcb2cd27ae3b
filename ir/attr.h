// Attributes: the host-constant part of an op. Each is a key and a 64-bit value, read by its key's
// kind: an integer, an enumerator, an interned string, or an interned list of integers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/cache_hint.h"
#include "heddle/ir/rounding.h"

namespace heddle::ir {

enum class AttrKey : uint8_t {
#define HEDDLE_ATTR(enumerator, ...) enumerator,
#include "heddle/ir/attrs.def"
};
inline constexpr int kAttrKeyCount = 0
#define HEDDLE_ATTR(...) +1
#include "heddle/ir/attrs.def"
    ;

enum class AttrKind : uint8_t { kInt, kEnum, kString, kInts, kBits };

struct AttrInfo {
  absl::string_view name;
  AttrKind kind;
  absl::Span<const absl::string_view> enumerators;  // kEnum only
};

struct Attr {
  AttrKey key;
  int64_t value;
  bool operator==(const Attr&) const = default;
};

enum class Axis : uint8_t { kX, kY, kZ };

inline constexpr absl::string_view kAxisNames[] = {"x", "y", "z"};

inline constexpr std::array<AttrInfo, kAttrKeyCount> kAttrs = {{
#define HEDDLE_ATTR(enumerator, name, kind, words) {name, AttrKind::kind, words},
#include "heddle/ir/attrs.def"
}};

constexpr const AttrInfo& info(AttrKey key) { return kAttrs[static_cast<size_t>(key)]; }
std::optional<AttrKey> attr_from_name(absl::string_view name);

}  // namespace heddle::ir
