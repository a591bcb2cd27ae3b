// Grid-wide synchronisation: a barrier of all blocks, and waiting for the kernel before.
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

// Grid barrier: waits until every thread of the grid has arrived; accesses before it are visible
// after it. All threads of a block call it together. `arrived` is a word of global memory for this
// purpose alone, zero before its first use; later uses and launches need not clear it. The launch
// must be `.cooperative`: otherwise blocks may wait for ever for others that have not started.
inline void sync_grid(detail::ElementRef<uint32_t>&& arrived) {
  detail::emit_sync_grid(arrived.access());
}

// Programmatic dependent launch, of two kernels that follow each other in a stream, where the
// second is launched with LaunchShape::programmatic. The second may start when all blocks of the
// first have called grid_dependency_launch() or ended. grid_dependency_wait() waits in the second
// until the first is complete. Reading the first one's results before that, or writing what it
// still reads, is an error. Kernels that are launched as usual start when those before them are
// complete, and both calls do nothing; nor do they in the interpreter, which runs one kernel after
// the other: it reports a kernel that never waits and reaches memory that the first one writes, and
// not one that waits too late.
inline void grid_dependency_wait(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kGridDependencyWait, loc);
}
inline void grid_dependency_launch(SourceLoc loc = SourceLoc::current()) {
  detail::emit(detail::op::kGridDependencyLaunch, loc);
}

}  // namespace heddle
