#include "heddle/dsl/layout/layout.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/layout/polynomial_internal.h"

namespace heddle {
namespace detail {

struct LayoutPrefix {
  Swizzle swizzle;
  std::unique_ptr<const Layout> inner;  // nullptr: the swizzle
  IntTuple offset;
  mutable std::atomic<int> uses{0};
};

void LayoutBuilder::add(const Modes& modes) {
  if (modes.empty()) return add(mode_of(1, 0));
  if (modes.size() == 1) return add(modes[0]);
  const size_t tuple = open();
  for (const Mode& mode : modes) add(mode);
  close(tuple);
}

Layout layout_of(const Modes& modes, SourceLoc loc) {
  LayoutBuilder builder;
  builder.add(modes);
  return builder.build(loc);
}

Layout moved_layout(const Layout& composed, const IntTuple& by, const Layout& outer,
                    SourceLoc loc) {
  const IntTuple offset = composed.offset() + by;
  return composed.inner() != nullptr ? make_composed_layout(*composed.inner(), offset, outer, loc)
                                     : make_composed_layout(composed.swizzle(), offset, outer, loc);
}

Layout failed_layout(const IntTuple& failure) { return Layout(failure, failure); }

Layout fail_layout(SourceLoc loc, std::string what, const std::string& fix) {
  return failed_layout(fail(loc, std::move(what), fix));
}

bool Call::fail(const std::string& what, const std::string& fix) {
  return fail(detail::fail(loc_, absl::StrCat(text_(), ": ", what), fix));
}

bool Call::fail(const IntTuple& failure) {
  if (failure_.ok()) failure_ = failure;
  return false;
}

bool Call::fail_composed(const Layout& layout) {
  return fail(
      absl::StrCat(detail::text(layout), " is composed, which cannot be a part of another layout"),
      "take its outer() layout, and compose the result");
}

bool Call::fail_rank(const Tiler& tiler, Part layout) {
  return fail(absl::StrCat("the tiler has ", tiler.rank(), " modes and the layout ", layout.rank()),
              "give at most as many modes as there are");
}

Layout Call::result(LayoutBuilder* builder) const {
  return ok() ? builder->build(loc_) : failure();
}

}  // namespace detail

using detail::Elements;
using detail::first_failure;
using detail::LayoutBuilder;
using detail::Mode;
using detail::Modes;
using detail::TupleNode;

// --- Swizzles -------------------------------------------------------------------------------

namespace {

constexpr char kNoSwizzle[] = " is no swizzle";
constexpr char kSwizzles[] =
    "bits and base are not negative, |shift| >= bits, and all lies below bit 62";

}  // namespace

Swizzle::Swizzle(int bits, int base, int shift, SourceLoc loc)
    : bits_(bits), base_(base), shift_(shift) {
  if (!ok()) detail::fail(loc, absl::StrCat(to_string(), kNoSwizzle), kSwizzles);
}

std::string Swizzle::error() const {
  return ok() ? std::string() : absl::StrCat(to_string(), kNoSwizzle, "; ", kSwizzles);
}

int64_t Swizzle::operator()(int64_t index) const {
  if (!ok()) return index;
  const int64_t source = index & source_mask();
  return index ^ (shift_ < 0 ? source << -shift_ : source >> shift_);
}

std::string Swizzle::to_string() const {
  return absl::StrCat("S<", bits_, ",", base_, ",", shift_, ">");
}

// --- Layout ---------------------------------------------------------------------------------

void Layout::keep() const { ++prefix_->uses; }
void Layout::drop() const {
  if (prefix_->uses == 1 || --prefix_->uses == 0) delete prefix_;
}

const IntTuple& Layout::offset() const {
  static const IntTuple& none = *new IntTuple(0);
  return prefix_ == nullptr ? none : prefix_->offset;
}

Swizzle Layout::swizzle() const { return prefix_ == nullptr ? Swizzle() : prefix_->swizzle; }

const Layout* Layout::inner() const { return prefix_ == nullptr ? nullptr : prefix_->inner.get(); }

Layout Layout::with_outer(const Layout& outer) const {
  if (!outer.ok()) return outer;
  Layout result(outer.shape_, outer.stride_);
  result.prefix_ = prefix_;
  if (prefix_ != nullptr) keep();
  return result;
}

IntTuple Layout::operator()(const IntTuple& coord, SourceLoc loc) const {
  if (!ok()) return shape_;
  const IntTuple index = detail::index_of(coord, shape_, stride_, loc);
  if (prefix_ == nullptr || !index.ok()) return index;
  const IntTuple moved = prefix_->offset + index;
  if (!moved.ok()) return moved;
  if (prefix_->inner != nullptr) return (*prefix_->inner)(moved, loc);
  if (!moved.ok() || !moved.is_int() || moved.node().is_basis()) {
    return detail::fail(loc, absl::StrCat("a swizzle of ", detail::text(moved)),
                        "swizzle an integer index");
  }
  return prefix_->swizzle(moved.value());
}

std::string Layout::to_string() const { return detail::without_names(detail::text(*this)); }

bool operator==(const Layout& a, const Layout& b) {
  if (!(a.shape_ == b.shape_) || !(a.stride_ == b.stride_)) return false;
  if (a.prefix_ == b.prefix_) return true;
  if (a.prefix_ == nullptr || b.prefix_ == nullptr) return false;
  if (!(a.prefix_->offset == b.prefix_->offset)) return false;
  const Layout* x = a.inner();
  const Layout* y = b.inner();
  if ((x == nullptr) != (y == nullptr)) return false;
  return x == nullptr ? a.swizzle() == b.swizzle() : *x == *y;
}

// --- Tiler ----------------------------------------------------------------------------------

Tiler::Tiler(const IntTuple& t) {
  if (t.is_underscore()) {
    kind_ = Kind::kUnderscore;
  } else if (t.is_tuple() && t.ok()) {
    kind_ = Kind::kModes;
    modes_.reserve(static_cast<size_t>(heddle::rank(t)));
    for (const TupleNode& mode : Elements(t)) {
      modes_.emplace_back(detail::TupleBuilder::build(mode));
    }
  } else {
    is_extent_ = t.ok();
    layout_ = make_layout(t);
  }
}

bool Tiler::ok() const {
  if (kind_ == Kind::kLayout) return layout_.ok();
  return std::all_of(modes_.begin(), modes_.end(), [](const Tiler& mode) { return mode.ok(); });
}

std::string Tiler::to_string() const { return detail::without_names(detail::text(*this)); }

// --- Making ---------------------------------------------------------------------------------

Layout make_layout(const IntTuple& shape) { return Layout(shape, compact_col_major(shape)); }
Layout make_layout(const IntTuple& shape, GenRowMajor) {
  return Layout(shape, compact_row_major(shape));
}

Layout make_layout(const IntTuple& shape, const IntTuple& stride, SourceLoc loc) {
  if (const IntTuple* failure = first_failure({&shape, &stride})) {
    return detail::failed_layout(*failure);
  }
  if (!is_congruent(shape, stride)) {
    return detail::fail_layout(loc,
                               absl::StrCat("shape ", detail::text(shape), " and stride ",
                                            detail::text(stride), " differ in profile"),
                               "give each integer of the shape a stride");
  }
  return Layout(shape, stride);
}

namespace {

Layout fail_composed(const char* name, const Layout& layout) {
  const auto text = [&] { return std::string(name); };
  detail::Call call(text, {});
  call.fail_composed(layout);
  return call.failure();
}

}  // namespace

Layout concatenate(std::initializer_list<Layout> layouts) {
  LayoutBuilder builder;
  const size_t tuple = builder.open();
  for (const Layout& layout : layouts) {
    if (!layout.ok()) return layout;
    if (layout.is_composed()) return fail_composed("make_layout", layout);
    builder.add(layout);
  }
  builder.close(tuple);
  return builder.build();
}

Layout make_ordered_layout(const IntTuple& shape, const IntTuple& order, SourceLoc loc) {
  return Layout(shape, compact_order(shape, order, loc));
}

Layout make_layout_like(const Layout& layout) {
  if (!layout.ok()) return layout;
  return Layout(layout.shape(), compact_order(filter_zeros(layout).shape(), layout.stride()));
}

Layout make_fragment_like(const Layout& layout) {
  if (!layout.ok()) return layout;
  if (rank(layout) < 2) return make_layout(layout.shape());
  const Layout first = get(layout, 0);
  Layout others;
  {
    LayoutBuilder builder;
    const size_t tuple = builder.open();
    for (int i = 1; i < rank(layout); ++i) builder.add(get(layout, i).outer());
    builder.close(tuple);
    others = builder.build();
  }
  return tiled_product(Layout(first.shape(), compact_col_major(filter_zeros(first).shape())),
                       make_ordered_layout(others.shape(), others.stride()));
}

Layout make_identity_layout(const IntTuple& shape) { return Layout(shape, make_basis_like(shape)); }

Layout make_composed_layout(const Swizzle& inner, const IntTuple& offset, const Layout& outer,
                            SourceLoc loc) {
  if (!inner.ok()) return detail::failed_layout(detail::TupleBuilder::failed(inner.error()));
  if (!offset.ok()) return detail::failed_layout(offset);
  if (!outer.ok()) return outer;
  if (outer.is_composed()) {
    return detail::fail_layout(loc, absl::StrCat("a composition behind ", detail::text(outer)),
                               "compose with a layout that is not composed yet");
  }
  // A swizzle that changes nothing is left out.
  if (inner.bits() == 0 && offset.is_int() && offset.value().is_constant(0)) return outer;
  Layout result(outer.shape(), outer.stride());
  auto* const prefix = new detail::LayoutPrefix{inner, nullptr, offset, {1}};
  result.prefix_ = prefix;
  return result;
}

Layout make_composed_layout(const Layout& inner, const IntTuple& offset, const Layout& outer,
                            SourceLoc loc) {
  if (const Layout* failure = detail::first_failure({&inner, &outer})) return *failure;
  if (!offset.ok()) return detail::failed_layout(offset);
  if (outer.is_composed()) {
    return detail::fail_layout(loc, absl::StrCat("a composition behind ", detail::text(outer)),
                               "compose with a layout that is not composed yet");
  }
  Layout result(outer.shape(), outer.stride());
  auto* const prefix =
      new detail::LayoutPrefix{Swizzle(), std::make_unique<Layout>(inner), offset, {1}};
  result.prefix_ = prefix;
  return result;
}

namespace {

// As elements of N times the bits, or of a part of them; false where that is no number of elements.
bool upcast(int64_t n, Mode* mode) {
  SymInt& stride = mode->stride.value;
  if (stride.is_constant(0)) return true;
  const SymInt step = abs(stride);
  SymInt quotient;
  if (!divides(n, step) && !divides(step, n)) return false;
  if (divides(step, n, &quotient) && !quotient.is_constant(1)) {
    mode->shape = ceil_div(mode->shape, quotient);
  }
  const SymInt wide = ceil_div(step, n);
  stride = signum(stride) < 0 ? -wide : wide;
  return true;
}

void downcast(int64_t n, Mode* mode) {
  if (abs(mode->stride.value).is_constant(1)) {
    mode->shape = mode->shape * n;
  } else {
    mode->stride.value = mode->stride.value * n;
  }
}

bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

int log2(int64_t n) { return 63 - __builtin_clzll(static_cast<uint64_t>(n)); }

// How many elements become one, and one becomes how many.
struct Ratio {
  Ratio(int old_bits, int new_bits)
      : up(new_bits / std::gcd(old_bits, new_bits)),
        down(old_bits / std::gcd(old_bits, new_bits)) {}

