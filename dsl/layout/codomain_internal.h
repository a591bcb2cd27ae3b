// What the modes of a layout count in: an index, or, where strides are basis strides, the numbers
// of a coordinate, each of which is then dealt with by itself.
#pragma once

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "heddle/dsl/layout/modes_internal.h"

namespace heddle::detail {

// Positions among modes.
using Chosen = absl::InlinedVector<size_t, 8>;
Chosen all_of(const Modes& modes);
// By increasing stride, where that is known; of equal ones the order is that of CuTe's exchange
// sort.
void sort_by_stride(const Modes& modes, Chosen* chosen);
// Whether they are in order; if not, that is the call's mistake.
bool in_order(const Modes& modes, absl::Span<const size_t> order, Call* call);

bool has_basis(const Modes& modes);

inline constexpr char kPositive[] = "only layouts of positive strides have one";
// A mode starts before what others have reached: that is the call's mistake.
bool fail_overlap(const Mode& mode, const SymInt& reached, Call* call);

// A number of the coordinates that modes with basis strides count in.
struct Counted {
  Chosen modes;              // that count in it
  TupleNode unit;            // 1@path
  const TupleNode* extents;  // what a shape has there; nullptr without one
};
// Adds a layout for each number of the coordinates, under their profile: that of all modes, of one
// element too, which has to be one of the shape, and goes on where that does. What add() refuses,
// or has no such profile, is the call's mistake, and gives false.
bool each_number(const Modes& modes, const IntTuple* shape, Call* call, LayoutBuilder* out,
                 absl::FunctionRef<bool(const Counted&)> add);

}  // namespace heddle::detail
