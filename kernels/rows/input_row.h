// A row that a kernel reads, as often as it likes: from registers where threads hold all of it, else from shared
// memory, else from the matrix again. Internal to the kernels.
#pragma once

#include <optional>

#include "heddle/kernels/rows/row.h"

namespace heddle::kernels {

// A row that is read more than once.
template <class T>
class InputRow {
 public:
  // Loads the row, or waits until this thread's share of it is in shared memory. `outside` stands for what lies
  // outside the row where a thread's vectors do.
  InputRow(const RowThreads& threads, const Tensor<const T, 2>& x, const T& outside)
      : deal_(threads.deal()), row_(threads, x), outside_(outside) {
    if (deal_.in_parts) return;
    if (deal_.kept == 0) {
      only_.emplace(row_.load(0, outside));
      return;
    }
    kept_.emplace(int64_t{deal_.kept} * threads.of_block() * deal_.width);
    For(range(deal_.kept).unroll(1),
        [&](const Int& part) { row_.copy_async(part, *kept_, outside); });
    copy_async_commit();
    if (deal_.peeled) edge_.emplace(row_.load_edge(0, outside));
    copy_async_wait();
  }
  // The row of which this thread's only part is loaded already.
  InputRow(const RowThreads& threads, const Tensor<const T, 2>& x, const RowPart<T>& loaded)
      : deal_(threads.deal()), row_(threads, x), outside_(0.0f), only_(loaded) {}

  // Elements of the row.
  const Int& columns() const { return row_.columns(); }

  // of(part) of this thread's parts, merged, beginning with `nothing`; of the only one where there are no others. With
  // other rows of the same threads: of(part, their parts…).
  template <class X, class Of, class Merge, class... Other>
  X fold(const X& nothing, Of of, Merge merge, const InputRow<Other>&... others) const {
    if (only_) return of(*only_, *others.only_...);
    return For(parts(), nothing, [&](const Int& number, const X& so_far) {
      return merge(so_far, of(part(number), others.part(number)...));
    });
  }
  // body(number, part, the others' parts…) of each.
  template <class Body, class... Other>
  void each(Body body, const InputRow<Other>&... others) const {
    if (only_) return body(Int(0), *only_, *others.only_...);
    For(parts(), [&](const Int& number) { body(number, part(number), others.part(number)...); });
  }

 private:
  template <class>
  friend class InputRow;
  auto parts() const {
    return deal_.kept > 0 ? range(deal_.kept).unroll(1) : range(0, row_.parts());
  }
  RowPart<T> part(const Int& number) const {
    if (!kept_) return row_.load(number, outside_);
    RowPart<T> out = row_.copied(number, *kept_);
    const Fragment<T> none(1, outside_);
    if (edge_) row_.add_edge(number, select(number == 0, *edge_, none), out);
    return out;
  }

  const RowDeal& deal_;
  const Row<const T> row_;
  const T outside_;
  std::optional<RowPart<T>> only_;
  std::optional<Shared<T>> kept_;
  std::optional<Fragment<T>> edge_;
};

}  // namespace heddle::kernels
