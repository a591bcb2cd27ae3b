// Prefix sums over the lanes of a warp, the threads of a block, and the blocks of a cluster.
//
//   Int up_to_me = warp_scan(count, plus());                       // of lanes 0 to this one
//   Int place = block_scan_exclusive(count, Int(0), plus());       // of the threads in front of this one
//
// Combines in the order of the lanes or threads, so any associative function of anything Traced will do:
// maximum(), or a lambda on a struct. The order is fixed by the block's shape: the same launch gives the same bits.
#pragma once

#include <bit>
#include <vector>

#include "heddle/dsl/collective/reduce.h"

namespace heddle {

// Inclusive scan over segments of `width` lanes (1, 2, 4, 8, 16 or 32): a lane gets the combination of the values of its
// segment's lanes up to itself. All 32 lanes of the warp take part.
template <class X, class Combine>
auto warp_scan(const X& value, Combine combine, int width = kWarpSize,
               SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  detail::traced_t<X> result(value);
  if (!detail::is_width(width)) {
    detail::report(loc, "warp_scan() over a width that is no power of two from 1 to 32",
                   "scan over 1, 2, 4, 8, 16 or 32 lanes");
    return result;
  }
  const Int lane = width == kWarpSize ? Int(lane_id()) : lane_id() % width;
  for (int delta = 1; delta < width; delta *= 2) {
    const auto below = shfl_up(result, delta);
    detail::replace_leaves(result, select(lane >= delta, combine(below, result), result));
  }
  return result;
}

// The same of the lanes in front of a lane: what `first` and their values combine to; `first` for a segment's first lane.
template <class X, class Combine>
auto warp_scan_exclusive(const X& value, const detail::traced_t<X>& first, Combine combine,
                         int width = kWarpSize, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T below = shfl_up(warp_scan(value, combine, width, loc), 1);
  const Int lane = width == kWarpSize ? Int(lane_id()) : lane_id() % width;
  return detail::stays<T>(select(lane > 0, combine(first, below), first));
}

namespace detail {

// What the values of the warps in front of this one combine to, from what those of each do, which its last lane has;
// nothing of use in the first warp.
template <class T, class Combine>
T combine_warps_in_front(const T& up_to_lane, Combine combine, int threads, int warps) {
  const WarpSlots<T> slots(up_to_lane, warps);
  if (in_loop()) sync_threads();  // the last trip's readers are done with the slots
  If(lane_id() == kWarpSize - 1, [&] { slots.store(up_to_lane, warp_id()); });
  sync_threads();
  if (threads % kWarpSize == 0) {
    // As many steps as that many warps take.
    const int width = static_cast<int>(std::bit_ceil(static_cast<unsigned>(warps)));
    const Int slot = min(lane_id() & (width - 1), warps - 1);
    const T up_to = warp_scan(slots.load(up_to_lane, slot), combine, width);
    return shfl(up_to, max(warp_id() - 1, 0));
  }
  // The last warp may have fewer lanes than there are warps, and nothing stored.
  T all = slots.load(up_to_lane, Int(0));
  for (int warp = 1; warp < warps - 1; ++warp) {
    const T next = combine(all, slots.load(up_to_lane, Int(warp)));
    replace_leaves(all, stays<T>(select(warp_id() > warp, next, all)));
  }
  return all;
}

// What the blocks of a cluster in front of this one combine to, from what the threads up to each of a block do; nothing
// of use in the first block.
template <class T, class Combine>
T combine_blocks_in_front(const T& up_to_thread, Combine combine, int threads, SourceLoc loc) {
  const int blocks = cluster_size(), last = (threads - 1) % kWarpSize;
  const ClusterSlots<T> slots(up_to_thread, blocks);
  slots.arrive();
  cluster_wait();
  // The block's last thread has what all do; its warp's lanes store it, a block each.
  If(warp_id() == (threads - 1) / kWarpSize, [&] {
    const T all = shfl(up_to_thread, last);
    for (int passed = 0; passed < blocks; passed += last + 1) {
      const Int block = lane_id() + passed;
      If(lane_id() <= last && block < blocks,
         [&] { slots.store(all, cluster_rank(), block, loc); });
    }
  });
  const WarpSlots<T>& of_blocks = slots.wait();
  T all = of_blocks.load(up_to_thread, Int(0));
  for (int block = 1; block < blocks - 1; ++block) {
    const T next = combine(all, of_blocks.load(up_to_thread, Int(block)));
    replace_leaves(all, stays<T>(select(cluster_rank() > block, next, all)));
  }
  return all;
}

// What a thread's scan is made of: its warp's, and what groups of threads in front of the warp combine to, the nearest
// first.
template <class T>
struct InFront {
  struct Group {
    Bool any;
    T all;
  };
  T up_to_lane;
  std::vector<Group> groups;

