// Layouts made larger, to whole tiles. Strides play no part: whatever has the same shape is made
// the same.
#include "heddle/dsl/layout/codomain_internal.h"

namespace heddle {
namespace {

using detail::Call;
using detail::LayoutBuilder;
using detail::Modes;
using detail::Part;
using detail::TupleNode;

SymInt least_common_multiple(const SymInt& a, const SymInt& b) {
  SymInt part;
  return divides(gcd(a, b), a, &part) ? part * b : a * b;
}

class Cover {
 public:
  Cover(const Layout& layout, Call* call) : call_(call) { builder_.add(layout); }

  // Rounds up the part at a node for a tiler; false after a mistake.
  bool round_up(size_t at, const Tiler& tiler) {
    if (tiler.kind() == Tiler::Kind::kUnderscore) return true;
    if (tiler.kind() == Tiler::Kind::kLayout) return round_up(at, tiler.layout());
    const Part part(shapes()[at], strides()[at]);
    if (tiler.rank() > part.rank()) return call_->fail_rank(tiler, part);
    for (int mode = 0; mode < tiler.rank(); ++mode) {
      if (!round_up(mode_of(at, mode), tiler.mode(mode))) return false;
    }
    return true;
  }

  Layout result() { return call_->result(&builder_); }

 private:
  absl::Span<TupleNode> shapes() { return builder_.shapes(); }
  absl::Span<const TupleNode> strides() { return builder_.strides(); }
  size_t mode_of(size_t at, int mode) {
    return static_cast<size_t>(&detail::element(shapes()[at], mode) - shapes().data());
  }

  bool round_up(size_t at, const Layout& tile) {
    if (!tile.ok()) return call_->fail(tile.shape());
    if (tile.is_composed()) return call_->fail_composed(tile);
    const Modes modes = detail::modes_of(tile);
    if (!detail::has_basis(modes)) {
      round_up(at, modes, detail::all_of(modes));
      return true;
    }
    LayoutBuilder unused;
    const IntTuple shape = detail::TupleBuilder::build(shapes()[at]);
    return detail::each_number(modes, &shape, call_, &unused, [&](const detail::Counted& counted) {
      size_t named = at;
      for (int i = 0; i < counted.unit.path_length; ++i) {
        named = mode_of(named, counted.unit.path[i]);
      }
      round_up(named, modes, counted.modes);
      unused.add(detail::mode_of(1, 0));
      return true;
    });
  }

  // All but the last one, which goes on whatever its extent.
  void round_up(size_t at, const Modes& tile, const detail::Chosen& chosen) {
    absl::InlinedVector<SymInt, 8> ends;
    for (const size_t i : chosen) {
      if (tile[i].stride.value.is_constant(0) || tile[i].shape.is_constant(1)) continue;
      ends.push_back(tile[i].stride.value);
      ends.push_back(tile[i].stride.value * tile[i].shape);
    }
    SymInt before = 1;
    const absl::Span<TupleNode> part = shapes().subspan(at, shapes()[at].span);
    for (TupleNode& extent : part) {
      if (!extent.is_int() || &extent == &part.back()) continue;
      extent.value = rounded_up(extent.value, before, ends);
      before = before * extent.value;
    }
  }

  // The extent of a mode with so many indices before it that what a tile counts by, and through,
  // divides or is a multiple of what it ends with.
  static SymInt rounded_up(const SymInt& extent, const SymInt& before,
                           absl::Span<const SymInt> ends) {
    SymInt unit = 1, result = extent;
    // A larger unit may not suit an end that was looked at before.
    for (size_t pass = 0; pass < ends.size(); ++pass) {
      for (const SymInt& end : ends) {
        if (divides(end, before * result) || divides(before * result, end)) continue;
        SymInt step = end;
        divides(gcd(end, before), end, &step);
        unit = least_common_multiple(unit, step);
        result = ceil_div(extent, unit) * unit;
      }
    }
    return result;
  }

  Call* const call_;
  LayoutBuilder builder_;
};

}  // namespace

Layout cover(const Layout& layout, const Tiler& tiler, SourceLoc loc) {
  if (!layout.ok()) return layout;
  const auto text = [&] { return detail::call_text("cover", layout, tiler); };
  Call call(text, loc);
  Cover covered(layout, &call);
  covered.round_up(0, tiler);
  return layout.with_outer(covered.result());
}

}  // namespace heddle
