// Layouts: functions from coordinates to indices, as CuTe has them.
//
//   const Layout tile = make_layout({8, 4}, {4, 1});         // (8,4):(4,1), row-major
//   tile({2, 3});                                            // 11
//   zipped_divide(tile, {2, 2});                             // ((2,2),(4,2)):((4,1),(8,2))
//   const Layout banked = make_composed_layout(Swizzle(3, 0, 3), 0, make_layout({8, 8}, {8, 1}));
//
// A layout has a shape and a stride for each of the shape's integers. A *composed* layout has
// more behind that: an offset is added to the index, and a swizzle, or another layout, applied to
// the sum. What takes a layout apart or builds on it does so with the shape and stride; the rest
// goes along.
//
// Names and meanings are CuTe's C++ (media/docs/cpp/cute, 01 to 03), with three differences.
// Numbers of the host count as static. Unknown numbers (SymInt) take part wherever the outcome is
// sure to be right whatever they will be, so that dynamic layouts coalesce, divide and invert as
// far as that can be proved. And what CuTe asserts is a layout that is not ok() and says why, see
// int_tuple.h; so is a composition that would not be a(b(c)) for each c, which CuTe lets pass where
// a mode is left half used.
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

class Layout {
 public:
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

  bool ok() const { return shape_.ok(); }
  const std::string& error() const { return shape_.error(); }
  // "(8,4):(4,1)", "S<3,4,3> o 0 o (8,8):(8,1)"
  std::string to_string() const;
  friend bool operator==(const Layout& a, const Layout& b);

  // Composed layouts: what comes behind shape and stride.
  bool is_composed() const { return prefix_ != nullptr; }
  const IntTuple& offset() const;
  Swizzle swizzle() const;
  // The other layout that the index goes through; nullptr where it is a swizzle.
  const Layout* inner() const;
  // Shape and stride alone; and others in their place.
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

// What a layout is divided by or multiplied with: a layout; or one, a number or _, for each mode.
//
//   zipped_divide(x, {make_layout(4, 2), 8, _})
class Tiler {
 public:
  Tiler(const Layout& layout) : layout_(layout) {}          // NOLINT: a layout is one
  Tiler(const IntTuple& t);                                 // NOLINT: modes of so many neighbours
  Tiler(int extent) : Tiler(IntTuple(extent)) {}            // NOLINT
  Tiler(const SymInt& extent) : Tiler(IntTuple(extent)) {}  // NOLINT
  Tiler(Underscore) : Tiler(IntTuple(_)) {}                 // NOLINT
  Tiler(std::initializer_list<Tiler> modes) : kind_(Kind::kModes), modes_(modes) {}
  explicit Tiler(std::vector<Tiler> modes) : kind_(Kind::kModes), modes_(std::move(modes)) {}

  enum class Kind : uint8_t { kLayout, kUnderscore, kModes };
  Kind kind() const { return kind_; }
  const Layout& layout() const { return layout_; }
  // Whether it was given as a number: so many neighbours.
  bool is_extent() const { return is_extent_; }
  int rank() const { return static_cast<int>(modes_.size()); }
  const Tiler& mode(int i) const { return modes_[static_cast<size_t>(i)]; }
  // For all of them, a compact layout where it is a number.
  bool ok() const;
  std::string to_string() const;  // "<4:2,8:1,_>"

