#include "heddle/runtime/specialize.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/ir/check.h"
#include "heddle/ir/target.h"
#include "heddle/ir/wording.h"
#include "heddle/runtime/argument_facts.h"
#include "heddle/runtime/fact_value.h"

namespace heddle::runtime {
namespace {

static_assert(kAny == ir::kDynamic);

// The strides of a contiguous tensor, as far as its extents are known. The fastest mode's is 1.
std::vector<int64_t> contiguous_strides(const ArgumentSpec& spec) {
  const int rank = static_cast<int>(spec.extents.size());
  std::vector<int> modes(rank);  // from fastest to slowest
  for (int i = 0; i < rank; ++i) {
    modes[spec.stride_order.empty() ? rank - 1 - i : spec.stride_order[i]] = i;
  }
  std::vector<int64_t> strides(rank, kAny);
  int64_t stride = 1;
  for (const int mode : modes) {
    strides[mode] = stride;
    // What is not known, or what 64 bits do not hold, the launch decides.
    const bool known =
        stride != kAny && spec.extents[mode] != kAny &&
        !__builtin_mul_overflow(stride, std::max<int64_t>(1, spec.extents[mode]), &stride);
    if (!known) stride = kAny;
  }
  return strides;
}

bool is_permutation_of_modes(const std::vector<int>& order, size_t rank) {
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int>(i)) return false;
  }
  return order.size() == rank;
}

// As many extents, strides and places in the order as the argument has modes.
Status check_rank(const ArgumentSpec& spec, size_t rank, absl::string_view what) {
  if (spec.extents.size() != rank) {
    return InvalidArgumentError(absl::StrCat("the signature gives ",
                                             ir::counted(spec.extents.size(), "extent"), " for ",
                                             what, ", which has ", ir::counted(rank, "mode")));
  }
  if (!spec.given_strides.empty() && spec.given_strides.size() != rank) {
    return InvalidArgumentError(
        absl::StrCat("the signature gives ", ir::counted(spec.given_strides.size(), "stride"),
                     " for ", what, ", which has ", ir::counted(rank, "mode")));
  }
  if (!spec.stride_order.empty() && !is_permutation_of_modes(spec.stride_order, rank)) {
    return InvalidArgumentError(absl::StrCat("the stride order of ", what, " must number its ",
                                             ir::counted(rank, "mode"), " from 0 (the fastest)"));
  }
  if (!spec.names.empty() && spec.names.size() != rank) {
    return InvalidArgumentError(
        absl::StrCat("the signature gives ", ir::counted(spec.names.size(), "name"),
                     " to the extents of ", what, ", which has ", ir::counted(rank, "mode")));
  }
  return OkStatus();
}

bool is_power_of_two(int64_t number) { return number > 0 && (number & (number - 1)) == 0; }

// A name stands for what the launch decides, and is one that a message can show.
Status check_names(const ArgumentSpec& spec, absl::string_view what) {
  for (size_t mode = 0; mode < spec.names.size(); ++mode) {
    const std::string& name = spec.names[mode];
    if (name.empty() || (spec.extents[mode] == kAny && ir::is_identifier(name))) continue;
    return InvalidArgumentError(absl::StrCat(
        "the signature gives the extent of mode ", mode, " of ", what,
        spec.extents[mode] == kAny ? absl::StrCat(" the name '", name, "'")
                                   : absl::StrCat(" both a number and the name '", name, "'"),
        "; fix: give it a number, or sym() of an identifier"));
  }
  return OkStatus();
}

// What no argument can be like. The rank is right by now.
Status check_promises(const ArgumentSpec& spec, const ir::ParamInfo& param,
                      absl::string_view what) {
  const auto refuse = [&](const auto&... text) {
    return InvalidArgumentError(absl::StrCat("the signature gives ", what, " ", text...));
  };
  if (!is_power_of_two(spec.alignment)) {
    return refuse("an alignment of ", spec.alignment,
                  " bytes; fix: give a power of two, such as aligned(16)");
  }
  for (const auto& [divisor, of, function] :
       {std::tuple{spec.stride_divisor, "strides", "strides_divisible_by()"},
        std::tuple{spec.extent_divisor, "extents", "extents_divisible_by()"}}) {
    if (divisor >= 1) continue;
    return refuse(of, " that ", divisor, " divides; fix: give ", function,
                  " a number of elements from 1 up");
  }
  for (size_t mode = 0; mode < spec.extents.size(); ++mode) {
    const int64_t extent = spec.extents[mode];
    if (extent < 0 && extent != kAny) {
      return refuse("an extent of ", extent, " in mode ", mode,
                    "; fix: give 0 or more, or kAny where the launch decides");
    }
    // A tensor that is only read may repeat its elements or run backwards.
    const bool repeats = !spec.given_strides.empty() && spec.given_strides[mode] == 0;
    if (repeats && !param.type.read_only && (extent > 1 || extent == kAny)) {
      return refuse("a stride of 0 in mode ", mode,
                    ", so that several of its elements would share one place, and the kernel may "
                    "write it; fix: give another stride, or make the kernel's parameter const");
    }
  }
  return OkStatus();
}

