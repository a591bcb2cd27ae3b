#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/codomain_internal.h"

namespace heddle::detail {

Chosen all_of(const Modes& modes) {
  Chosen all(modes.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

void sort_by_stride(const Modes& modes, Chosen* chosen) {
  const absl::Span<size_t> order = absl::MakeSpan(*chosen);
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = i + 1; j < order.size(); ++j) {
      const SymInt& first = modes[order[i]].stride.value;
      const SymInt& second = modes[order[j]].stride.value;
      if (!always_at_most(first, second) && always_at_most(second, first)) {
        std::swap(order[i], order[j]);
      }
    }
  }
}

bool in_order(const Modes& modes, absl::Span<const size_t> order, Call* call) {
  for (size_t i = 1; i < order.size(); ++i) {
    const SymInt& left = modes[order[i - 1]].stride.value;
    const SymInt& right = modes[order[i]].stride.value;
    if (!always_at_most(left, right)) {
      return call->fail(
          absl::StrCat("the strides ", text(left), " and ", text(right), " have no known order"),
          "use strides that are host numbers, or multiples of each other");
    }
  }
  return true;
}

bool fail_overlap(const Mode& mode, const SymInt& reached, Call* call) {
  return call->fail(
      absl::StrCat("it is not injective: the mode ", text(mode.shape), ":", text(mode.stride.value),
                   " starts before ", text(reached), ", which others have reached"),
      "let each stride be a multiple of what the smaller ones span");
}

bool has_basis(const Modes& modes) {
  return std::any_of(modes.begin(), modes.end(),
                     [](const Mode& mode) { return mode.stride.is_basis(); });
}

namespace {

class Numbers {
 public:
  Numbers(const Modes& modes, Call* call, LayoutBuilder* out,
          absl::FunctionRef<bool(const Counted&)> add)
      : modes_(modes), call_(call), out_(out), add_(add) {}

  bool visit(Counted at) {
    const int depth = at.unit.path_length;
    const auto ends = [&](size_t i) { return modes_[i].stride.path_length == depth; };
    // A number that modes count in may be a tuple in the shape; where none do, all of that stays.
    const bool deeper = at.modes.empty() && at.extents != nullptr && at.extents->is_tuple() &&
                        depth < TupleNode::kMaxPath;
    if (depth > 0 && !deeper && std::all_of(at.modes.begin(), at.modes.end(), ends)) {
      return add_moving(at);
    }
    const auto above = std::find_if(at.modes.begin(), at.modes.end(), ends);
    if (above != at.modes.end()) return fail_nested(modes_[*above].stride, at.modes);
    int numbers = at.extents == nullptr ? 0 : rank_of(*at.extents);
    for (const size_t i : at.modes) {
      const TupleNode& stride = modes_[i].stride;
      if (at.extents != nullptr && stride.path[depth] >= numbers) return fail_absent(stride);
      numbers = std::max(numbers, stride.path[depth] + 1);
    }
    const size_t tuple = out_->open();
    for (int number = 0; number < numbers; ++number) {
      Counted next{.modes = {}, .unit = at.unit, .extents = nullptr};
      for (const size_t i : at.modes) {
        if (modes_[i].stride.path[depth] == number) next.modes.push_back(i);
      }
      next.unit.path[next.unit.path_length++] = static_cast<uint8_t>(number);
      if (at.extents != nullptr) next.extents = &element(*at.extents, number);
      if (!visit(std::move(next))) return false;
    }
    out_->close(tuple);
    return true;
  }

 private:
  // Those that do count there.
  bool add_moving(Counted at) {
    const auto still = [&](size_t i) {
      return modes_[i].stride.value.is_constant(0) || modes_[i].shape.is_constant(1);
    };
    at.modes.erase(std::remove_if(at.modes.begin(), at.modes.end(), still), at.modes.end());
    return add_(at);
  }
  bool fail_nested(const TupleNode& stride, const Chosen& others) {
    const auto below = std::find_if(others.begin(), others.end(), [&](size_t i) {
      return modes_[i].stride.path_length > stride.path_length;
    });
    return call_->fail(absl::StrCat("the stride ", text(stride), " counts in a number, and ",
                                    text(modes_[*below].stride), " in a part of it"),
                       "let a number of the coordinate be one, or a tuple");
  }
  bool fail_absent(const TupleNode& stride) {
    return call_->fail(
        absl::StrCat("the stride ", text(stride), " names a mode that the shape lacks"),
        "use basis strides of the shape's profile");
  }

  const Modes& modes_;
  Call* const call_;
  LayoutBuilder* const out_;
  const absl::FunctionRef<bool(const Counted&)> add_;
};

}  // namespace

bool each_number(const Modes& modes, const IntTuple* shape, Call* call, LayoutBuilder* out,
                 absl::FunctionRef<bool(const Counted&)> add) {
  Counted all{.modes = {}, .unit = {}, .extents = shape == nullptr ? nullptr : &shape->node()};
  all.unit.value = 1;
  for (size_t i = 0; i < modes.size(); ++i) {
    const TupleNode& stride = modes[i].stride;
    if (stride.is_basis()) {
      all.modes.push_back(i);
    } else if (!stride.value.is_constant(0) && !modes[i].shape.is_constant(1)) {
      return call->fail("it has plain strides beside basis strides",
                        "let all strides be one or the other");
    }
  }
  return Numbers(modes, call, out, add).visit(std::move(all));
}

}  // namespace heddle::detail
