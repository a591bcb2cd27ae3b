// Epilogues: what becomes of a product's sums before they are rounded and stored. An epilogue is a
// lambda that is traced into the kernel; it gets the sums that a thread holds of some columns, a multiple
// of 16 or all of a tile, and gives back as many.
//
//   const auto bias_gelu = [](const GemmPart& part, const Fragment<float>& sums,
//                             Tensor<const float, 1> bias, Tensor<const bfloat16, 3> residual) {
//     return gelu(sums + part.by_column(bias)) + part.of(residual);
//   };
//
// It captures nothing. What it takes behind the sums are parameters of the kernel: values and tensors.
// A struct of host values with such a call operator and == will do as well: each value is a kernel.
#pragma once

#include "heddle/dsl/dsl.h"

namespace heddle::kernels {

// The part of a result of (m, n, batches) that one warpgroup has: 64 rows of a tile, of which each
// thread holds some elements. Functions give the elements of other tensors in the order of the sums.
class GemmPart {
  static constexpr int kRows = 64;

  // The values of a thread, by wgmma's layout: element 4 j + 2 h + i is in row 8 h and column 8 j + i.
  IntTuple values() const { return {2, 2, columns_ / 8}; }
  Layout thread_values() const {
    return make_layout({{4, 8, 4}, values()}, {{2 * kRows, 1, 16}, {kRows, 8, 8 * kRows}});
  }
  // The thread's elements of a tensor of the result's extents, or those of some values.
  template <detail::TensorLike X>
  auto mine(const X& x, const IntTuple& some = _) const {
    const auto tile = domain_offset({row_, column_, batch_}, x);
    const auto part = local_tile(tile, {kRows, columns_, 1}, {0, 0, 0})(_, _, 0);
    return composition(part, thread_values()).slice({thread_idx.x % kWarpGroupSize, some});
  }
  // The elements of a vector, or of one of a matrix, for each value's place along a mode. Values that share
  // one are loaded once.
  template <class T>
  Fragment<float> along(int mode, const Tensor<const T>& vector) const {
    const auto once = [&](const auto& x) {
      IntTuple strides[] = {0, 0, 0};
      strides[mode] = get(x.any().layout.stride(), 0);
      const auto of_result =
          x.with_layout(make_layout(shape_, {strides[0], strides[1], strides[2]}));
      return mine(of_result, mode == 0 ? IntTuple{0, _, 0} : IntTuple{_, 0, _});
    };
    const auto inside = within(once(make_identity_tensor(vector.shape())), vector.shape());
    const auto registers = make_tensor<T>(mode == 0 ? IntTuple{2} : IntTuple{2, columns_ / 8});
    clear(registers);
    copy_if(inside, once(vector), registers);
    const IntTuple strides = mode == 0 ? IntTuple{0, 1, 0} : IntTuple{1, 0, 2};
    return cast<float>(load(registers.with_layout(make_layout(values(), strides))));
  }
  template <class T>
  Tensor<T> in_batches(const Tensor<T, 2>& x) const {
    const Tensor<T> matrix(x);
    return matrix.with_layout(make_layout(append(matrix.shape(), get(shape_, 2)),
                                          append(matrix.any().layout.stride(), 0)));
  }
  template <class T>
  void stored(const Fragment<float>& elements, const Tensor<T>& part) const {
    const Tensor<float> registers = make_tensor<float>(values());
    heddle::store(registers, elements);
    copy_if(within(places(), shape_), registers, part);
  }
  template <class T>
  Fragment<float> loaded(const Tensor<T>& part) const {
    const auto registers = make_tensor<std::remove_const_t<T>>(values());
    clear(registers);
    copy_if(within(places(), shape_), part, registers);
    return cast<float>(load(registers));
  }

 public:
  // For the kernel: the first row and column, how many columns, the batch, the matrix of b, and the
  // result's extents.
  GemmPart(const Int& row, const Int& column, int columns, const Int& batch, const Int& group,
           const IntTuple& shape)
      : row_(row),
        column_(column),
        columns_(columns),
        batch_(batch),
        group_(group),
        shape_(shape) {}

  // The first row and column, and how many columns; there are 64 rows.
  const Int& row() const { return row_; }
  const Int& column() const { return column_; }
  int columns() const { return columns_; }
  // Some of the columns as a part: the elements from 1/2 first on.
  GemmPart columns(int first, int count) const {
    return GemmPart(row_, column_ + first, count, batch_, group_, shape_);
  }
  // The number of the group, or the batch: of the matrix of b.
  const Int& group() const { return group_; }
  // The extents of the result; of groups (grouped.h), the first is the row behind those of this group.
  const IntTuple& shape() const { return shape_; }
  // The places of the thread's elements: coordinates (m, n, batch).
  Tensor<Coord> places() const { return mine(make_identity_tensor(shape_)); }

  // The elements of a tensor of the result's extents, or of a matrix for all batches; 0 outside of it.
  template <class T>
  Fragment<float> of(const Tensor<T, 3>& x) const {
    return loaded(mine(x));
  }
  template <class T>
  Fragment<float> of(const Tensor<T, 2>& x) const {
    return loaded(mine(in_batches(x)));
  }
  // The element of a vector for each one's column, or row; 0 outside of it. Of a matrix, (groups, n) or
  // (batches, m), the group's or batch's own vector.
  template <class T>
  Fragment<float> by_column(const Tensor<T, 1>& x) const {
    return along(1, Tensor<const T>(x));
  }
  template <class T>
  Fragment<float> by_column(const Tensor<T, 2>& x) const {
    return along(1, Tensor<const T>(x)(group_, _));
  }
  template <class T>
  Fragment<float> by_row(const Tensor<T, 1>& x) const {
    return along(0, Tensor<const T>(x));
  }
  template <class T>
  Fragment<float> by_row(const Tensor<T, 2>& x) const {
    return along(0, Tensor<const T>(x)(batch_, _));
  }
  // Stores elements to a tensor of the result's extents, converted to its type.
  template <class T>
  void store(const Tensor<T, 3>& x, const Fragment<float>& elements) const {
    stored(elements, mine(x));
  }
  template <class T>
  void store(const Tensor<T, 2>& x, const Fragment<float>& elements) const {
    stored(elements, mine(in_batches(x)));
  }

 private:
  Int row_, column_;
  int columns_;
  Int batch_, group_;
  IntTuple shape_;
};

// The sums as they are.
struct PlainSums {
  // The sums.
  Fragment<float> operator()(const GemmPart&, const Fragment<float>& sums) const { return sums; }
};

}  // namespace heddle::kernels