  int64_t up, down;
};

constexpr char kWidths[] = "widths are at least one bit";
constexpr char kGiveWidths[] = "give the bits of an element before and after";

// What and why; empty where the swizzle has one for elements of another width.
using Mistake = std::pair<std::string, std::string>;
Mistake why_not_recast(const Swizzle& swizzle, const Ratio& ratio) {
  if (!is_power_of_two(ratio.up) || !is_power_of_two(ratio.down)) {
    return {"a swizzle keeps its bits only between powers of two",
            "choose widths whose ratio is a power of two"};
  }
  // Backwards, low bits move higher ones: elements that are to become one would be torn apart.
  const int unit = log2(ratio.up);
  const bool torn = swizzle.shift() < 0 && swizzle.bits() > 0 && swizzle.base() < unit &&
                    unit < swizzle.base() + swizzle.bits() - swizzle.shift();
  if (!torn) return {};
  return {absl::StrCat(swizzle.to_string(), " takes ", ratio.up,
                       " elements that are to become one to different places"),
          absl::StrCat("let it keep ", ratio.up, " elements together: a base of ", unit)};
}

// The unit of 2^base elements keeps its bytes. Bits within one of the new elements are left out.
Swizzle recast(const Swizzle& swizzle, const Ratio& ratio) {
  const int base = swizzle.base() - log2(ratio.up) + log2(ratio.down);
  if (base >= 0) return Swizzle(swizzle.bits(), base, swizzle.shift());
  return Swizzle(std::max(swizzle.bits() + base, 0), 0, swizzle.shift());
}

}  // namespace

std::string detail::why_not_recast(const Swizzle& swizzle, int old_bits, int new_bits,
                                   std::string* fix) {
  const bool widths = old_bits >= 1 && new_bits >= 1;
  auto [what, how] = widths ? heddle::why_not_recast(swizzle, Ratio(old_bits, new_bits))
                            : Mistake{kWidths, kGiveWidths};
  *fix = how;
  if (what.empty()) return what;
  return absl::StrCat("recast_layout(", swizzle.to_string(), ", ", old_bits, ", ", new_bits,
                      "): ", what);
}

Swizzle recast_layout(const Swizzle& swizzle, int old_bits, int new_bits, SourceLoc loc) {
  if (!swizzle.ok()) return swizzle;
  std::string fix;
  const std::string what = detail::why_not_recast(swizzle, old_bits, new_bits, &fix);
  if (what.empty()) return recast(swizzle, Ratio(old_bits, new_bits));
  detail::fail(loc, what, fix);
  Swizzle none;
  none.bits_ = -1;
  return none;
}

Layout recast_layout(const Layout& layout, int old_bits, int new_bits, SourceLoc loc) {
  if (!layout.ok()) return layout;
  const auto name = [&] {
    return absl::StrCat("recast_layout(", detail::text(layout), ", ", old_bits, ", ", new_bits,
                        ")");
  };
  if (old_bits < 1 || new_bits < 1) {
    return detail::fail_layout(loc, absl::StrCat(name(), ": ", kWidths), kGiveWidths);
  }
  const Ratio ratio(old_bits, new_bits);
  const auto [up, down] = ratio;
  LayoutBuilder builder;
  builder.add(layout);
  const absl::Span<TupleNode> shapes = builder.shapes(), strides = builder.strides();
  bool neighbours = false;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (!shapes[i].is_int()) continue;
    Mode mode{shapes[i].value, strides[i]};
    if (up > 1 && !upcast(up, &mode)) {
      return detail::fail_layout(
          loc,
          absl::StrCat(name(), ": ", up, " elements become one, but neither ", up,
                       " nor the stride ", detail::text(strides[i]), " divides the other"),
          "choose a width that divides the strides");
    }
    neighbours |= mode.stride.value.is_constant(1);
    if (down > 1) downcast(down, &mode);
    shapes[i].value = mode.shape;
    strides[i] = mode.stride;
  }
  if (down > 1 && !neighbours) {
    return detail::fail_layout(loc, name() + ": no mode has a stride of 1",
                               "narrower elements need a mode of neighbours to lie in");
  }
  const Layout outer = builder.build(loc);
  if (!layout.is_composed() || !outer.ok()) return outer;
  const IntTuple& old = layout.offset();
  SymInt offset;
  if (!old.is_int() || old.node().is_basis() || !divides(up, old.value(), &offset)) {
    return detail::fail_layout(
        loc, absl::StrCat(name(), ": the offset ", detail::text(old), " is no multiple of ", up),
        "choose a width that divides the offset");
  }
  offset = offset * down;
  if (layout.inner() != nullptr) {
    return make_composed_layout(recast_layout(*layout.inner(), old_bits, new_bits, loc), offset,
                                outer, loc);
  }
  const auto [what, fix] = why_not_recast(layout.swizzle(), ratio);
  if (!what.empty()) return detail::fail_layout(loc, absl::StrCat(name(), ": ", what), fix);
  return make_composed_layout(recast(layout.swizzle(), ratio), offset, outer, loc);
}

