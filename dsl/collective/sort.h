// Sorting by a warp, in its registers, and by a block or a cluster, in shared memory. None is stable.
//
//   Float least_first = warp_sort(value, [](const Float& a, const Float& b) { return a < b; });   // lane i has the i-th
//
//   Shared<uint64_t> keys(1024);
//   …
//   block_sort(keys, count, [](const UInt64& a, const UInt64& b) { return a > b; });   // the greatest first
#pragma once

#include <vector>

#include "heddle/dsl/collective/reduce.h"
#include "heddle/dsl/cuda/cluster.h"

namespace heddle {

namespace detail {

// The pairs that a thread compares at a step: from `first` on in steps, to `last` at most.
struct Pairs {
  Int first, last, step;
};

// The steps of a bitonic network over `count` elements. `pairs_of` says which of so many pairs are the thread's; `sync(half)`
// is a barrier of all threads in front of a step whose pairs lie in stretches of 2 * half elements.
template <class Keys, class Before, class PairsOf, class Sync>
void sort_by_network(const Keys& keys, const Int& count, const Before& before,
                     const PairsOf& pairs_of, const Sync& sync) {
  // Pairs that lie in stretches of 2 * half elements, of which a half is in front. What lies behind the end would be the
  // last, and stay there.
  const auto step = [&](const Int& half, const auto& pair) {
    sync(half);
    const Pairs pairs = pairs_of((((count - 1) | (2 * half - 1)) + 1) / 2);
    for (const Int i : range(pairs.first, pairs.last, pairs.step)) {
      const Int in_half = i & (half - 1);
      const auto [first, second] = pair(2 * (i - in_half), in_half);
      If(second < count, [&, first = first, second = second] {
        const traced_t<decltype(keys(first))> a(keys(first)), b(keys(second));
        If(before(b, a), [&] {
          keys(first) = b;
          keys(second) = a;
        });
      });
    }
  };
  Var<int32_t> run(1);
  While([&] { return run < count; },
        [&] {
          // Two sorted runs become one: the first's elements are compared with the second's from its end.
          step(run, [&](const Int& begin, const Int& i) {
            return std::pair(begin + i, begin + 2 * run - 1 - i);
          });
          Var<int32_t> stride(run / 2);
          While([&] { return stride > 0; },
                [&] {
                  step(stride, [&](const Int& begin, const Int& i) {
                    return std::pair(begin + i, begin + i + stride);
                  });
                  stride = stride / 2;
                });
          run = run * 2;
        });
}

// The steps of a bitonic network over the values of the lanes of a segment, in the order of lanes first.
template <class T, class Before>
std::vector<T> sort_lanes(std::vector<T> values, const Before& before, int width) {
  const int each = static_cast<int>(values.size()), all = each * width;
  // Each element meets the one whose number differs in the bits of `mask`; `top`, the highest of these, tells which of both
  // comes behind.
  const auto step = [&](int mask, int top) {
    const int of_lanes = mask / each, within = mask % each;
    const Bool behind = (lane_id() & (top / each)) != 0;
    std::vector<T> next;
    for (int i = 0; i < each; ++i) {
      const T& mine = values[static_cast<size_t>(i)];
      const T& there = values[static_cast<size_t>(i ^ within)];
      if (of_lanes == 0) {
        const bool last = (i & top) != 0;
        next.push_back(T(select(last ? before(mine, there) : before(there, mine), there, mine)));
      } else {
        const T other = shfl_xor(there, of_lanes);
        const T first = select(behind, other, mine), second = select(behind, mine, other);
        const Bool swap = before(second, first);
        next.push_back(T(select(swap, other, mine)));
      }
    }
    values = std::move(next);
  };
  for (int run = 1; run < all; run *= 2) {
    // Two sorted runs become one: the first's elements meet the second's from its end.
    step(2 * run - 1, run);
    for (int stride = run / 2; stride > 0; stride /= 2) step(stride, stride);
  }
  return values;
}

}  // namespace detail

// Sorts the values of the lanes of a segment of `width` lanes (1, 2, 4, 8, 16 or 32), so that its lane i gets the i-th of
// them: of two, the one that is before(a, b) comes first. All 32 lanes of the warp take part. A bitonic network of shuffles:
// 15 steps for 32 lanes.
template <class X, class Before>
auto warp_sort(const X& value, Before before, int width = kWarpSize,
               SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = detail::traced_t<X>;
  if (!detail::is_width(width)) {
    detail::report(loc, "warp_sort() over a width that is no power of two from 1 to 32",
                   "sort over 1, 2, 4, 8, 16 or 32 lanes");
    return T(value);
  }
  return detail::sort_lanes(std::vector<T>{T(value)}, before, width)[0];
}

// The same of n values of each lane, n a power of two: of all 32 n in order, lane i gets those from number i n on.
template <Traced T, class Before>
std::vector<T> warp_sort(const std::vector<T>& values, Before before,
                         SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  if (values.empty() || (values.size() & (values.size() - 1)) != 0) {
    detail::report(loc, "warp_sort() of a number of values that is no power of two",
                   "pass 1, 2, 4, 8, … values");
    return values;
  }
  return detail::sort_lanes(values, before, kWarpSize);
}

// Sorts the first `count` elements of an array, of any number that the block's threads agree on: of two, the one that is
// before(a, b) comes first. All threads of the block take part, in blocks of one dimension; what they wrote
// before is sorted, and what they read after it is. A bitonic network: log2(count) (log2(count) + 1) / 2 steps, with a
// barrier each, of count / 2 comparisons. As few elements as a warp compares at once, 64, are sorted by the first warp
// with barriers of its own, in blocks of whole warps.
template <class Keys, class Before>
void block_sort(const Keys& keys, const Int& count, Before before,
                SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const auto by = [&](const Int& threads, auto sync) {
    detail::sort_by_network(
        keys, count, before,
        [&](const Int& pairs) {
          return detail::Pairs{thread_idx.x, pairs, threads};
        },
        [&](const Int&) { sync(); });
  };
  const auto by_block = [&] { by(block_dim.x, [] { sync_threads(); }); };
  if (threads_per_block() > kWarpSize && threads_per_block() % kWarpSize == 0) {
    If(
        count <= 2 * kWarpSize,
        [&] {
          sync_threads();
          If(warp_id() == 0, [&] { by(kWarpSize, [] { sync_warp(); }); });
        },
        by_block);
  } else {
    by_block();
  }
  sync_threads();
}

// Sorts the first `count` elements of the arrays of a cluster's blocks, one array a block, all of the same extent: the array
// of rank 0 comes first, then that of rank 1. All threads of the cluster take part and agree on `count`; otherwise as
// block_sort(). Where extents are powers of two, steps within one array take a barrier of its block; other steps take one of
// the cluster.
template <class T, class Before>
void cluster_sort(const Shared<T, 1>& keys, const Int& count, Before before,
                  SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const int blocks = cluster_size();
  if (blocks == 1) return block_sort(keys, count, before, loc);
  const Int each = keys.shape(0), rank = cluster_rank();
  const auto element = [&](const Int& i) { return map_shared(keys, i / each)(i % each); };
  // The pairs of a block are those of its array's elements, where steps stay within it.
  const auto pairs_of = [&](const Int& pairs) {
    const Int begin = rank * (each / 2);
    return detail::Pairs{begin + thread_idx.x,
                         select(rank == blocks - 1, pairs, min(begin + each / 2, pairs)),
                         block_dim.x};
  };
  const Bool splits = (each & (each - 1)) == 0;
  Var<bool> was_within(false);
  detail::sort_by_network(element, count, before, pairs_of, [&](const Int& half) {
    const Bool within = splits && 2 * half <= each;
    If(
        Bool(was_within) && within, [] { sync_threads(); }, [] { sync_cluster(); });
    was_within = within;
  });
  sync_cluster();
}

}  // namespace heddle
