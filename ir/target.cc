#include "heddle/ir/target.h"

#include "absl/strings/str_cat.h"
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

std::string target_names() {
  return absl::StrJoin(kTargets, ", ", [](std::string* out, const Target& target) {
    out->append(target.name.data(), target.name.size());
  });
}

const FeatureInfo& info(Feature feature) {
  using enum FeatureInfo::Extent;
  static constexpr FeatureInfo kFeatures[] = {
#define HEDDLE_FEATURE(enumerator, what, sm, extent, ptx) {what, sm, extent, ptx},
#include "heddle/ir/features.def"
      {},
  };
  return kFeatures[static_cast<size_t>(feature)];
}

bool has(const Target& target, Feature feature) {
  return feature != Feature::kNever && has(target, info(feature));
}

bool has(const Target& target, const FeatureInfo& row) {
  switch (row.extent) {
    case FeatureInfo::Extent::kOnwards:
      return target.sm >= row.sm;
    case FeatureInfo::Extent::kSpecific:
      return target.sm >= row.sm && target.arch_specific;
    case FeatureInfo::Extent::kAlone:
      return target.sm == row.sm && target.arch_specific;
  }
  check_failed(__FILE__, __LINE__, "row.extent", "unknown extent of a feature");
}

const Target* first_with(Feature feature) {
  for (const Target& target : kTargets) {
    if (has(target, feature)) return &target;
  }
  return nullptr;
}

Lack lack_of(const Target& target, Feature feature, absl::string_view instead,
             absl::string_view what) {
  if (what.empty()) what = info(feature).what;
  const Target* const first = first_with(feature);
  if (first == nullptr) return {absl::StrCat("no GPU has ", what), std::string(instead)};
  return {absl::StrCat(target.name, " has no ", what, "; ", first->name, " is the first that has"),
          absl::StrCat("compile the kernel for ", first->name, instead.empty() ? "" : ", or ",
                       instead)};
}

bool supports(const Target& target, const Targets& targets, Scalar scalar) {
  return has(target, targets.of(scalar));
}

const Target* first_supporting(const Targets& targets, Scalar scalar) {
  return first_with(targets.of(scalar));
}

}  // namespace heddle::ir
