#include "heddle/runtime/argument_plan.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

#include "heddle/ir/check.h"
#include "heddle/runtime/argument_facts.h"
#include "heddle/runtime/fact_value.h"

namespace heddle::runtime {
namespace {

static_assert(std::is_standard_layout_v<Argument>);
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

ArgumentPlan::Place ArgumentPlan::bits(int param) {
  return {static_cast<uint32_t>(param * sizeof(Argument) + offsetof(Argument, bits)), 0, false};
}
ArgumentPlan::Place ArgumentPlan::extent(int param, int dim) {
  return {static_cast<uint32_t>(param * sizeof(Argument) + offsetof(Argument, extents)),
          static_cast<uint8_t>(dim), true};
}
ArgumentPlan::Place ArgumentPlan::stride(int param, int dim) {
  return {static_cast<uint32_t>(param * sizeof(Argument) + offsetof(Argument, strides)),
          static_cast<uint8_t>(dim), true};
}

inline uint64_t ArgumentPlan::word(Arguments arguments, Place place) {
  const auto* const at = reinterpret_cast<const std::byte*>(arguments.data()) + place.bytes;
  uint64_t value;
  std::memcpy(&value, at, sizeof(value));
  if (!place.indirect) return value;
  return static_cast<uint64_t>(reinterpret_cast<const int64_t*>(value)[place.dim]);
}

ArgumentPlan::Test ArgumentPlan::test_of(const ir::Guard& guard) {
  const int param = guard.fact.param, dim = guard.fact.dim;
  const auto flag = [&](Place place, uint64_t mask, uint64_t expected) {
    return Test{place, guard.value == 0, mask, expected};
  };
  const auto power = [&](Place place, int64_t most) {
    const PowerTest test = power_test(guard.value, most);
    return Test{place, false, test.mask, test.expected};
  };
  switch (guard.fact.kind) {
    case ir::FactKind::kAlignment:
      // Code of narrower accesses does not ask for more.
      return power(bits(param), std::max(kLargestDivisor, guard.value));
    case ir::FactKind::kExtentDivisor:
      return power(extent(param, dim), kLargestDivisor);
    case ir::FactKind::kStrideDivisor:
      return power(stride(param, dim), kLargestDivisor);
    case ir::FactKind::kUnitStride:
      return flag(stride(param, dim), kAllBits, 1);
    case ir::FactKind::kExtentFits32:
      // Extents are not negative.
      return flag(extent(param, dim), ~uint64_t{std::numeric_limits<int32_t>::max()}, 0);
    case ir::FactKind::kExtent:
      return {extent(param, dim), false, kAllBits, static_cast<uint64_t>(guard.value)};
    case ir::FactKind::kFits32:
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
    } else if (guard.fact.kind == ir::FactKind::kFits32) {
      fits32_tests_.push_back({guard.fact.param, guard.value != 0});
    } else {
      tests_.push_back(test_of(guard));
    }
  }
  for (const ir::ParamSlot& slot : layout.slots) {
    const Place from = slot.kind == ir::SlotKind::kExtent   ? extent(slot.param, slot.dim)
                       : slot.kind == ir::SlotKind::kStride ? stride(slot.param, slot.dim)
                                                            : bits(slot.param);
    steps_.push_back({from, slot.offset});
  }
}

bool ArgumentPlan::fits(Arguments arguments) const {
  for (const Test& test : tests_) {
    if (((word(arguments, test.place) & test.mask) == test.expected) == test.differs) return false;
  }
  for (const Fits32Test& test : fits32_tests_) {
    if (arguments[test.param].fits32 != test.fits) return false;
  }
  for (const OverlapTest& test : overlap_tests_) {
    if (overlaps_written(test.param, params_, arguments) != test.overlaps) return false;
  }
  return true;
}

void ArgumentPlan::pack(Arguments arguments, std::byte* block) const {
  for (const Step& step : steps_) {
    const uint64_t value = word(arguments, step.from);
    // Little-endian, as every host of CUDA is: the low bytes are the narrow value. Whole words are
    // cheaper than the slot's own size, and the slots follow each other: the next one, or the
    // slack, takes what is too much.
    std::memcpy(block + step.to, &value, sizeof(value));
  }
}

}  // namespace heddle::runtime
