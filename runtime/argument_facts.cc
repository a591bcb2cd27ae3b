#include "heddle/runtime/argument_facts.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "heddle/ir/check.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/fact_value.h"
#include "heddle/runtime/memory_tag.h"

namespace heddle::runtime {
namespace {

using ir::Fact;
using ir::FactKind;

bool may_overlap(const Argument& a, const Argument& b) {
  return a.begin < b.end && b.begin < a.end;
}

// The arguments of a launch, of which everything is known.
struct KnownArguments {
  absl::Span<const ir::ParamInfo> params;
  Arguments arguments;

  static constexpr bool says(Fact) { return true; }
  uint64_t address(int param) const { return arguments[param].bits; }
  int64_t extent(int param, int dim) const { return arguments[param].extents[dim]; }
  int64_t stride(int param, int dim) const { return arguments[param].strides[dim]; }
  bool fits32(int param) const { return arguments[param].fits32; }
  bool extent_fits32(int param, int dim) const {
    return extent(param, dim) <= std::numeric_limits<int32_t>::max();
  }
  bool overlaps_none(int param) const { return !overlaps_written(param, params, arguments); }
};

}  // namespace

int64_t fact_value(Fact fact, absl::Span<const ir::ParamInfo> params, Arguments arguments) {
  return fact_value_of(fact, KnownArguments{params, arguments}, kWidestAccess);
}

bool overlaps_written(int index, absl::Span<const ir::ParamInfo> params, Arguments arguments) {
  for (int i = 0; i < static_cast<int>(params.size()); ++i) {
    if (i == index || !params[i].type.is_view() || params[i].type.read_only) continue;
    if (may_overlap(arguments[index], arguments[i])) return true;
  }
  return false;
}

std::vector<ir::Guard> all_facts(absl::Span<const ir::ParamInfo> params, Arguments arguments,
                                 const ir::Target& target) {
  return facts_from(params, KnownArguments{params, arguments}, target.max_access_bytes);
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

namespace {

// Whether the argument is a number, a pointer or a tensor of as many modes, as the parameter is. A
// tensor does not stand for a pointer: of that the kernel knows no bounds, and so a launch may not
// judge by the tensor's which memory overlaps.
inline bool is_of_kind(const ir::ParamInfo& param, const Argument& argument) {
  if (!param.type.is_view()) return argument.rank < 0;
  if (argument.rank != param.type.rank) return false;
  return (argument.extents == nullptr) == param.unbounded;
}

// "a tensor of 2 modes"
std::string kind_of(int rank, bool has_extents) {
  if (rank < 0) return "a number";
  return has_extents ? absl::StrCat("a tensor of ", ir::counted(rank, "mode")) : "a pointer";
}

}  // namespace

std::string describe_guard(const ir::Guard& guard) {
  const int64_t value = guard.value;
  const std::string mode = absl::StrCat("in mode ", guard.fact.dim);
  const auto divided = [&](absl::string_view what) {
    if (value == 1) return absl::StrCat("has an odd ", what, " ", mode);
    return absl::StrCat("has ", what[0] == 'e' ? "an " : "a ", what, " ", mode, " that ", value,
                        " divides");
  };
  switch (guard.fact.kind) {
    case FactKind::kAlignment:
      return absl::StrCat("starts at a multiple of ", ir::counted(value, "byte"));
    case FactKind::kExtentDivisor:
      return divided("extent");
    case FactKind::kStrideDivisor:
      return divided("stride");
    case FactKind::kUnitStride:
      return absl::StrCat("is ", value == 0 ? "not " : "", "contiguous along mode ",
                          guard.fact.dim);
    case FactKind::kFits32:
      return value == 0 ? "has offsets that are negative or do not fit in 31 bits"
                        : "has offsets that are not negative and fit in 31 bits";
    case FactKind::kExtentFits32:
      return absl::StrCat("has an extent ", mode, " that ",
                          value == 0 ? "does not fit in 31 bits" : "fits in 31 bits");
    case FactKind::kNoOverlap:
      return absl::StrCat("shares ", value == 0 ? "" : "no ",
                          "memory with an argument that the kernel writes");
    case FactKind::kExtent:
      return absl::StrCat("has extent ", value, " ", mode);
  }
  check_failed(__FILE__, __LINE__, "guard.fact.kind", "unknown fact");
}

bool arguments_are_sound(absl::Span<const ir::ParamInfo> params, Arguments arguments) {
  if (params.size() != arguments.size()) return false;
  bool sound = true;
  for (size_t i = 0; i < params.size(); ++i) {
    sound &= arguments[i].sound && is_of_kind(params[i], arguments[i]);
  }
  return sound;
}

namespace {

// A number that its parameter's type does not hold.
Status refuse_number(absl::string_view kernel, absl::Span<const ir::ParamInfo> params,
                     Arguments arguments, int index) {
  const Argument& argument = arguments[index];
  const ir::Scalar scalar = params[index].type.scalar;
  return InvalidArgumentError(absl::StrCat(
      describe_argument(params, index), " of ", kernel, " is ",
      argument.misfit == Misfit::kUnsigned ? absl::StrCat(argument.bits)
                                           : absl::StrCat(static_cast<int64_t>(argument.bits)),
      ", which does not fit an ", ir::info(scalar).name,
      "; fix: make the parameter wider (Int64, UInt64), or pass another number"));
}

// Memory that was freed, or is another device's.
Status refuse_memory(absl::string_view kernel, absl::Span<const ir::ParamInfo> params,
                     Arguments arguments, int index, const Backend& device) {
  const MemoryTag& memory = *arguments[index].memory;
  const std::string what = absl::StrCat(describe_argument(params, index), " of ", kernel);
  if (memory.allocation.load() != arguments[index].allocation) {
    return InvalidArgumentError(
        absl::StrCat(what,
                     " lies in memory that was freed; fix: keep its Buffer or DlpackTensor until "
                     "the launch is complete"));
  }
  const std::string& owner = memory.device.load()->name();
  return InvalidArgumentError(absl::StrCat(
      what, " lies in memory of ", owner == device.name() ? "another device that is called " : "",
      owner, ", and the launch is on ", device.name(),
      "; fix: copy it to a Buffer of that device, or launch on a stream of the other"));
}

// A tensor whose coordinates reach beyond its memory.
Status refuse_reach(absl::string_view what, const Argument& argument) {
  if (argument.begin == 0 && argument.end == UINT64_MAX) {
    return InvalidArgumentError(absl::StrCat(
        what, " reaches further than 64 bits can count; fix: pass smaller extents or strides"));
  }
  if (argument.begin < argument.bits) {
    return InvalidArgumentError(absl::StrCat(
        what, " reaches ", argument.bits - argument.begin,
        " bytes before the start of its buffer; fix: pass strides that are not negative, or the "
        "address of its first element, TensorRef(address, extents, strides)"));
  }
  return InvalidArgumentError(absl::StrCat(
      what, " reaches ", argument.end - argument.bits, " bytes into a buffer of ",
      argument.capacity_bytes, "; fix: pass extents and strides that fit it, or allocate more"));
}

}  // namespace

Status check_arguments(absl::string_view kernel, absl::Span<const ir::ParamInfo> params,
                       Arguments arguments, const Backend& device) {
  if (arguments_are_sound(params, arguments)) return OkStatus();
  if (params.size() != arguments.size()) {
    return InvalidArgumentError(
        absl::StrCat(kernel, " takes ", ir::counted(params.size(), "argument"), " and was given ",
                     arguments.size(), "; fix: pass one for each parameter, in their order"));
  }
  for (int i = 0; i < static_cast<int>(params.size()); ++i) {
    const Argument& argument = arguments[i];
    if (argument.misfit != Misfit::kFits) return refuse_number(kernel, params, arguments, i);
    const std::string what = absl::StrCat(describe_argument(params, i), " of ", kernel);
    if (!is_of_kind(params[i], argument)) {
      const bool is_view = params[i].type.is_view();
      return InvalidArgumentError(absl::StrCat(
          what, " is ", kind_of(argument.rank, argument.extents != nullptr), "; the kernel takes ",
          kind_of(is_view ? params[i].type.rank : -1, !params[i].unbounded), "; fix: pass ",
          !is_view              ? "scalar_argument(bits)"
          : params[i].unbounded ? "pointer_argument(address)"
                                : absl::StrCat("tensor_argument() of rank ", params[i].type.rank)));
    }
    if (!params[i].type.is_view() || params[i].unbounded) continue;
    for (int dim = 0; dim < argument.rank; ++dim) {
      if (argument.extents[dim] >= 0) continue;
      return InvalidArgumentError(absl::StrCat(what, " has extent ", argument.extents[dim],
                                               " in mode ", dim,
                                               ", and extents are not negative; fix: pass 0 where "
                                               "there are no elements"));
    }
    if (argument.sound) continue;
    if (argument.memory != nullptr && !argument.memory->holds(argument.allocation, &device)) {
      return refuse_memory(kernel, params, arguments, i, device);
    }
    if (argument.bits == 0) {
      return InvalidArgumentError(absl::StrCat(
          what,
          " is a null pointer to a tensor with elements; fix: allocate it, or pass extents of 0"));
    }
    const int element_bytes = ir::bytes_of(params[i].type.scalar);
    if (argument.bits % static_cast<uint64_t>(element_bytes) != 0) {
      return InvalidArgumentError(
          absl::StrCat(what, " starts at 0x", absl::Hex(argument.bits),
                       ", which is no multiple of its elements' ", element_bytes,
                       " bytes, and a GPU cannot read them there; fix: "
                       "start at an element, or copy it to aligned memory"));
    }
    return refuse_reach(what, argument);
  }
  check_failed(__FILE__, __LINE__, "sound", "unsound arguments without a reason");
}

std::string describe_argument(absl::Span<const ir::ParamInfo> params, int index) {
  return absl::StrCat("argument ", index, " ('", params[index].name, "')");
}

}  // namespace heddle::runtime
