#include "heddle/dsl/cuda/grid.h"

#include "heddle/dsl/control.h"
#include "heddle/dsl/cuda/atomic.h"
#include "heddle/dsl/cuda/builtins.h"

namespace heddle::detail {

// The block's barrier makes its threads' accesses part of what thread 0 releases and acquires. The
// blocks' arrivals sum up to 2^31 each time: the top bit changes when the last one comes, and the
// others watch it. So nothing needs to be cleared.
void emit_sync_grid(const Access& arrived) {
  const SourceLoc loc = arrived.loc;
  const CallerLines lines(loc);
  constexpr uint32_t kTop = uint32_t{1} << 31;
  const auto origin = [&](const Coordinates& at) { return (at.x | at.y | at.z) == 0; };
  sync_threads(loc);
  If(origin(thread_idx), [&] {
    const UInt blocks = cast<uint32_t>(grid_dim.x * grid_dim.y * grid_dim.z);
    const UInt share = select(origin(block_idx), kTop + 1u - blocks, UInt(1u));
    const UInt before = atomic_add(ElementRef<uint32_t>(arrived), share, MemoryOrder::acq_rel);
    While(
        [&] {
          const UInt now = atomic_load(ElementRef<uint32_t>(arrived), MemoryOrder::acquire);
          return ((now ^ before) & kTop) == 0u;
        },
        [] {});
  });
  sync_threads(loc);
}

}  // namespace heddle::detail
