// The inverses of layouts, and what two layouts share.
#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/codomain_internal.h"

namespace heddle {

using detail::Call;
using detail::Chosen;
using detail::Mode;
using detail::Modes;

namespace {

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

// Coalesced modes, and what each one's first index is when the domain is counted through. Behind
// them are those of one element that name a number of coordinates.
struct Domain {
  explicit Domain(const Layout& layout) : modes(detail::coalesced(layout)) {
    SymInt count = 1;
    for (const Mode& mode : modes) {
      starts.push_back(count);
      count = count * mode.shape;
    }
    const detail::Part part(layout);
    for (uint32_t i = 0; i < part.shape().span; ++i) {
      const detail::TupleNode& stride = (&part.stride())[i];
      if (!stride.is_basis() || !(&part.shape())[i].value.is_constant(1)) continue;
      modes.push_back({1, stride});
      starts.push_back(0);
    }
  }

  Modes modes;
  absl::InlinedVector<SymInt, 8> starts;
};

// The inverse of the chosen modes, all of which count in one number.
using InverseOf = bool (*)(const Domain& domain, Chosen chosen, Call* call, Modes* result);

// Of coordinates, that of each of their numbers.
Layout inverse(const char* name, const Layout& layout, InverseOf inverse_of, SourceLoc loc) {
  if (!layout.ok()) return layout;
  const auto text = [&] { return detail::call_text(name, layout); };
  Call call(text, loc);
  if (layout.is_composed()) {
    return inverse_of_composed(
        layout, [&](const Layout& l) { return inverse(name, l, inverse_of, loc); }, &call);
  }
  const Domain domain(layout);
  Modes result;
  if (!detail::has_basis(domain.modes)) {
    const bool done = inverse_of(domain, detail::all_of(domain.modes), &call, &result);
    return done ? detail::layout_of(result, loc) : call.failure();
  }
  detail::LayoutBuilder builder;
  detail::each_number(domain.modes, nullptr, &call, &builder, [&](const detail::Counted& at) {
    result.clear();
    if (!at.modes.empty() && !inverse_of(domain, at.modes, &call, &result)) return false;
    builder.add(result);
    return true;
  });
  return call.result(&builder);
}

// The modes that go on where the others end: strides increase, so one pass finds them.
bool right_inverse_of(const Domain& domain, Chosen chosen, Call*, Modes* result) {
  detail::sort_by_stride(domain.modes, &chosen);
  SymInt next = 1;
  for (const size_t i : chosen) {
    const Mode& mode = domain.modes[i];
    if (!(mode.stride.value == next)) continue;
    detail::add_joined(mode.shape, domain.starts[i], result);
    next = mode.shape * next;
  }
  return true;
}

bool left_inverse_of(const Domain& domain, Chosen order, Call* call, Modes* result) {
  detail::sort_by_stride(domain.modes, &order);
  if (!detail::in_order(domain.modes, order, call)) return false;
  SymInt covered = 1, previous = 0, reached = 0;
  for (const size_t i : order) {
    const Mode& mode = domain.modes[i];
    if (mode.stride.value.is_constant(0)) continue;
    if (mode.stride.value.most() < 0) {
      return call->fail("it has a negative stride", detail::kPositive);
    }
    if (!always_at_most(reached, mode.stride.value)) {
      return detail::fail_overlap(mode, reached, call);
    }
    reached = mode.stride.value * mode.shape;
    SymInt gap;
    if (!divides(covered, mode.stride.value, &gap)) {
      return call->fail(
          absl::StrCat("the stride ", detail::text(mode.stride.value), " is no multiple of ",
                       detail::text(covered), ", which the smaller ones span"),
          "let each stride be a multiple of the one before");
    }
    detail::add_joined(gap, previous, result);
    previous = domain.starts[i];
    covered = covered * gap;
  }
  detail::add_joined(domain.modes[order.back()].shape, previous, result);
  return true;
}

}  // namespace

Layout right_inverse(const Layout& layout, SourceLoc loc) {
  return inverse("right_inverse", layout, &right_inverse_of, loc);
}

Layout left_inverse(const Layout& layout, SourceLoc loc) {
  return inverse("left_inverse", layout, &left_inverse_of, loc);
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
  if (detail::has_basis(detail::modes_of(b))) return 1;  // no memory
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
