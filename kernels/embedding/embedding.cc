#include "heddle/kernels/embedding/embedding.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/rows/row_kernel.h"
#include "heddle/kernels/rows/row_tiles.h"

namespace heddle::kernels {
namespace {

constexpr int kThreads = 256, kVectors = 4;

// How rows are dealt out: a thread has vectors of one row.
struct GatherDeal {
  TileDeal tile;
  int rows = 1;  // of a block
  int sums = 1;  // elements of a gradient that one atomic adds to
  friend bool operator==(const GatherDeal&, const GatherDeal&) = default;
};

// body(row, id, number) of each tile of each row that this block has.
template <class Id, class Body>
void each_tile(const GatherDeal& deal, const Tensor<const Id, 1>& ids, const Int& columns,
               Body body) {
  const Int row = block_idx.x * deal.rows + thread_idx.y;
  If(row < ids.shape(0), [&] {
    // One that 32 bits do not hold is no row either.
    const Value<Id> given = ids(row);
    const Int lower = cast<int32_t>(given), id = select(cast<Id>(lower) == given, lower, Int(-1));
    for (const Int number : range(deal.tile.tiles_of(columns))) body(row, id, number);
  });
}

template <class T, class Id>
void gather(const GatherDeal& deal, const Tensor<const T, 2>& table, const Tensor<const Id, 1>& ids,
            const Tensor<T, 2>& y) {
  const RowTiles<const T> from(deal.tile, table, y.shape(1));
  const RowTiles<T> to(deal.tile, y, y.shape(1));
  each_tile(deal, ids, y.shape(1), [&](const Int& row, const Int& id, const Int& number) {
    to.store(to.at(row, number), from.load(from.at(id, number)));
  });
}

template <class T, class Id>
void scatter(const GatherDeal& deal, const Tensor<const Id, 1>& ids, const Tensor<const T, 2>& dy,
             const Tensor<float, 2>& dtable) {
  const RowTiles<const T> from(deal.tile, dy, dy.shape(1));
  each_tile(deal, ids, dy.shape(1), [&](const Int& row, const Int& id, const Int& number) {
    const RowTile tile = from.at(row, number);
    const std::vector<Fragment<T>> vectors = from.load(tile);
    for (int v = 0; v < deal.tile.vectors; ++v) {
      const Fragment<float> sums = vectors[v].template as<float>();
      const Int first = from.column(tile, v);
      const auto add = [&](int e) {
        If(from.has(first + e, 1), [&] { atomic_add(dtable(id, first + e), sums[e]); });
      };
      for (int e = 0; e < deal.tile.width; e += deal.sums) {
        if (deal.sums == 1) {
          add(e);
          continue;
        }
        If(from.has(first + e, 4), [&] {
          const Vec<float, 4> four(sums[e], sums[e + 1], sums[e + 2], sums[e + 3]);
          atomic_add(dtable.assume_aligned().template vec<4>(id, first + e), four);
        }).Else([&] {
          for (int i = 0; i < 4; ++i) add(e + i);
        });
      }
    }
  });
}

GatherDeal deal_rows_of(const RowsOf& of) {
  // Which row is taken is not known, so that rows at odd places are not aligned alike.
  GatherDeal deal;
  deal.tile.width = of.aligned ? kVectorBytes / of.element_bytes : 1;
  const int64_t vectors = divide_up(of.columns, deal.tile.width),
                threads = std::min<int64_t>(divide_up(vectors, kVectors), kThreads);
  deal.tile.threads = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(threads)));
  deal.tile.vectors =
      static_cast<int>(std::min<int64_t>(divide_up(vectors, deal.tile.threads), kVectors));
  deal.rows = kThreads / deal.tile.threads;
  return deal;
}

Status check_rows_fit(const char* kernel, const NamedMatrix& table, const NamedMatrix& y,
                      int64_t ids) {
  if (y.rows != ids) {
    return InvalidArgumentError(
        absl::StrCat(kernel, ": ", ids, " ids, and ", y.name, " has ", y.rows, " rows"));
  }
  if (y.columns != table.columns) {
    return InvalidArgumentError(absl::StrCat(kernel, ": rows of ", table.name, " have ",
                                             table.columns, " elements, and those of ", y.name, " ",
                                             y.columns));
  }
  if (Status s = check_columns_counted(kernel, y.columns); !s.ok()) return s;
  if (Status s = check_rows_counted(kernel, table.rows); !s.ok()) return s;
  return check_rows_counted(kernel, ids);
}

LaunchShape shape_of(const GatherDeal& deal, int64_t rows) {
  return {.grid = divide_up(rows, deal.rows), .block = {deal.tile.threads, deal.rows}};
}

}  // namespace

template <class T, class Id>
Status embedding(const Stream& stream, const TensorRef<const T, 2>& table,
                 const TensorRef<const Id, 1>& ids, const TensorRef<T, 2>& y) {
  static const auto kernel =
      kernel_family("embedding(table, ids, y)",
                    [](Host<GatherDeal> deal, Tensor<const T, 2> from, Tensor<const Id, 1> rows,
                       Tensor<T, 2> to) { gather<T, Id>(deal, from, rows, to); });
  const int64_t count = ids.extents[0];
  if (Status s = check_rows_fit("embedding", {"table", table}, {"y", y}, count); !s.ok()) return s;
  if (count == 0 || y.extents[1] == 0) return OkStatus();
  GatherDeal deal = deal_rows_of(rows_of(table, y));
  deal.tile.floods = floods_l2(stored_bytes(y), stream.device().info());
  return kernel(deal).launch(stream, shape_of(deal, count), table, ids, y);
}

template <class T, class Id>
Status embedding_backward(const Stream& stream, const TensorRef<const Id, 1>& ids,
                          const TensorRef<const T, 2>& dy, const TensorRef<float, 2>& dtable) {
  static const auto kernel =
      kernel_family("embedding_backward(ids, dy, dtable)",
                    [](Host<GatherDeal> deal, Tensor<const Id, 1> rows, Tensor<const T, 2> from,
                       Tensor<float, 2> to) { scatter<T, Id>(deal, rows, from, to); });
  const int64_t count = ids.extents[0];
  if (Status s = check_rows_fit("embedding_backward", {"dtable", dtable}, {"dy", dy}, count);
      !s.ok()) {
    return s;
  }
  if (count == 0 || dy.extents[1] == 0) return OkStatus();
  GatherDeal deal = deal_rows_of(rows_of(dy));
  const bool has_wide_atomics = stream.device().info().compute_major >= 9;
  if (has_wide_atomics && deal.tile.width > 1 && rows_of(dtable).aligned) deal.sums = 4;
  return kernel(deal).launch(stream, shape_of(deal, count), ids, dy, dtable);
}

#define HEDDLE_FOR(T, Id)                                                                  \
  template Status embedding<T, Id>(const Stream&, const TensorRef<const T, 2>&,            \
                                   const TensorRef<const Id, 1>&, const TensorRef<T, 2>&); \
  template Status embedding_backward<T, Id>(const Stream&, const TensorRef<const Id, 1>&,  \
                                            const TensorRef<const T, 2>&,                  \
                                            const TensorRef<float, 2>&);
HEDDLE_FOR(float, int32_t)
HEDDLE_FOR(float, int64_t)
HEDDLE_FOR(half, int32_t)
HEDDLE_FOR(half, int64_t)
HEDDLE_FOR(bfloat16, int32_t)
HEDDLE_FOR(bfloat16, int64_t)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
