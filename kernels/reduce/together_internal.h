// Combining rows of a few elements that lie one behind the other and begin anywhere: a block copies as many rows as it has
// threads to shared memory, in whole accesses, and each thread combines one. Internal to the kernels.
#pragma once

#include "heddle/kernels/reduce/combine_internal.h"
#include "heddle/kernels/reduce/rows_deal_internal.h"
#include "heddle/kernels/reduce/short_rows_internal.h"

namespace heddle::kernels {

// store(0, 0, row, state) of each row. `x` has them all, `groups` those of a block in a row.
template <class Op, class T, class Store>
void reduce_together_body(const Op& op, const TogetherDeal& deal, const Tensor<const T, 2>& x,
                          const Tensor<const T, 2>& groups, Store store) {
  constexpr int kWidth = kVectorBytes / int{sizeof(T)};
  const int columns = deal.columns, elements = deal.threads * columns;
  const Int group = block_idx.x, thread = thread_idx.x, row = group * deal.threads + thread;
  // All elements of a row, element(column) each, some at a time.
  const auto combine = [&](auto element) {
    const auto some = [&](const Int& first, int count) {
      Elements<typename Op::Element> all{{}, {{count, first, {}}}};
      for (int i = 0; i < count; ++i) {
        all.values.push_back(cast<typename Op::Element>(element(first + i)));
      }
      return op.of(all);
    };
    constexpr int kTogether = 8;
    const int left = columns % kTogether;
    const typename Op::State whole =
        For(range(0, columns / kTogether), op.nothing(),
            [&](const Int& turn, const typename Op::State& so_far) {
              return op.merge(so_far, some(turn * kTogether, kTogether));
            });
    store(Int(0), Int(0), row, left == 0 ? whole : op.merge(whole, some(columns - left, left)));
  };
  If(group < groups.shape(0), [&] {
    const heddle::detail::View<const T, 2> in = groups.assume_aligned();
    const Shared<T> tile(elements);
    For(range(thread, elements / kWidth, deal.threads).unroll(8), [&](const Int& vector) {
      copy_async<kWidth>(tile.at(vector * kWidth), in.at(group, vector * kWidth));
    });
    copy_async_commit();
    copy_async_wait();
    sync_threads();
    combine([&](const Int& column) { return tile(thread * columns + column); });
  }).Else([&] {
    // The rows that are left are fewer than a block's.
    If(row < x.shape(0), [&] { combine([&](const Int& column) { return x(row, column); }); });
  });
}

}  // namespace heddle::kernels
