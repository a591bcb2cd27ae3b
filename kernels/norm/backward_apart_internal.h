// Norms' backward passes of rows that are read once for dx, and once for the sums of their columns. Internal to the norms.
#pragma once

#include <vector>

#include "heddle/kernels/norm/row_gradient_internal.h"
#include "heddle/kernels/reduce/columns_internal.h"
#include "heddle/kernels/reduce/reducer_internal.h"

namespace heddle::kernels {

// Rows that a block does not hold: dx, and what each row is normalised by.
template <class T, bool kCentred>
void row_body(const RowDeal& deal, const Tensor<const T, 2>& x, const Tensor<const T, 1>& w,
              const Tensor<const T, 2>& dy, const Tensor<T, 2>& dx, const Tensor<float, 2>& scales,
              const Float& eps) {
  const T zero(0.0f);
  of_row(deal, x, zero, [&](const RowThreads& threads, const InputRow<T>& in) {
    const InputRow<T> gradient(threads, dy, zero);
    const Row<T> out(threads, dx);
    const auto weights = [&](const Int& part) { return out.beside(w, part); };
    const RowScale row = store_gradient<T, kCentred>(threads, in, gradient, weights, out, eps);
    If(threads.is_first(), [&] {
      scales(0, threads.row()) = row.mean;
      scales(1, threads.row()) = row.scale;
    });
  });
}

// Of those, the sums of columns: a stretch of the rows is a block's.
struct ColumnSums {
  using State = TwoSums;
  using Stored = TwoSums;
  TwoSums nothing() const { return {0, 0}; }
  TwoSums merge(const TwoSums& a, const TwoSums& b) const { return AddSums()(a, b); }
};
template <class T, bool kCentred>
void column_body(const ColumnDeal& deal, const Tensor<const T, 2>& x, const Tensor<const T, 2>& dy,
                 const Tensor<const float, 2>& scales, const Tensor<float, 3>& sums) {
  const auto in = x.assume_aligned(), gradient = dy.assume_aligned();
  reduce_columns_body(
      deal, ColumnSums(), x.shape(0), x.shape(1), sums.shape(1),
      [&](const Int&, const Int& row, const Int& column, int loads) {
        std::vector<Fragment<float>> of_w, of_b;
        for (int u = 0; u < loads; ++u) {
          const Int at = row + u * deal.rows;
          const Fragment<T> d(gradient.elements(deal.width, at, column));
          const RowScale scale{kCentred ? Float(scales(0, at)) : Float(0), scales(1, at)};
          of_w.push_back(
              of_weight<T, kCentred>(Fragment<T>(in.elements(deal.width, at, column)), d, scale));
          of_b.push_back(wide(d));
        }
        const auto all = [](std::vector<Fragment<float>> of) {
          return in_tree(std::move(of),
                         [](const Fragment<float>& a, const Fragment<float>& b) { return a + b; });
        };
        const Fragment<float> first = all(of_w), second = all(of_b);
        StateRow<TwoSums> out;
        for (int i = 0; i < deal.width; ++i) out.push({first[i], kCentred ? second[i] : Float(0)});
        return out;
      },
      [&](const Int&, const Int& stretch, const Int& column, const TwoSums& of) {
        sums(0, stretch, column) = of.first;
        if (kCentred) sums(1, stretch, column) = of.second;
      });
}

}  // namespace heddle::kernels
