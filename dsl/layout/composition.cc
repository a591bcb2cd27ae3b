// Joining modes, and one layout after another.
#include <algorithm>
#include <cstdlib>
#include <optional>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/modes_internal.h"

namespace heddle {
namespace detail {

void add_joined(SymInt shape, TupleNode stride, Modes* modes) {
  if (shape.is_constant(1)) return;
  if (!modes->empty()) {
    Mode& last = modes->back();
    if (same_path(last.stride, stride) && last.shape * last.stride.value == stride.value) {
      last.shape = last.shape * shape;
      return;
    }
  }
  modes->push_back({std::move(shape), std::move(stride)});
}

namespace {

template <class Visit>
void for_each_integer(Part part, const Visit& visit) {
  const TupleNode* const shape = &part.shape();
  const TupleNode* const stride = &part.stride();
  for (uint32_t i = 0; i < shape->span; ++i) {
    if (shape[i].is_int()) visit(shape[i].value, stride[i]);
  }
}

}  // namespace

Modes modes_of(Part part) {
  Modes modes;
  for_each_integer(part, [&](const SymInt& shape, const TupleNode& stride) {
    modes.push_back({shape, stride});
  });
  return modes;
}

Modes coalesced(Part part) {
  Modes modes;
  for_each_integer(part, [&](const SymInt& shape, const TupleNode& stride) {
    add_joined(shape, stride, &modes);
  });
  if (modes.empty()) modes.push_back(mode_of(1, 0));
  return modes;
}

Modes filtered(Part part) {
  Modes modes;
  for_each_integer(part, [&](const SymInt& shape, const TupleNode& stride) {
    if (!stride.value.is_constant(0)) add_joined(shape, stride, &modes);
  });
  if (modes.empty()) modes.push_back(mode_of(1, 0));
  return modes;
}

Modes unbounded(Part part) {
  Modes modes;
  const TupleNode* last = nullptr;
  for_each_integer(part, [&](const SymInt& shape, const TupleNode& stride) {
    add_joined(shape, stride, &modes);
    last = shape.is_constant(1) ? &stride : nullptr;
  });
  if (last != nullptr) add_joined(2, *last, &modes);
  if (modes.empty()) modes.push_back(mode_of(2, 0));
  return modes;
}

// Enumerates the few values that decide; kFew bounds how many are looked at.
bool divides_or_exceeds(const SymInt& b, const SymInt& a) {
  constexpr int64_t kFew = 4096;
  if (divides(b, a) || always_at_most(a, b)) return true;
  if (b.most() < 1) return false;
  // holds() for all multiples of `step` behind `from`, up to `to`; both are not negative.
  const auto always = [](int64_t from, int64_t to, int64_t step, const auto& holds) {
    if (to > from && (to - from) / step > kFew) return false;
    for (int64_t value = from / step * step; value <= to - step;) {
      value += step;
      if (!holds(value)) return false;
    }
    return true;
  };
  if (a.is_constant()) {
    // b's values up to a: multiples of its divisor.
    const int64_t least = std::max<int64_t>(1, b.least());
    const int64_t most = std::max<int64_t>(0, std::min(b.most(), a.value()));
    return always(least - 1, most, std::max<int64_t>(1, b.divisor()),
                  [&](int64_t value) { return a.value() % value == 0; });
  }
  if (!b.is_constant() || a.most() == INT64_MAX) return false;
  return always(b.value(), std::max<int64_t>(0, a.most()), std::max<int64_t>(1, a.divisor()),
                [&](int64_t value) { return value % b.value() == 0; });
}

namespace {

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

}  // namespace

Composer::Composer(Part a, const char* left, const char* right, Call* call, const char* otherwise)
    : a_(a), whole_(a), left_(left), right_(right), call_(call), otherwise_(otherwise) {}

// One mode through flat modes.
//
// Beyond what CuTe asserts, a mode that is left for the next one has to be covered exactly: else
// the result is another function than a(b(c)).
bool Composer::add_through(Way* way, SymInt shape, const TupleNode& stride, LayoutBuilder* out) {
  const Modes& flat = way->flat;
  if (stride.value.is_constant(0)) {
    out->add(Mode{std::move(shape), stride});
    return true;
  }
  Modes result;
  const bool backwards = signum(stride.value) < 0;
  SymInt step = backwards ? -stride.value : stride.value;
  const auto by = [&](const SymInt& times, const Mode& mode) {
    TupleNode scaled = mode.stride;
    scaled.value = (backwards ? -times : times) * scaled.value;
    return scaled;
  };
  for (size_t i = 0; i + 1 < flat.size(); ++i) {
    const SymInt& extent = flat[i].shape;
    if (!divides_or_exceeds(extent, step)) {
      return call_->fail(absl::StrCat("the stride ", text(step), " and mode ", i, " of ", left_,
                                      ", ", text(extent), " elements, do not divide one another"),
                         make_divisible(step, extent) + otherwise_);
    }
    const SymInt before = step;
    const SymInt next = ceil_div(extent, step);
    step = ceil_div(step, extent);
    if (next.is_constant(1) || shape.is_constant(1)) continue;
    const bool covered = divides(before, extent) || divides(extent, before);
    if (!divides_or_exceeds(next, shape) || (!covered && !always_at_most(shape, next))) {
      return call_->fail(absl::StrCat("a mode of ", text(shape), " elements takes ", text(next),
                                      " of mode ", i, " of ", left_, ", which do not divide it"),
                         make_divisible(next, shape) + otherwise_);
    }
    const SymInt taken = min(next, shape);
    Reach& reach = way->reaches[i];
    reach.last = reach.last + (taken - 1) * before;
    if (++reach.modes > 1 && !always_less(reach.last, extent)) {
      return call_->fail(
          absl::StrCat(right_, "'s modes reach index ", text(reach.last), " of mode ", i, " of ",
                       left_, ", which has ", text(extent), " elements"),
          absl::StrCat("let ", right_, "'s modes stay within ", left_, "'s, without carrying"));
    }
    shape = ceil_div(shape, next);
    result.push_back({taken, by(before, flat[i])});
  }
  if (result.empty() || !shape.is_constant(1)) {
    result.push_back({std::move(shape), by(step, flat.back())});
  }
  out->add(result);
  return true;
}

Composer::Way* Composer::way_of(const TupleNode& stride) {
  for (auto& [path, way] : named_) {
    if (same_path(path, stride)) return &way;
  }
  Part named = a_;
  for (int i = 0; i < stride.path_length; ++i) {
    if (stride.path[i] >= named.rank()) {
      call_->fail(absl::StrCat("the stride ", text(stride), " names a mode that ", left_, " lacks"),
                  absl::StrCat("use basis strides of ", left_, "'s profile"));
      return nullptr;
    }
    named = named.mode(stride.path[i]);
  }
  named_.emplace_back(stride, Way(named));
  return &named_.back().second;
}

bool Composer::add(const SymInt& shape, const TupleNode& stride, LayoutBuilder* out) {
  if (!stride.is_basis()) return add_through(&whole_, shape, stride, out);
  Way* const way = way_of(stride);
  if (way == nullptr) return false;
  TupleNode plain = stride;
  plain.path_length = 0;
  return add_through(way, shape, plain, out);
}

bool Composer::add(Part b, LayoutBuilder* out) {
  if (!b.is_tuple()) return add(b.shape().value, b.stride(), out);
  const size_t tuple = out->open();
  bool done = true;
  b.for_each([&](Part mode) { done = done && add(mode, out); });
  out->close(tuple);
  return done;
}

bool Composer::add(const Modes& modes, LayoutBuilder* out) {
  if (modes.size() == 1) return add(modes[0].shape, modes[0].stride, out);
  const size_t tuple = out->open();
  for (const Mode& mode : modes) {
    if (!add(mode.shape, mode.stride, out)) return false;
  }
  out->close(tuple);
  return true;
}

namespace {

// Indices have at most so many bits here.
constexpr int kMostBits = 62;

// The power of two that a number is; -1 where it is none.
int exponent_of(const SymInt& value) {
  if (!value.is_constant() || value.value() < 1) return -1;
  const auto bits = static_cast<uint64_t>(value.value());
  return (bits & (bits - 1)) == 0 ? __builtin_ctzll(bits) : -1;
}

// Where a layout takes each bit of an index to, where it takes each to a bit of its own: only then
// does it take an exclusive or to one.
struct MovedBits {
  absl::InlinedVector<int, 16> positions;  // as many as its size has
  uint64_t image = 0;