  template <class Combine>
  T inclusive(Combine combine) const {
    T result = up_to_lane;
    for (const Group& group : groups) {
      replace_leaves(result, stays<T>(select(group.any, combine(group.all, result), result)));
    }
    return result;
  }
  template <class Combine>
  T exclusive(const T& first, Combine combine) const {
    T before = first;
    for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
      replace_leaves(before, stays<T>(select(group->any, combine(before, group->all), before)));
    }
    const T below = shfl_up(up_to_lane, 1);
    return stays<T>(select(lane_id() > 0, combine(before, below), before));
  }
};
template <class T, class Combine>
InFront<T> in_front_in_block(const T& value, Combine combine, SourceLoc loc) {
  InFront<T> result{warp_scan(value, combine, kWarpSize, loc), {}};
  const int threads = threads_per_block(), warps = warps_per_block();
  if (warps > 1) {
    result.groups.push_back(
        {warp_id() > 0, combine_warps_in_front(result.up_to_lane, combine, threads, warps)});
  }
  return result;
}
template <class T, class Combine>
InFront<T> in_front_in_cluster(const T& value, Combine combine, SourceLoc loc) {
  InFront<T> result = in_front_in_block(value, combine, loc);
  if (cluster_size() > 1) {
    result.groups.push_back(
        {cluster_rank() > 0,
         combine_blocks_in_front(result.inclusive(combine), combine, threads_per_block(), loc)});
  }
  return result;
}

}  // namespace detail

// Inclusive scan over a block: each thread gets the combination of the values of the threads up to itself, in the order
// of their numbers, x first. All threads of the block take part. The block's shape must be known when the kernel is
// compiled (not dynamic), else it is an error of the kernel. Costs one barrier (two inside a loop) and shared memory for
// one value of each warp.
template <class X, class Combine>
auto block_scan(const X& x, Combine combine, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T value(x);
  if (!detail::has_fixed_block("block_scan() in a kernel whose block is dynamic", loc))
    return value;
  return detail::in_front_in_block(value, combine, loc).inclusive(combine);
}

// The same of the threads in front of a thread: what `first` and their values combine to; `first` for the first thread.
template <class X, class Combine>
auto block_scan_exclusive(const X& x, const detail::traced_t<X>& first, Combine combine,
                          SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T value(x);
  if (!detail::has_fixed_block("block_scan_exclusive() in a kernel whose block is dynamic", loc)) {
    return value;
  }
  return detail::in_front_in_block(value, combine, loc).exclusive(first, combine);
}

// Inclusive scan over the threads of a cluster, block by block in the order of their ranks, as block_scan() is over those
// of one. All threads of the cluster take part. Costs a barrier of the block, one of the cluster, and the way to other
// blocks' memory. In a cluster of one block it is block_scan().
template <class X, class Combine>
auto cluster_scan(const X& x, Combine combine, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T value(x);
  if (!detail::has_fixed_block("cluster_scan() in a kernel whose block is dynamic", loc)) {
    return value;
  }
  return detail::in_front_in_cluster(value, combine, loc).inclusive(combine);
}

// The same of the threads in front of a thread: what `first` and their values combine to; `first` for the cluster's first.
template <class X, class Combine>
auto cluster_scan_exclusive(const X& x, const detail::traced_t<X>& first, Combine combine,
                            SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T value(x);
  if (!detail::has_fixed_block("cluster_scan_exclusive() in a kernel whose block is dynamic",
                               loc)) {
    return value;
  }
  return detail::in_front_in_cluster(value, combine, loc).exclusive(first, combine);
}

}  // namespace heddle
