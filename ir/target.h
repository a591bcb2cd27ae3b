// GPU architectures as data: which one a kernel is for, and which ones have an op.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "heddle/ir/type.h"

namespace heddle::ir {

// One row of kTargets: what the emitter and the verifier must know of an architecture.
struct Target {
  absl::string_view name;      // as users and ptxas write it: "sm_90a"
  int sm = 0;                  // 90
  bool arch_specific = false;  // has the features that only this very chip has (suffix a)
  int ptx_version = 0;         // lowest PTX ISA version that knows it: 78 is 7.8
  int shared_bytes = 0;        // most shared memory that a block can have
  int max_access_bytes = 16;   // widest vector access
};

inline constexpr std::array<Target, 13> kTargets = {{
    {"sm_80", 80, false, 70, 166912, 16},
    {"sm_86", 86, false, 71, 101376, 16},
    {"sm_89", 89, false, 78, 101376, 16},
    {"sm_90", 90, false, 78, 232448, 16},
    {"sm_90a", 90, true, 80, 232448, 16},
    {"sm_100", 100, false, 86, 232448, 32},
    {"sm_100a", 100, true, 86, 232448, 32},
    {"sm_103", 103, false, 88, 232448, 32},
    {"sm_103a", 103, true, 88, 232448, 32},
    {"sm_110", 110, false, 90, 232448, 32},
    {"sm_110a", 110, true, 90, 232448, 32},
    {"sm_120", 120, false, 87, 101376, 32},
    {"sm_120a", 120, true, 87, 101376, 32},
}};

// The row of that name; nullptr where there is none. "sm_101" is today's sm_110.
const Target* find_target(absl::string_view name);
// The best row for a device of that compute capability: 9, 0 -> sm_90a.
const Target* target_for_device(int major, int minor);
// Hopper: what kernels are compiled for when nobody says otherwise.
const Target& default_target();
// "sm_80, sm_86, …" for messages.
std::string target_names();

// What architectures differ in (features.def).
enum class Feature : uint8_t {
#define HEDDLE_FEATURE(enumerator, ...) enumerator,
#include "heddle/ir/features.def"
  kNever,  // no architecture has it
};

struct FeatureInfo {
  enum class Extent : uint8_t { kOnwards, kSpecific, kAlone };
  absl::string_view what;
  int sm = 0;
  Extent extent = Extent::kOnwards;
  int ptx_version = 0;
};
const FeatureInfo& info(Feature feature);

bool has(const Target& target, Feature feature);
bool has(const Target& target, const FeatureInfo& feature);
// The first target that has it; nullptr where none does.
const Target* first_with(Feature feature);

// A mistake and its cure: what a target lacks.
struct Lack {
  std::string message;  // "sm_86 has no clusters; sm_90 is the first that has"
  std::string fix;      // "compile the kernel for sm_90, or <instead>"
};
// `what` that needs the feature, by default the feature's own name; `instead` may be empty.
Lack lack_of(const Target& target, Feature feature, absl::string_view instead,
             absl::string_view what = {});

// What an op needs of an architecture, by element type: a column of ops.def.
class Targets {
 public:
  constexpr Targets() = default;
  // The same for every type.
  explicit constexpr Targets(Feature feature) { by_type_.fill(feature); }
  constexpr Targets with(Scalar scalar, Feature feature) const {
    Targets result = *this;
    result.by_type_[static_cast<size_t>(scalar)] = feature;
    return result;
  }
  // kNone: where the op is for no type in particular.
  constexpr Feature of(Scalar scalar) const { return by_type_[static_cast<size_t>(scalar)]; }
  bool operator==(const Targets&) const = default;

 private:
  std::array<Feature, kScalarCount> by_type_{};
};

// Whether the target has an op of that column for that element type.
bool supports(const Target& target, const Targets& targets, Scalar scalar);
// The first target that has it; nullptr where none does.
const Target* first_supporting(const Targets& targets, Scalar scalar);

}  // namespace heddle::ir