  bool has(int bit) const { return bit < static_cast<int>(positions.size()); }
  // Beyond the shape the last mode goes on.
  int of(int bit) const {
    if (has(bit) || positions.empty()) return positions.empty() ? bit : positions[bit];
    return positions.back() + 1 + bit - static_cast<int>(positions.size());
  }
};

std::optional<MovedBits> moved_bits(const Modes& modes) {
  MovedBits moved;
  for (const Mode& mode : modes) {
    const int extent = exponent_of(mode.shape);
    if (extent == 0) continue;
    const int stride = mode.stride.is_basis() ? -1 : exponent_of(mode.stride.value);
    if (stride < 0 || extent < 0 || stride + extent > kMostBits) return std::nullopt;
    for (int bit = stride; bit < stride + extent; ++bit) {
      if ((moved.image >> bit & 1) != 0) return std::nullopt;
      moved.image |= uint64_t{1} << bit;
      moved.positions.push_back(bit);
    }
  }
  return moved;
}

// The swizzle of what the layout gives that does what this one does to its index.
std::optional<Swizzle> moved_swizzle(const Modes& modes, const Swizzle& swizzle) {
  const auto moved = moved_bits(modes);
  if (!moved) return std::nullopt;
  const int low = swizzle.base(), high = low + std::abs(swizzle.shift());
  const int target = swizzle.shift() < 0 ? high : low, source = swizzle.shift() < 0 ? low : high;
  const int to = moved->of(target), from = moved->of(source);
  if (std::max(to, from) + swizzle.bits() > kMostBits) return std::nullopt;
  for (int i = 0; i < swizzle.bits(); ++i) {
    // A bit that no index has changes nothing, before and after.
    const bool fits = moved->has(source + i)
                          ? moved->has(target + i) && moved->of(target + i) == to + i &&
                                moved->of(source + i) == from + i
                          : (moved->image >> (from + i) & 1) == 0;
    if (!fits) return std::nullopt;
  }
  if (std::abs(from - to) < swizzle.bits()) return std::nullopt;
  return Swizzle(swizzle.bits(), std::min(to, from), from - to);
}

}  // namespace

Layout swizzled_first(const Layout& a, const Swizzle& swizzle, Call* call) {
  if (const auto moved = moved_swizzle(coalesced(a), swizzle)) {
    return make_composed_layout(*moved, 0, a, call->loc());
  }
  call->fail(
      absl::StrCat(detail::text(a), " does not keep the bits together that the swizzle combines"),
      "compose the swizzle on the left");
  return call->failure();
}

}  // namespace detail

using detail::Call;
using detail::Composer;
using detail::Elements;
using detail::LayoutBuilder;
using detail::Part;
using detail::TupleNode;

// --- Coalescing -----------------------------------------------------------------------------

Layout coalesce(const Layout& layout) {
  if (!layout.ok()) return layout;
  return layout.with_outer(detail::layout_of(detail::coalesced(layout)));
}

namespace {

// Coalesces below each integer of the profile, without modes of stride 0 where it `filters`.
void coalesce_by(Part part, const TupleNode& profile, bool filters, LayoutBuilder* out) {
  if (!profile.is_tuple()) {
    return out->add(filters ? detail::filtered(part) : detail::coalesced(part));
  }
  const size_t tuple = out->open();
  auto by = Elements(profile).begin();
  const auto end = Elements(profile).end();
  part.for_each([&](Part mode) {
    if (by != end) {
      coalesce_by(mode, *by, filters, out);
      ++by;
    } else {
      out->add(mode);
    }
  });
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

Layout coalesced_by(const char* name, const Layout& layout, const IntTuple& profile, bool filters,
                    SourceLoc loc) {
  if (!layout.ok()) return layout;
  if (!profile.ok()) return detail::failed_layout(profile);
  if (!fits_profile(profile.node(), layout.shape().node())) {
    return detail::fail_layout(
        loc,
        absl::StrCat(name, "(", detail::text(layout), ", ", detail::text(profile),
                     "): the profile has modes that the layout lacks"),
        "give at most as many modes as there are");
  }
  LayoutBuilder builder;
  coalesce_by(layout, profile.node(), filters, &builder);
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

namespace {

constexpr char kLeft[] = "the left layout";
constexpr char kRight[] = "the right layout";

// Whether all indices of a layout are known to be from 0 to below a number.
bool stays_within(const Layout& layout, const SymInt& end) {
  for (const detail::Mode& mode : detail::modes_of(layout)) {
    if (mode.stride.is_basis() || mode.stride.value.least() < 0) return false;
  }
  return always_at_most(cosize(layout), end);
}

// a's prefix is left to the caller where b is not composed.
Layout compose(const Layout& a, const Layout& b, Call* call) {
  if (!b.is_composed()) {
    LayoutBuilder builder;
    Composer(a, kLeft, kRight, call).add(b, &builder);
    return a.with_outer(call->result(&builder));
  }
  const IntTuple& offset = b.offset();
  if (a.is_composed() || !offset.is_int() || !offset.value().is_constant(0)) {
    call->fail("the right one is composed",
               "compose with its outer() layout, or give it the offset 0");
    return call->failure();
  }
  // Bits beyond a's shape may run into those of its other modes.
  const SymInt elements = size(a, call->loc());
  if (b.inner() == nullptr && !stays_within(b.outer(), elements)) {
    const std::string right = detail::text(b.outer()) + ", which is swizzled,";
    call->fail(absl::StrCat(right, " is not sure to stay within the left layout's ",
                            detail::text(elements), " elements"),
               "compose with a larger layout, or a smaller one on the right");
    return call->failure();
  }
  const Layout inner = b.inner() != nullptr ? compose(a, *b.inner(), call)
                                            : detail::swizzled_first(a, b.swizzle(), call);
  if (!inner.ok()) return inner;
  if (inner.is_composed()) return inner.with_outer(compose(inner.outer(), b.outer(), call));
  return compose(inner, b.outer(), call);
}

// A number as a tiler has the stride 1, for a single element too, as in CuTe.
Layout tile_of(const Tiler& tiler) {
  return tiler.is_extent() ? Layout(tiler.layout().shape(), 1) : tiler.layout();
}

// Mode by mode as the tiler says; false after a mistake.
bool compose_by(Part a, const Tiler& b, Call* call, LayoutBuilder* out) {
  if (b.kind() == Tiler::Kind::kUnderscore) {
    out->add(a);
    return true;
  }
  if (b.kind() == Tiler::Kind::kLayout) {
    if (!b.layout().ok()) return call->fail(b.layout().shape());
    if (!b.layout().is_composed()) return Composer(a, kLeft, kRight, call).add(tile_of(b), out);
    const Layout mode = compose(a.layout(), b.layout(), call);
    if (!mode.ok()) return false;
    if (mode.is_composed()) return call->fail_composed(mode);
    out->add(mode);
    return true;
  }
  if (b.rank() > a.rank()) return call->fail_rank(b, a);
  const size_t tuple = out->open();
  for (int i = 0; i < b.rank(); ++i) {
    if (!compose_by(a.mode(i), b.mode(i), call, out)) return false;
  }
  out->close(tuple);
  return true;
}

}  // namespace

Layout composition(const Layout& a, const Layout& b, SourceLoc loc) {
  if (const Layout* failure = detail::first_failure({&a, &b})) return *failure;
  const auto text = [&] { return detail::call_text("composition", a, b); };
  Call call(text, loc);
  return compose(a, b, &call);
}

Layout detail::swizzled_indices(const Layout& a, const Swizzle& b, SourceLoc loc) {
  if (!a.ok()) return a;
  if (!b.ok()) return failed_layout(TupleBuilder::failed(b.error()));
  if (b.bits() == 0) return a;
  const auto text = [&] {
    return absl::StrCat("composition(", detail::text(a), ", ", b.to_string(), ")");
  };
  Call call(text, loc);
  if (!a.is_composed()) return swizzled_first(a, b, &call);
  call.fail_composed(a);
  return call.failure();
}

Layout composition(const Layout& a, const Tiler& b, SourceLoc loc) {
  if (b.kind() == Tiler::Kind::kLayout) return composition(a, tile_of(b), loc);
  if (!a.ok()) return a;
  const auto text = [&] { return detail::call_text("composition", a, b); };
  Call call(text, loc);
  LayoutBuilder builder;
  compose_by(a, b, &call, &builder);
  return a.with_outer(call.result(&builder));
}

}  // namespace heddle
