// Sorting by a block, in its shared memory.
//
//   Shared<uint64_t> keys(1024);
//   …
//   block_sort(keys, count, [](const UInt64& a, const UInt64& b) { return a > b; });   // the greatest first
#pragma once

#include "heddle/dsl/control.h"
#include "heddle/dsl/cuda/builtins.h"
#include "heddle/dsl/var.h"

namespace heddle {

namespace detail {

// The steps of a bitonic network over `count` elements, by threads that are numbered from 0 in steps of `threads`; `sync`
// is a barrier of them.
template <class Keys, class Before, class Sync>
void sort_by_network(const Keys& keys, const Int& count, const Before& before, const Int& threads,
                     const Sync& sync) {
  // Pairs that lie in stretches of 2 * half elements, of which a half is in front. What lies behind the end would be the
  // last, and stay there.
  const auto step = [&](const Int& half, const auto& pair) {
    sync();
    const Int pairs = (((count - 1) | (2 * half - 1)) + 1) / 2;
    for (const Int i : range(thread_idx.x, pairs, threads)) {
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

}  // namespace detail

// Sorts the first `count` elements of an array, of any number that the block's threads agree on: of two, the one that is
// before(a, b) comes first. Not stable. All threads of the block take part, in blocks of one dimension; what they wrote
// before is sorted, and what they read after it is. A bitonic network: log2(count) (log2(count) + 1) / 2 steps, with a
// barrier each, of count / 2 comparisons. As few elements as a warp compares at once, 64, are sorted by the first warp
// with barriers of its own, in blocks of whole warps.
template <class Keys, class Before>
void block_sort(const Keys& keys, const Int& count, Before before,
                SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const auto by_block = [&] {
    detail::sort_by_network(keys, count, before, block_dim.x, [] { sync_threads(); });
  };
  if (threads_per_block() > kWarpSize && threads_per_block() % kWarpSize == 0) {
    If(
        count <= 2 * kWarpSize,
        [&] {
          sync_threads();
          If(warp_id() == 0,
             [&] { detail::sort_by_network(keys, count, before, kWarpSize, [] { sync_warp(); }); });
        },
        by_block);
  } else {
    by_block();
  }
  sync_threads();
}

}  // namespace heddle
