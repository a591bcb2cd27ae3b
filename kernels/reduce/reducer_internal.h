// The launches of one kind of reductions. Internal to the kernels.
#pragma once

#include "heddle/kernels/reduce/columns_internal.h"
#include "heddle/kernels/reduce/rows_deal_internal.h"
#include "heddle/kernels/rows/row_kernel.h"
#include "heddle/kernels/views.h"

namespace heddle::kernels {

// Op is what is carried (combine_internal.h). The member functions are defined in reducer_kernels_internal.h, and made for each Op in a
// file of its own.
template <class Op>
class Reducer {
 public:
  using Stored = typename Op::Stored;
  using Result = typename Op::Result;

  Reducer(const Stream& stream, Reduction reduction) : stream_(stream), op_{reduction} {}

  // y(o, i) of x(o, ·, i).
  template <class T>
  Status middle(TensorRef<const T, 3> x, TensorRef<Result, 2> y) const;
  // y(0, 0) of all elements of x, whose places count row by row.
  template <class T>
  Status all(const TensorRef<const T, 2>& x, const TensorRef<Result, 2>& y) const;

 private:
  // Of rows, whose elements lie side by side: y(0, i) of x(i, ·).
  template <class T>
  Status lines(const TensorRef<const T, 2>& x, const TensorRef<Result, 2>& y) const;
  // The same of rows that are so short that accesses take several, of short ones through shared memory, and of rows that are
  // too long for a kernel.
  template <class T>
  Status short_lines(const TensorRef<const T, 2>& x, const TensorRef<Result, 2>& y) const;
  template <class T>
  Status lines_together(const TogetherDeal& deal, const TensorRef<const T, 2>& x,
                        const TensorRef<Result, 2>& y) const;
  template <class T>
  Status long_lines(const TensorRef<const T, 2>& x, const TensorRef<Result, 2>& y) const;
  // The states of the blocks that share a row, of each row, whose places begin `first` behind those of the row before.
  template <class T>
  Status store_states(const RowDeal& deal, const TensorRef<const T, 2>& x, int64_t first,
                      const TensorRef<Stored, 3>& states) const;
  template <class T>
  RowDeal dealt(const TensorRef<const T, 2>& x) const;
  template <class T>
  static RowsOf read_once(const TensorRef<const T, 2>& x);

  // y(o, i) of x(o, ·, i), which are elements or states, where n elements are behind each.
  template <bool kStates, class T>
  Status columns(const TensorRef<const T, 3>& x, const TensorRef<Result, 2>& y, int64_t n) const;

  // The same of elements whose rows begin at odd places, or are shorter than an access, but lie one behind the other:
  // several rows are taken as one, which begins at an even place.
  template <class T>
  Status folded(const TensorRef<const T, 3>& x, const TensorRef<Result, 2>& y) const;
  // The states of stretches of rows, whose places begin with `first`.
  template <bool kStates, class T>
  Status store_stretches(const ColumnDeal& deal, const TensorRef<const T, 3>& x, int64_t first,
                         const TensorRef<Stored, 3>& states) const;

  StatusOr<Buffer> memory(int64_t states) const;
  static TensorRef<Stored, 3> in(const Buffer& memory, const int64_t (&extents)[3],
                                 int64_t first = 0);

  const Stream& stream_;
  const Op op_;
};

}  // namespace heddle::kernels
