// A row of a matrix as the threads that share it see it (deal.h). Internal to the kernels.
#pragma once

#include "heddle/kernels/rows/deal.h"
#include "heddle/kernels/rows/row_part.h"

namespace heddle::kernels {

// Which row this thread has a share of, and which share.
class RowThreads {
 public:
  // Rows past the end repeat the last one, so that whole warps stay together: its elements are loaded again, maybe
  // while its owners store them in the same place, and what they are is not used.
  RowThreads(const RowDeal& deal, const Int& row, const Int& rows)
      : deal_(deal), row_(deal.rows > 1 ? min(row, rows - 1) : row), exists_(row < rows) {}

  const RowDeal& deal() const { return deal_; }
  const Int& row() const { return row_; }
  const Bool& exists() const { return exists_; }
  // Vectors that a block has at once, and the thread's number in it.
  int of_block() const { return deal_.threads * deal_.vectors; }
  const Int& thread() const { return thread_; }
  // The block's number among those that share the row.
  Int block() const { return deal_.blocks > 1 ? cluster_rank() : Int(0); }

  // One of the threads that share an existing row.
  Bool is_first() const { return exists_ && thread_ == 0 && block() == 0; }

  // A value of each thread, combined over the row; all of them get the result.
  template <class X, class Combine>
  auto reduce(const X& x, Combine combine) const {
    if (deal_.threads < kWarpSize || deal_.rows > 1) return warp_reduce(x, combine, deal_.threads);
    return cluster_reduce(x, combine);
  }

 private:
  const RowDeal deal_;
  const Int row_;
  const Bool exists_;
  const Int thread_ = thread_idx.x;
};

// A row of a matrix, in vectors.
template <class T>
class Row {
 public:
  using Element = std::remove_const_t<T>;  // of the matrix
  // The row of `threads`, which outlive it.
  Row(const RowThreads& threads, const Tensor<T, 2>& x)
      : threads_(threads),
        x_(x.assume_aligned()),  // by which the host has dealt out the row
        columns_(x.shape(1)),
        before_(threads.deal().peeled ? unaligned(x, threads.row(), columns_) : Int(0)),
        whole_((columns_ - before_) / threads.deal().width) {}

  const Int& columns() const { return columns_; }
  // The block's vectors of a part: where they begin, and how many there are.
  Int begin(const Int& part) const {
    return (part * threads_.deal().blocks + threads_.block()) * threads_.of_block();
  }
  Int count(const Int& part) const {
    return max(min(whole_ - begin(part), threads_.of_block()), 0);
  }
  // The place of a vector in the row.
  Int column(const Int& vector) const { return before_ + vector * threads_.deal().width; }

  // What this thread has of a part; `outside` where that is not in the row.
  RowPart<Element> load(const Int& part, const Element& outside) const {
    const Int first = begin(part);
    RowPart<Element> out = vectors(count(part), outside, [&](const Int& at) {
      return Fragment<Element>(
          x_.elements(threads_.deal().width, threads_.row(), column(first + at)));
    });
    load_edge(part, outside, out);
    return out;
  }
  // The parts behind the first one, where rows are taken in parts: next(so far, part) of each, beginning with `first`;
  // or each(number, part).
  template <class State, class Next>
  State others(const State& first, const Element& outside, Next next) const {
    if (!threads_.deal().in_parts) return first;
    return For(range(1, parts()), first, [&](const Int& part, const State& so_far) {
      return next(so_far, load(part, outside));
    });
  }
  template <class Each>
  void each_other(const Element& outside, Each each) const {
    if (!threads_.deal().in_parts) return;
    For(range(1, parts()), [&](const Int& part) { each(part, load(part, outside)); });
  }
  // What it has of the only part, of which the block's vectors lie in shared memory.
  RowPart<Element> load(const Shared<Element>& copied, const Element& outside) const {
    RowPart<Element> out = vectors(count(0), outside, [&](const Int& at) {
      return Fragment<Element>(copied.elements(threads_.deal().width, at * threads_.deal().width));
    });
    load_edge(0, outside, out);
    return out;
  }

