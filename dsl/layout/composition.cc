// Joining modes, and one layout after another.
#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/internal/modes.h"

namespace heddle {
namespace detail {

Modes coalesced(const Modes& modes, bool extends) {
  if (modes.empty()) return {mode_of(extends ? 2 : 1, 0)};
  Modes joined;  // from the last to the first
  Mode current = modes.back();
  if (extends && current.shape.is_constant(1)) current.shape = 2;
  for (size_t i = modes.size() - 1; i-- > 0;) {
    const Mode& next = modes[i];
    if (next.shape.is_constant(1)) continue;
    if (current.shape.is_constant(1)) {
      current = next;
      continue;
    }
    TupleNode continued = next.stride;
    continued.value = next.shape * next.stride.value;
    if (same_leaf(continued, current.stride)) {
      current = {next.shape * current.shape, next.stride};
    } else {
      joined.push_back(std::move(current));
      current = next;
    }
  }
  if (joined.empty() && current.shape.is_constant(1)) return {mode_of(1, 0)};
  joined.push_back(std::move(current));
  std::reverse(joined.begin(), joined.end());
  return joined;
}

// Enumerates the few values that decide; kFew bounds how many are looked at.
bool divides_or_exceeds(const SymInt& b, const SymInt& a) {
  constexpr int64_t kFew = 4096;
  if (divides(b, a) || always_at_most(a, b)) return true;
  if (a.is_constant()) {
    // b's values up to a: multiples of its divisor.
    const int64_t step = std::max<int64_t>(1, b.divisor());
    const int64_t most = std::min(b.most(), a.value());
    if ((most - b.least()) / step > kFew) return false;
    for (int64_t value = std::max(step, (b.least() + step - 1) / step * step); value <= most;
         value += step) {
      if (a.value() % value != 0) return false;
    }
    return true;
  }
  if (!b.is_constant() || a.most() == INT64_MAX) return false;
  const int64_t step = std::max<int64_t>(1, a.divisor());
  if ((a.most() - b.value()) / step > kFew) return false;
  for (int64_t value = (b.value() / step + 1) * step; value <= a.most(); value += step) {
    if (value % b.value() != 0) return false;
  }
  return true;
}

namespace {

// What is composed, for messages.
struct Names {
  const Layout& a;
  const Layout& b;
};

std::string name(const Names& names) {
  return absl::StrCat("composition(", names.a.to_string(), ", ", names.b.to_string(), ")");
}

// What would satisfy a divisibility between these.
std::string make_divisible(const SymInt& a, const SymInt& b) {
  if (a.is_constant() && b.is_constant()) {
    return "choose a tile whose shape and stride divide the layout's modes";
  }
  if (!a.is_constant() && !b.is_constant()) {
    return "let one be a host number, or computed from the other by a product";
  }
  return absl::StrCat("promise that one divides the other, as ?{div=",
                      a.is_constant()   ? a.value()
                      : b.is_constant() ? b.value()
                                        : 1,
                      "} or assume_divisible() do");
}

// How far into each flat mode of a the modes of b reach together.
struct Reach {
  SymInt last = 0;  // the greatest index within the mode
  int modes = 0;    // of b that move in it
};
using Reaches = absl::InlinedVector<Reach, 8>;

// One mode of b through the flat modes of a.
//
// Beyond what CuTe asserts, a mode that b leaves for the next one has to be covered exactly: else
// the result is another function than a(b(c)).
bool compose(const Modes& a, SymInt shape, const TupleNode& stride, const Names& names,
             SourceLoc loc, Reaches* reaches, LayoutBuilder* out, IntTuple* failure) {
  if (stride.value.is_constant(0)) {
    out->add(Modes{Mode{std::move(shape), stride}});
    return true;
  }
  Modes result;
  SymInt step = abs(stride.value);
  const bool backwards = signum(stride.value) < 0;
  const auto by = [&](const SymInt& times, const Mode& mode) {
    TupleNode scaled = mode.stride;
    scaled.value = (backwards ? -times : times) * scaled.value;
    return scaled;
  };
  for (size_t i = 0; i + 1 < a.size(); ++i) {
    const SymInt& extent = a[i].shape;
    if (!divides_or_exceeds(extent, step)) {
      *failure = fail(loc,
                      absl::StrCat(name(names), ": the stride ", text(step), " and mode ", i,
                                   " of the left layout, ", text(extent),
                                   " elements, do not divide one another"),
                      make_divisible(step, extent));
      return false;
    }
    const SymInt before = step;
    const SymInt next = ceil_div(extent, step);
    step = ceil_div(step, extent);
    if (next.is_constant(1) || shape.is_constant(1)) continue;
    const bool covered = divides(before, extent) || divides(extent, before);
    if (!divides_or_exceeds(next, shape) || (!covered && !always_at_most(shape, next))) {
      *failure = fail(
          loc,
          absl::StrCat(name(names), ": a mode of ", text(shape), " elements takes ", text(next),
                       " of mode ", i, " of the left layout, which do not divide it"),
          make_divisible(next, shape));
      return false;
    }
    const SymInt taken = min(next, shape);
    Reach& reach = (*reaches)[i];
    reach.last = reach.last + (taken - 1) * before;
    if (++reach.modes > 1 && !always_less(reach.last, extent)) {
      *failure = fail(loc,
                      absl::StrCat(name(names), ": the right layout's modes reach index ",
                                   text(reach.last), " of mode ", i,
                                   " of the left layout, which has ", text(extent), " elements"),
                      "let the right layout's modes stay within the left one's, without carrying");
      return false;
    }
    result.push_back({taken, by(before, a[i])});
    shape = ceil_div(shape, next);
  }
  if (result.empty() || !shape.is_constant(1)) {
    result.push_back({std::move(shape), by(step, a.back())});
  }
  out->add(result);
  return true;
}

// The layout's flat modes, or, where b's stride is a basis stride, those of the mode that it names.
bool compose_tree(const Layout& a, const Modes& flat, const TupleNode& shape,
                  const TupleNode& stride, const Names& names, SourceLoc loc, Reaches* reaches,
                  LayoutBuilder* out, IntTuple* failure) {
  if (shape.is_tuple()) {
    const size_t tuple = out->open();
    auto step = Elements(stride).begin();
    for (const TupleNode& child : Elements(shape)) {
      if (!compose_tree(a, flat, child, *step, names, loc, reaches, out, failure)) return false;
      ++step;
    }
    out->close(tuple);
    return true;
  }
  if (!stride.is_basis()) {
    return compose(flat, shape.value, stride, names, loc, reaches, out, failure);
  }
  Layout mode = a;
  for (int i = 0; i < stride.path_length; ++i) {
    if (stride.path[i] >= rank(mode)) {
      *failure = fail(loc,
                      absl::StrCat(name(names), ": the stride ", text(stride),
                                   " names a mode that the left layout lacks"),
                      "use basis strides of the left layout's profile");
      return false;
    }
    mode = get(mode, stride.path[i]);
  }
  TupleNode plain = stride;
  plain.path_length = 0;
  const Modes modes = coalesced(modes_of(mode), true);
  Reaches alone(modes.size());
  return compose(modes, shape.value, plain, names, loc, &alone, out, failure);
}

// The power of two that a number is; -1 where it is none.
int exponent_of(const SymInt& value) {
  if (!value.is_constant() || value.value() < 1) return -1;
  const auto bits = static_cast<uint64_t>(value.value());
  return (bits & (bits - 1)) == 0 ? __builtin_ctzll(bits) : -1;
}

// Whether a layout moves each bit of an index, as far as its shape goes, to a bit of its own: only
// then does it take an exclusive or to one.
bool moves_bits(const Modes& modes) {
  uint64_t taken = 0;
  for (const Mode& mode : modes) {
    const int stride = mode.stride.is_basis() ? -1 : exponent_of(mode.stride.value);
    const int extent = exponent_of(mode.shape);
    if (stride < 0 || extent < 0 || stride + extent > 62) return false;
    const uint64_t bits = ((uint64_t{1} << extent) - 1) << stride;
    if ((bits & taken) != 0) return false;
    taken |= bits;
  }
  return true;
}

}  // namespace

Layout swizzled_first(const Layout& a, const Swizzle& swizzle, const std::string& name,
                      SourceLoc loc) {
  const auto moved = [&](int64_t bit) { return exponent_of(a(bit).value()); };
  const int64_t target = swizzle.target_mask() & -swizzle.target_mask();
  const int64_t source = swizzle.source_mask() & -swizzle.source_mask();
  const int64_t all = swizzle.target_mask() | swizzle.source_mask();
  bool fits = moves_bits(coalesced(modes_of(a), false)) && always_less(all, size(a, loc));
  const int z = fits ? moved(target) : 0, y = fits ? moved(source) : 0;
  for (int i = 1; fits && i < swizzle.bits(); ++i) {
    fits = moved(target << i) == z + i && moved(source << i) == y + i;
  }
  if (!fits || std::abs(y - z) < swizzle.bits()) {
    return fail_layout(loc,
                       absl::StrCat(name, ": ", a.to_string(),
                                    " does not keep the bits together that the swizzle combines"),
                       "compose the swizzle on the left");
  }
  return make_composed_layout(Swizzle(swizzle.bits(), std::min(z, y), y - z), 0, a, loc);
}

}  // namespace detail

using detail::Elements;
using detail::LayoutBuilder;
using detail::Names;
using detail::TupleNode;

// --- Coalescing -----------------------------------------------------------------------------

Layout coalesce(const Layout& layout) {
  if (!layout.ok()) return layout;
  return layout.with_outer(detail::layout_of(detail::coalesced(detail::modes_of(layout), false)));
}

namespace {

// Coalesces below each integer of the profile, without modes of stride 0 where it `filters`.
void coalesce_by(const TupleNode& shape, const TupleNode& stride, const TupleNode* profile,
                 bool filters, LayoutBuilder* out) {
  if (profile == nullptr) return out->add(shape, stride);
  if (!profile->is_tuple()) {
    detail::Modes modes = detail::modes_of(shape, stride);
    for (detail::Mode& mode : modes) {
      if (filters && mode.stride.value.is_constant(0)) mode.shape = 1;
    }
    return out->add(detail::coalesced(modes, false));
  }
  const size_t tuple = out->open();
  auto step = Elements(stride).begin();
  auto by = Elements(*profile).begin();
  const auto end = Elements(*profile).end();
  for (const TupleNode& child : Elements(shape)) {
    const TupleNode* const next = by != end ? &*by : nullptr;
    coalesce_by(child, *step, next, filters, out);
    if (next != nullptr) ++by;
    ++step;
  }
  out->close(tuple);
}

bool fits_profile(const TupleNode& profile, const TupleNode& shape) {
  if (!profile.is_tuple()) return true;
  if (profile.rank > static_cast<uint32_t>(detail::rank_of(shape))) return false;
  auto child = Elements(shape).begin();
  for (const TupleNode& next : Elements(profile)) {
    if (!fits_profile(next, *child)) return false;
    ++child;
  }
  return true;
}

}  // namespace

namespace {

Layout coalesced_by(const char* name, const Layout& layout, const IntTuple& profile, bool filters,
                    SourceLoc loc) {
  if (!layout.ok()) return layout;
  if (!profile.ok()) return detail::failed_layout(profile);
  if (!fits_profile(profile.node(), layout.shape().node())) {
    return detail::fail_layout(
        loc,
        absl::StrCat(name, "(", layout.to_string(), ", ", profile.to_string(),
                     "): the profile has modes that the layout lacks"),
        "give at most as many modes as there are");
  }
  LayoutBuilder builder;
  coalesce_by(layout.shape().node(), layout.stride().node(), &profile.node(), filters, &builder);
  return layout.with_outer(builder.build(loc));
}

}  // namespace

Layout coalesce(const Layout& layout, const IntTuple& profile, SourceLoc loc) {
  return coalesced_by("coalesce", layout, profile, false, loc);
}
Layout filter(const Layout& layout, const IntTuple& profile, SourceLoc loc) {
  return coalesced_by("filter", layout, profile, true, loc);
}

// --- Composition ----------------------------------------------------------------------------

Layout composition(const Layout& a, const Layout& b, SourceLoc loc) {
  if (const Layout* failure = detail::first_failure({&a, &b})) return *failure;
  const Names names{a, b};
  if (b.is_composed()) {
    const IntTuple& offset = b.offset();
    if (a.is_composed() || !offset.is_int() || !offset.value().is_constant(0)) {
      return detail::fail_layout(loc, detail::name(names) + ": the right one is composed",
                                 "compose with its outer() layout, or give it the offset 0");
    }
    const Layout inner = b.inner() != nullptr
                             ? composition(a, *b.inner(), loc)
                             : detail::swizzled_first(a, b.swizzle(), detail::name(names), loc);
    if (!inner.ok()) return inner;
    if (inner.is_composed()) return inner.with_outer(composition(inner.outer(), b.outer(), loc));
    return composition(inner, b.outer(), loc);
  }
  LayoutBuilder builder;
  IntTuple failure;
  const auto flat = detail::coalesced(detail::modes_of(a), true);
  detail::Reaches reaches(flat.size());
  if (!detail::compose_tree(a, flat, b.shape().node(), b.stride().node(), names, loc, &reaches,
                            &builder, &failure)) {
    return detail::failed_layout(failure);
  }
  return a.with_outer(builder.build(loc));
}

Layout composition(const Layout& a, const Tiler& b, SourceLoc loc) {
  if (!a.ok() || b.kind() == Tiler::Kind::kUnderscore) return a;
  if (b.kind() == Tiler::Kind::kLayout) return composition(a, b.layout(), loc);
  if (b.rank() > rank(a)) {
    return detail::fail_layout(
        loc,
        absl::StrCat("composition(", a.to_string(), ", ", b.to_string(), "): the tiler has ",
                     b.rank(), " modes and the layout ", rank(a)),
        "give at most as many modes as there are");
  }
  LayoutBuilder builder;
  const size_t tuple = builder.open();
  for (int i = 0; i < b.rank(); ++i) {
    const Layout mode = composition(get(a, i).outer(), b.mode(i), loc);
    if (!mode.ok()) return mode;
    if (mode.is_composed()) return detail::fail_composed("composition", mode, loc);
    builder.add(mode);
  }
  builder.close(tuple);
  return a.with_outer(builder.build(loc));
}

}  // namespace heddle
