// Layouts: functions from coordinates to indices, as CuTe has them.
//
//   const Layout tile = make_layout({8, 4}, {4, 1});         // (8,4):(4,1), row-major
//   tile({2, 3});                                            // 11
//   zipped_divide(tile, {2, 2});                             // ((2,2),(4,2)):((4,1),(8,2))
//   const Layout banked = make_composed_layout(Swizzle(3, 0, 3), 0, make_layout({8, 8}, {8, 1}));
//
// A layout has a shape, and a stride for each of the shape's integers. A *composed* layout also has
// an offset, which is added to the index, and a swizzle or another layout, which is applied to the
// sum. Functions that take a layout apart or build on it work on shape and stride, and keep offset
// and swizzle as they are.
//
// Names and meanings are CuTe's C++ (media/docs/cpp/cute, 01 to 03), with three differences. Host
// numbers count as static. Unknown numbers (SymInt) are allowed wherever the result can be proved
// right for all of their values, so that dynamic layouts coalesce, divide and invert too. And where
// CuTe asserts, the result is a layout that is not ok() and says why, see int_tuple.h. That
// includes compositions that would not be a(b(c)) for each c, which CuTe accepts where a mode is
// left half used.
#pragma once

#include <concepts>
#include <initializer_list>
#include <iosfwd>
#include <utility>
#include <vector>

#include "heddle/dsl/layout/int_tuple.h"
#include "heddle/dsl/layout/swizzle.h"

namespace heddle {

namespace detail {

struct LayoutPrefix;

}  // namespace detail

// A layout: a function from coordinates to indices, by a shape and a stride for each of its
// integers. A value; a mistake gives one that is not ok().
class Layout {
 public:
  // From a shape and strides of the same nesting; 1:0 from nothing. make_layout() checks that they
  // fit.
  Layout() : Layout(1, 0) {}  // 1:0
  Layout(IntTuple shape, IntTuple stride) : shape_(std::move(shape)), stride_(std::move(stride)) {
    if (shape_.ok() && !stride_.ok()) shape_ = stride_;
  }
  Layout(const Layout& other)
      : shape_(other.shape_), stride_(other.stride_), prefix_(other.prefix_) {
    if (prefix_ != nullptr) keep();
  }
  Layout(Layout&& other) noexcept
      : shape_(std::move(other.shape_)),
        stride_(std::move(other.stride_)),
        prefix_(std::exchange(other.prefix_, nullptr)) {}
  Layout& operator=(Layout other) noexcept {
    shape_ = std::move(other.shape_);
    stride_ = std::move(other.stride_);
    std::swap(prefix_, other.prefix_);
    return *this;
  }
  ~Layout() {
    if (prefix_ != nullptr) drop();
  }

  const IntTuple& shape() const { return shape_; }
  const IntTuple& stride() const { return stride_; }

  // The index of a coordinate; a coordinate where the strides are basis strides.
  IntTuple operator()(const IntTuple& coord, SourceLoc loc = SourceLoc::current()) const;

  // Whether it was made without a mistake, else the reason.
  bool ok() const { return shape_.ok(); }
  const std::string& error() const { return shape_.error(); }
  // "(8,4):(4,1)", "S<3,4,3> o 0 o (8,8):(8,1)"
  std::string to_string() const;
  friend bool operator==(const Layout& a, const Layout& b);

  // Composed layouts: whether an offset and a swizzle or another layout follow, and these.
  bool is_composed() const { return prefix_ != nullptr; }
  const IntTuple& offset() const;
  Swizzle swizzle() const;
  // The other layout that is applied to the index; nullptr where it is a swizzle.
  const Layout* inner() const;
  // Shape and stride alone (outer), or with others in their place (with_outer).
  Layout outer() const { return Layout(shape_, stride_); }
  Layout with_outer(const Layout& outer) const;

