// Collectives over all blocks of a grid.
//
//   // Of a cooperative launch; partials has an element for each block, arrived is a word that is zero at first.
//   Float total = grid_reduce(sum, plus(), partials, arrived(0));
//   Int place = grid_scan_exclusive(count, Int(0), plus(), partials, arrived(0));
//
//   // Of any launch: the block that comes last goes on with what all have stored.
//   If(thread_idx.x == 0, [&] { partials(block_idx.x) = of_block; });
//   If(is_last_block(done(0)), [&] { … });
//
// Functions with a parameter `arrived` need a cooperative launch: it is a word for sync_grid(), and the memory that they are
// given may be used again behind another sync_grid(). Blocks are counted in x first, and a grid's threads block by block.
#pragma once

#include "heddle/dsl/collective/compact.h"
#include "heddle/dsl/collective/gather.h"
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

// Grid reduction: combines one value of each thread; every thread gets the result, with the same bits, whose order the
// launch's shape fixes. `partials` is a view in global memory of T's elements, one a block. Costs two block_reduce() and a
// barrier of the grid.
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

namespace detail {

template <class T, class Combine, class Partials>
InFront<T> in_front_in_grid(const T& value, Combine combine, const Partials& partials,
                            ElementRef<uint32_t>&& arrived, SourceLoc loc) {
  InFront<T> result = in_front_in_block(value, combine, loc);
  const T of_block = result.inclusive(combine);
  const int threads = threads_per_block();
  const Int thread = thread_number(), block = block_number();
  If(thread == threads - 1, [&] { partials(block) = of_block; });
  sync_grid(std::move(arrived));
  // Each thread takes a stretch of the blocks in front, so that what is combined stays in order.
  const CombineMaybe<T, Combine> all{combine};
  const Int each = (block + (threads - 1)) / threads, first = thread * each;
  const Maybe<T> mine = For(range(first, min(first + each, block)), Maybe<T>{false, of_block},
                            [&](const Int& i, const Maybe<T>& so_far) {
                              return all(so_far, Maybe<T>{true, T(partials(i))});
                            });
  const Maybe<T> up_to_thread = in_front_in_block(mine, all, loc).inclusive(all);
  result.groups.push_back({block > 0, block_broadcast(up_to_thread.value, Int(threads - 1), loc)});
  return result;
}

}  // namespace detail

// Inclusive scan over a grid: each thread gets the combination of the values of the grid's threads up to itself, in the
// order of their numbers. `partials` is as grid_reduce() has it. Costs two block_scan(), a block_broadcast() and a barrier of
// the grid.
template <class X, class Combine, class Partials>
auto grid_scan(const X& x, Combine combine, const Partials& partials,
               detail::ElementRef<uint32_t>&& arrived, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T value(x);
  if (!detail::has_fixed_block("grid_scan() in a kernel whose block is dynamic", loc)) return value;
  return detail::in_front_in_grid(value, combine, partials, std::move(arrived), loc)
      .inclusive(combine);
}

// The same of the threads in front of a thread: what `first` and their values combine to; `first` for the grid's first.
template <class X, class Combine, class Partials>
auto grid_scan_exclusive(const X& x, const detail::traced_t<X>& first, Combine combine,
                         const Partials& partials, detail::ElementRef<uint32_t>&& arrived,
                         SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T value(x);
  if (!detail::has_fixed_block("grid_scan_exclusive() in a kernel whose block is dynamic", loc)) {
    return value;
  }
  return detail::in_front_in_grid(value, combine, partials, std::move(arrived), loc)
      .exclusive(first, combine);
}

// Compaction over the threads of a grid, in the order of their numbers. `partials` is a view in global memory of 32-bit
// integers, one a block.
template <class Partials>
Compacted grid_compact(const Bool& keep, const Partials& partials,
                       detail::ElementRef<uint32_t>&& arrived,
                       SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const Compacted of_block = block_compact(keep, loc);
  if (threads_per_block() == 0) return of_block;
  const Int thread = detail::thread_number(), block = detail::block_number();
  If(thread == 0, [&] { partials(block) = of_block.count; });
  sync_grid(std::move(arrived));
  const auto sum = [](const Compacted& a, const Compacted& b) {
    return Compacted{a.place + b.place, a.count + b.count};
  };
  const Compacted mine = For(range(thread, detail::blocks_of_grid(), threads_per_block()),
                             Compacted{0, 0}, [&](const Int& i, const Compacted& so_far) {
                               const Int count = partials(i);
                               return sum(so_far, {select(i < block, count, Int(0)), count});
                             });
  const Compacted all = block_reduce(mine, sum, loc);
  return detail::behind(of_block, all.place, all.count);
}

// Hands the value of one thread, given by its block's number and its own in the block, to all threads of the grid. It goes
// through places(0), an element in global memory.
template <class X, class Places>
auto grid_broadcast(const X& x, const Int& block, const Int& thread, const Places& places,
                    detail::ElementRef<uint32_t>&& arrived, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T value(x);
  If(detail::block_number() == block && detail::thread_number() == thread,
     [&] { places(0) = value; });
  sync_grid(std::move(arrived));
  return detail::all_alike(T(places(0)), loc);
}

// Stores the value of each thread of the grid at its number in `places`, a view in global memory of T's elements, where
// then every thread may read all of them. Blocks need a shape that is known when the kernel is compiled.
template <class X, class Places>
void grid_all_gather(const X& x, const Places& places, detail::ElementRef<uint32_t>&& arrived,
                     SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  if (!detail::has_fixed_block("grid_all_gather() in a kernel whose block is dynamic", loc)) return;
  places(detail::block_number() * threads_per_block() + detail::thread_number()) = T(x);
  sync_grid(std::move(arrived));
}

// Of some values of each thread the i-th ones of the grid's threads combined, shared out over the blocks as
// cluster_reduce_scatter() does over a cluster's. Blocks of whole warps, with a thread for each value. `partials` is a view
// in global memory of T's elements, as many a block as there are values. Costs a block_reduce_scatter(), a barrier of the
// grid and a load for each block.
template <Traced T, class Combine, class Partials>
T grid_reduce_scatter(const std::vector<T>& values, Combine combine, const Partials& partials,
                      detail::ElementRef<uint32_t>&& arrived,
                      SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  if (!detail::can_scatter(
          "grid_reduce_scatter() in a block without a thread for each value, or not of whole warps",
          values.size(), 1, loc)) {
    return values.empty() ? detail::blank<T>() : values[0];
  }
  const auto count = static_cast<int>(values.size());
  const Int thread = detail::thread_number(), block = detail::block_number(),
            blocks = detail::blocks_of_grid();
  const T of_block = block_reduce_scatter(values, combine, loc);
  If(thread < count, [&] { partials(block * count + thread) = of_block; });
  sync_grid(std::move(arrived));
  const Int each = (blocks + (count - 1)) / blocks,
            mine = min(block * each + min(thread, each - 1), count - 1);
  return For(range(1, blocks), T(partials(mine)), [&](const Int& i, const T& so_far) {
    return detail::stays<T>(combine(so_far, T(partials(i * count + mine))));
  });
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
