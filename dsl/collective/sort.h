// Sorting by a warp, in its registers, and by a block or a cluster, in shared memory. None is stable.
//
//   Float least_first = warp_sort(value, [](const Float& a, const Float& b) { return a < b; });   // lane i has the i-th
//
//   Shared<uint64_t> keys(1024);
//   …
//   block_sort(keys, count, [](const UInt64& a, const UInt64& b) { return a > b; });   // the greatest first
#pragma once

#include <optional>
#include <utility>
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
// is a barrier of all threads in front of a step whose pairs lie in stretches of 2 * half elements. Where stretches of
// `width` elements are sorted, and merged, otherwise, sort_stretches() and merge_stretches() do so.
template <class Keys, class Before, class PairsOf, class Sync, class Sort, class Merge>
void sort_by_network(const Keys& keys, const Int& count, const Before& before,
                     const PairsOf& pairs_of, const Sync& sync, int width,
                     const Sort& sort_stretches, const Merge& merge_stretches) {
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
  sort_stretches();
  Var<int32_t> run(width);
  While([&] { return run < count; },
        [&] {
          // Two sorted runs become one: the first's elements are compared with the second's from its end.
          step(run, [&](const Int& begin, const Int& i) {
            return std::pair(begin + i, begin + 2 * run - 1 - i);
          });
          Var<int32_t> stride(run / 2);
          While([&] { return stride >= width; },
                [&] {
                  step(stride, [&](const Int& begin, const Int& i) {
                    return std::pair(begin + i, begin + i + stride);
                  });
                  stride = stride / 2;
                });
          merge_stretches();
          run = run * 2;
        });
}
// The same in which all steps are alike.
template <class Keys, class Before, class PairsOf, class Sync>
void sort_by_network(const Keys& keys, const Int& count, const Before& before,
                     const PairsOf& pairs_of, const Sync& sync) {
  sort_by_network(
      keys, count, before, pairs_of, sync, 1, [] {}, [] {});
}

// Values of the lanes of a segment, in the order of lanes first, and the steps of a bitonic network over them.
template <class T, class Before>
class LaneNetwork {
 public:
  // Those from number `count` on stay where they are; none: all are sorted.
  LaneNetwork(std::vector<T> values, const Before& before, std::optional<Int> count = {})
      : values_(std::move(values)), before_(before), count_(std::move(count)) {}

  // Sorts the values of each `width` lanes.
  void sort(int width) {
    const int all = each() * width;
    for (int run = 1; run < all; run *= 2) {
      // Two sorted runs become one: the first's elements meet the second's from its end.
      step(2 * run - 1, run);
      merge(run / 2);
    }
  }
  // Steps over this stride, which is a power of two, and all smaller ones.
  void merge(int stride) {
    for (; stride > 0; stride /= 2) step(stride, stride);
  }
  const std::vector<T>& values() const { return values_; }

 private:
  int each() const { return static_cast<int>(values_.size()); }

  // Each element meets the one whose number differs in the bits of `mask`; `top`, the highest of these, tells which of both
  // comes behind.
  void step(int mask, int top) {
    const int of_lanes = mask / each(), within = mask % each();
    const Bool behind = (lane_id() & (top / each())) != 0;
    std::vector<T> next;
    for (int i = 0; i < each(); ++i) {
      const T& mine = values_[static_cast<size_t>(i)];
      const T& there = values_[static_cast<size_t>(i ^ within)];
      if (of_lanes == 0) {
        const bool last = (i & top) != 0;
        const Bool swap = last ? before_(mine, there) : before_(there, mine);
        next.push_back(stays<T>(select(counted(swap, last, i, mask), there, mine)));
      } else {
        const T other = shfl_xor(there, of_lanes);
        const T first = stays<T>(select(behind, other, mine)),
                second = stays<T>(select(behind, mine, other));
        const Bool swap = before_(second, first);
        next.push_back(stays<T>(select(counted(swap, behind, i, mask), other, mine)));
      }
    }
    values_ = std::move(next);
  }
  // `swap`, where the pair's second element is one that is sorted: this lane's i-th, if that is behind the other.
  Bool counted(const Bool& swap, const Bool& behind, int i, int mask) const {
    if (!count_) return swap;
    const Int mine = lane_id() * each() + i;
    return swap && select(behind, mine, mine ^ mask) < *count_;
  }

  std::vector<T> values_;
  const Before& before_;
  std::optional<Int> count_;
};

// The network over an array by the threads of a block of whole warps: stretches of a warp's elements are sorted, and merged,
// in registers.
template <class Keys, class Before>
void sort_by_warps(const Keys& keys, const Int& count, const Before& before) {
  using T = traced_t<decltype(keys(count))>;
  // steps(network) of each stretch.
  const auto stretches = [&](const auto& steps) {
    sync_threads();
    for (const Int first : range(warp_id() * kWarpSize, count, threads_per_block())) {
      const Int mine = first + lane_id();
      // Lanes behind the end have the last element too, which its own lane stores later.
      LaneNetwork<T, Before> network({T(keys(min(mine, count - 1)))}, before, count - first);
      sync_warp();
      steps(network);
      If(mine < count, [&] { keys(mine) = network.values()[0]; });
    }
  };
  sort_by_network(
      keys, count, before,
      [&](const Int& pairs) {
        return Pairs{thread_idx.x, pairs, block_dim.x};
      },
      [](const Int&) { sync_threads(); }, kWarpSize,
      [&] { stretches([](auto& network) { network.sort(kWarpSize); }); },
      [&] { stretches([](auto& network) { network.merge(kWarpSize / 2); }); });
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
  detail::LaneNetwork<T, Before> network({T(value)}, before);
  network.sort(width);
  return network.values()[0];
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
  detail::LaneNetwork<T, Before> network(values, before);
  network.sort(kWarpSize);
  return network.values();
}

// Sorts the first `count` elements of an array, of any number that the block's threads agree on: of two, the one that is
// before(a, b) comes first. All threads of the block take part, in blocks of one dimension; what they wrote
// before is sorted, and what they read after it is. A bitonic network: log2(count) (log2(count) + 1) / 2 steps of count / 2
// comparisons. In blocks of whole warps, those between the elements of 32 take place in registers; the others have a barrier
// each.
template <class Keys, class Before>
void block_sort(const Keys& keys, const Int& count, Before before,
                SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  // 0: as many as a launch says.
  const int threads = threads_per_block();
  if (threads > 0 && threads % kWarpSize == 0) {
    detail::sort_by_warps(keys, count, before);
  } else {
    detail::sort_by_network(
        keys, count, before,
        [&](const Int& pairs) {
          return detail::Pairs{thread_idx.x, pairs, block_dim.x};
        },
        [](const Int&) { sync_threads(); });
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
