// A row of a matrix as the threads that share it see it (deal.h). Internal to the kernels.
//
//   const RowThreads threads(deal, x.shape(0));
//   const Row<const T> in(threads, x);
//   const RowPart<T> mine = in.load(0, T(0));
//   const Float total = threads.reduce(mine.fold(…), plus());
//   Row<T>(threads, y).store(0, mine.map<T>(…));
#pragma once

#include <optional>
#include <vector>

#include "heddle/kernels/rows/deal.h"

namespace heddle::kernels {

// What a thread holds of a row: vectors, and where vectors do not begin with the row, an element of its edges.
template <class T>
struct RowPart {
  std::vector<Fragment<T>> vectors;

  // f(Fragment) of each.
  template <class To, class F>
  RowPart<To> map(F f) const {
    RowPart<To> out;
    for (const Fragment<T>& v : vectors) out.vectors.push_back(f(v));
    return out;
  }
  // All elements of f(Fragment), combined in a tree.
  template <class To, class F, class Combine>
  Value<To> fold(F f, Combine combine) const {
    std::vector<Value<To>> sums;
    for (const Fragment<T>& v : vectors) {
      const Fragment<To> all = f(v);
      sums.push_back(tree(all, 0, all.size(), combine));
    }
    while (sums.size() > 1) {
      std::vector<Value<To>> next;
      for (size_t i = 0; i + 1 < sums.size(); i += 2) next.push_back(combine(sums[i], sums[i + 1]));
      if (sums.size() % 2 != 0) next.push_back(sums.back());
      sums = std::move(next);
    }
    return sums[0];
  }

 private:
  template <class To, class Combine>
  static Value<To> tree(const Fragment<To>& v, int first, int count, Combine combine) {
    if (count == 1) return v[first];
    return combine(tree(v, first, count / 2, combine),
                   tree(v, first + count / 2, count / 2, combine));
  }
};

// Which row this thread has a share of, and which share.
class RowThreads {
 public:
  RowThreads(const RowDeal& deal, const Int& rows)
      : deal_(deal),
        own_(deal.blocks > 1 ? block_idx.x / deal.blocks : block_idx.x * deal.rows + thread_idx.y),
        row_(deal.rows > 1 ? min(own_, rows - 1) : own_),
        exists_(own_ < rows),
        share_(deal.blocks > 1 ? cluster_rank() * deal.threads + thread_idx.x : Int(thread_idx.x)) {
  }

  const RowDeal& deal() const { return deal_; }
  // Rows past the end repeat the last one, so that whole warps stay together.
  const Int& row() const { return row_; }
  const Bool& exists() const { return exists_; }
  // The thread's number among those that share the row, and how many these are.
  const Int& share() const { return share_; }
  int count() const { return deal_.threads * deal_.blocks; }

  // A value of each thread, combined over the row; all of them get the result.
  template <class X, class Combine>
  auto reduce(const X& x, Combine combine) const {
    if (deal_.threads < kWarpSize || deal_.rows > 1) return warp_reduce(x, combine, deal_.threads);
    return cluster_reduce(x, combine);
  }

 private:
  const RowDeal deal_;
  const Int own_, row_;
  const Bool exists_;
  const Int share_;
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

  // How many parts a row has.
  Int parts() const {
    const int each = threads_.count() * threads_.deal().vectors;
    return threads_.deal().in_parts ? (max(whole_, 1) + (each - 1)) / each : Int(1);
  }

  // What this thread has of a part; `outside` where that is not in the row.
  RowPart<Element> load(const Int& part, const Element& outside) const {
    RowPart<Element> out;
    const int width = threads_.deal().width;
    const Fragment<Element> none(width, outside);
    for (int v = 0; v < threads_.deal().vectors; ++v) {
      const Int k = vector(part, v);
      const auto read = [&] {
        return Fragment<Element>(x_.elements(width, threads_.row(), before_ + k * width));
      };
      out.vectors.push_back(threads_.deal().whole ? read()
                                                  : If(k < whole_, read, [&] { return none; }));
    }
    if (threads_.deal().peeled) {
      const Fragment<Element> one(1, outside);
      out.vectors.push_back(If(
          has_edge(part), [&] { return Fragment<Element>(x_.elements(1, threads_.row(), edge())); },
          [&] { return one; }));
    }
    return out;
  }

  // Stores what this thread has of a part.
  void store(const Int& part, const RowPart<Element>& from) const requires(!std::is_const_v<T>) {
    const int width = threads_.deal().width, vectors = threads_.deal().vectors;
    If(threads_.exists(), [&] {
      for (int v = 0; v < vectors; ++v) {
        const Int k = vector(part, v);
        const auto write = [&] {
          x_.elements(width, threads_.row(), before_ + k * width) = from.vectors[v];
        };
        if (threads_.deal().whole) {
          write();
        } else {
          If(k < whole_, write);
        }
      }
      if (threads_.deal().peeled) {
        If(has_edge(part), [&] { x_.elements(1, threads_.row(), edge()) = from.vectors[vectors]; });
      }
    });
  }

 private:
  Int vector(const Int& part, int v) const {
    const int vectors = threads_.deal().vectors;
    return (part * vectors + v) * threads_.count() + threads_.share();
  }
  // The elements in front of the first vector and behind the last one, an element for a thread; fewer than two
  // vectors.
  Int edge() const {
    const Int& share = threads_.share();
    return select(share < before_, share, share + whole_ * threads_.deal().width);
  }
  Bool has_edge(const Int& part) const {
    return part == 0 && threads_.share() < columns_ - whole_ * threads_.deal().width;
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

}  // namespace heddle::kernels
