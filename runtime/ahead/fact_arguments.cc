#include "heddle/runtime/ahead/fact_arguments.h"

#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "heddle/runtime/ahead/warm_list.h"
#include "heddle/runtime/argument_facts.h"

namespace heddle::runtime {
namespace {

using ir::FactKind;

// Arguments lie so far from each other: an address of its own each, and a multiple of every alignment.
constexpr uint64_t kDistance = uint64_t{1} << 40;

class Given {
 public:
  explicit Given(absl::Span<const ir::Guard> facts) : facts_(facts) {}

  // What is known of a parameter; where nothing is said, that nothing is known.
  int64_t value(FactKind kind, size_t param, size_t dim = 0) const {
    const ir::Fact wanted{kind, static_cast<uint16_t>(param), static_cast<uint8_t>(dim)};
    const auto found =
        absl::c_find_if(facts_, [&](const ir::Guard& guard) { return guard.fact == wanted; });
    return found != facts_.end() ? found->value : ir::info(kind).unknown;
  }
  // A stride of which the facts hold.
  int64_t stride(size_t param, size_t dim) const {
    constexpr int64_t kOddAndNotOne = 3;
    if (value(FactKind::kUnitStride, param, dim) != 0) return 1;
    const int64_t divisor = value(FactKind::kStrideDivisor, param, dim);
    return divisor == 1 ? kOddAndNotOne : divisor;
  }

 private:
  absl::Span<const ir::Guard> facts_;
};

// Lets those that share memory with one that is written share it: with each other where two of them are written; else all of them are
// only read, and share it with one that is written and shares memory with no other such.
void overlap(absl::Span<const ir::ParamInfo> params, const Given& given,
             std::vector<Argument>& arguments) {
  std::optional<size_t> written, written_that_shares;
  std::vector<size_t> sharing;
  for (size_t i = 0; i < params.size(); ++i) {
    if (!params[i].type.is_view()) continue;
    const bool shares = given.value(FactKind::kNoOverlap, i) == 0;
    if (shares) sharing.push_back(i);
    if (params[i].type.read_only) continue;
    (shares ? written_that_shares : written) = i;
  }
  const std::optional<size_t> with = written_that_shares ? written_that_shares : written;
  if (!with) return;
  for (const size_t i : sharing) {
    arguments[i].begin = arguments[*with].begin;
    arguments[i].end = arguments[*with].end;
  }
}

// The first fact that one list has and the other has not; nullopt: they are the same.
std::optional<ir::Guard> first_missing(absl::Span<const ir::Guard> of,
                                       absl::Span<const ir::Guard> in) {
  for (const ir::Guard& guard : of) {
    if (!absl::c_linear_search(in, guard)) return guard;
  }
  return std::nullopt;
}

}  // namespace

StatusOr<FactArguments> FactArguments::of(absl::Span<const ir::ParamInfo> params,
                                          absl::Span<const ir::Guard> facts,
                                          const ir::Target& target) {
  const Given given(facts);
  FactArguments made;
  made.layouts_.resize(params.size());
  for (size_t i = 0; i < params.size(); ++i) {
    Argument& argument = made.arguments_.emplace_back();
    if (!params[i].type.is_view()) continue;
    const int64_t alignment = given.value(FactKind::kAlignment, i);
    argument.rank = params[i].type.rank;
    argument.begin = (i + 1) * kDistance;
    argument.end = argument.begin + 1;
    argument.bits = argument.begin;
    if (alignment < target.max_access_bytes) argument.bits += static_cast<uint64_t>(alignment);
    if (params[i].unbounded) continue;
    argument.fits32 = given.value(FactKind::kFits32, i) != 0;
    Layout& layout = made.layouts_[i];
    for (size_t dim = 0; dim < params[i].type.rank; ++dim) {
      const int64_t extent = given.value(FactKind::kExtent, i, dim);
      if (extent < 0) {
        return InvalidArgumentError(absl::StrCat("its facts say no extent of mode ", dim, " of ",
                                                 describe_argument(params, static_cast<int>(i))));
      }
      layout.extents.push_back(extent);
      layout.strides.push_back(given.stride(i, dim));
    }
    argument.extents = layout.extents.data();
    argument.strides = layout.strides.data();
  }
  overlap(params, given, made.arguments_);
  const std::vector<ir::Guard> have = all_facts(params, made.arguments_, target);
  for (const auto& missing : {first_missing(facts, have), first_missing(have, facts)}) {
    if (!missing) continue;
    return InvalidArgumentError(
        absl::StrCat("no arguments of the kernel have such facts: ", print_facts({*missing}),
                     " does not go with the others"));
  }
  if (have.size() != facts.size()) return InvalidArgumentError("a fact is given twice");
  return made;
}

}  // namespace heddle::runtime
