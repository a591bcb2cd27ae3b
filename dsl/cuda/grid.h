// Grids that wait: for their own blocks, and for the kernel before them.
//
//   // y is written by all blocks, then read by all; arrived is one uint32_t, zero at first.
//   y(i) = f(x(i));
//   sync_grid(arrived(0));
//   z(i) = y(n - 1 - i);
//
// The launch says that all blocks run at once: {.grid = 132, .block = 256, .cooperative = true}.
#pragma once

#include "heddle/dsl/view.h"

namespace heddle {
namespace detail {

void emit_sync_grid(const Access& arrived);

}  // namespace detail

// Every thread of the grid arrives and waits for the others; accesses before are visible after. All
// threads of a block come here together. `arrived` is a word of global memory that was zero before
// the first time and is for this alone; it can be used again, also by the next launch, without
// being cleared. Without `.cooperative` blocks may wait for ever for others that have not started.
inline void sync_grid(detail::ElementRef<uint32_t>&& arrived) {
  detail::emit_sync_grid(arrived.access());
}

// Between kernels of a stream, where the later one is launched with LaunchShape::programmatic: it
// may start when all blocks of the one before have called grid_dependency_launch() or ended, and
// sees what that one writes only behind grid_dependency_wait(), which waits until it is complete.
// Reading that before, or writing what the other still reads, is a mistake that nothing reports.
// A kernel that is launched as usual starts when those before are complete; both calls then do
// nothing, and nothing in the interpreter, which runs one kernel after the other.
inline void grid_dependency_wait(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kGridDependencyWait, loc);
}
inline void grid_dependency_launch(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kGridDependencyLaunch, loc);
}

}  // namespace heddle
