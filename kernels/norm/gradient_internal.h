// The gradients of normalised rows, and what a thread adds up for the weights'. Internal to the norms.
#pragma once

#include <deque>

#include "heddle/kernels/norm/norm_rows_internal.h"

namespace heddle::kernels {

// Of a row: the sums of squares of x - mean, of s, and of s (x - mean), where s = w dy.
struct RowSums {
  Float squares, of_s, of_products;
};
// s = w dy of elements.
template <class T>
Fragment<float> scaled(const Fragment<T>& dy, const Fragment<T>& w) {
  return wide(dy) * wide(w);
}

// Elements of a row, normalised.
template <class T, bool kCentred>
Fragment<float> normalised(const Fragment<T>& x, const RowScale& row) {
  return (kCentred ? wide(x) - row.mean : wide(x)) * row.scale;
}

// Of elements: s = w dy, and what the row gives.
template <class T, bool kCentred>
Fragment<T> gradient_of(const Fragment<float>& s, const Fragment<T>& x, const RowScale& row,
                        const Float& mean_of_s, const Float& slope) {
  const Fragment<float> part = kCentred ? s * row.scale - mean_of_s * row.scale : s * row.scale;
  return (part - normalised<T, kCentred>(x, row) * slope).template as<T>();
}

// What a weight's gradient gets of a row's elements.
template <class T, bool kCentred>
Fragment<float> of_weight(const Fragment<T>& v, const Fragment<T>& d, const RowScale& row) {
  return wide(d) * normalised<T, kCentred>(v, row);
}

// The sums of columns that a thread has of all its rows: for w and, where rows are centred, for b.
template <class T, bool kCentred>
class WeightSums {
 public:
  // Of how many weights.
  static constexpr int kWeights = kCentred ? 2 : 1;
  explicit WeightSums(const RowDeal& deal) {
    for (auto& sums : sums_) {
      for (int v = 0; v < deal.vectors; ++v) sums.emplace_back(Fragment<float>(deal.width, 0.0f));
      if (deal.peeled) sums.emplace_back(Fragment<float>(1, 0.0f));
    }
  }
  // Of a row, what counted(sum) says of its elements.
  template <class Counted>
  void add(const RowPart<T>& x, const RowPart<T>& dy, const RowScale& row, Counted counted) {
    for (size_t v = 0; v < sums_[0].size(); ++v) {
      auto& of_w = sums_[0][v];
      of_w = of_w + counted(of_weight<T, kCentred>(x.vectors[v], dy.vectors[v], row));
      if constexpr (kCentred) {
        auto& of_b = sums_[1][v];
        of_b = of_b + counted(wide(dy.vectors[v]));
      }
    }
  }
  // Of a row.
  void add(const RowPart<T>& x, const RowPart<T>& dy, const RowScale& row) {
    add(x, dy, row, [](const Fragment<float>& sum) { return sum; });
  }
  // store(column, sum) of each for a weight, where `row` is one of those added up.
  template <class U, class Store>
  void store(int weight, const Row<U>& row, Store store) const {
    const RowPart<int32_t> columns = row.columns_of(0);
    for (size_t v = 0; v < columns.vectors.size(); ++v) {
      const Fragment<float> of = sums_[weight][v];
      const auto vector = [&] {
        for (int i = 0; i < of.size(); ++i) store(Int(columns.vectors[v][i]), Float(of[i]));
      };
      if (columns.in_row.empty()) {
        vector();
      } else {
        If(columns.in_row[v], vector);
      }
    }
  }

 private:
  std::deque<Var<Fragment<float>>> sums_[kWeights];
};

}  // namespace heddle::kernels
