#include "heddle/runtime/argument_plan.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "heddle/ir/check.h"
#include "heddle/runtime/argument_facts.h"
#include "heddle/runtime/fact_value.h"

namespace heddle::runtime {
namespace {

constexpr uint64_t kAllBits = ~uint64_t{0};

// Whether the largest power of two up to `most` that divides a word is `power`.
struct PowerTest {
  uint64_t mask, expected;
};
PowerTest power_test(int64_t power, int64_t most) {
  const auto p = static_cast<uint64_t>(power);
  if (power >= most) return {p - 1, 0};
  return {2 * p - 1, p};
}

}  // namespace

ArgumentPlan::Test ArgumentPlan::test_of(const ir::Guard& guard) {
  const uint16_t param = guard.fact.param;
  const uint8_t dim = guard.fact.dim;
  const auto flag = [&](Source source, uint64_t mask, uint64_t expected) {
    return Test{param, source, dim, guard.value == 0, mask, expected};
  };
  const auto power = [&](Source source, int64_t most) {
    const PowerTest test = power_test(guard.value, most);
    return Test{param, source, dim, false, test.mask, test.expected};
  };
  switch (guard.fact.kind) {
    case ir::FactKind::kAlignment:
      // Code of narrower accesses does not ask for more.
      return power(Source::kBits, std::max(kLargestDivisor, guard.value));
    case ir::FactKind::kExtentDivisor:
      return power(Source::kExtent, kLargestDivisor);
    case ir::FactKind::kStrideDivisor:
      return power(Source::kStride, kLargestDivisor);
    case ir::FactKind::kUnitStride:
      return flag(Source::kStride, kAllBits, 1);
    case ir::FactKind::kFits32:
      return flag(Source::kFits32, kAllBits, 1);
    case ir::FactKind::kExtentFits32:
      // Extents are not negative.
      return flag(Source::kExtent, ~uint64_t{std::numeric_limits<int32_t>::max()}, 0);
    case ir::FactKind::kExtent:
      return {param, Source::kExtent, dim, false, kAllBits, static_cast<uint64_t>(guard.value)};
    case ir::FactKind::kNoOverlap:
      break;
  }
  check_failed(__FILE__, __LINE__, "guard.fact.kind", "no fact of one argument's word");
}

ArgumentPlan::ArgumentPlan(absl::Span<const ir::Guard> guards,
                           absl::Span<const ir::ParamInfo> params, const ir::ParamLayout& layout)
    : params_(params) {
  for (const ir::Guard& guard : guards) {
    if (guard.fact.kind == ir::FactKind::kNoOverlap) {
      overlap_tests_.push_back({guard.fact.param, guard.value == 0});
    } else {
      tests_.push_back(test_of(guard));
    }
  }
  for (const ir::ParamSlot& slot : layout.slots) {
    const Source source = slot.kind == ir::SlotKind::kExtent   ? Source::kExtent
                          : slot.kind == ir::SlotKind::kStride ? Source::kStride
                                                               : Source::kBits;
    steps_.push_back(
        {static_cast<uint16_t>(slot.param), source, static_cast<uint8_t>(slot.dim), slot.offset});
  }
}

inline uint64_t ArgumentPlan::word(Arguments arguments, uint16_t param, Source source,
                                   uint8_t dim) {
  const Argument& argument = arguments[param];
  switch (source) {
    case Source::kBits:
      return argument.bits;
    case Source::kExtent:
      return static_cast<uint64_t>(argument.extents[dim]);
    case Source::kStride:
      return static_cast<uint64_t>(argument.strides[dim]);
    case Source::kFits32:
      return argument.fits32 ? 1 : 0;
  }
  __builtin_unreachable();
}

bool ArgumentPlan::fits(Arguments arguments) const {
  for (const Test& test : tests_) {
    const uint64_t found = word(arguments, test.param, test.source, test.dim) & test.mask;
    if ((found == test.expected) == test.differs) return false;
  }
  for (const OverlapTest& test : overlap_tests_) {
    if (overlaps_written(test.param, params_, arguments) != test.overlaps) return false;
  }
  return true;
}

void ArgumentPlan::pack(Arguments arguments, std::byte* block) const {
  for (const Step& step : steps_) {
    const uint64_t value = word(arguments, step.param, step.source, step.dim);
    // Little-endian, as every host of CUDA is: the low bytes are the narrow value. Whole words are
    // cheaper than the slot's own size, and the slots follow each other: the next one, or the
    // slack, takes what is too much.
    std::memcpy(block + step.offset, &value, sizeof(value));
  }
}

}  // namespace heddle::runtime
