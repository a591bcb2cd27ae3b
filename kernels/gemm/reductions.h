// Reductions in epilogues: of a result's rows and columns, without a pass over the result.
//
//   const auto with_sums = [](const GemmPart& part, const Fragment<float>& sums,
//                             Tensor<float, 2> of_rows, Tensor<float, 2> of_columns) {
//     reduce_rows(part, sums, of_rows, plus(), 0.0f);
//     reduce_columns(part, sums, of_columns, plus(), 0.0f);
//     return sums;
//   };
//
// What is stored are parts: of a row the reductions of 32 columns each, and of a column those of 16 rows
// each. Whoever wants one number reduces the parts, of which there are few. A part does not depend on how
// the product is cut into tiles, and its order is fixed: results are the same bits each time. Products of
// groups (grouped.h), which begin anywhere, have no parts of columns. They are for one matrix: batches would
// store to the same parts.
#pragma once

#include "heddle/kernels/gemm/epilogue.h"

namespace heddle::kernels {

// Columns of a part of a row, and rows of a part of a column.
inline constexpr int kRowPart = 32, kColumnPart = 16;

namespace detail {

// A thread's elements of a part of 64 rows, by wgmma's layout: 4 j + 2 h + i is in row 8 h of the thread's
// and column 8 j + i.
struct ThreadElements {
  Int row, column;  // of the first one

  explicit ThreadElements(const GemmPart& part)
      : row(part.row() + thread_idx.x / kWarpSize % 4 * kColumnPart + lane_id() / 4),
        column(part.column() + lane_id() % 4 * 2) {}
  static int index(int j, int h, int i) { return 4 * j + 2 * h + i; }
};

// Combines the values of lanes whose numbers differ in the bits from `first` up to `last`.
template <class Combine>
Float combine_lanes(const Float& value, int first, int last, const Combine& combine) {
  Var<float> all(value);
  for (int bit = first; bit <= last; bit *= 2) all = combine(Float(all), shfl_xor(Float(all), bit));
  return all;
}

}  // namespace detail

// Combines the elements of each row over 32 columns, beginning with `identity`, and stores the results to
// x, (m, ceil(n / 32)). Elements outside of the result do not count.
template <class T, class Combine>
void reduce_rows(const GemmPart& part, const Fragment<float>& elements, const Tensor<T, 2>& x,
                 const Combine& combine, float identity) {
  const detail::ThreadElements at(part);
  const Int rows = get(part.shape(), 0).value(), columns = get(part.shape(), 1).value();
  for (int first = 0; first < part.columns(); first += kRowPart) {
    for (int h = 0; h < 2; ++h) {
      Var<float> mine(identity);
      for (int j = first / 8; j < (first + kRowPart) / 8; ++j) {
        for (int i = 0; i < 2; ++i) {
          const Float element = elements[detail::ThreadElements::index(j, h, i)];
          const Bool counts = at.column + (8 * j + i) < columns;
          mine = combine(Float(mine), select(counts, element, Float(identity)));
        }
      }
      const Float all = detail::combine_lanes(mine, 1, 2, combine);
      const Int row = at.row + 8 * h, column = part.column() + first;
      If(lane_id() % 4 == 0 && row < rows && column < columns,
         [&] { x(row, column / kRowPart) = cast<std::remove_const_t<T>>(all); });
    }
  }
}

// Combines the elements of each column over 16 rows, beginning with `identity`, and stores the results to
// x, (ceil(m / 16), n). Elements outside of the result do not count.
template <class T, class Combine>
void reduce_columns(const GemmPart& part, const Fragment<float>& elements, const Tensor<T, 2>& x,
                    const Combine& combine, float identity) {
  const detail::ThreadElements at(part);
  const Int rows = get(part.shape(), 0).value(), columns = get(part.shape(), 1).value();
  for (int j = 0; j < part.columns() / 8; ++j) {
    for (int i = 0; i < 2; ++i) {
      Var<float> mine(identity);
      for (int h = 0; h < 2; ++h) {
        const Float element = elements[detail::ThreadElements::index(j, h, i)];
        mine = combine(Float(mine), select(at.row + 8 * h < rows, element, Float(identity)));
      }
      const Float all = detail::combine_lanes(mine, 4, 16, combine);
      const Int column = at.column + (8 * j + i);
      If(lane_id() / 4 == 0 && at.row < rows && column < columns,
         [&] { x(at.row / kColumnPart, column) = cast<std::remove_const_t<T>>(all); });
    }
  }
}

}  // namespace heddle::kernels
