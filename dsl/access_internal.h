// An access to a view as IR: what loads, stores and atomics share. Not for users.
#pragma once

#include "heddle/dsl/trace/trace_internal.h"
#include "heddle/dsl/view.h"

namespace heddle::detail {

// The operands behind a place in a view: the view, the offset in elements, and the check of its
// coordinates (none where the view has no extents).
struct AccessOperands {
  ir::ValueId view, offset, check;
};

using AccessAttrs = absl::InlinedVector<ir::Attr, 4>;
// Appends the L2 eviction priority, where there is one.
void add_l2_evict(AccessMode mode, AccessAttrs* attrs);
// What an asynchronous copy between these places carries of their hints; reports those that no copy
// takes.
AccessAttrs copy_attrs(Trace& trace, absl::Span<const Access* const> places);

// Records the offset and the check of an access to a value of that type, and reports one that may
// not be aligned.
AccessOperands record_access(Trace& trace, const Access& access, NodeType type, SourceLoc loc);

// Some neighbours of a view from an offset on, as a view of one mode.
ir::ValueId part_of(Trace& trace, ir::ValueId view, ir::ValueId offset, int count = 1);

}  // namespace heddle::detail
