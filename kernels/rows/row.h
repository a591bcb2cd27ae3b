// A row of a matrix as the threads that share it see it (deal.h). Internal to the kernels.
#pragma once

#include "heddle/kernels/l2.h"
#include "heddle/kernels/rows/deal.h"
#include "heddle/kernels/rows/row_part.h"

namespace heddle::kernels {

// Which row this thread has a share of, and which share.
class RowThreads {
 public:
  // Rows past the end repeat the last one, so that whole warps stay together: its elements are loaded again, maybe
  // while its owners store them in the same place, and what they are is not used.
  RowThreads(const RowDeal& deal, const Int& row, const Int& rows)
      : deal_(deal),
        row_(deal.rows > 1 ? min(row, rows - 1) : row),
        exists_(deal.rows > 1 ? row < rows : Bool(true)) {}

  const RowDeal& deal() const { return deal_; }
  const Int& row() const { return row_; }
  const Bool& exists() const { return exists_; }
  // Vectors that a block has at once, and the thread's number in it.
  int of_block() const { return deal_.threads * deal_.vectors; }
  const Int& thread() const { return thread_; }
  // The block's number among those that share the row.
  Int block() const {
    if (deal_.blocks == 1) return 0;
    return deal_.apart ? block_idx.x % deal_.blocks : cluster_rank();
  }

  // One of the threads that share an existing row, or have a result of their own.
  Bool is_first() const {
    const Bool first = exists_ && thread_ == 0;
    return deal_.apart ? first : first && block() == 0;
  }

  // A value of each thread, combined over those that have a result together; all of them get it.
  template <class X, class Combine>
  auto reduce(const X& x, Combine combine) const {
    if (deal_.threads < kWarpSize || deal_.rows > 1) return warp_reduce(x, combine, deal_.threads);
    return deal_.apart ? block_reduce(x, combine) : cluster_reduce(x, combine);
  }

 private:
  const RowDeal deal_;
  const Int row_;
  const Bool exists_;
  const Int thread_ = thread_idx.x;
};

// A row of a matrix, in vectors: which a thread has, in parts that it holds at once.
template <class T>
class Row {
 public:
  using Element = std::remove_const_t<T>;  // of the matrix
  // The row of `threads`, which outlive it.
  Row(const RowThreads& threads, const Tensor<T, 2>& x)
      : threads_(threads),
        x_(aligned_view(x, threads.deal().floods)),
        columns_(x.shape(1)),
        before_(threads.deal().peeled ? unaligned(x, threads, columns_) : Int(0)),
        whole_((columns_ - before_) / threads.deal().width) {}

  // A row of other threads that begins as far behind an aligned place as `alike`.
  template <class U>
  Row(const RowThreads& threads, const Tensor<T, 2>& x, const Row<U>& alike)
      : threads_(threads),
        x_(aligned_view(x, threads.deal().floods)),
        columns_(alike.columns_),
        before_(alike.before_),
        whole_(alike.whole_) {}

  const Int& columns() const { return columns_; }
  // The block's vectors of a part: the column of their first element, and how many there are.
  Int first_column(const Int& part) const { return column(begin(part)); }
  Int count(const Int& part) const {
    return max(min(whole_ - begin(part), threads_.of_block()), 0);
  }
  // Vectors of the whole row, and elements in front of them and behind them.
  const Int& vector_count() const { return whole_; }
  Int edges() const { return columns_ - whole_ * threads_.deal().width; }
  // How many parts a row has, where it is taken in parts.
  Int parts() const {
    const int each = threads_.of_block() * threads_.deal().blocks;
    return (max(whole_, 1) - 1) / each + 1;
  }

  // The vectors that this thread has of a part: read(at) of each, `at` being the number among the block's.
  template <class To = Element, class Read>
  RowPart<To> vectors(const Int& part, Read read) const {
    const Int here = count(part);
    RowPart<To> out;
    for (int v = 0; v < threads_.deal().vectors; ++v) {
      const Int at = vector(v);
      if (!threads_.deal().whole) out.in_row.push_back(is_in_row(v) ? Bool(true) : at < here);
      out.vectors.push_back(read(at));
    }
    return out;
  }
  // Likewise, of those in the row; the others are `outside`.
  template <class Read>
  RowPart<Element> vectors_in_row(const Int& part, const Element& outside, Read read) const {
    const Fragment<Element> none(threads_.deal().width, outside);
    const Int here = count(part);
    int v = 0;
    return vectors(part, [&](const Int& at) {
      if (is_in_row(v++)) return Fragment<Element>(read(at));
      return Fragment<Element>(If(
          at < here, [&] { return read(at); }, [&] { return none; }));
    });
  }
  // Behind them the element of the row's edges that it has, all of which belong to part 0.
  template <class To>
  void add_edge(const Int& part, const Fragment<To>& edge, RowPart<To>& out) const {
    out.in_row.push_back(has_edge(part));
    out.vectors.push_back(edge);
  }
  // That element, by read(column), or `outside`.
  template <class To = Element, class Read>
  Fragment<To> edge(const Int& part, const To& outside, Read read) const {
    const Fragment<To> none(1, outside);
    return If(
        has_edge(part), [&] { return read(edge_column()); }, [&] { return none; });
  }

