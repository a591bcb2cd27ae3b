// What one thread has, or all, for the others: broadcast, all-gather and reduce-scatter over the lanes of a warp, the
// threads of a block and the blocks of a cluster.
//
//   Float scale = block_broadcast(mine, 5);                     // thread 5's, in every thread
//   const Gathered<Float> all = block_all_gather(mine);         // all(i) is thread i's
//   Float sum = warp_reduce_scatter(parts, plus());             // lane i gets the sum of all lanes' parts[i]
//
// Threads are numbered as warps have them, those of a cluster block by block in the order of their ranks. All threads of
// the group take part. Blocks need a shape that is known when the kernel is compiled.
#pragma once

#include <vector>

#include "heddle/dsl/collective/reduce.h"

namespace heddle {
// A value of each thread of a group, in shared memory.
template <Traced T>
class Gathered {
 public:
  // Of slots that hold values like the prototype.
  Gathered(const detail::WarpSlots<T>& slots, const T& prototype)
      : slots_(slots), prototype_(prototype) {}
  // The value of a thread of the group.
  T operator()(const Int& thread) const { return slots_.load(prototype_, thread); }

 private:
  const detail::WarpSlots<T> slots_;
  const T prototype_;
};

// The values of the lanes of a segment of `width` lanes (1, 2, 4, 8, 16 or 32), in their order, in each of them.
template <class X>
auto warp_all_gather(const X& value, int width = kWarpSize, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  std::vector<T> all;
  if (!detail::is_width(width)) {
    detail::report(loc, "warp_all_gather() over a width that is no power of two from 1 to 32",
                   "gather from 1, 2, 4, 8, 16 or 32 lanes");
    width = 1;
  }
  for (int lane = 0; lane < width; ++lane) all.push_back(shfl(T(value), lane, width));
  return all;
}

// The values of the block's threads. Costs one barrier (two inside a loop).
template <class X>
auto block_all_gather(const X& x, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T value(x);
  const bool fixed =
      detail::has_fixed_block("block_all_gather() in a kernel whose block is dynamic", loc);
  const detail::WarpSlots<T> slots(value, fixed ? threads_per_block() : 1);
  if (detail::in_loop()) sync_threads();  // the last trip's readers are done with the slots
  slots.store(value, detail::thread_number());
  sync_threads();
  return Gathered<T>(slots, value);
}

// The values of the cluster's threads, in each block's shared memory.
template <class X>
auto cluster_all_gather(const X& x, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T value(x);
  const int blocks = cluster_size(), threads = threads_per_block();
  if (blocks == 1 || threads == 0) return block_all_gather(value, loc);
  const detail::ClusterSlots<T> slots(value, blocks * threads);
  slots.arrive();
  cluster_wait();
  for (int block = 0; block < blocks; ++block) {
    slots.store(value, cluster_rank() * threads + detail::thread_number(), Int(block), loc);
  }
  return Gathered<T>(slots.wait(), value);
}

// The value of the block's thread of a number that all agree on, in each of them. Costs one barrier (two inside a loop).
template <class X>
auto block_broadcast(const X& x, const Int& thread, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T value(x);
  const detail::WarpSlots<T> slots(value, 1);
  if (detail::in_loop()) sync_threads();  // the last trip's readers are done with the slot
  If(detail::thread_number() == thread, [&] { slots.store(value, Int(0)); });
  sync_threads();
  return detail::all_alike(slots.load(value, Int(0)), loc);
}

// The value of a thread of the cluster's block of a rank, in each thread of the cluster.
template <class X>
auto cluster_broadcast(const X& x, const Int& rank, const Int& thread,
                       SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  const T value(x);
  const int blocks = cluster_size();
  if (blocks == 1) return block_broadcast(value, thread, loc);
  const detail::ClusterSlots<T> slots(value, 1);
  slots.arrive();
  cluster_wait();
  If(cluster_rank() == rank && detail::thread_number() == thread, [&] {
    for (int block = 0; block < blocks; ++block) slots.store(value, Int(0), Int(block), loc);
  });
  return detail::all_alike(slots.wait().load(value, Int(0)), loc);
}

// Of as many values of each lane as a power of two up to 32 says, the i-th ones of all 32 lanes combined; a lane gets
// those of its number modulo their number. Halves are exchanged step by step: for 32 values 31 shuffles, where
// reductions of each take 160. `combine` is associative and commutative; the order is fixed.
template <Traced T, class Combine>
T warp_reduce_scatter(std::vector<T> values, Combine combine,
                      SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const auto count = static_cast<int>(values.size());
  if (!detail::is_width(count)) {
    detail::report(
        loc, "warp_reduce_scatter() of a number of values that is no power of two from 1 to 32",
        "pass 1, 2, 4, 8, 16 or 32 values");
    return values.empty() ? detail::blank<T>() : values[0];
  }
  for (int half = count / 2; half > 0; half /= 2) {
    const Bool upper = (lane_id() & half) != 0;
    for (int i = 0; i < half; ++i) {
      const T &low = values[static_cast<size_t>(i)], &high = values[static_cast<size_t>(i + half)];
      const T others = shfl_xor(T(select(upper, low, high)), half);
      detail::replace_leaves(values[static_cast<size_t>(i)],
                             detail::stays<T>(combine(T(select(upper, high, low)), others)));
    }
  }
  T mine = values[0];
  for (int mask = count; mask < kWarpSize; mask *= 2) {
    detail::replace_leaves(mine, detail::stays<T>(combine(mine, shfl_xor(mine, mask))));
  }
  return mine;
}

namespace detail {

// The i-th values of a warp's lanes combined, for i = first, first + 1, …: each in one of the first `lanes` lanes.
template <class T>
struct WarpSums {
  int first, lanes;
  T sums;
};
template <class T, class Combine>
std::vector<WarpSums<T>> sums_of_warp(const std::vector<T>& values, Combine combine,
                                      SourceLoc loc) {
  const auto count = static_cast<int>(values.size());
  std::vector<WarpSums<T>> all;
  int size = kWarpSize;
  for (int first = 0; first < count; first += size) {
    while (size > count - first) size /= 2;
    all.push_back(
        {first, size,
         warp_reduce_scatter(std::vector<T>(values.begin() + first, values.begin() + first + size),
                             combine, loc)});
  }
  return all;
}
// Calls store(i, combination) for each i, in the lane that has it.
template <class T, class Store>
void store_sums(const std::vector<WarpSums<T>>& all, const Store& store) {
  for (const WarpSums<T>& one : all) {
    If(lane_id() < one.lanes, [&] { store(one.first + lane_id(), one.sums); });
  }
}

// What `count` slots hold, each `apart` from the one before, combined in their order.
template <class T, class Combine>
T combine_in_order(const WarpSlots<T>& slots, const T& prototype, const Int& first, int count,
                   int apart, Combine combine) {
  T result = slots.load(prototype, first);
  for (int i = 1; i < count; ++i) {
    replace_leaves(result, stays<T>(combine(result, slots.load(prototype, first + i * apart))));
  }
  return result;
}

// Whether a group of threads can have so many values combined and handed out; else reports it.
inline bool can_scatter(const char* message, size_t count, int groups, SourceLoc loc) {
  const int threads = threads_per_block();
  if (threads != 0 && threads % kWarpSize == 0 && count != 0 &&
      count <= static_cast<size_t>(groups * threads)) {
    return true;
  }
  report(loc, message,
         "give the launch a fixed block of a multiple of 32 threads, at least as many as values");
  return false;
}

}  // namespace detail

// Of some values of each thread the i-th ones of all threads combined, in thread i; those behind their number get the
// last one's. `combine` is associative and commutative. Blocks of whole warps, with a thread for each value. Costs one
// barrier (two inside a loop).
template <Traced T, class Combine>
T block_reduce_scatter(const std::vector<T>& values, Combine combine,
                       SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  if (!detail::can_scatter("block_reduce_scatter() in a block without a thread for each value, or "
                           "not of whole warps",
                           values.size(), 1, loc)) {
    return values.empty() ? detail::blank<T>() : values[0];
  }
  const auto count = static_cast<int>(values.size());
  const int warps = warps_per_block();
  const detail::WarpSlots<T> slots(values[0], warps * count);
  if (detail::in_loop()) sync_threads();  // the last trip's readers are done with the slots
  detail::store_sums(detail::sums_of_warp(values, combine, loc), [&](const Int& i, const T& sums) {
    slots.store(sums, warp_id() * count + i);
  });
  sync_threads();
  return detail::combine_in_order(slots, values[0], min(detail::thread_number(), count - 1), warps,
                                  count, combine);
}

// The same over the threads of a cluster, whose blocks get equal shares of the values: of n values and b blocks, the block
// of rank r gets share = ⌈n / b⌉ of them, from number r · share on, one in each of its first threads. Its other threads get the
// last of its share, and blocks for which nothing is left the last of all values. Costs a barrier of the cluster, which
// overlaps with the warps' work, and the way to other blocks' memory. In a cluster of one block it is block_reduce_scatter().
template <Traced T, class Combine>
T cluster_reduce_scatter(const std::vector<T>& values, Combine combine,
                         SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const int blocks = cluster_size();
  if (blocks == 1) return block_reduce_scatter(values, combine, loc);
  if (!detail::can_scatter("cluster_reduce_scatter() in a cluster without a thread for each value, "
                           "or of blocks that are not of whole warps",
                           values.size(), blocks, loc)) {
    return values.empty() ? detail::blank<T>() : values[0];
  }
  const int warps = warps_per_block();
  const size_t share =
      (values.size() + static_cast<size_t>(blocks) - 1) / static_cast<size_t>(blocks);
  const auto each = static_cast<int>(share);
  std::vector<T> shared_out = values;
  while (shared_out.size() < share * static_cast<size_t>(blocks))
    shared_out.push_back(values.back());
  const detail::ClusterSlots<T> slots(values[0], blocks * warps * each);
  slots.arrive();
  const auto sums_of_warp = detail::sums_of_warp(shared_out, combine, loc);
  const Int warp = cluster_rank() * warps + warp_id();
  cluster_wait();
  detail::store_sums(sums_of_warp, [&](const Int& i, const T& sums) {
    slots.store(sums, warp * each + i % each, i / each, loc);
  });
  return detail::combine_in_order(slots.wait(), values[0], min(detail::thread_number(), each - 1),
                                  blocks * warps, each, combine);
}

}  // namespace heddle
