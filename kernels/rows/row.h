// A row of a matrix as the threads that share it see it (deal.h). Internal to the kernels.
//
//   each_row(deal, x, [&](const RowThreads& threads, const auto& row) {
//     const RowPart<T> mine = row.load(0, T(0));
//     const Float total = threads.reduce(mine.template fold<float>(…), plus());
//     Row<T>(threads, y).store(0, mine.template map<T>(…));
//   });
#pragma once

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/rows/deal.h"

namespace heddle::kernels {

// What a thread holds of a row: vectors, and where vectors do not begin with the row, an element of its edges.
template <class T>
struct RowPart {
  std::vector<Fragment<T>> vectors;
  std::vector<Bool> in_row;  // whether each of them lies in the row; none: all do

  // f(Fragment, the others' Fragments) of each; the others are parts of as many vectors.
  template <class To, class F, class... U>
  RowPart<To> map(F f, const RowPart<U>&... others) const {
    RowPart<To> out{{}, in_row};
    for (size_t i = 0; i < vectors.size(); ++i)
      out.vectors.push_back(f(vectors[i], others.vectors[i]...));
    return out;
  }
  // How many elements lie in the row.
  Float count() const {
    std::vector<Float> counts;
    for (size_t i = 0; i < vectors.size(); ++i) {
      const auto size = static_cast<float>(vectors[i].size());
      counts.push_back(in_row.empty() ? Float(size) : select(in_row[i], size, 0.0f));
    }
    return combined(std::move(counts), plus());
  }
  // All elements of f(Fragment), combined in a tree.
  template <class To, class F, class Combine>
  Value<To> fold(F f, Combine combine) const {
    std::vector<Value<To>> all;
    for (const Fragment<T>& v : vectors) all.push_back(elements(f(v), combine));
    return combined(std::move(all), combine);
  }
  // Of those in the row; `nothing` is what changes no result.
  template <class To, class F, class Combine>
  Value<To> fold_row(F f, Combine combine, const Value<To>& nothing) const {
    std::vector<Value<To>> all;
    for (size_t i = 0; i < vectors.size(); ++i) {
      const Value<To> one = elements(f(vectors[i]), combine);
      all.push_back(in_row.empty() ? one : select(in_row[i], one, nothing));
    }
    return combined(std::move(all), combine);
  }

 private:
  template <class To, class Combine>
  static Value<To> elements(const Fragment<To>& v, Combine combine) {
    std::vector<Value<To>> all;
    for (int i = 0; i < v.size(); ++i) all.push_back(v[i]);
    return combined(std::move(all), combine);
  }
  // Neighbours first, then neighbours of what these gave.
  template <class To, class Combine>
  static Value<To> combined(std::vector<Value<To>> all, Combine combine) {
    while (all.size() > 1) {
      std::vector<Value<To>> next;
      for (size_t i = 0; i + 1 < all.size(); i += 2) next.push_back(combine(all[i], all[i + 1]));
      if (all.size() % 2 != 0) next.push_back(all.back());
      all = std::move(next);
    }
    return all[0];
  }
};

// Which row this thread has a share of, and which share.
class RowThreads {
 public:
  // Rows past the end repeat the last one, so that whole warps stay together.
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
  using Element = std::remove_const_t<T>;
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
    const bool wide = !threads_.deal().peeled && w.vector_width() >= width;
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
    return (max(whole_, 1) + (each - 1)) / each;
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
    constexpr int kVectorBytes = 16, kBytes = sizeof(Element);
    const Int beyond = cast<int32_t>(address_of(x.at(row, 0))) & (kVectorBytes - 1);
    return min(((kVectorBytes - beyond) & (kVectorBytes - 1)) / kBytes, columns);
  }

  const RowThreads& threads_;
  const detail::View<T, 2> x_;
  const Int columns_, before_, whole_;
};

