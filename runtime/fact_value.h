// From what somebody knows of a kernel's arguments to the values of facts, rounded as ir/launch/fact.h
// says: the same way for the arguments of a launch and for the promises of a signature.
//
// `Known` answers by parameter and mode; says(fact) is false where it cannot, and then no other
// question about the fact is asked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "heddle/ir/check.h"
#include "heddle/ir/kernel_source.h"

namespace heddle::runtime {

// The largest value of a fact about divisors; and about addresses, for the widest access of any
// target.
inline constexpr int64_t kLargestDivisor = 16, kWidestAccess = 32;

// The largest power of two up to `most` that divides a number; everything divides 0.
inline int64_t power_of_two_in(uint64_t number, int64_t most = kLargestDivisor) {
  const uint64_t power = number & (~number + 1);
  return power == 0 ? most : static_cast<int64_t>(std::min(power, static_cast<uint64_t>(most)));
}

template <class Known>
[[gnu::always_inline]] inline int64_t fact_value_of(ir::Fact fact, const Known& known,
                                                    int64_t widest_access) {
  using ir::FactKind;
  switch (fact.kind) {
    case FactKind::kAlignment:
      return power_of_two_in(known.address(fact.param), widest_access);
    case FactKind::kExtentDivisor:
      return power_of_two_in(static_cast<uint64_t>(known.extent(fact.param, fact.dim)));
    case FactKind::kStrideDivisor:
      return power_of_two_in(static_cast<uint64_t>(known.stride(fact.param, fact.dim)));
    case FactKind::kUnitStride:
      return known.stride(fact.param, fact.dim) == 1;
    case FactKind::kFits32:
      return known.fits32(fact.param);
    case FactKind::kExtentFits32:
      return known.extent_fits32(fact.param, fact.dim);
    case FactKind::kNoOverlap:
      return known.overlaps_none(fact.param);
    case FactKind::kExtent:
      return known.extent(fact.param, fact.dim);
  }
  check_failed(__FILE__, __LINE__, "fact.kind", "unknown fact");
}

// Every fact that `known` says, for a target whose widest access has so many bytes.
template <class Known>
std::vector<ir::Guard> facts_from(absl::Span<const ir::ParamInfo> params, const Known& known,
                                  int64_t widest_access) {
  std::vector<ir::Guard> facts;
  for (size_t param = 0; param < params.size(); ++param) {
    if (!params[param].type.is_view()) continue;
    for (size_t i = 0; i < ir::kFacts.size(); ++i) {
      const auto kind = static_cast<ir::FactKind>(i);
      const bool of_layout = kind != ir::FactKind::kAlignment && kind != ir::FactKind::kNoOverlap;
      if (of_layout && params[param].unbounded) continue;
      const int dims = ir::info(kind).per_dim ? params[param].type.rank : 1;
      for (int dim = 0; dim < dims; ++dim) {
        const ir::Fact fact{kind, static_cast<uint16_t>(param), static_cast<uint8_t>(dim)};
        if (known.says(fact)) facts.push_back({fact, fact_value_of(fact, known, widest_access)});
      }
    }
  }
  return facts;
}

}  // namespace heddle::runtime