// --- Questions ------------------------------------------------------------------------------

SymInt detail::cosize_of(Part part) {
  SymInt last = 0;
  for (const Mode& mode : modes_of(part)) {
    if (mode.stride.is_basis()) return cosize(part.layout());
    last = last + (mode.shape - 1) * abs(mode.stride.value);
  }
  return last + 1;
}

IntTuple coshape(const Layout& layout, SourceLoc loc) {
  if (!layout.ok()) return layout.shape();
  if (layout.inner() != nullptr) {
    return detail::fail(loc,
                        absl::StrCat("the cosize of ", detail::text(layout),
                                     ": its index goes through another layout"),
                        "ask for that of inner() or outer()");
  }
  IntTuple last = 0;
  for (const Mode& mode : detail::modes_of(layout)) {
    TupleNode step = mode.stride;
    step.value = (mode.shape - 1) * abs(step.value);
    last = last + detail::TupleBuilder::build(step);
  }
  if (!last.ok()) return last;
  detail::TupleBuilder builder;
  builder.add(last);
  for (TupleNode& node : builder.nodes()) {
    if (!node.is_int()) continue;
    node.value = node.value + 1;
    if (node.value.is_overflow()) {
      return detail::fail(
          loc, absl::StrCat("the cosize of ", detail::text(layout), " does not fit 64 bits"),
          "use smaller strides");
    }
    node.path_length = 0;
  }
  return builder.build(loc);
}

