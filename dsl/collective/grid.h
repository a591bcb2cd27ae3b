// Collectives over all blocks of a grid.
//
//   // Of a cooperative launch; partials has an element for each block, arrived is a word that is zero at first.
//   Float total = grid_reduce(sum, plus(), partials, arrived(0));
//
//   // Of any launch: the block that comes last goes on with what all have stored.
//   If(thread_idx.x == 0, [&] { partials(block_idx.x) = of_block; });
//   If(is_last_block(done(0)), [&] { … });
#pragma once

#include "heddle/dsl/collective/reduce.h"
#include "heddle/dsl/cuda/grid.h"

namespace heddle {
namespace detail {

inline Int block_number() {
  return Int(block_idx.x) + grid_dim.x * (Int(block_idx.y) + grid_dim.y * block_idx.z);
}
inline Int blocks_of_grid() { return grid_dim.x * grid_dim.y * grid_dim.z; }

// A value that may be none, and how two of these combine.
template <class T>
struct Maybe {
  Bool is;
  T value;
};
template <class T, class Combine>
struct CombineMaybe {
  Combine combine;
  Maybe<T> operator()(const Maybe<T>& a, const Maybe<T>& b) const {
    return {a.is || b.is, stays<T>(select(a.is && b.is, combine(a.value, b.value),
                                          select(a.is, a.value, b.value)))};
  }
};

}  // namespace detail

// Grid reduction: combines one value of each thread of a cooperative launch; every thread gets the result, with the same
// bits, whose order the launch's shape fixes. `partials` is a view in global memory of T's elements, one a block, whose
// blocks are counted in x first, and `arrived` a word as sync_grid() takes it. Another call may use the same ones behind a
// sync_grid(). Costs two block_reduce() and a barrier of the grid.
template <class X, class Combine, class Partials>
auto grid_reduce(const X& x, Combine combine, const Partials& partials,
                 detail::ElementRef<uint32_t>&& arrived, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T of_block = block_reduce(x, combine, loc);
  const Int thread = detail::thread_number(), blocks = detail::blocks_of_grid();
  If(thread == 0, [&] { partials(detail::block_number()) = of_block; });
  sync_grid(std::move(arrived));
  const detail::CombineMaybe<T, Combine> all{combine};
  const detail::Maybe<T> mine =
      For(range(thread, blocks, threads_per_block()), detail::Maybe<T>{false, of_block},
          [&](const Int& block, const detail::Maybe<T>& so_far) {
            return all(so_far, detail::Maybe<T>{true, T(partials(block))});
          });
  return block_reduce(mine, all, loc).value;
}

// Whether this is the last block of the grid that calls this: what the others' threads wrote before they did is visible to
// it then. All threads of a block call it together, and get the same answer. `done` is a word of global memory for this
// purpose alone, zero at first, and zero again once all blocks have called. Each call of a launch needs a word of its own,
// or a sync_grid() in front of it: blocks may be calls apart.
inline Bool is_last_block(detail::ElementRef<uint32_t>&& done,
                          SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const Shared<bool> last(1);
  sync_threads();
  If(warp_id() == 0 && lane_id() == 0, [&] {
    const UInt most = bitcast<uint32_t>(detail::blocks_of_grid() - 1);
    last(0) = atomic_inc(std::move(done), most, MemoryOrder::acq_rel) == most;
  });
  sync_threads();
  return assume_uniform(Bool(last(0)));
}

}  // namespace heddle
