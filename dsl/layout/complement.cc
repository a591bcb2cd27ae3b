// What a layout leaves out, its inverses, and what two layouts share.
#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "heddle/dsl/internal/modes.h"

namespace heddle {
namespace {

using detail::Call;
using detail::Extents;
using detail::Mode;
using detail::Modes;

// The modes by increasing stride, where that is known; of equal ones the order is that of CuTe's
// exchange sort.
absl::InlinedVector<size_t, 8> by_stride(const Modes& modes) {
  absl::InlinedVector<size_t, 8> order(modes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t i = 0; i < order.size(); ++i) {
    for (size_t j = i + 1; j < order.size(); ++j) {
      const SymInt& first = modes[order[i]].stride.value;
      const SymInt& second = modes[order[j]].stride.value;
      if (!always_at_most(first, second) && always_at_most(second, first)) {
        std::swap(order[i], order[j]);
      }
    }
  }
  return order;
}

// Whether an order is one; if not, that is the call's mistake.
bool in_order(const Modes& modes, absl::Span<const size_t> order, Call* call) {
  for (size_t i = 1; i < order.size(); ++i) {
    const SymInt& left = modes[order[i - 1]].stride.value;
    const SymInt& right = modes[order[i]].stride.value;
    if (!always_at_most(left, right)) {
      return call->fail(absl::StrCat("the strides ", detail::text(left), " and ",
                                     detail::text(right), " have no known order"),
                        "use strides that are host numbers, or multiples of each other");
    }
  }
  return true;
}

void add(SymInt shape, SymInt stride, Modes* modes) {
  detail::TupleNode step;
  step.value = std::move(stride);
  detail::add_joined(std::move(shape), std::move(step), modes);
}

bool has_basis(const Modes& modes) {
  return std::any_of(modes.begin(), modes.end(),
                     [](const Mode& mode) { return mode.stride.is_basis(); });
}

constexpr char kPositive[] = "only layouts of positive strides have one";
constexpr char kNoOverlap[] = "let each stride be a multiple of what the smaller ones span";

bool fail_overlap(const Mode& mode, const SymInt& reached, Call* call) {
  return call->fail(absl::StrCat("it is not injective: the mode ", detail::text(mode.shape), ":",
                                 detail::text(mode.stride.value), " starts before ",
                                 detail::text(reached), ", which others have reached"),
                    kNoOverlap);
}

}  // namespace

bool detail::complement_of(const Modes& modes, const Extents& cotarget, Call* call, Modes* result) {
  SymInt covered = 1;
  if (!modes[0].stride.value.is_constant(0)) {
    if (has_basis(modes)) {
      return call->fail("it has basis strides", "take the complement of one mode");
    }
    const auto order = by_stride(modes);
    if (!in_order(modes, order, call)) return false;
    for (const size_t i : order) {
      const Mode& mode = modes[i];
      if (mode.stride.value.most() < 0) return call->fail("it has a negative stride", kPositive);
      SymInt gap = floor_div(mode.stride.value, covered);
      if (gap.least() < 1) return fail_overlap(mode, covered, call);
      add(std::move(gap), std::move(covered), result);
      covered = mode.stride.value * mode.shape;
    }
  }
  // What is covered is used up from the left.
  SymInt rest = 1, left = covered;
  for (const SymInt& extent : cotarget) {
    if (left.is_constant(0)) {
      return call->fail(absl::StrCat("a division of ", text(extent), " by 0"),
                        "let all modes have elements");
    }
    rest = rest * ceil_div(extent, left);
    if (!extent.is_constant(0)) left = ceil_div(left, extent);
  }
  add(std::move(rest), std::move(covered), result);
  if (result->empty()) result->push_back(mode_of(1, 0));
  return true;
}

Layout complement(const Layout& layout, const IntTuple& cotarget, SourceLoc loc) {
  if (!layout.ok()) return layout;
  if (!cotarget.ok()) return detail::failed_layout(cotarget);
  const auto text = [&] { return detail::call_text("complement", layout, cotarget); };
  Call call(text, loc);
  Extents extents;
  for (uint32_t i = 0; i < cotarget.node().span; ++i) {
    const detail::TupleNode& node = (&cotarget.node())[i];
    if (node.is_int()) extents.push_back(node.value);
  }
  Modes result;
  if (!detail::complement_of(detail::filtered(layout), extents, &call, &result)) {
    return call.failure();
  }
  return detail::layout_of(result, loc);
}

Layout complement(const Layout& layout, SourceLoc loc) {
  return complement(layout, cosize(layout, loc), loc);
}

namespace {

// What each mode's first index is when the domain is counted through.
absl::InlinedVector<SymInt, 8> starts(const Modes& modes) {
  absl::InlinedVector<SymInt, 8> result;
  SymInt count = 1;
  for (const Mode& mode : modes) {
    result.push_back(count);
    count = count * mode.shape;
  }
  return result;
}

// The inverse of a composed layout: what comes last is undone first.
template <class Inverse>
Layout inverse_of_composed(const Layout& layout, const Inverse& inverse, Call* call) {
  const Layout outer = inverse(layout.outer());
  const IntTuple& offset = layout.offset();
  if (!outer.ok()) return outer;
  if (layout.inner() == nullptr && offset.is_int() && offset.value().is_constant(0)) {
    return size(outer).is_constant(1) ? outer
                                      : detail::swizzled_first(outer, layout.swizzle(), call);
  }
  call->fail("only a swizzle without an offset is inverted", "invert its parts");
  return call->failure();
}

}  // namespace

Layout right_inverse(const Layout& layout, SourceLoc loc) {
  if (!layout.ok()) return layout;
  if (layout.is_composed()) {
    const auto text = [&] { return detail::call_text("right_inverse", layout); };
    Call call(text, loc);
    return inverse_of_composed(
        layout, [&](const Layout& l) { return right_inverse(l, loc); }, &call);
  }
  const Modes modes = detail::coalesced(layout);
  const auto start = starts(modes);
  const auto order = by_stride(modes);
  Modes result;
  SymInt next = 1;
  // The modes that go on where the others end: strides increase, so one pass finds them.
  for (const size_t i : order) {
    if (modes[i].stride.is_basis() || !(modes[i].stride.value == next)) continue;
    add(modes[i].shape, start[i], &result);
    next = modes[i].shape * next;
  }
  return detail::layout_of(result, loc);
}

namespace {

bool left_inverse_of(const Modes& modes, Call* call, Modes* result) {
  if (has_basis(modes)) return call->fail("it has basis strides", "invert one mode");
  const auto start = starts(modes);
  const auto order = by_stride(modes);
  if (!in_order(modes, order, call)) return false;
  SymInt covered = 1, previous = 0, reached = 0;
  for (const size_t i : order) {
    const Mode& mode = modes[i];
    if (mode.stride.value.is_constant(0)) continue;
    if (mode.stride.value.most() < 0) return call->fail("it has a negative stride", kPositive);
    if (!always_at_most(reached, mode.stride.value)) {
      return fail_overlap(mode, reached, call);
    }
    reached = mode.stride.value * mode.shape;
    SymInt gap;
    if (!divides(covered, mode.stride.value, &gap)) {
      return call->fail(
          absl::StrCat("the stride ", detail::text(mode.stride.value), " is no multiple of ",
                       detail::text(covered), ", which the smaller ones span"),
          "let each stride be a multiple of the one before");
    }
    add(gap, previous, result);
    previous = start[i];
    covered = covered * gap;
  }
  add(modes[order.back()].shape, previous, result);
  return true;
}

}  // namespace

Layout left_inverse(const Layout& layout, SourceLoc loc) {
  if (!layout.ok()) return layout;
  const auto text = [&] { return detail::call_text("left_inverse", layout); };
  Call call(text, loc);
  if (layout.is_composed()) {
    return inverse_of_composed(
        layout, [&](const Layout& l) { return left_inverse(l, loc); }, &call);
  }
  Modes result;
  left_inverse_of(detail::coalesced(layout), &call, &result);
  return call.ok() ? detail::layout_of(result, loc) : call.failure();
}

Layout nullspace(const Layout& layout, SourceLoc loc) {
  if (!layout.ok()) return layout;
  if (layout.is_composed()) return {};
  const Modes modes = detail::modes_of(layout);
  Modes result;
  SymInt count = 1;
  for (const Mode& mode : modes) {
    // Modes of one element have no stride of their own.
    const SymInt stride = mode.shape.is_constant(1) ? SymInt(0) : count;
    if (mode.stride.value.is_constant(0)) result.push_back(detail::mode_of(mode.shape, stride));
    count = count * mode.shape;
  }
  return detail::layout_of(result, loc);
}

namespace {

// The first mode of a(right_inverse(b)), if it counts from 0 by ones: how far it is sure to go.
SymInt common_run(const Layout& a, const Layout& b, SourceLoc loc) {
  const Layout inverse = right_inverse(b.outer(), loc);
  const Layout through = composition(a.outer(), inverse, loc);
  if (!through.ok()) return 1;
  const Modes modes = detail::coalesced(through);
  if (modes[0].stride.is_basis() || !modes[0].stride.value.is_constant(1)) return 1;
  return modes[0].shape.divisor();
}

SymInt swizzle_unit(const Layout& layout) {
  return layout.inner() != nullptr ? 1 : int64_t{1} << layout.swizzle().base();
}

}  // namespace

SymInt max_common_vector(const Layout& a, const Layout& b, SourceLoc loc) {
  if (!a.ok() || !b.ok()) return 1;
  const SymInt run = common_run(a, b, loc);
  const bool same_swizzle = a.is_composed() && b.is_composed() && a.inner() == nullptr &&
                            b.inner() == nullptr && a.swizzle() == b.swizzle();
  if (same_swizzle) return run;
  SymInt result = run;
  if (a.is_composed()) result = min(result, swizzle_unit(a));
  if (b.is_composed()) result = min(result, swizzle_unit(b));
  return result;
}

Layout max_common_layout(const Layout& a, const Layout& b, SourceLoc loc) {
  if (const Layout* failure = detail::first_failure({&a, &b})) return *failure;
  const SymInt run = max_common_vector(a, b, loc);
  if (run.is_constant(1)) return {};
  return composition(right_inverse(b.outer(), loc), make_layout(run), loc);
}

}  // namespace heddle
