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
// The first row of that architecture or a later one: 90 -> sm_90.
const Target& first_from(int sm);
// "sm_80, sm_86, …" for messages.
std::string target_names();

// Which architectures have an op (a column of ops.def). kEverywhere is sm_80 and up.
enum class Targets : uint8_t {
  kEverywhere,
  kBf16Arith,     // bf16 needs sm_90
  kFloat8,        // e4m3 and e5m2 need sm_89, e8m0 what kFloat4 does; none has it for e2m1x2
  kFloat4,        // sm_100a and the architecture-specific targets after it
  kNoF64,         // no architecture has it for f64
  kRoundedTypes,  // no architecture has it for floats below 32 bits but e8m0, as for kFloat4
  kF32F64,        // no architecture has it for other floats
  kHopper,        // sm_90 and up
  k32Bits,        // no architecture has it for other than 32-bit elements
  kWgmma,         // sm_90a alone
};

// Whether the target has an op of that rule for that element type.
bool supports(const Target& target, Targets rule, Scalar scalar);
// The first target that has it; nullptr where none does.
const Target* first_supporting(Targets rule, Scalar scalar);

}  // namespace heddle::ir
