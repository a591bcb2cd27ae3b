// Accesses to tensors: what element, copy and the atoms share. Not for users.
#pragma once

#include "heddle/dsl/tensor/tensor.h"
#include "heddle/dsl/trace/trace_internal.h"

namespace heddle::detail {

// A run of a tensor's elements, one beside the other in memory: its first one's coordinate, how
// many they are, and the mode of the view that they lie along.
struct Run {
  IntTuple coord;
  int width = 1;
  int mode = 0;
  const std::string* tensor = nullptr;  // its text, where it is known
};
Access run_access(const AnyTensor& tensor, const Run& run, SourceLoc loc);

// A coordinate's number for a mode of a view; a number is that of the only one.
SymInt number_at(const IntTuple& coord, int mode, int rank);

// The strides of a view's modes.
absl::InlinedVector<SymInt, kMaxRank> view_strides(Trace& trace, const Node& view, SourceLoc loc);

// Reports registers whose number the kernel computes.
void fail_unnamed_registers(const AnyTensor& tensor, SourceLoc loc);

// Whether a coordinate is one of the shape; reports one that is not for any run of the kernel.
bool check_coordinate(const AnyTensor& tensor, const IntTuple& coord, SourceLoc loc);

}  // namespace heddle::detail
