// What a layout leaves out.
#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/codomain_internal.h"

namespace heddle {

using detail::Call;
using detail::Extents;
using detail::Mode;
using detail::Modes;
using detail::TupleNode;

bool detail::complement_of(const Modes& modes, const Extents& cotarget, Call* call, Modes* result) {
  SymInt covered = 1;
  if (!modes[0].stride.value.is_constant(0)) {
    if (has_basis(modes)) {
      return call->fail("it has basis strides", "take the complement of one mode");
    }
    Chosen order = all_of(modes);
    sort_by_stride(modes, &order);
    if (!in_order(modes, order, call)) return false;
    for (const size_t i : order) {
      const Mode& mode = modes[i];
      if (mode.stride.value.most() < 0) return call->fail("it has a negative stride", kPositive);
      SymInt gap = floor_div(mode.stride.value, covered);
      if (gap.least() < 1) return fail_overlap(mode, covered, call);
      add_joined(std::move(gap), std::move(covered), result);
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
  add_joined(std::move(rest), std::move(covered), result);
  if (result->empty()) result->push_back(mode_of(1, 0));
  return true;
}

bool detail::complement_of_coordinates(const Modes& modes, const IntTuple& cotarget, Call* call,
                                       LayoutBuilder* out) {
  return each_number(modes, &cotarget, call, out, [&](const Counted& at) {
    Modes counted, rest;
    for (const size_t i : at.modes)
      counted.push_back(mode_of(modes[i].shape, modes[i].stride.value));
    if (counted.empty()) counted.push_back(mode_of(1, 0));
    if (!complement_of(counted, extents_of(*at.extents), call, &rest)) return false;
    for (Mode& mode : rest) {
      if (mode.stride.value.is_constant(0)) continue;
      mode.stride.path_length = at.unit.path_length;
      std::copy(std::begin(at.unit.path), std::end(at.unit.path), mode.stride.path);
    }
    out->add(rest);
    return true;
  });
}

detail::Extents detail::extents_of(const TupleNode& shape) {
  Extents extents;
  for (uint32_t i = 0; i < shape.span; ++i) {
    if ((&shape)[i].is_int()) extents.push_back((&shape)[i].value);
  }
  return extents;
}

Layout complement(const Layout& layout, const IntTuple& cotarget, SourceLoc loc) {
  if (!layout.ok()) return layout;
  if (!cotarget.ok()) return detail::failed_layout(cotarget);
  const auto text = [&] { return detail::call_text("complement", layout, cotarget); };
  Call call(text, loc);
  const Modes modes = detail::filtered(layout);
  if (detail::has_basis(modes)) {
    detail::LayoutBuilder builder;
    detail::complement_of_coordinates(modes, cotarget, &call, &builder);
    return call.result(&builder);
  }
  Modes result;
  if (!detail::complement_of(modes, detail::extents_of(cotarget.node()), &call, &result)) {
    return call.failure();
  }
  return detail::layout_of(result, loc);
}

Layout complement(const Layout& layout, SourceLoc loc) {
  return complement(layout, coshape(layout, loc), loc);
}

}  // namespace heddle