  // What this thread has of the matrix's elements.
  RowPart<Element> load(const Int& part, const Element& outside) const {
    RowPart<Element> out = vectors_in_row(
        part, outside, [&](const Int& at) { return Fragment<Element>(at_vector(part, at)); });
    if (threads_.deal().peeled) add_edge(part, load_edge(part, outside), out);
    return out;
  }
  Fragment<Element> load_edge(const Int& part, const Element& outside) const {
    return edge(part, outside, [&](const Int& column) {
      return Fragment<Element>(x_.elements(1, threads_.row(), column));
    });
  }
  // Begins to copy them to where copied() reads them.
  void copy_async(const Int& part, const Shared<Element>& to, const Element& outside) const {
    constexpr int kWidth = kVectorBytes / int{sizeof(Element)};
    const Int here = count(part);
    for (int v = 0; v < threads_.deal().vectors; ++v) {
      const Int at = vector(v);
      const auto copy = [&] {
        heddle::copy_async<kWidth>(to.at(place(part, at)),
                                   x_.at(threads_.row(), column(begin(part) + at)));
      };
      if (threads_.deal().whole) {
        copy();
      } else {
        If(at < here, copy,
           [&] { to.elements(kWidth, place(part, at)) = Fragment<Element>(kWidth, outside); });
      }
    }
  }
  RowPart<Element> copied(const Int& part, const Shared<Element>& from) const {
    return vectors(part, [&](const Int& at) {
      return Fragment<Element>(from.elements(threads_.deal().width, place(part, at)));
    });
  }

  // The elements of a vector of as many columns that stand beside those of a part; any where a vector is not in the
  // row.
  template <class W = Element>
  RowPart<W> beside(const Tensor<const W, 1>& w, const Int& part) const {
    const RowDeal& deal = threads_.deal();
    const bool wide = !deal.peeled && w.vector_width() >= deal.width;
    RowPart<W> out = vectors<W>(part, [&](const Int& at) {
      // Those that are not in the row get what the last one gets.
      const Int vector = begin(part) + at;
      const Int first = column(deal.whole ? vector : min(vector, whole_ - 1));
      if (wide) return Fragment<W>(w.elements(deal.width, first));
      Var<Fragment<W>> all(Fragment<W>(deal.width, W(0.0f)));
      for (int i = 0; i < deal.width; ++i) all[i] = w(first + i);
      return Fragment<W>(all);
    });
    if (!deal.peeled) return out;
    const auto one = [&](const Int& column) { return Fragment<W>(w.elements(1, column)); };
    add_edge(part, edge<W>(part, W(0.0f), one), out);
    return out;
  }

  // The columns of a part's elements, counted on behind the row's end where a vector is not in the row.
  RowPart<int32_t> columns_of(const Int& part) const {
    const RowDeal& deal = threads_.deal();
    RowPart<int32_t> out = vectors<int32_t>(part, [&](const Int& at) {
      const Int first = column(begin(part) + at);
      Var<Fragment<int32_t>> all(Fragment<int32_t>(deal.width, first));
      for (int i = 1; i < deal.width; ++i) all[i] = first + i;
      return Fragment<int32_t>(all);
    });
    if (deal.peeled) add_edge(part, Fragment<int32_t>(1, edge_column()), out);
    return out;
  }

  // Stores what this thread has of a part.
  void store(const Int& part, const RowPart<Element>& from) const requires(!std::is_const_v<T>) {
    const RowDeal& deal = threads_.deal();
    const Int here = count(part);
    If(threads_.exists(), [&] {
      for (int v = 0; v < deal.vectors; ++v) {
        const Int at = vector(v);
        const auto write = [&] { at_vector(part, at) = from.vectors[v]; };
        if (is_in_row(v)) {
          write();
        } else {
          If(at < here, write);
        }
      }
      if (deal.peeled) {
        If(has_edge(part),
           [&] { x_.elements(1, threads_.row(), edge_column()) = from.vectors[deal.vectors]; });
      }
    });
  }

 private:
  template <class>
  friend class Row;
  // The block's vectors of a part: where they begin in the row, which this thread has, and where it copies one to.
  Int begin(const Int& part) const {
    return (part * threads_.deal().blocks + threads_.block()) * threads_.of_block();
  }
  // Whether the host knows that it is in the row.
  bool is_in_row(int v) const { return threads_.deal().whole || v < threads_.deal().whole_vectors; }
  Int vector(int v) const { return threads_.thread() + v * threads_.deal().threads; }
  Int place(const Int& part, const Int& at) const {
    return (part * threads_.of_block() + at) * threads_.deal().width;
  }
  // The place of a vector in the row.
  Int column(const Int& vector) const { return before_ + vector * threads_.deal().width; }
  auto at_vector(const Int& part, const Int& at) const {
    return x_.elements(threads_.deal().width, threads_.row(), column(begin(part) + at));
  }

  // The elements in front of the first vector and behind the last one, fewer than two vectors: one for each of the
  // first block's threads.
  Int edge_column() const {
    const Int& thread = threads_.thread();
    return select(thread < before_, thread, thread + whole_ * threads_.deal().width);
  }
  Bool has_edge(const Int& part) const {
    const Bool is_first = part == 0 && threads_.block() == 0;
    return is_first && threads_.thread() < edges();
  }
  // The row's elements in front of an aligned one.
  static Int unaligned(const Tensor<T, 2>& x, const RowThreads& threads, const Int& columns) {
    const int bytes = sizeof(Element), vector = threads.deal().width * bytes;
    const Int beyond = cast<int32_t>(address_of(x.at(threads.row(), 0))) & (vector - 1);
    return min(((vector - beyond) & (vector - 1)) / bytes, columns);
  }

  const RowThreads& threads_;
  const heddle::detail::View<T, 2> x_;
  const Int columns_, before_, whole_;
};

}  // namespace heddle::kernels
