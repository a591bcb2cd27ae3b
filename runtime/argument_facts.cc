#include "heddle/runtime/argument_facts.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "heddle/ir/check.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/memory_tag.h"

namespace heddle::runtime {
namespace {

using ir::Fact;
using ir::FactKind;

// Of divisors; and of addresses, by the widest access of any target.
constexpr int64_t kLargestLevel = 16, kWidestAccess = 32;
constexpr int64_t kMax31 = std::numeric_limits<int32_t>::max();

// The largest power of two up to `most` that divides a number; everything divides 0.
int64_t level(uint64_t number, int64_t most = kLargestLevel) {
  const uint64_t power = number & (~number + 1);
  return power == 0 ? most : static_cast<int64_t>(std::min(power, static_cast<uint64_t>(most)));
}

bool may_overlap(const Argument& a, const Argument& b) {
  return a.begin < b.end && b.begin < a.end;
}

bool overlaps_written(int index, absl::Span<const ir::ParamInfo> params, Arguments arguments) {
  for (int i = 0; i < static_cast<int>(params.size()); ++i) {
    if (i == index || !params[i].type.is_view() || params[i].type.read_only) continue;
    if (may_overlap(arguments[index], arguments[i])) return true;
  }
  return false;
}

inline int64_t value_of(Fact fact, absl::Span<const ir::ParamInfo> params, Arguments arguments,
                        int64_t widest_access) {
  const Argument& argument = arguments[fact.param];
  switch (fact.kind) {
    case FactKind::kAlignment:
      return level(argument.bits, widest_access);
    case FactKind::kExtentDivisor:
      return level(static_cast<uint64_t>(argument.extents[fact.dim]));
    case FactKind::kStrideDivisor:
      return level(static_cast<uint64_t>(argument.strides[fact.dim]));
    case FactKind::kUnitStride:
      return argument.strides[fact.dim] == 1;
    case FactKind::kFits32:
      return argument.fits32;
    case FactKind::kExtentFits32:
      return argument.extents[fact.dim] <= kMax31;
    case FactKind::kNoOverlap:
      return !overlaps_written(fact.param, params, arguments);
    case FactKind::kExtent:
      return argument.extents[fact.dim];
  }
  check_failed(__FILE__, __LINE__, "fact.kind", "unknown fact");
}

}  // namespace

int64_t fact_value(Fact fact, absl::Span<const ir::ParamInfo> params, Arguments arguments) {
  return value_of(fact, params, arguments, kWidestAccess);
}

bool match_exactly(absl::Span<const ir::Guard> guards, absl::Span<const ir::ParamInfo> params,
                   Arguments arguments) {
  for (const ir::Guard& guard : guards) {
    // Code of narrower accesses does not ask for more.
    const int64_t widest_access = std::max(kLargestLevel, guard.value);
    if (value_of(guard.fact, params, arguments, widest_access) != guard.value) return false;
  }
  return true;
}

std::vector<ir::Guard> all_facts(absl::Span<const ir::ParamInfo> params, Arguments arguments,
                                 int widest_access) {
  std::vector<ir::Guard> facts;
  for (int param = 0; param < static_cast<int>(params.size()); ++param) {
    if (!params[param].type.is_view()) continue;
    for (size_t kind = 0; kind < ir::kFacts.size(); ++kind) {
      const bool of_layout = static_cast<FactKind>(kind) != FactKind::kAlignment &&
                             static_cast<FactKind>(kind) != FactKind::kNoOverlap;
      if (of_layout && params[param].unbounded) continue;
      const int dims = ir::kFacts[kind].per_dim ? params[param].type.rank : 1;
      for (int dim = 0; dim < dims; ++dim) {
        const Fact fact{static_cast<FactKind>(kind), static_cast<uint16_t>(param),
                        static_cast<uint8_t>(dim)};
        facts.push_back({fact, value_of(fact, params, arguments, widest_access)});
      }
    }
  }
  return facts;
}

bool satisfies(const ir::Guard& guard, int64_t value) {
  switch (guard.fact.kind) {
    case FactKind::kAlignment:
    case FactKind::kExtentDivisor:
    case FactKind::kStrideDivisor:
    case FactKind::kUnitStride:
    case FactKind::kFits32:
    case FactKind::kExtentFits32:
    case FactKind::kNoOverlap:
      return value >= guard.value;
    case FactKind::kExtent:
      return guard.value == ir::info(FactKind::kExtent).unknown || value == guard.value;
  }
  check_failed(__FILE__, __LINE__, "guard.fact.kind", "unknown fact");
}

void pack_arguments(const ir::ParamLayout& layout, Arguments arguments, std::byte* block) {
  for (const ir::ParamSlot& slot : layout.slots) {
    const Argument& argument = arguments[slot.param];
    const bool of_layout = slot.kind == ir::SlotKind::kExtent || slot.kind == ir::SlotKind::kStride;
    const int64_t* const layout_words =
        slot.kind == ir::SlotKind::kExtent ? argument.extents : argument.strides;
    const uint64_t word = of_layout ? static_cast<uint64_t>(layout_words[slot.dim]) : argument.bits;
    // Little-endian, as every host of CUDA is: the low bytes are the narrow value. Whole words are
    // cheaper than the slot's own size, and the slots follow each other: the next one, or the
    // slack, takes what is too much.
    std::memcpy(block + slot.offset, &word, sizeof(word));
  }
}

bool arguments_are_sound(absl::Span<const ir::ParamInfo> params, Arguments arguments) {
  if (params.size() != arguments.size()) return false;
  bool sound = true;
  for (size_t i = 0; i < params.size(); ++i) {
    const bool fits = !params[i].type.is_view() || arguments[i].rank == params[i].type.rank;
    sound &= arguments[i].sound && fits;
  }
  return sound;
}

namespace {

// A number that its parameter's type does not hold.
absl::Status refuse_number(absl::string_view kernel, absl::Span<const ir::ParamInfo> params,
                           Arguments arguments, int index) {
  const Argument& argument = arguments[index];
  const ir::Scalar scalar = params[index].type.scalar;
  return absl::InvalidArgumentError(absl::StrCat(
      describe_argument(params, index), " of ", kernel, " is ",
      argument.misfit == Misfit::kUnsigned ? absl::StrCat(argument.bits)
                                           : absl::StrCat(static_cast<int64_t>(argument.bits)),
      ", which does not fit an ", ir::info(scalar).name,
      "; fix: make the parameter wider (Int64, UInt64), or pass another number"));
}

// Memory that was freed, or is another device's.
absl::Status refuse_memory(absl::string_view kernel, absl::Span<const ir::ParamInfo> params,
                           Arguments arguments, int index, const Backend& device) {
  const MemoryTag& memory = *arguments[index].memory;
  const std::string what = absl::StrCat(describe_argument(params, index), " of ", kernel);
  if (memory.allocation.load() != arguments[index].allocation) {
    return absl::InvalidArgumentError(
        absl::StrCat(what,
                     " lies in a Buffer that was freed; fix: keep the Buffer alive until "
                     "the launch is complete"));
  }
  const std::string& owner = memory.device.load()->name();
  return absl::InvalidArgumentError(absl::StrCat(
      what, " lies in memory of ", owner == device.name() ? "another device that is called " : "",
      owner, ", and the launch is on ", device.name(),
      "; fix: copy it to a Buffer of that device, or launch on a stream of the other"));
}

}  // namespace

absl::Status check_arguments(absl::string_view kernel, absl::Span<const ir::ParamInfo> params,
                             Arguments arguments, const Backend& device) {
  if (arguments_are_sound(params, arguments)) return absl::OkStatus();
  if (params.size() != arguments.size()) {
    return absl::InvalidArgumentError(absl::StrCat(kernel, " takes ",
                                                   ir::counted(params.size(), "argument"),
                                                   " and was given ", arguments.size()));
  }
  for (int i = 0; i < static_cast<int>(params.size()); ++i) {
    const Argument& argument = arguments[i];
    if (argument.misfit != Misfit::kFits) return refuse_number(kernel, params, arguments, i);
    if (!params[i].type.is_view() || params[i].unbounded) continue;
    const std::string what = absl::StrCat(describe_argument(params, i), " of ", kernel);
    if (argument.rank != params[i].type.rank) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " has ", ir::counted(argument.rank, "mode"), "; the kernel takes ",
                       static_cast<int>(params[i].type.rank)));
    }
    for (int dim = 0; dim < argument.rank; ++dim) {
      if (argument.extents[dim] >= 0) continue;
      return absl::InvalidArgumentError(absl::StrCat(what, " has extent ", argument.extents[dim],
                                                     " in mode ", dim,
                                                     "; extents are not negative"));
    }
    if (argument.sound) continue;
    if (argument.memory != nullptr && !argument.memory->holds(argument.allocation, &device)) {
      return refuse_memory(kernel, params, arguments, i, device);
    }
    if (argument.bits == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          what,
          " is a null pointer to a tensor with elements: allocate it with Device::allocate()"));
    }
    const int element_bytes = ir::bytes_of(params[i].type.scalar);
    if (argument.bits % static_cast<uint64_t>(element_bytes) != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat(what, " starts at 0x", absl::Hex(argument.bits),
                       ", which is no multiple of its elements' ", element_bytes,
                       " bytes: a GPU cannot read them there"));
    }
    const bool huge = argument.begin == 0 && argument.end == UINT64_MAX;
    return absl::InvalidArgumentError(
        absl::StrCat(what, " reaches ",
                     huge ? "further than 64 bits can count"
                     : argument.begin < argument.bits
                         ? "before its buffer"
                         : absl::StrCat(argument.end - argument.bits, " bytes into a buffer of ",
                                        argument.capacity_bytes),
                     ": its extents and strides do not fit the memory"));
  }
  check_failed(__FILE__, __LINE__, "sound", "unsound arguments without a reason");
}

std::string describe_argument(absl::Span<const ir::ParamInfo> params, int index) {
  return absl::StrCat("argument ", index, " ('", params[index].name, "')");
}

}  // namespace heddle::runtime