Status check_spec(const ArgumentSpec& spec, const ir::ParamInfo& param, absl::string_view what) {
  const size_t rank = param.type.is_view() && !param.unbounded ? param.type.rank : 0;
  if (Status s = check_rank(spec, rank, what); !s.ok()) return s;
  if (Status s = check_names(spec, what); !s.ok()) return s;
  return check_promises(spec, param, what);
}

// What a signature promises of the arguments. Extents and strides that it fixes are part of the
// code and need no facts but the extent itself.
struct PromisedArguments {
  absl::Span<const ir::ParamInfo> params;
  const Signature& signature;
  const std::vector<ir::Specialization::Argument>& layouts;

  bool says(ir::Fact fact) const {
    const ir::Specialization::Argument& layout = layouts[fact.param];
    switch (fact.kind) {
      case ir::FactKind::kExtent:
        return layout.extents[fact.dim] != kAny;
      case ir::FactKind::kExtentDivisor:
        return layout.extents[fact.dim] == kAny;
      case ir::FactKind::kStrideDivisor:
        return layout.strides[fact.dim] == kAny;
      case ir::FactKind::kUnitStride:
        return false;
      case ir::FactKind::kAlignment:
      case ir::FactKind::kFits32:
      case ir::FactKind::kExtentFits32:
      case ir::FactKind::kNoOverlap:
        return true;
    }
    check_failed(__FILE__, __LINE__, "fact.kind", "unknown fact");
  }
  // Numbers that every address, extent or stride is a multiple of.
  uint64_t address(int param) const {
    const int64_t own = ir::bytes_of(params[param].type.scalar);
    return static_cast<uint64_t>(std::max(own, signature[param].alignment));
  }
  int64_t extent(int param, int dim) const {
    const int64_t fixed = layouts[param].extents[dim];
    return fixed != kAny ? fixed : signature[param].extent_divisor;
  }
  int64_t stride(int param, int) const { return signature[param].stride_divisor; }
  bool fits32(int param) const { return !signature[param].may_pass_32_bits; }
  bool extent_fits32(int param, int) const { return fits32(param); }
  bool overlaps_none(int param) const { return signature[param].overlaps_none; }
};

}  // namespace

std::string describe(const ir::KernelSource& source) {
  const ir::SourceLine place = source.place();
  if (place.file.empty()) return absl::StrCat("kernel '", source.name(), "'");
  return absl::StrCat("kernel '", source.name(), "' (", place.file, ":", place.line, ")");
}

StatusOr<ir::Specialization> specialize(const ir::KernelSource& source, const Signature& signature,
                                        const ir::Target& target) {
  const absl::Span<const ir::ParamInfo> params = source.params();
  if (signature.size() != params.size()) {
    return InvalidArgumentError(absl::StrCat("the signature of ", describe(source), " has ",
                                             ir::counted(signature.size(), "argument"),
                                             "; the kernel takes ", params.size()));
  }
  ir::Specialization specialization;
  for (int i = 0; i < static_cast<int>(params.size()); ++i) {
    const ArgumentSpec& spec = signature[i];
    const std::string what = absl::StrCat(describe_argument(params, i), " of ", describe(source));
    if (Status s = check_spec(spec, params[i], what); !s.ok()) return s;
    ir::Specialization::Argument& layout = specialization.arguments.emplace_back();
    if (params[i].type.is_view()) {
      const std::vector<int64_t> strides =
          spec.given_strides.empty() ? contiguous_strides(spec) : spec.given_strides;
      layout.extents.assign(spec.extents.begin(), spec.extents.end());
      layout.strides.assign(strides.begin(), strides.end());
      layout.names = spec.names;
    }
  }
  specialization.target = &target;
  specialization.facts =
      facts_from(params, PromisedArguments{params, signature, specialization.arguments},
                 target.max_access_bytes);
  return specialization;
}

ir::Specialization specialize(const ir::KernelSource& source, Arguments arguments,
                              const ir::Target& target) {
  ir::Specialization specialization;
  specialization.target = &target;
  specialization.facts = all_facts(source.params(), arguments, target);
  return specialization;
}

}  // namespace heddle::runtime