 private:
  friend Layout make_composed_layout(const Swizzle&, const IntTuple&, const Layout&, SourceLoc);
  friend Layout make_composed_layout(const Layout&, const IntTuple&, const Layout&, SourceLoc);

  void keep() const;
  void drop() const;

  IntTuple shape_, stride_;
  const detail::LayoutPrefix* prefix_ = nullptr;
};

// What a layout is divided by or multiplied with: a layout; or, for each mode, a layout, a number
// or `_`.
//
//   zipped_divide(x, {make_layout(4, 2), 8, _})
class Tiler {
 public:
  // From a layout; a number, which stands for so many neighbours; `_`, which takes a whole mode; or
  // a tiler for each mode.
  Tiler(const Layout& layout) : layout_(layout) {}          // NOLINT: a layout is one
  Tiler(const IntTuple& t);                                 // NOLINT
  Tiler(int extent) : Tiler(IntTuple(extent)) {}            // NOLINT
  Tiler(const SymInt& extent) : Tiler(IntTuple(extent)) {}  // NOLINT
  Tiler(Underscore) : Tiler(IntTuple(_)) {}                 // NOLINT
  Tiler(std::initializer_list<Tiler> modes) : kind_(Kind::kModes), modes_(modes) {}
  explicit Tiler(std::vector<Tiler> modes) : kind_(Kind::kModes), modes_(std::move(modes)) {}

  // What it is: one layout, `_`, or a tiler for each mode.
  enum class Kind : uint8_t { kLayout, kUnderscore, kModes };
  Kind kind() const { return kind_; }
  const Layout& layout() const { return layout_; }
  // Whether it was given as a number.
  bool is_extent() const { return is_extent_; }
  // How many modes it has a tiler for, and that of mode i.
  int rank() const { return static_cast<int>(modes_.size()); }
  const Tiler& mode(int i) const { return modes_[static_cast<size_t>(i)]; }
  // Whether all of its layouts were made without a mistake.
  bool ok() const;
  std::string to_string() const;  // "<4:2,8:1,_>"

