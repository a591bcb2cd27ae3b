// Layouts as a row of modes, which most of the algebra works on.
#pragma once

#include "absl/container/inlined_vector.h"
#include "heddle/dsl/internal/tuple_builder.h"
#include "heddle/dsl/layout/layout.h"

namespace heddle::detail {

// An integer of a shape and its stride.
struct Mode {
  SymInt shape;
  TupleNode stride;
};
using Modes = absl::InlinedVector<Mode, 8>;

Mode mode_of(SymInt shape, SymInt stride);
// All modes, flat.
Modes modes_of(const Layout& layout);
Modes modes_of(const TupleNode& shape, const TupleNode& stride);
// Joined where neighbours continue each other, without modes of one element. The last one's stride
// stays even then where `extends`: so the function goes on beyond its shape as before.
Modes coalesced(const Modes& modes, bool extends);

// Collects a layout's shape and stride side by side.
class LayoutBuilder {
 public:
  void add(const TupleNode& shape, const TupleNode& stride) {
    shape_.add(shape);
    stride_.add(stride);
  }
  void add(const Mode& mode) {
    shape_.add(mode.shape);
    stride_.add(mode.stride);
  }
  void add(const Layout& layout) { add(layout.shape().node(), layout.stride().node()); }
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
  Layout build(SourceLoc loc = {}) { return Layout(shape_.build(loc), stride_.build(loc)); }

 private:
  TupleBuilder shape_, stride_;
};

Layout layout_of(const Modes& modes, SourceLoc loc = {});
// A layout that is not ok().
Layout failed_layout(const IntTuple& failure);
Layout fail_layout(SourceLoc loc, std::string what, const std::string& fix);
// A composed layout was to become a part of another one.
Layout fail_composed(const char* name, const Layout& layout, SourceLoc loc);
// A layout of what a swizzle gives, as a swizzle of what the layout gives.
Layout swizzled_first(const Layout& a, const Swizzle& swizzle, const std::string& name,
                      SourceLoc loc);
inline const Layout* first_failure(std::initializer_list<const Layout*> layouts) {
  for (const Layout* layout : layouts) {
    if (!layout->ok()) return layout;
  }
  return nullptr;
}

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
