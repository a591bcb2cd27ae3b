// Facts about a kernel's arguments: what specialisation may rely on.
//
// A fact is asked of the Kernel, which remembers that it was: the facts that tracing or a pass read
// become the guards of the compiled code, and nothing else does. Each fact has a value that says
// "nothing is known", so a kernel without data compiles for every argument.
#pragma once

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace heddle::ir {

enum class FactKind : uint8_t {
  kAlignment,      // power of two up to 32 that divides the base address in bytes; unknown: 1
  kExtentDivisor,  // power of two up to 16 that divides the extent of mode `dim`; unknown: 1
  kStrideDivisor,  // power of two up to 16 that divides the stride of mode `dim`; unknown: 1
  kUnitStride,     // 1 where the stride of mode `dim` is 1; unknown: 0
  kFits32,         // 1 where each element's offset is from 0 to kLargestOffset32; unknown: 0
  kExtentFits32,   // 1 where the extent of mode `dim` fits in 31 bits; unknown: 0
  kNoOverlap,  // 1 where no argument that the kernel writes shares memory with this one; unknown: 0
  kExtent,     // the extent of mode `dim` itself, where an author fixes it; unknown: -1
};

// Offsets that may be i32. Above the largest one so much of i32 is left that code may subtract constants up to
// kSpareOffsets from an index before it adds the rest, and nothing wraps.
inline constexpr int64_t kSpareOffsets = 1 << 16;
inline constexpr int64_t kLargestOffset32 = INT32_MAX - kSpareOffsets;

// The values that a fact may have.
enum class FactValue : uint8_t { kPowerOfTwo, kFlag, kExtent };

struct FactInfo {
  absl::string_view name;
  bool per_dim;
  FactValue values;
  int64_t unknown;
};

inline constexpr std::array<FactInfo, 8> kFacts = {{
    {"align", false, FactValue::kPowerOfTwo, 1},
    {"extent_div", true, FactValue::kPowerOfTwo, 1},
    {"stride_div", true, FactValue::kPowerOfTwo, 1},
    {"unit_stride", true, FactValue::kFlag, 0},
    {"fits32", false, FactValue::kFlag, 0},
    {"extent_fits32", true, FactValue::kFlag, 0},
    {"no_overlap", false, FactValue::kFlag, 0},
    {"extent", true, FactValue::kExtent, -1},
}};

constexpr const FactInfo& info(FactKind kind) { return kFacts[static_cast<size_t>(kind)]; }

struct Fact {
  FactKind kind;
  uint16_t param = 0;  // index in Kernel::params
  uint8_t dim = 0;     // 0 where the kind is not per dim
  bool operator==(const Fact&) const = default;
};

// A fact and the value that compiled code relies on.
struct Guard {
  Fact fact;
  int64_t value;
  bool operator==(const Guard&) const = default;
};

}  // namespace heddle::ir
