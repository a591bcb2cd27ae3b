// The kernels of reductions, and how they are launched (reducer_internal.h).
#pragma once

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/reduce/reducer_internal.h"
#include "heddle/kernels/reduce/short_rows_internal.h"
#include "heddle/kernels/reduce/together_internal.h"

namespace heddle::kernels {

// A kernel's host values.
template <class Op, class Deal>
struct Reducing {
  Op op;
  Deal deal;
  friend bool operator==(const Reducing&, const Reducing&) = default;
};

// Rows whose elements lie side by side: store(0, block, row, state) of each. A row's places begin `first` behind those of the
// row before.
template <class Op, class T, class Store>
void reduce_rows_body(const Reducing<Op, RowDeal>& how, const Tensor<const T, 2>& x,
                      const Int& first, Store store) {
  using State = typename Op::State;
  const Op& op = how.op;
  const RowThreads threads = row_threads(how.deal, x.shape(0));
  const Row<const T> row(threads, x);
  const auto part = [&](const Int& number) {
    const RowPart<T> loaded = row.load(number, op.template outside<T>());
    const RowPart<int32_t> columns = row.columns_of(number);
    Elements<typename Op::Element> elements;
    for (size_t v = 0; v < loaded.vectors.size(); ++v) {
      const Fragment<T>& vector = loaded.vectors[v];
      for (int i = 0; i < vector.size(); ++i) {
        elements.values.push_back(cast<typename Op::Element>(vector[i]));
      }
      std::optional<Bool> present;
      if (!loaded.in_row.empty()) present.emplace(loaded.in_row[v]);
      elements.groups.push_back(
          {vector.size(), columns.vectors[v][0] + threads.row() * first, std::move(present)});
    }
    return op.of(elements);
  };
  const State mine = how.deal.in_parts ? For(range(0, row.parts()), op.nothing(),
                                             [&](const Int& number, const State& so_far) {
                                               return op.merge(so_far, part(number));
                                             })
                                       : part(Int(0));
  const State all = op.over(
      [&](const auto& state, auto combine) { return threads.reduce(state, combine); }, mine);
  If(threads.is_first(), [&] { store(Int(0), threads.block(), threads.row(), all); });
}

// Columns of elements, whose places begin with `first`.
template <class Op, class T, class Store>
void reduce_elements_body(const Reducing<Op, ColumnDeal>& how, const Tensor<const T, 3>& x,
                          const Int& first, const Int& stretches, Store store) {
  const heddle::detail::View<const T, 3> in =
      x.assume_aligned();  // by which the host has chosen the width
  const ColumnDeal& deal = how.deal;
  reduce_columns_body(
      deal, how.op, x.shape(1), x.shape(2), stretches,
      [&](const Int& outer, const Int& row, const Int& column, int loads) {
        std::vector<Fragment<T>> loaded;
        for (int u = 0; u < loads; ++u) {
          loaded.push_back(
              Fragment<T>(in.elements(deal.width, outer, row + u * deal.rows, column)));
        }
        StateRow<typename Op::State> out;
        for (int i = 0; i < deal.width; ++i) {
          const Int place = deal.fold == 1
                                ? row + first
                                : row * deal.fold + (column + i) / (x.shape(2) / deal.fold);
          Elements<typename Op::Element> elements{{}, {{loads, place, {}}}, deal.rows * deal.fold};
          for (int u = 0; u < loads; ++u) {
            elements.values.push_back(cast<typename Op::Element>(loaded[u][i]));
          }
          out.push(how.op.of(elements));
        }
        return out;
      },
      store);
}

// Columns of states that an earlier launch has stored.
template <class Op, class Store>
void reduce_states_body(const Reducing<Op, ColumnDeal>& how,
                        const Tensor<const typename Op::Stored, 3>& x, const Int& stretches,
                        Store store) {
  using State = typename Op::State;
  grid_dependency_wait();
  reduce_columns_body(
      how.deal, how.op, x.shape(1), x.shape(2), stretches,
      [&](const Int& outer, const Int& row, const Int& column, int loads) {
        std::vector<State> all;
        for (int u = 0; u < loads; ++u)
          all.push_back(State(x(outer, row + u * how.deal.rows, column)));
        return StateRow<State>(1, in_tree(std::move(all), [&](const State& a, const State& b) {
                                 return how.op.merge(a, b);
                               }));
      },
      store);
}

// Stores states, or their results: of (outer, stretch, column).
template <class Op>
auto to_states(const Tensor<typename Op::Stored, 3>& out) {
  return [&](const Int& outer, const Int& stretch, const Int& column,
             const typename Op::State& state) { out(outer, stretch, column) = state; };
}
template <class Op>
auto to_results(const Op& op, const Tensor<typename Op::Result, 2>& out, const Float& n) {
  return [&](const Int& outer, const Int&, const Int& column, const typename Op::State& state) {
    out(outer, column) = op.result(state, n);
  };
}

// Columns of either; places begin with `first`.
template <bool kStates, class Op, class T, class Store>
void reduce_body(const Reducing<Op, ColumnDeal>& how, const Tensor<const T, 3>& x, const Int& first,
                 const Int& stretches, Store store) {
  if constexpr (kStates) {
    reduce_states_body(how, x, stretches, store);
  } else {
    reduce_elements_body(how, x, first, stretches, store);
  }
}

// kInvalidArgument for more elements than kernels count.
inline Status check_counted(int64_t extent) {
  if (extent <= kMostCounted) return OkStatus();
  return InvalidArgumentError(
      absl::StrCat("reduce: a mode has ", extent,
                   " elements, or those that stay have so many together; at most ", kMostCounted,
                   " are counted, but of a mode that is reduced and dense"));
}

template <class Op>
template <class T>
Status Reducer<Op>::middle(TensorRef<const T, 3> x, TensorRef<Result, 2> y) const {
  const int64_t rows = x.extents[1];
  // One mode of the two that stay, where they can be one.
  const bool as_one =
      x.strides[0] == x.extents[2] * x.strides[2] && y.strides[0] == y.extents[1] * y.strides[1];
  if (x.extents[2] == 1 || as_one) {
    const int stays = x.extents[2] == 1 ? 0 : 1;
    const int64_t columns = x.extents[0] * x.extents[2];
    x = seen_as<3>(x, {1, rows, columns}, {0, x.strides[1], x.strides[2 * stays]});
    y = seen_as<2>(y, {1, columns}, {0, y.strides[stays]});
  }
  if (x.extents[0] * x.extents[2] == 0) return OkStatus();
  if (x.extents[0] == 1 && rows > 0 && (rows == 1 ? x.strides[2] == 1 : x.strides[1] == 1)) {
    return lines(seen_as<2>(x, {x.extents[2], rows}, {x.strides[2], 1}), y);
  }
  return columns<false>(x, y, rows);
}

template <class Op>
template <class T>
Status Reducer<Op>::all(const TensorRef<const T, 2>& x, const TensorRef<Result, 2>& y) const {
  const int64_t rows = x.extents[0], length = x.extents[1], n = rows * length;
  if (n == 0) return middle(seen_as<3>(x, {1, 0, 1}, {0, 1, 1}), y);
  if (x.strides[1] == 1 && (rows == 1 || x.strides[0] == length))
    return lines(seen_as<2>(x, {1, n}, {n, 1}), y);
  const RowDeal deal = dealt(x);
  const int64_t of_row = results_of_row(deal);
  const StatusOr<Buffer> states = memory(of_row * rows);
  if (!states.ok()) return states.status();
  if (Status s = store_states(deal, x, length, in(*states, {1, of_row, rows})); !s.ok()) return s;
  return columns<true, Stored>(in(*states, {1, of_row * rows, 1}), y, n);
}

template <class Op>
template <class T>
Status Reducer<Op>::lines(const TensorRef<const T, 2>& x, const TensorRef<Result, 2>& y) const {
  const int64_t rows = x.extents[0], n = x.extents[1];
  if (n > kMostCounted) return long_lines(x, y);
  if (Status s = check_counted(rows); !s.ok()) return s;
  if (are_short(x)) return short_lines(x, y);
  static const runtime::Tunable<RowsReduceProblem, RowsReduceDeal> tunable(
      "reduce", rows_reduce_deals, deal_rows_reduce);
  const RowsReduceDeal chosen =
      tunable.choose({{read_once(x), rows}, are_packed(x), op_.reduction}, stream_.device().info());
  if (chosen.together.threads > 0) return lines_together(chosen.together, x, y);
  const RowDeal& deal = chosen.rows;
  if (!deal.apart) {
    static const auto kernels = kernel_family(
        "reduce_rows(x, y, n)",
        [](Host<Reducing<Op, RowDeal>> how, Tensor<const T, 2> from, Tensor<Result, 2> to,
           Float count) { reduce_rows_body(how, from, 0, to_results(how.op, to, count)); });
    return kernels(Reducing<Op, RowDeal>{op_, deal})
        .launch(stream_, row_shape(deal, rows), x, y, static_cast<float>(n));
  }
  const StatusOr<Buffer> states = memory(deal.blocks * rows);
  if (!states.ok()) return states.status();
  const TensorRef<Stored, 3> of_blocks = in(*states, {1, deal.blocks, rows});
  if (Status s = store_states(deal, x, 0, of_blocks); !s.ok()) return s;
  return columns<true, Stored>(of_blocks, y, n);
}

template <class Op>
template <class T>
Status Reducer<Op>::short_lines(const TensorRef<const T, 2>& x,
                                const TensorRef<Result, 2>& y) const {
  static const auto kernels =
      kernel_family("reduce_short_rows(x, groups, y, n)",
                    [](Host<Reducing<Op, ShortDeal>> how, Tensor<const T, 2> from,
                       Tensor<const T, 2> groups, Tensor<Result, 2> to, Float count) {
                      reduce_short_rows_body(how.op, how.deal, from, groups, to, count);
                    });
  constexpr int64_t kThreads = 256;
  const int64_t rows = x.extents[0], n = x.extents[1];
  ShortDeal deal{static_cast<int>(n), kVectorBytes / int{sizeof(T)}};
  // Results beside each other are stored as whole vectors.
  const bool dense = y.strides[1] == 1 && reinterpret_cast<uintptr_t>(y.data) % kVectorBytes == 0;
  if (dense) deal.stored = std::min(deal.width, kVectorBytes / int{sizeof(Result)});
  const int64_t each = n * deal.width;
  const auto groups = seen_as<2>(x, {rows / deal.width, each}, {each, 1});
  return kernels(Reducing<Op, ShortDeal>{op_, deal})
      .launch(stream_, {.grid = groups.extents[0] / kThreads + 1, .block = kThreads}, x, groups, y,
              static_cast<float>(n));
}

template <class Op>
template <class T>
Status Reducer<Op>::lines_together(const TogetherDeal& deal, const TensorRef<const T, 2>& x,
                                   const TensorRef<Result, 2>& y) const {
  static const auto kernels = kernel_family(
      "reduce_together(x, groups, y, n)",
      [](Host<Reducing<Op, TogetherDeal>> how, Tensor<const T, 2> from, Tensor<const T, 2> groups,
         Tensor<Result, 2> to, Float count) {
        reduce_together_body(how.op, how.deal, from, groups, to_results(how.op, to, count));
      });
  const int64_t rows = x.extents[0], n = x.extents[1], each = n * deal.threads;
  const auto groups = seen_as<2>(x, {rows / deal.threads, each}, {each, 1});
  return kernels(Reducing<Op, TogetherDeal>{op_, deal})
      .launch(stream_, {.grid = divide_up(rows, deal.threads), .block = deal.threads}, x, groups, y,
              static_cast<float>(n));
}

// Each is taken as rows of a length that a kernel can count, and what is left of it.
template <class Op>
template <class T>
Status Reducer<Op>::long_lines(const TensorRef<const T, 2>& x,
                               const TensorRef<Result, 2>& y) const {
  constexpr int64_t kLength = int64_t{1} << 30;
  const int64_t n = x.extents[1], whole = n / kLength, left = n % kLength;
  for (int64_t row = 0; row < x.extents[0]; ++row) {
    const T* const begin = x.data + row * x.strides[0];
    const TensorRef<const T, 2> first(begin, {whole, kLength}),
        last(begin + whole * kLength, {1, left});
    const RowDeal of_first = dealt(first), of_last = dealt(last);
    const int64_t blocks[] = {results_of_row(of_first), results_of_row(of_last)};
    const int64_t before = blocks[0] * whole, count = before + (left > 0 ? blocks[1] : 0);
    const StatusOr<Buffer> states = memory(count);
    if (!states.ok()) return states.status();
    Status s = store_states(of_first, first, 0, in(*states, {1, blocks[0], whole}));
    if (s.ok() && left > 0) {
      s = store_states(of_last, last, 0, in(*states, {1, blocks[1], 1}, before));
    }
    if (s.ok()) {
      s = columns<true, Stored>(in(*states, {1, count, 1}), {y.data + row * y.strides[1], {1, 1}},
                                n);
    }
    if (!s.ok()) return s;
  }
  return OkStatus();
}

template <class Op>
template <class T>
Status Reducer<Op>::store_states(const RowDeal& deal, const TensorRef<const T, 2>& x, int64_t first,
                                 const TensorRef<Stored, 3>& states) const {
  static const auto kernels =
      kernel_family("reduce_blocks(x, first, states)",
                    [](Host<Reducing<Op, RowDeal>> how, Tensor<const T, 2> from, Int behind,
                       Tensor<Stored, 3> to) {
                      grid_dependency_launch();
                      reduce_rows_body(how, from, behind, to_states<Op>(to));
                    });
  return kernels(Reducing<Op, RowDeal>{op_, deal})
      .launch(stream_, row_shape(deal, x.extents[0]), x, static_cast<int32_t>(first), states);
}

template <class Op>
template <class T>
RowDeal Reducer<Op>::dealt(const TensorRef<const T, 2>& x) const {
  return deal_rows(read_once(x), stream_.device().info());
}
template <class Op>
template <class T>
RowsOf Reducer<Op>::read_once(const TensorRef<const T, 2>& x) {
  RowsOf rows = rows_of(x);
  rows.rows = x.extents[0];
  return rows;
}

template <class Op>
template <bool kStates, class T>
Status Reducer<Op>::columns(const TensorRef<const T, 3>& x, const TensorRef<Result, 2>& y,
                            int64_t n) const {
  ColumnsOf of{x.extents[0], x.extents[1], x.extents[2], 1, kStates};
  for (const int64_t extent : x.extents) {
    if (Status s = check_counted(extent); !s.ok()) return s;
  }
  if constexpr (!kStates) {
    of.width = columns_at_once(x);
    // Their accesses would be single elements, or parts of one.
    const bool narrow = of.width == 1 || of.columns * int64_t{sizeof(T)} < kVectorBytes;
    if (narrow && can_be_folded(x)) return folded(x, y);
  }
  const DeviceInfo& device = stream_.device().info();
  const ColumnDeal deal = deal_columns(of, device);
  const int64_t split = stretches(of, deal, device);
  if (split > 1) {
    const StatusOr<Buffer> states = memory(of.outer * split * of.columns);
    if (!states.ok()) return states.status();
    const TensorRef<Stored, 3> of_stretches = in(*states, {of.outer, split, of.columns});
    if (Status s = store_stretches<kStates>(deal, x, 0, of_stretches); !s.ok()) return s;
    return columns<true, Stored>(of_stretches, y, n);
  }
  static const auto kernels = kernel_family(
      "reduce_columns(x, y, n)", [](Host<Reducing<Op, ColumnDeal>> how, Tensor<const T, 3> from,
                                    Tensor<Result, 2> to, Float count) {
        reduce_body<kStates>(how, from, 0, Int(1), to_results(how.op, to, count));
      });
  LaunchShape shape = column_shape(of, deal, 1);
  shape.programmatic = kStates;  // behind the launch that stores them
  return kernels(Reducing<Op, ColumnDeal>{op_, deal})
      .launch(stream_, shape, x, y, static_cast<float>(n));
}

template <class Op>
template <class T>
Status Reducer<Op>::folded(const TensorRef<const T, 3>& x, const TensorRef<Result, 2>& y) const {
  const int64_t rows = x.extents[1], columns = x.extents[2];
  constexpr int64_t kFold = kVectorBytes / int64_t{sizeof(T)};
  const int64_t folds = rows / kFold, folded = folds * kFold, length = kFold * columns;
  const ColumnsOf of{1, folds, length, static_cast<int>(kFold)};
  const DeviceInfo& device = stream_.device().info();
  ColumnDeal deal = deal_columns(of, device);
  deal.fold = static_cast<int>(kFold);
  const int64_t split = stretches(of, deal, device);
  const int64_t count = split * kFold + (folded < rows);
  const StatusOr<Buffer> states = memory(count * columns);
  if (!states.ok()) return states.status();
  Status status = store_stretches<false>(deal, seen_as<3>(x, {1, folds, length}, {0, length, 1}), 0,
                                         in(*states, {1, split, length}));
  if (status.ok() && folded < rows) {
    TensorRef<const T, 3> left = seen_as<3>(x, {1, rows - folded, columns}, {0, columns, 1});
    left.data += folded * columns;
    left.capacity_bytes = -1;
    status = store_stretches<false>(deal_columns({1, rows - folded, columns}, device), left, folded,
                                    in(*states, {1, 1, columns}, split * length));
  }
  if (!status.ok()) return status;
  return this->columns<true, Stored>(in(*states, {1, count, columns}), y, rows);
}

template <class Op>
template <bool kStates, class T>
Status Reducer<Op>::store_stretches(const ColumnDeal& deal, const TensorRef<const T, 3>& x,
                                    int64_t first, const TensorRef<Stored, 3>& states) const {
  static const auto kernels =
      kernel_family("reduce_stretches(x, first, states)",
                    [](Host<Reducing<Op, ColumnDeal>> how, Tensor<const T, 3> from, Int before,
                       Tensor<Stored, 3> to) {
                      grid_dependency_launch();
                      reduce_body<kStates>(how, from, before, to.shape(1), to_states<Op>(to));
                    });
  LaunchShape shape =
      column_shape({x.extents[0], x.extents[1], x.extents[2]}, deal, states.extents[1]);
  shape.programmatic = kStates;
  return kernels(Reducing<Op, ColumnDeal>{op_, deal})
      .launch(stream_, shape, x, static_cast<int32_t>(first), states);
}

template <class Op>
StatusOr<Buffer> Reducer<Op>::memory(int64_t states) const {
  return stream_.allocate(static_cast<size_t>(states) * Op::kStoredBytes);
}
template <class Op>
TensorRef<typename Op::Stored, 3> Reducer<Op>::in(const Buffer& memory, const int64_t (&extents)[3],
                                                  int64_t first) {
  const uint64_t address = memory.address() + static_cast<uint64_t>(first) * Op::kStoredBytes;
  return {reinterpret_cast<Stored*>(static_cast<uintptr_t>(address)), extents};
}

// Makes a Reducer's member functions for the element types: floats, or integers.
#define HEDDLE_REDUCE_FOR(Op, T)                                                                 \
  template Status Reducer<Op>::middle<T>(TensorRef<const T, 3>, TensorRef<Op::Result, 2>) const; \
  template Status Reducer<Op>::all<T>(const TensorRef<const T, 2>&,                              \
                                      const TensorRef<Op::Result, 2>&) const;
#define HEDDLE_REDUCE(Op)      \
  HEDDLE_REDUCE_FOR(Op, float) \
  HEDDLE_REDUCE_FOR(Op, half)  \
  HEDDLE_REDUCE_FOR(Op, bfloat16)
#define HEDDLE_REDUCE_INTEGERS(Op) \
  HEDDLE_REDUCE_FOR(Op, int32_t)   \
  HEDDLE_REDUCE_FOR(Op, uint8_t)

}  // namespace heddle::kernels