 private:
  Kind kind_ = Kind::kLayout;
  bool is_extent_ = false;
  Layout layout_;
  std::vector<Tiler> modes_;
};

// --- Making ----------------------------------------------------------------------------------

// Asks make_layout() for row-major strides.
struct GenRowMajor {};
// A layout of a shape: column-major where no strides are given.
Layout make_layout(const IntTuple& shape);
Layout make_layout(const IntTuple& shape, GenRowMajor);
Layout make_layout(const IntTuple& shape, const IntTuple& stride,
                   SourceLoc loc = SourceLoc::current());
// A layout with one mode for each of these layouts.
Layout concatenate(std::initializer_list<Layout> layouts);
template <class... Layouts>
Layout make_layout(const Layout& first, const Layouts&... others) {
  return concatenate({first, others...});
}
// A compact layout, where the mode with the least number in `order` is contiguous.
Layout make_ordered_layout(const IntTuple& shape, const IntTuple& order,
                           SourceLoc loc = SourceLoc::current());
// A compact layout of the same shape, with modes in the order of the layout's strides. Strides of 0
// stay.
Layout make_layout_like(const Layout& layout);
// Likewise, with the first mode contiguous: for registers that hold such a tensor.
Layout make_fragment_like(const Layout& layout);
// The layout that maps each coordinate to itself, by basis strides.
Layout make_identity_layout(const IntTuple& shape);
// A composed layout: inner(offset + outer(c)) for a coordinate c.
Layout make_composed_layout(const Swizzle& inner, const IntTuple& offset, const Layout& outer,
                            SourceLoc loc = SourceLoc::current());
Layout make_composed_layout(const Layout& inner, const IntTuple& offset, const Layout& outer,
                            SourceLoc loc = SourceLoc::current());
// The tile that threads cover with so many values each: its shape, and the layout from (thread,
// value) to the index in the tile.
std::pair<IntTuple, Layout> make_layout_tv(const Layout& threads, const Layout& values,
                                           SourceLoc loc = SourceLoc::current());
// The layout of the same bytes as elements of another width, in bits. It is an error where a
// swizzle would separate parts of one element.
Layout recast_layout(const Layout& layout, int old_bits, int new_bits,
                     SourceLoc loc = SourceLoc::current());
inline Layout recast(const Layout& layout, int old_bits, int new_bits,
                     SourceLoc loc = SourceLoc::current()) {
  return recast_layout(layout, old_bits, new_bits, loc);
}
// n elements as one (upcast), and one as n (downcast).
inline Layout upcast(const Layout& layout, int n, SourceLoc loc = SourceLoc::current()) {
  return recast_layout(layout, 1, n, loc);
}
inline Layout downcast(const Layout& layout, int n, SourceLoc loc = SourceLoc::current()) {
  return recast_layout(layout, n, 1, loc);
}

// --- Questions -------------------------------------------------------------------------------

// Shape and strides; and the number of coordinates.
inline const IntTuple& shape(const Layout& layout) { return layout.shape(); }
inline const IntTuple& stride(const Layout& layout) { return layout.stride(); }
inline SymInt size(const Layout& layout, SourceLoc loc = SourceLoc::current()) {
  return size(layout.shape(), loc);
}
// The size of the codomain: the greatest index plus one. A swizzle does not count; a layout that is
// composed with another layout has none, which is an error.
SymInt cosize(const Layout& layout, SourceLoc loc = SourceLoc::current());
// Questions to the shape, as int_tuple.h defines them.
inline int rank(const Layout& layout) { return rank(layout.shape()); }
inline int depth(const Layout& layout) { return depth(layout.shape()); }
inline bool is_static(const Layout& layout) {
  return is_static(layout.shape()) && is_static(layout.stride()) &&
         (!layout.is_composed() || (is_static(layout.offset()) &&
                                    (layout.inner() == nullptr || is_static(*layout.inner()))));
}
inline bool is_congruent(const Layout& a, const Layout& b) {
  return is_congruent(a.shape(), b.shape());
}
inline bool is_weakly_congruent(const Layout& a, const Layout& b) {
  return is_weakly_congruent(a.shape(), b.shape());
}
inline bool is_compatible(const Layout& a, const Layout& b) {
  return is_compatible(a.shape(), b.shape());
}
// The codomain's shape: in each of its modes, the greatest coordinate plus one. For plain strides
// it is the cosize.
IntTuple coshape(const Layout& layout, SourceLoc loc = SourceLoc::current());
// The bytes that a tensor of this layout takes in memory, with elements of so many bits.
SymInt size_in_bytes(int bits, const Layout& layout, SourceLoc loc = SourceLoc::current());
// The first mode with a stride of 1; -1 where none has.
int leading_dim(const Layout& layout);
// Whether `mode` is that one.
inline bool is_major(int mode, const Layout& layout) { return leading_dim(layout) == mode; }
// The parts of a layout that is composed with a swizzle.
inline Swizzle get_swizzle_portion(const Layout& layout) { return layout.swizzle(); }
inline Layout get_nonswizzle_portion(const Layout& layout) { return layout.outer(); }

// --- Modes -----------------------------------------------------------------------------------

// Parts of a layout, and other groupings of its modes, as int_tuple.h defines them for tuples:
// shape and strides are treated alike.
Layout get(const Layout& layout, int mode, SourceLoc loc = SourceLoc::current());
Layout get(const Layout& layout, std::initializer_list<int> path,
           SourceLoc loc = SourceLoc::current());
Layout select(const Layout& layout, std::initializer_list<int> modes,
              SourceLoc loc = SourceLoc::current());
Layout flatten(const Layout& layout);
Layout group_modes(const Layout& layout, int begin, int end, SourceLoc loc = SourceLoc::current());
Layout append(const Layout& layout, const Layout& x = Layout(), int up_to_rank = -1);
Layout prepend(const Layout& layout, const Layout& x = Layout(), int up_to_rank = -1);
Layout slice(const IntTuple& coord, const Layout& layout, SourceLoc loc = SourceLoc::current());
Layout dice(const IntTuple& coord, const Layout& layout, SourceLoc loc = SourceLoc::current());
// The slice, and the index of what the coordinate fixes. A composed layout keeps that as its
// offset.
std::pair<Layout, IntTuple> slice_and_offset(const IntTuple& coord, const Layout& layout,
                                             SourceLoc loc = SourceLoc::current());
// With modes of stride 0 reduced to one element.
Layout filter_zeros(const Layout& layout);
// With modes of stride 0 removed, and the rest coalesced. Where a profile is given, within each of
// its modes.
Layout filter(const Layout& layout);
Layout filter(const Layout& layout, const IntTuple& profile, SourceLoc loc = SourceLoc::current());
// The same function with as few modes as can be: neighbours that continue each other are joined.
// Where a profile is given, within each of its modes.
Layout coalesce(const Layout& layout);
Layout coalesce(const Layout& layout, const IntTuple& profile,
                SourceLoc loc = SourceLoc::current());

// --- Algebra ---------------------------------------------------------------------------------

namespace detail {

Layout swizzled_indices(const Layout& a, const Swizzle& b, SourceLoc loc);

}  // namespace detail

// Composition: R(c) = a(b(c)), with b's shape.
Layout composition(const Layout& a, const Layout& b, SourceLoc loc = SourceLoc::current());
Layout composition(const Layout& a, const Tiler& b, SourceLoc loc = SourceLoc::current());
// Composition with a swizzle, which is applied to a layout's indices, or to its coordinates as
// numbers. (Templates, so that numbers in braces are a tiler.)
template <std::same_as<Swizzle> S>
Layout composition(const S& a, const Layout& b, SourceLoc loc = SourceLoc::current()) {
  return make_composed_layout(a, 0, b, loc);
}
template <std::same_as<Swizzle> S>
Layout composition(const Layout& a, const S& b, SourceLoc loc = SourceLoc::current()) {
  return detail::swizzled_indices(a, b, loc);
}
// Complement: a layout of the indices below a size that `layout` leaves out, in order. For basis
// strides it has the coordinates within a shape: that of (2,3):(1@0,2@1) in (4,6) is
// (2,2):(2@0,1@1).
Layout complement(const Layout& layout, const IntTuple& cotarget,
                  SourceLoc loc = SourceLoc::current());
Layout complement(const Layout& layout, SourceLoc loc = SourceLoc::current());
// Inverses. layout(right_inverse(i)) = i for as many i as there are; left_inverse(layout(i)) = i
// where the layout is injective. For basis strides i is a coordinate: both inverses of
// (4,5):(1@1,1@0) are (5,4):(4,1).
Layout right_inverse(const Layout& layout, SourceLoc loc = SourceLoc::current());
Layout left_inverse(const Layout& layout, SourceLoc loc = SourceLoc::current());
// The nullspace: a layout of the coordinates, as numbers, that are mapped to index 0.
Layout nullspace(const Layout& layout, SourceLoc loc = SourceLoc::current());
// The largest vector that two layouts have in common: how many neighbours in memory are at the same
// coordinates in both, and the layout of these coordinates.
SymInt max_common_vector(const Layout& a, const Layout& b, SourceLoc loc = SourceLoc::current());
Layout max_common_layout(const Layout& a, const Layout& b, SourceLoc loc = SourceLoc::current());

// Divisions split a layout into tiles, and the rest, which counts the tiles. The results are (tile,
// rest) in each mode (logical_divide), ((tile…),(rest…)) (zipped_divide), ((tile…),rest…)
// (tiled_divide) and (tile…,rest…) (flat_divide). Tiles or rests of a single mode stay whole. A
// tiler of basis strides takes its tiles from the modes that they name: (128,128):(1@0,1@1) does
// what <128,128> does.
Layout logical_divide(const Layout& layout, const Tiler& tiler,
                      SourceLoc loc = SourceLoc::current());
Layout zipped_divide(const Layout& layout, const Tiler& tiler,
                     SourceLoc loc = SourceLoc::current());
Layout tiled_divide(const Layout& layout, const Tiler& tiler, SourceLoc loc = SourceLoc::current());
Layout flat_divide(const Layout& layout, const Tiler& tiler, SourceLoc loc = SourceLoc::current());
// Rounds modes up to whole tiles. Divisions refuse a tile that does not divide an inner mode, since
// the last tile of that mode would run on into the next one; cover() makes such modes larger first,
// which CuTe's divisions do by themselves. All coordinates keep their indices. Which coordinates
// are new is found with the identity layout, covered and divided in the same way:
//
//   const Layout x = make_layout({{3, 8}}, {{3, 54}});
//   zipped_divide(cover(x, {2}), {2});              // ((2),((2,8))):((3),((6,54)))
//   zipped_divide(cover(make_identity_layout(x.shape()), {2}), {2});
//       // ((2),((2,8))):((1@0@0),((2@0@0,1@1@0))): in x where elem_less(coordinate, x.shape())
//
// Modes that tiles divide, or that divide tiles, stay; and so does the last, as in all divisions.
Layout cover(const Layout& layout, const Tiler& tiler, SourceLoc loc = SourceLoc::current());
// Products repeat a block as the tiler says. The results are grouped as those of the divisions.
Layout logical_product(const Layout& block, const Tiler& tiler,
                       SourceLoc loc = SourceLoc::current());
Layout zipped_product(const Layout& block, const Tiler& tiler,
                      SourceLoc loc = SourceLoc::current());
Layout tiled_product(const Layout& block, const Tiler& tiler, SourceLoc loc = SourceLoc::current());
Layout flat_product(const Layout& block, const Tiler& tiler, SourceLoc loc = SourceLoc::current());
// Products with (block, tiler) in each mode (blocked_product), or (tiler, block) (raked_product).
Layout blocked_product(const Layout& block, const Layout& tiler,
                       SourceLoc loc = SourceLoc::current());
Layout raked_product(const Layout& block, const Layout& tiler,
                     SourceLoc loc = SourceLoc::current());
// Repeats a block until it fills a shape, in the given order of the modes.
Layout tile_to_shape(const Layout& block, const IntTuple& shape,
                     SourceLoc loc = SourceLoc::current());
Layout tile_to_shape(const Layout& block, const IntTuple& shape, const IntTuple& order,
                     SourceLoc loc = SourceLoc::current());

// The tile at a coordinate among the tiles (local_tile), and a thread's part of a layout
// (local_partition). A step leaves out those modes of tiler and coordinate, or of the threads,
// where it has `_` (CuTe's X): of a tile (M,N,K), {1, _, 1} takes (M,K).
Layout local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord,
                  SourceLoc loc = SourceLoc::current());
Layout local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord,
                  const IntTuple& step, SourceLoc loc = SourceLoc::current());
Layout local_partition(const Layout& layout, const Layout& threads, const IntTuple& index,
                       SourceLoc loc = SourceLoc::current());
Layout local_partition(const Layout& layout, const Layout& threads, const IntTuple& index,
                       const IntTuple& step, SourceLoc loc = SourceLoc::current());
// The modes of a tiler where the step has a number.
Tiler dice(const IntTuple& step, const Tiler& tiler, SourceLoc loc = SourceLoc::current());
// The mask, a bit for each, of the blocks of a cluster that a multicast along a mode reaches from
// the block at a coordinate.
IntTuple make_layout_image_mask(const Layout& blocks, const IntTuple& coord, int mode,
                                SourceLoc loc = SourceLoc::current());

}  // namespace heddle
