// Layouts as the algebra works on them: where they lie, and as rows of modes.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "heddle/dsl/layout/layout.h"
#include "heddle/dsl/layout/tuple_builder_internal.h"

namespace heddle::detail {

// An integer of a shape and its stride.
struct Mode {
  SymInt shape;
  TupleNode stride;
};
using Modes = absl::InlinedVector<Mode, 8>;

inline Mode mode_of(SymInt shape, SymInt stride) {
  Mode mode{.shape = std::move(shape), .stride = {}};
  mode.stride.value = std::move(stride);
  return mode;
}

// A layout's shape and stride, or those of one of its modes, where they lie. What is behind the
// stride of a composed layout is not looked at.
class Part {
 public:
  Part(const TupleNode& shape, const TupleNode& stride) : shape_(&shape), stride_(&stride) {}
  Part(const Layout& layout)  // NOLINT: a layout is one
      : Part(layout.shape().node(), layout.stride().node()) {}

  const TupleNode& shape() const { return *shape_; }
  const TupleNode& stride() const { return *stride_; }
  bool is_tuple() const { return shape_->is_tuple(); }
  int rank() const { return rank_of(*shape_); }
  Part mode(int i) const { return {element(*shape_, i), element(*stride_, i)}; }
  Layout layout() const {
    return Layout(TupleBuilder::build(*shape_), TupleBuilder::build(*stride_));
  }
  // visit(mode), in order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    auto step = Elements(*stride_).begin();
    for (const TupleNode& extent : Elements(*shape_)) {
      visit(Part(extent, *step));
      ++step;
    }
  }

 private:
  const TupleNode* shape_;
  const TupleNode* stride_;
};

// All modes, flat.
Modes modes_of(Part part);
// Adds a mode of more than one element, as a part of the last one where it continues that.
void add_joined(SymInt shape, TupleNode stride, Modes* modes);
inline void add_joined(SymInt shape, SymInt stride, Modes* modes) {
  Mode mode = mode_of(std::move(shape), std::move(stride));
  add_joined(std::move(mode.shape), std::move(mode.stride), modes);
}
// All modes, joined where neighbours continue each other, without those of one element; filtered:
// nor those of stride 0. Where nothing is left, 1:0.
Modes coalesced(Part part);
Modes filtered(Part part);
// Coalesced, but that the function goes on beyond the shape as before: the last mode's stride
// stays.
Modes unbounded(Part part);
SymInt cosize_of(Part part);

// Collects a layout's shape and stride side by side.
class LayoutBuilder {
 public:
  void add(Part part) {
    shape_.add(part.shape());
    stride_.add(part.stride());
  }
  void add(const Mode& mode) {
    shape_.add(mode.shape);
    stride_.add(mode.stride);
  }
  // A row of modes: a number where there is one, 1:0 where there is none.
  void add(const Modes& modes);
  size_t open() {
    stride_.open();
    return shape_.open();
  }
  void close(size_t tuple) {
    shape_.close(tuple);
    stride_.close(tuple);
  }
  // What was collected, to change numbers in it.
  absl::Span<TupleNode> shapes() { return shape_.nodes(); }
  absl::Span<TupleNode> strides() { return stride_.nodes(); }
  Layout build(SourceLoc loc = {}) { return Layout(shape_.build(loc), stride_.build(loc)); }

 private:
  TupleBuilder shape_, stride_;
};

// A call that a user wrote, for messages: text() is as written, "coalesce(4:1)". It keeps the first
// mistake.
class Call {
 public:
  Call(absl::FunctionRef<std::string()> text, SourceLoc loc) : text_(text), loc_(loc) {}

  SourceLoc loc() const { return loc_; }
  bool ok() const { return failure_.ok(); }
  // These give false.
  bool fail(const std::string& what, const std::string& fix);
  bool fail(const IntTuple& failure);
  // A composed layout was to become a part of another one; a tiler has more modes than a layout.
  bool fail_composed(const Layout& layout);
  bool fail_rank(const Tiler& tiler, Part layout);
  // What was collected, or the mistake.
  Layout result(LayoutBuilder* builder) const;
  Layout failure() const { return Layout(failure_, failure_); }

 private:
  absl::FunctionRef<std::string()> text_;
  SourceLoc loc_;
  IntTuple failure_ = 0;
};

// What messages show of these.
std::string text(const Layout& layout);
std::string text(const Tiler& tiler);
// As written: "name(a, b)".
template <class... Operands>
std::string call_text(const char* name, const Operands&... operands) {
  std::string result(name);
  const char* separator = "(";
  ((result += std::exchange(separator, ", ") + text(operands)), ...);
  return result + ")";
}