 private:
  Kind kind_ = Kind::kLayout;
  bool is_extent_ = false;
  Layout layout_;
  std::vector<Tiler> modes_;
};

// --- Making ----------------------------------------------------------------------------------

// Column-major where no strides are given; GenRowMajor{} asks for row-major.
struct GenRowMajor {};
Layout make_layout(const IntTuple& shape);
Layout make_layout(const IntTuple& shape, GenRowMajor);
Layout make_layout(const IntTuple& shape, const IntTuple& stride,
                   SourceLoc loc = SourceLoc::current());
// One mode for each layout.
Layout concatenate(std::initializer_list<Layout> layouts);
template <class... Layouts>
Layout make_layout(const Layout& first, const Layouts&... others) {
  return concatenate({first, others...});
}
// Compact, in the order of another tuple's numbers; of a layout's strides, whose zeros stay.
Layout make_ordered_layout(const IntTuple& shape, const IntTuple& order,
                           SourceLoc loc = SourceLoc::current());
Layout make_layout_like(const Layout& layout);
// The same with the first mode in front of all.
Layout make_fragment_like(const Layout& layout);
// Each coordinate to itself.
Layout make_identity_layout(const IntTuple& shape);
// inner(offset + outer(c))
Layout make_composed_layout(const Swizzle& inner, const IntTuple& offset, const Layout& outer,
                            SourceLoc loc = SourceLoc::current());
Layout make_composed_layout(const Layout& inner, const IntTuple& offset, const Layout& outer,
                            SourceLoc loc = SourceLoc::current());
// Threads and the values of each: the tile's shape, and (thread, value) to the tile's index.
std::pair<IntTuple, Layout> make_layout_tv(const Layout& threads, const Layout& values,
                                           SourceLoc loc = SourceLoc::current());
// The same bytes as elements of another width. A swizzle may not tear apart what becomes one
// element.
Layout recast_layout(const Layout& layout, int old_bits, int new_bits,
                     SourceLoc loc = SourceLoc::current());
inline Layout recast(const Layout& layout, int old_bits, int new_bits,
                     SourceLoc loc = SourceLoc::current()) {
  return recast_layout(layout, old_bits, new_bits, loc);
}
// n elements as one, and one as n.
inline Layout upcast(const Layout& layout, int n, SourceLoc loc = SourceLoc::current()) {
  return recast_layout(layout, 1, n, loc);
}
inline Layout downcast(const Layout& layout, int n, SourceLoc loc = SourceLoc::current()) {
  return recast_layout(layout, n, 1, loc);
}

// --- Questions -------------------------------------------------------------------------------

inline const IntTuple& shape(const Layout& layout) { return layout.shape(); }
inline const IntTuple& stride(const Layout& layout) { return layout.stride(); }
inline SymInt size(const Layout& layout, SourceLoc loc = SourceLoc::current()) {
  return size(layout.shape(), loc);
}
// One more than the greatest index, of the shape and stride. A swizzle behind them does not count;
// where the index goes through another layout there is none.
SymInt cosize(const Layout& layout, SourceLoc loc = SourceLoc::current());
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
// The greatest coordinate in each mode of the codomain, and one more: of plain strides, the cosize.
IntTuple coshape(const Layout& layout, SourceLoc loc = SourceLoc::current());
// Of elements of so many bits, as they lie in memory.
SymInt size_in_bytes(int bits, const Layout& layout, SourceLoc loc = SourceLoc::current());
// The first mode with a stride of 1; -1 where none has. Whether it is that one.
int leading_dim(const Layout& layout);
inline bool is_major(int mode, const Layout& layout) { return leading_dim(layout) == mode; }
// The parts of a layout that is composed with a swizzle.
inline Swizzle get_swizzle_portion(const Layout& layout) { return layout.swizzle(); }
inline Layout get_nonswizzle_portion(const Layout& layout) { return layout.outer(); }

// --- Modes -----------------------------------------------------------------------------------

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
// And the index of what the coordinate fixes. A composed layout keeps that as its offset.
std::pair<Layout, IntTuple> slice_and_offset(const IntTuple& coord, const Layout& layout,
                                             SourceLoc loc = SourceLoc::current());
// Modes of stride 0 made of one element; and dropped, with neighbours that continue each other
// joined. A profile says below which modes that is done.
Layout filter_zeros(const Layout& layout);
Layout filter(const Layout& layout);
Layout filter(const Layout& layout, const IntTuple& profile, SourceLoc loc = SourceLoc::current());
Layout coalesce(const Layout& layout);
Layout coalesce(const Layout& layout, const IntTuple& profile,
                SourceLoc loc = SourceLoc::current());

// --- Algebra ---------------------------------------------------------------------------------

namespace detail {

Layout swizzled_indices(const Layout& a, const Swizzle& b, SourceLoc loc);

}  // namespace detail

// R(c) = a(b(c)), of b's shape.
Layout composition(const Layout& a, const Layout& b, SourceLoc loc = SourceLoc::current());
Layout composition(const Layout& a, const Tiler& b, SourceLoc loc = SourceLoc::current());
// A swizzle behind a layout, or in front of one, whose coordinates it takes as numbers. Templates,
// so that numbers in braces are a tiler.
template <std::same_as<Swizzle> S>
Layout composition(const S& a, const Layout& b, SourceLoc loc = SourceLoc::current()) {
  return make_composed_layout(a, 0, b, loc);
}
template <std::same_as<Swizzle> S>
Layout composition(const Layout& a, const S& b, SourceLoc loc = SourceLoc::current()) {
  return detail::swizzled_indices(a, b, loc);
}
// The indices that a layout leaves out below a size, in order. Of basis strides, the coordinates
// within a shape: those of (2,3):(1@0,2@1) in (4,6) are (2,2):(2@0,1@1).
Layout complement(const Layout& layout, const IntTuple& cotarget,
                  SourceLoc loc = SourceLoc::current());
Layout complement(const Layout& layout, SourceLoc loc = SourceLoc::current());
// layout(right_inverse(i)) = i as far as that goes; left_inverse(layout(i)) = i where it is
// injective. Where strides are basis strides i is a coordinate: both inverses of (4,5):(1@1,1@0)
// are (5,4):(4,1).
Layout right_inverse(const Layout& layout, SourceLoc loc = SourceLoc::current());
Layout left_inverse(const Layout& layout, SourceLoc loc = SourceLoc::current());
// Where the layout is 0.
Layout nullspace(const Layout& layout, SourceLoc loc = SourceLoc::current());
// How many neighbours in memory are at the same coordinates in both; and at which.
SymInt max_common_vector(const Layout& a, const Layout& b, SourceLoc loc = SourceLoc::current());
Layout max_common_layout(const Layout& a, const Layout& b, SourceLoc loc = SourceLoc::current());

// Divisions: (tile, rest) in each mode; ((tile…),(rest…)); ((tile…),rest…); (tile…,rest…). Tiles or
// rests of a single mode stay whole. A tiler of basis strides takes its tiles from the modes that
// they name: (128,128):(1@0,1@1) is what <128,128> is.
Layout logical_divide(const Layout& layout, const Tiler& tiler,
                      SourceLoc loc = SourceLoc::current());
Layout zipped_divide(const Layout& layout, const Tiler& tiler,
                     SourceLoc loc = SourceLoc::current());
Layout tiled_divide(const Layout& layout, const Tiler& tiler, SourceLoc loc = SourceLoc::current());
Layout flat_divide(const Layout& layout, const Tiler& tiler, SourceLoc loc = SourceLoc::current());
// Tiles that do not divide an inner mode are refused: the last one of it would run on into the next
// mode. cover() makes such modes larger, to whole tiles, as CuTe's divisions do by themselves. All
// coordinates keep their indices; those that are new are told by the identity layout, which is made
// and divided alike, for shape and tiler alone decide:
//
//   const Layout x = make_layout({{3, 8}}, {{3, 54}});
//   zipped_divide(cover(x, {2}), {2});              // ((2),((2,8))):((3),((6,54)))
//   zipped_divide(cover(make_identity_layout(x.shape()), {2}), {2});
//       // ((2),((2,8))):((1@0@0),((2@0@0,1@1@0))): in x where elem_less(coordinate, x.shape())
//
// Modes that tiles divide, or that divide tiles, stay; and so does the last, as in all divisions.
Layout cover(const Layout& layout, const Tiler& tiler, SourceLoc loc = SourceLoc::current());
// Products: the block repeated as the tiler says, with the same forms.
Layout logical_product(const Layout& block, const Tiler& tiler,
                       SourceLoc loc = SourceLoc::current());
Layout zipped_product(const Layout& block, const Tiler& tiler,
                      SourceLoc loc = SourceLoc::current());
Layout tiled_product(const Layout& block, const Tiler& tiler, SourceLoc loc = SourceLoc::current());
Layout flat_product(const Layout& block, const Tiler& tiler, SourceLoc loc = SourceLoc::current());
// (block, tiler) and (tiler, block) in each mode.
Layout blocked_product(const Layout& block, const Layout& tiler,
                       SourceLoc loc = SourceLoc::current());
Layout raked_product(const Layout& block, const Layout& tiler,
                     SourceLoc loc = SourceLoc::current());
// The block repeated until the shape is full, in an order of the modes.
Layout tile_to_shape(const Layout& block, const IntTuple& shape,
                     SourceLoc loc = SourceLoc::current());
Layout tile_to_shape(const Layout& block, const IntTuple& shape, const IntTuple& order,
                     SourceLoc loc = SourceLoc::current());

// A tile by its coordinate among the tiles, and a thread's part of a layout. A step leaves out the
// modes of the tiler and the coordinate, or of the threads, that it has _ for (CuTe's X): of a tile
// (M,N,K) and {1, _, 1} there is (M,K).
Layout local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord,
                  SourceLoc loc = SourceLoc::current());
Layout local_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord,
                  const IntTuple& step, SourceLoc loc = SourceLoc::current());
Layout local_partition(const Layout& layout, const Layout& threads, const IntTuple& index,
                       SourceLoc loc = SourceLoc::current());
Layout local_partition(const Layout& layout, const Layout& threads, const IntTuple& index,
                       const IntTuple& step, SourceLoc loc = SourceLoc::current());
Tiler dice(const IntTuple& step, const Tiler& tiler, SourceLoc loc = SourceLoc::current());
// The blocks of a cluster that a multicast along a mode reaches from a coordinate, a bit each.
IntTuple make_layout_image_mask(const Layout& blocks, const IntTuple& coord, int mode,
                                SourceLoc loc = SourceLoc::current());

}  // namespace heddle