SymInt cosize(const Layout& layout, SourceLoc loc) {
  const IntTuple extents = coshape(layout, loc);
  return extents.ok() ? size(extents, loc) : SymInt::overflow();
}

SymInt size_in_bytes(int bits, const Layout& layout, SourceLoc loc) {
  return ceil_div(cosize(layout, loc) * bits, SymInt(8));
}

int leading_dim(const Layout& layout) {
  int mode = 0;
  for (const TupleNode& stride : Elements(layout.stride())) {
    for (uint32_t i = 0; i < stride.span; ++i) {
      if ((&stride)[i].is_int() && (&stride)[i].value.is_constant(1)) return mode;
    }
    ++mode;
  }
  return -1;
}

// --- Modes ----------------------------------------------------------------------------------

namespace {

// The same done to shape and stride.
template <class Change>
Layout changed(const Layout& layout, const Change& change) {
  if (!layout.ok()) return layout;
  const IntTuple shape = change(layout.shape());
  // What is wrong with it is wrong with the stride too, and told once.
  if (!shape.ok()) return detail::failed_layout(shape);
  return layout.with_outer(Layout(shape, change(layout.stride())));
}

}  // namespace

Layout get(const Layout& layout, int mode, SourceLoc loc) {
  return changed(layout, [&](const IntTuple& t) { return get(t, mode, loc); });
}
Layout get(const Layout& layout, std::initializer_list<int> path, SourceLoc loc) {
  return changed(layout, [&](const IntTuple& t) { return get(t, path, loc); });
}
Layout select(const Layout& layout, std::initializer_list<int> modes, SourceLoc loc) {
  return changed(layout, [&](const IntTuple& t) { return select(t, modes, loc); });
}
Layout flatten(const Layout& layout) {
  return changed(layout, [](const IntTuple& t) { return flatten(t); });
}
Layout group_modes(const Layout& layout, int begin, int end, SourceLoc loc) {
  return changed(layout, [&](const IntTuple& t) { return group_modes(t, begin, end, loc); });
}