  // The elements of a vector of as many columns that stand beside those of a part.
  RowPart<Element> beside(const Tensor<const Element, 1>& w, const Int& part) const {
    const int width = threads_.deal().width;
    const bool wide = width == 1 || (!threads_.deal().peeled && w.vector_width() >= width);
    const Int first = begin(part);
    const auto at = [&](int count, const Int& place) {
      return Fragment<Element>(w.elements(count, place));
    };
    RowPart<Element> out = vectors(count(part), Element(0.0f), [&](const Int& vector) {
      const Int place = column(first + vector);
      if (wide) return at(width, place);
      Var<Fragment<Element>> all(Fragment<Element>(width, Element(0.0f)));
      for (int i = 0; i < width; ++i) all[i] = at(1, place + i)[0];
      return Fragment<Element>(all);
    });
    add_edge(
        part, Element(0.0f), [&](const Int& place) { return at(1, place); }, out);
    return out;
  }

  // Stores what this thread has of a part.
  void store(const Int& part, const RowPart<Element>& from) const requires(!std::is_const_v<T>) {
    const RowDeal& deal = threads_.deal();
    const Int first = begin(part), here = count(part);
    If(threads_.exists(), [&] {
      for (int v = 0; v < deal.vectors; ++v) {
        const Int at = threads_.thread() + v * deal.threads;
        const auto write = [&] {
          x_.elements(deal.width, threads_.row(), column(first + at)) = from.vectors[v];
        };
        if (deal.whole) {
          write();
        } else {
          If(at < here, write);
        }
      }
      if (deal.peeled) {
        If(has_edge(part),
           [&] { x_.elements(1, threads_.row(), edge()) = from.vectors[deal.vectors]; });
      }
    });
  }

 private:
  // How many parts a row has.
  Int parts() const {
    const int each = threads_.of_block() * threads_.deal().blocks;
    return (max(whole_, 1) - 1) / each + 1;
  }
  template <class Read>
  RowPart<Element> vectors(const Int& here, const Element& outside, Read read) const {
    const RowDeal& deal = threads_.deal();
    const Fragment<Element> none(deal.width, outside);
    RowPart<Element> out;
    for (int v = 0; v < deal.vectors; ++v) {
      const Int at = threads_.thread() + v * deal.threads;
      if (deal.whole) {
        out.vectors.push_back(read(at));
        continue;
      }
      out.in_row.push_back(at < here);
      out.vectors.push_back(If(
          out.in_row.back(), [&] { return read(at); }, [&] { return none; }));
    }
    return out;
  }
  // Adds the element of the edges that a thread has, of what read(column) gives.
  template <class Read>
  void add_edge(const Int& part, const Element& outside, Read read, RowPart<Element>& out) const {
    if (!threads_.deal().peeled) return;
    const Fragment<Element> none(1, outside);
    out.in_row.push_back(has_edge(part));
    out.vectors.push_back(If(
        out.in_row.back(), [&] { return read(edge()); }, [&] { return none; }));
  }
  void load_edge(const Int& part, const Element& outside, RowPart<Element>& out) const {
    add_edge(
        part, outside,
        [&](const Int& column) {
          return Fragment<Element>(x_.elements(1, threads_.row(), column));
        },
        out);
  }

  // The elements in front of the first vector and behind the last one, fewer than two vectors: one for each of the
  // first block's threads.
  Int edge() const {
    const Int& thread = threads_.thread();
    return select(thread < before_, thread, thread + whole_ * threads_.deal().width);
  }
  Bool has_edge(const Int& part) const {
    const Bool is_first = part == 0 && threads_.block() == 0;
    return is_first && threads_.thread() < columns_ - whole_ * threads_.deal().width;
  }
  // The row's elements in front of an aligned one.
  static Int unaligned(const Tensor<T, 2>& x, const Int& row, const Int& columns) {
    constexpr int kBytes = sizeof(Element);
    const Int beyond = cast<int32_t>(address_of(x.at(row, 0))) & (kVectorBytes - 1);
    return min(((kVectorBytes - beyond) & (kVectorBytes - 1)) / kBytes, columns);
  }

  const RowThreads& threads_;
  const detail::View<T, 2> x_;
  const Int columns_, before_, whole_;
};

}  // namespace heddle::kernels
