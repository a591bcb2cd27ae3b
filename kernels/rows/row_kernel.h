// What kernels of rows are written with. Internal to the kernels.
//
//   of_row(deal, x, T(0), [&](const RowThreads& threads, const InputRow<T>& in) {
//     const Float total = threads.reduce(in.fold(Float(0), [](const RowPart<T>& part) { … }, plus()), plus());
//     const Row<T> out(threads, y);
//     in.each([&](const Int& number, const RowPart<T>& part) { out.store(number, part.map<T>(…)); });
//   });
//
// and launched by launch_rows(). softmax/softmax.cc and norm/norm.cc are examples.
#pragma once

#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/rows/input_row.h"
#include "heddle/runtime/tuning/tunable.h"

namespace heddle::kernels {

// This thread among those that share one of so many rows.
inline RowThreads row_threads(const RowDeal& deal, const Int& rows) {
  const Int first = deal.blocks > 1 ? block_idx.x / deal.blocks : Int(block_idx.x);
  return RowThreads(deal, deal.rows > 1 ? first * deal.rows + thread_idx.y : first, rows);
}

// body(threads, row) of the row that this thread has a share of; `outside` stands for what is not in the row.
template <class T, class Body>
void of_row(const RowDeal& deal, const Tensor<const T, 2>& x, const T& outside, Body body) {
  const RowThreads threads = row_threads(deal, x.shape(0));
  body(threads, InputRow<T>(threads, x, outside));
}

// An argument's name and extents.
struct NamedMatrix {
  const char* name;       // of the argument
  int64_t rows, columns;  // its extents
  // Of a matrix.
  template <class T>
  NamedMatrix(const char* name_, const TensorRef<T, 2>& matrix)
      : name(name_), rows(matrix.extents[0]), columns(matrix.extents[1]) {}
};
// kInvalidArgument where two matrices have not the same extents.
inline Status check_same_extents(const char* kernel, const NamedMatrix& x, const NamedMatrix& y) {
  if (x.rows == y.rows && x.columns == y.columns) return OkStatus();
  return InvalidArgumentError(absl::StrCat(kernel, ": ", x.name, " is ", x.rows, " × ", x.columns,
                                           " and ", y.name, " ", y.rows, " × ", y.columns,
                                           "; both need the same extents"));
}

// kInvalidArgument for rows that kernels do not count in 32 bits, those of a block behind the last included.
inline Status check_rows_counted(const char* kernel, int64_t rows) {
  if (rows >= 0 && rows <= kMostCounted) return OkStatus();
  return InvalidArgumentError(
      absl::StrCat(kernel, ": ", rows, " rows; it takes 0 to ", kMostCounted));
}

// kInvalidArgument for rows whose elements, a tile beyond the end included, kernels do not count in 32 bits.
inline Status check_columns_counted(const char* kernel, int64_t columns) {
  if (columns < kMostCounted) return OkStatus();
  return InvalidArgumentError(absl::StrCat(kernel, ": rows of ", columns,
                                           " elements; they have fewer than ", kMostCounted));
}

// What a family's kernels are called.
template <class Family>
std::string kernel_name(const Family& family) {
  return std::string(absl::string_view(family.name()).substr(0, std::strcspn(family.name(), "(")));
}

// Launches the family's kernel for how rows are best dealt out, as `heddle tune` has measured under the kernel's name or
// the tunable's model says; x is the first of its arguments. Nothing where there are no elements.
// kInvalidArgument for rows of more than 2^31 - 65536 elements, or as many rows. shape(deal, device) is the launch.
template <class Problem, class Deal, class Family, class Shape, class T, class... Rest>
Status launch_rows(const Stream& stream, const runtime::Tunable<Problem, Deal>& tunable,
                   const Family& family, const Problem& problem, Shape shape,
                   const TensorRef<T, 2>& x, const Rest&... rest) {
  const int64_t rows = x.extents[0], columns = x.extents[1];
  if (rows == 0 || columns == 0) return OkStatus();
  if (Status s = check_rows_counted("kernels of rows", rows); !s.ok()) return s;
  if (columns > kMostCounted) {
    return InvalidArgumentError(absl::StrCat(
        "rows of ", columns, " elements; kernels of rows take at most ", kMostCounted));
  }
  const DeviceInfo& device = stream.device().info();
  Deal deal = tunable.choose(problem, device);
  set_floods(floods_l2((stored_bytes(rest) + ... + stored_bytes(x)), device), deal);
  return family(deal).launch(stream, shape(deal, device), x, rest...);
}
// The same, of rows that are each taken once (deal_rows()).
template <class Family, class T, class... Rest>
Status launch_rows(const Stream& stream, const Family& family, const RowsOf& of,
                   const TensorRef<T, 2>& x, const Rest&... rest) {
  static const runtime::Tunable<RowsProblem, RowDeal> tunable(
      kernel_name(family), row_deals, [](const RowsProblem& problem, const DeviceInfo& device) {
        return deal_rows(problem.of, device);
      });
  const int64_t rows = x.extents[0];
  return launch_rows(
      stream, tunable, family, RowsProblem{of, rows},
      [&](const RowDeal& deal, const DeviceInfo&) { return row_shape(deal, rows); }, x, rest...);
}

}  // namespace heddle::kernels
