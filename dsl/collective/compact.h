// Compaction: where those threads' elements go that are kept, in their order and without gaps.
//
//   const Compacted kept = block_compact(x(i) > 0);
//   If(x(i) > 0, [&] { y(kept.place) = x(i); });      // kept.count of them
#pragma once

#include "heddle/dsl/collective/scan.h"

namespace heddle {

// What a compaction says to a thread.
struct Compacted {
  Int place;  // how many are kept of the threads in front of this one
  Int count;  // of all
};

// The mask of the lanes in front of this one.
inline UInt lanes_in_front() { return (UInt(1u) << bitcast<uint32_t>(Int(lane_id()))) - 1u; }

// Compaction over the lanes of a warp, all of which take part.
inline Compacted warp_compact(const Bool& keep, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const UInt kept = ballot(keep);
  return {cast<int32_t>(popc(kept & lanes_in_front())), cast<int32_t>(popc(kept))};
}

namespace detail {

// A group's part of a compaction behind those that the groups in front of it keep; `count`: of all groups.
inline Compacted behind(const Compacted& of_group, const Int& in_front, const Int& count) {
  return {of_group.place + in_front, assume_uniform(count)};
}
// The sum of the numbers in the slots, and of those in front of this group's.
inline Compacted behind(const Compacted& of_group, const WarpSlots<Int>& slots, const Int& group,
                        int groups) {
  Var<int32_t> in_front(0), all(0);
  for (int other = 0; other < groups; ++other) {
    const Int counted = slots.load(of_group.count, Int(other));
    in_front = in_front + select(group > other, counted, Int(0));
    all = all + counted;
  }
  return behind(of_group, in_front, all);
}

}  // namespace detail

// Compaction over the threads of a block, all of which take part. The block's shape must be known when the kernel is
// compiled. Costs one barrier (two inside a loop) and shared memory for a number of each warp.
inline Compacted block_compact(const Bool& keep, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const Compacted of_warp = warp_compact(keep, loc);
  if (!detail::has_fixed_block("block_compact() in a kernel whose block is dynamic", loc)) {
    return of_warp;
  }
  const int threads = threads_per_block(), warps = warps_per_block();
  if (warps == 1) return of_warp;
  const detail::WarpSlots<Int> slots(of_warp.count, warps);
  if (detail::in_loop()) sync_threads();  // the last trip's readers are done with the slots
  If(lane_id() == 0, [&] { slots.store(of_warp.count, warp_id()); });
  sync_threads();
  if (threads % kWarpSize == 0) {
    const Int counted = slots.load(of_warp.count, min(lane_id(), warps - 1)),
              of_lane = select(lane_id() < warps, counted, Int(0));
    // The sums over all warps, and over those in front of this one.
    return detail::behind(of_warp,
                          warp_reduce(select(lane_id() < warp_id(), of_lane, Int(0)), plus()),
                          warp_reduce(of_lane, plus()));
  }
  // The last warp may have fewer lanes than there are warps.
  return detail::behind(of_warp, slots, warp_id(), warps);
}

// Compaction over the threads of a cluster, block by block in the order of their ranks.
inline Compacted cluster_compact(const Bool& keep, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const Compacted of_block = block_compact(keep, loc);
  const int blocks = cluster_size();
  if (blocks == 1 || threads_per_block() == 0) return of_block;
  const detail::ClusterSlots<Int> slots(of_block.count, blocks);
  slots.arrive();
  cluster_wait();
  If(warp_id() == 0 && lane_id() == 0, [&] {
    for (int block = 0; block < blocks; ++block) {
      slots.store(of_block.count, cluster_rank(), Int(block), loc);
    }
  });
  return detail::behind(of_block, slots.wait(), cluster_rank(), blocks);
}

}  // namespace heddle