Layout append(const Layout& layout, const Layout& x, int up_to_rank) {
  if (const Layout* failure = detail::first_failure({&layout, &x})) return *failure;
  if (x.is_composed()) return fail_composed("append", x);
  return layout.with_outer(Layout(append(layout.shape(), x.shape(), up_to_rank),
                                  append(layout.stride(), x.stride(), up_to_rank)));
}
Layout prepend(const Layout& layout, const Layout& x, int up_to_rank) {
  if (const Layout* failure = detail::first_failure({&layout, &x})) return *failure;
  if (x.is_composed()) return fail_composed("prepend", x);
  return layout.with_outer(Layout(prepend(layout.shape(), x.shape(), up_to_rank),
                                  prepend(layout.stride(), x.stride(), up_to_rank)));
}

Layout dice(const IntTuple& coord, const Layout& layout, SourceLoc loc) {
  return changed(layout, [&](const IntTuple& t) { return dice(coord, t, loc); });
}

Layout filter_zeros(const Layout& layout) {
  if (!layout.ok()) return layout;
  const TupleNode& shape = layout.shape().node();
  const TupleNode& stride = layout.stride().node();
  detail::TupleBuilder builder;
  builder.add(shape);
  for (uint32_t i = 0; i < shape.span; ++i) {
    TupleNode& node = builder.nodes()[i];
    if (node.is_int() && (&stride)[i].value.is_constant(0)) node.value = 1;
  }
  return layout.with_outer(Layout(builder.build(), layout.stride()));
}

Layout filter(const Layout& layout) { return coalesce(filter_zeros(layout)); }

}  // namespace heddle