// The rows that a block has a share of, one after the other: while it works on one, the copy engine brings its
// vectors of the next.
template <class T>
class CopiedRows {
 public:
  CopiedRows(const RowDeal& deal, const Tensor<const T, 2>& x)
      : deal_(deal), x_(x), vectors_(int64_t{deal.threads} * deal.vectors * deal.width), full_(1) {
    If(thread_idx.x == 0, [&] {
      full_.init(0, 1);
      fence_mbarrier_init();
    });
    sync_threads();
  }

  // Begins to copy a row, if there is one.
  void start(const Int& row) const {
    If(thread_idx.x == 0 && row < x_.shape(0), [&] {
      const RowThreads threads(deal_, row, x_.shape(0));
      const Row<const T> in(threads, x_);
      const Int count = in.count(0) * deal_.width;
      full_.expect_tx(0, cast<uint32_t>(count * static_cast<int>(sizeof(T))));
      If(count > 0, [&] {
        const auto from = x_.assume_aligned().at(row, in.column(in.begin(0)));
        bulk_load(vectors_.at(0), from, count, full_, 0);
      });
    });
  }

  // A row that is being copied, as the trip's number says which. Once it is loaded the next one is begun.
  class Copied : public Row<const T> {
   public:
    Copied(const CopiedRows& rows, const RowThreads& threads, const Int& trip, const Int& next)
        : Row<const T>(threads, rows.x_), rows_(rows), trip_(trip), next_(next) {}
    RowPart<T> load(const Int&, const T& outside) const {
      rows_.full_.wait(0, cast<uint32_t>(trip_ & 1));
      const RowPart<T> part = Row<const T>::load(rows_.vectors_, outside);
      fence_async();
      sync_threads();
      rows_.start(next_);
      return part;
    }

   private:
    const CopiedRows& rows_;
    const Int trip_, next_;
  };

 private:
  const RowDeal deal_;
  const Tensor<const T, 2> x_;
  const Shared<T> vectors_;
  const Mbarrier full_;
};

// body(threads, row) for each row that this thread has a share of. Of a row it loads part 0 once, and other parts as
// often as it likes.
template <class T, class Body>
void each_row(const RowDeal& deal, const Tensor<const T, 2>& x, Body body) {
  const Int rows = x.shape(0);
  const Int first = deal.blocks > 1 ? block_idx.x / deal.blocks : Int(block_idx.x);
  if (!deal.copied) {
    const RowThreads threads(deal, deal.rows > 1 ? first * deal.rows + thread_idx.y : first, rows);
    return body(threads, Row<const T>(threads, x));
  }
  const CopiedRows<T> copied(deal, x);
  const Int clusters = grid_dim.x / deal.blocks;
  copied.start(first);
  For(range(first, rows, clusters), Int(0), [&](const Int& row, const Int& trip) {
    const RowThreads threads(deal, row, rows);
    body(threads, typename CopiedRows<T>::Copied(copied, threads, trip, row + clusters));
    return trip + 1;
  });
}

// kInvalidArgument where two matrices, x and y, have not the same extents.
template <class T, class U>
Status check_same_extents(const char* kernel, const TensorRef<T, 2>& x, const TensorRef<U, 2>& y) {
  if (x.extents[0] == y.extents[0] && x.extents[1] == y.extents[1]) return OkStatus();
  const auto text = [](const auto& a) { return absl::StrCat(a.extents[0], " × ", a.extents[1]); };
  return InvalidArgumentError(
      absl::StrCat(kernel, ": x is ", text(x), " and y ", text(y), "; both need the same extents"));
}

// Launches the family's kernel for how the rows of x and y are best dealt out, with x and `rest` as its arguments; nothing
// where there are no elements.
template <class Family, class T, class U, class... Rest>
Status launch_rows(const Stream& stream, const Family& family, const TensorRef<T, 2>& x,
                   const TensorRef<U, 2>& y, const Rest&... rest) {
  const int64_t rows = x.extents[0];
  if (rows == 0 || x.extents[1] == 0) return OkStatus();
  const DeviceInfo& device = stream.device().info();
  const RowDeal deal = deal_rows(rows_of(x, y), device);
  return family(deal).launch(stream, row_shape(deal, rows, device), x, rest...);
}

}  // namespace heddle::kernels
