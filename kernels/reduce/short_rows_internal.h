// Combining rows of a few elements that lie one behind the other: a thread takes as many rows as an access has elements,
// which are as many accesses as a row has elements. Internal to the kernels.
#pragma once

#include "heddle/kernels/reduce/combine_internal.h"
#include "heddle/kernels/rows/deal.h"
#include "heddle/kernels/rows/row_part.h"

namespace heddle::kernels {

inline constexpr int kMostShortColumns = 7;

// How they are dealt out.
struct ShortDeal {
  int columns = 1;  // of a row
  int width = 1;    // elements of an access
  int stored = 1;   // results that are stored at once; divides `width`
  friend bool operator==(const ShortDeal&, const ShortDeal&) = default;
};

// Whether rows lie one behind the other, and the first one begins where an access does; and whether they are so short too that
// whole accesses are rows.
template <class T>
bool are_packed(const TensorRef<const T, 2>& x) {
  return x.strides[0] == x.extents[1] && x.strides[1] == 1 &&
         reinterpret_cast<uintptr_t>(x.data) % kVectorBytes == 0;
}
template <class T>
bool are_short(const TensorRef<const T, 2>& x) {
  return x.extents[1] <= kMostShortColumns && are_packed(x);
}

// y(0, row) of each row, of n elements. `x` has them all, `groups` as many of them in a row as an access has elements.
template <class Op, class T>
void reduce_short_rows_body(const Op& op, const ShortDeal& deal, const Tensor<const T, 2>& x,
                            const Tensor<const T, 2>& groups,
                            const Tensor<typename Op::Result, 2>& y, const Float& n) {
  using Result = typename Op::Result;
  const auto result_of = [&](auto element) {
    Elements<typename Op::Element> elements{{}, {{deal.columns, Int(0), {}}}};
    for (int i = 0; i < deal.columns; ++i) {
      elements.values.push_back(cast<typename Op::Element>(element(i)));
    }
    return Value<Result>(op.result(op.of(elements), n));
  };
  const Int group = block_idx.x * block_dim.x + thread_idx.x;
  If(group < groups.shape(0), [&] {
    const heddle::detail::View<const T, 2> in = groups.assume_aligned();
    const heddle::detail::View<Result, 2> out = y.assume_aligned();
    std::vector<Fragment<T>> loaded;
    for (int v = 0; v < deal.columns; ++v) {
      loaded.push_back(Fragment<T>(in.elements(deal.width, group, v * deal.width)));
    }
    for (int first = 0; first < deal.width; first += deal.stored) {
      std::vector<Value<Result>> results;
      for (int r = first; r < first + deal.stored; ++r) {
        results.push_back(result_of([&](int i) {
          const int at = r * deal.columns + i;
          return loaded[at / deal.width][at % deal.width];
        }));
      }
      out.elements(deal.stored, 0, group * deal.width + first) = packed(results);
    }
  });
  // The rows that are left are fewer than an access has elements: one for each of the first threads.
  const Int whole = groups.shape(0) * deal.width;
  If(group < x.shape(0) - whole, [&] {
    const Int row = whole + group;
    y(0, row) = result_of([&](int i) { return x(row, i); });
  });
}

}  // namespace heddle::kernels
