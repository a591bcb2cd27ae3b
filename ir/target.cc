#include "heddle/ir/target.h"

#include "absl/strings/str_join.h"
#include "heddle/ir/check.h"

namespace heddle::ir {

const Target* find_target(absl::string_view name) {
  if (name == "sm_101") name = "sm_110";
  for (const Target& target : kTargets) {
    if (target.name == name) return &target;
  }
  return nullptr;
}

const Target* target_for_device(int major, int minor) {
  const int sm = major * 10 + minor;
  const Target* best = nullptr;
  for (const Target& target : kTargets) {
    const bool same_chip = target.sm == sm;
    // Code for an older chip of the same generation runs; arch-specific code does not move.
    const bool same_generation = target.sm / 10 == major && target.sm <= sm;
    if (same_chip || (same_generation && !target.arch_specific)) best = &target;
  }
  return best;
}

const Target& default_target() { return *find_target("sm_90a"); }

const Target& first_from(int sm) {
  for (const Target& target : kTargets) {
    if (target.sm >= sm) return target;
  }
  check_failed(__FILE__, __LINE__, "sm", "no architecture is that new");
}

std::string target_names() {
  return absl::StrJoin(kTargets, ", ", [](std::string* out, const Target& target) {
    out->append(target.name.data(), target.name.size());
  });
}

bool supports(const Target& target, Targets rule, Scalar scalar) {
  switch (rule) {
    case Targets::kEverywhere:
      return true;
    case Targets::kBf16Arith:
      return scalar != Scalar::kBF16 || target.sm >= 90;
    case Targets::kFloat8:
      if (scalar == Scalar::kE2M1X2) return false;
      if (scalar == Scalar::kE8M0) return supports(target, Targets::kFloat4, scalar);
      return !is_float(scalar) || info(scalar).bits != 8 || target.sm >= 89;
    case Targets::kFloat4:
      return target.sm >= 100 && target.arch_specific;
    case Targets::kNoF64:
      return scalar != Scalar::kF64;
    case Targets::kRoundedTypes:
      if (scalar == Scalar::kE8M0) return supports(target, Targets::kFloat4, scalar);
      return !is_float(scalar) || info(scalar).bits >= 32;
    case Targets::kF32F64:
      return scalar == Scalar::kF32 || scalar == Scalar::kF64;
    case Targets::kHopper:
      return target.sm >= 90;
    case Targets::k32Bits:
      return info(scalar).bits == 32;
    case Targets::kWgmma:
      return target.sm == 90 && target.arch_specific;
  }
  check_failed(__FILE__, __LINE__, "rule", "unknown target rule");
}

const Target* first_supporting(Targets rule, Scalar scalar) {
  for (const Target& target : kTargets) {
    if (supports(target, rule, scalar)) return &target;
  }
  return nullptr;
}

}  // namespace heddle::ir