Layout layout_of(const Modes& modes, SourceLoc loc = {});
// A layout that is not ok().
Layout failed_layout(const IntTuple& failure);
Layout fail_layout(SourceLoc loc, std::string what, const std::string& fix);
// Why recast_layout() has no swizzle for these widths, and how to mend it; empty where it has.
std::string why_not_recast(const Swizzle& swizzle, int old_bits, int new_bits, std::string* fix);
// A layout of what a swizzle gives, as a swizzle of what the layout gives.
Layout swizzled_first(const Layout& a, const Swizzle& swizzle, Call* call);
inline const Layout* first_failure(std::initializer_list<const Layout*> layouts) {
  for (const Layout* layout : layouts) {
    if (!layout->ok()) return layout;
  }
  return nullptr;
}

// The index of a coordinate without `_`.
IntTuple index_of(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride,
                  SourceLoc loc);

// An index, and, where there are basis strides, a coordinate.
class IndexSum {
 public:
  void add(const SymInt& times, const TupleNode& stride);
  // The index of a coordinate in a layout.
  IntTuple total(const IntTuple& coord, const IntTuple& shape, const IntTuple& stride,
                 SourceLoc loc) const;

 private:
  SymInt index_ = 0;
  IntTuple coordinate_ = 0;
};

// Collects the modes that coordinates leave whole (where they have _), in one row, and the index of
// what they fix.
class Slicer {
 public:
  // False where the profiles differ.
  bool add(const TupleNode& coord, Part part);
  LayoutBuilder& whole() { return whole_; }
  // Of a layout at a coordinate: a composed one takes the index as its offset.
  std::pair<Layout, IntTuple> result(const IntTuple& coord, const Layout& layout, SourceLoc loc);

 private:
  LayoutBuilder whole_;
  IndexSum fixed_;
};

// Composes layouts with one that they go through. Their modes have to stay within its modes
// together. Messages call it `left`, and what goes through it `right`.
class Composer {
 public:
  // Where tiles do not divide a's modes, `otherwise` is another way out.
  Composer(Part a, const char* left, const char* right, Call* call, const char* otherwise = "");
  // Adds a(b(c)), of b's shape; false after a mistake.
  bool add(Part b, LayoutBuilder* out);
  bool add(const Modes& modes, LayoutBuilder* out);

 private:
  // How far the modes reach into one of a's.
  struct Reach {
    SymInt last = 0;  // the greatest index within the mode
    int modes = 0;    // that move in it
  };
  // What is gone through: a's modes, flat, or those of the one that a basis stride names.
  struct Way {
    explicit Way(Part part) : flat(unbounded(part)), reaches(flat.size()) {}

    Modes flat;
    absl::InlinedVector<Reach, 4> reaches;
  };
  bool add(const SymInt& shape, const TupleNode& stride, LayoutBuilder* out);
  bool add_through(Way* way, SymInt shape, const TupleNode& stride, LayoutBuilder* out);
  // nullptr after a mistake.
  Way* way_of(const TupleNode& stride);

  const Part a_;
  Way whole_;
  std::vector<std::pair<TupleNode, Way>> named_;  // by basis stride
  const char* const left_;
  const char* const right_;
  Call* const call_;
  const char* const otherwise_;
};

// The integers of a shape, flat.
using Extents = absl::InlinedVector<SymInt, 4>;
Extents extents_of(const TupleNode& shape);
// The indices below the cotarget's size that filtered modes leave out, in order; false after a
// mistake.
bool complement_of(const Modes& modes, const Extents& cotarget, Call* call, Modes* result);
// The same of modes with basis strides: the coordinates within the cotarget that they leave out.
bool complement_of_coordinates(const Modes& modes, const IntTuple& cotarget, Call* call,
                               LayoutBuilder* out);

// A composed layout whose index starts further on, with another shape and stride.
Layout moved_layout(const Layout& composed, const IntTuple& by, const Layout& outer, SourceLoc loc);

// A divided layout, and the coordinate that picks a tile or a thread's part of it.
struct Cut {
  Layout tiles;
  IntTuple coord;
};
Cut cut_tile(const Layout& layout, const Tiler& tiler, const IntTuple& coord, SourceLoc loc);
Cut cut_partition(const Layout& layout, const Layout& threads, const IntTuple& index,
                  SourceLoc loc);

// Whether, whatever the symbols will be, b divides a or is no less.
bool divides_or_exceeds(const SymInt& b, const SymInt& a);

}  // namespace heddle::detail
