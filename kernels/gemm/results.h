// How a tile's results get from registers to memory: each warp lays its rows into shared memory, some
// columns after the others, and the copy engine stores them. Internal to the kernels.
#pragma once

#include <algorithm>
#include <numeric>
#include <type_traits>

#include "heddle/kernels/gemm/epilogue.h"
#include "heddle/kernels/gemm/prefetch.h"
#include "heddle/kernels/gemm/tiles.h"

namespace heddle::kernels {

// The stores of a kernel's results, with their tiles in shared memory.
template <class D>
class GemmResults {
 public:
  // `ends_inside`: whether other results may begin in d where one ends.
  GemmResults(const GemmConfig& c, const Tensor<D, 3>& d, bool ends_inside)
      : c_(c),
        d_(d),
        ends_inside_(ends_inside),
        tiles_(make_smem_tensor<D>(
            make_smem_layout<D>({c.result_rows(), c.store_columns, c.store_buffers}))),
        store_(make_tma_atom(TmaStore{}, d, warp_rows(0, 0))) {}

  // Brings the tensor map near the copy engine.
  void prefetch() const {
    if (c_.stores_boxes) store_.prefetch();
  }
  // Brings a tile's elements of what an epilogue reads, tensors of the result's extents, to L2 while the last
  // products run. All threads that multiply the tile call it, with their number.
  template <class... Args>
  void prefetch_for_epilogue(const GemmTile& tile, const Int& thread, const Args&... args) const {
    (prefetch_tile(c_, tile, first_column(tile), thread, args), ...);
  }
  // The part of a tile that a warpgroup has of its product number i.
  GemmPart part(const GemmTile& tile, const Int& group, int i) const {
    return GemmPart(tile.row + rows_before(group, i), first_column(tile), c_.columns(), tile.batch,
                    tile.factor, {tile.end, d_.shape(1), d_.shape(2)});
  }

  // Passes sums (values, product) of a warpgroup through an epilogue: into `finished`, or, where boxes
  // cannot be stored, into memory.
  template <class Epilogue, class... Args>
  void compute(const Epilogue& epilogue, const Tensor<float>& sums, const Tensor<D>& finished,
               const GemmTile& tile, const Int& group, const Args&... args) const {
    // What an epilogue makes of more columns at once would need registers besides the sums.
    constexpr bool kHasEpilogue = !std::is_same_v<Epilogue, PlainSums>;
    const int at_once = kHasEpilogue ? std::gcd(c_.columns(), kEpilogueColumns) : c_.columns();
    for (int i = 0; i < products(); ++i) {
      const GemmPart whole = part(tile, group, i);
      for (int first = 0; first < c_.columns(); first += at_once) {
        const GemmPart some = whole.columns(first, at_once);
        const Fragment<float> result =
            epilogue(some, load(sums(_, i)).slice(first / 2, at_once / 2), args...);
        if (c_.stores_boxes) {
          const Fragment<D> elements = cast<D>(result);
          heddle::store(local_tile(finished(_, i), {at_once / 2}, {first / at_once}), elements);
          if (at_once != c_.columns()) pin_with_early_loads(elements);
        } else {
          some.store(d_, result);
        }
      }
    }
  }
  // Stores results (values, product) of a warpgroup. The warps' copies may still run when it returns.
  void store(const Tensor<D>& results, const GemmTile& tile, const Int& group) const {
    if (ends_inside_) {
      for (int i = 0; i < products(); ++i) {
        If(!is_whole(tile, group, i),
           [&] { part(tile, group, i).store(d_, cast<float>(load(results(_, i)))); });
      }
    }
    store_parts(tile, group, [&](int i, int first) {
      return load(results(_, i)).slice(first / 2, c_.store_columns / 2);
    });
  }
  // Passes sums through an epilogue and stores what it makes, some columns after the others, which takes fewer
  // registers. The result ends nowhere inside of d.
  template <class Epilogue, class... Args>
  void compute_and_store(const Epilogue& epilogue, const Tensor<float>& sums, const GemmTile& tile,
                         const Int& group, const Args&... args) const {
    store_parts(tile, group, [&](int i, int first) {
      const GemmPart some = part(tile, group, i).columns(first, c_.store_columns);
      return cast<D>(
          epilogue(some, load(sums(_, i)).slice(first / 2, c_.store_columns / 2), args...));
    });
  }
  // Waits until the copies of this warp's results are done.
  void wait() const {
    If(elect_one(), [&] { bulk_wait(); });
  }

 private:
  static constexpr int kEpilogueColumns = 32;  // that an epilogue gets at once

  // Stores a warpgroup's results, store_columns of them at a time: results(product, first column).
  // Of a warp one lane copies, always the same one: a lane waits for what it has started itself. To be elected takes
  // no register that a tile's sums need.
  template <class Results>
  void store_parts(const GemmTile& tile, const Int& group, const Results& results) const {
    const int parts = c_.columns() / c_.store_columns;
    // Of a warpgroup that has tiles of its own, behind the other one's.
    const auto place = [&](int i) {
      return (c_.ping_pong ? warp_row(group, i) + group * c_.m : warp_row(group, i)) / kWarpRows;
    };
    for (int part = 0; part < parts; ++part) {
      const int buffer = part % c_.store_buffers, first = part * c_.store_columns;
      // Copies from this buffer are done: of all buffers, where a tile begins with the one that
      // the tile before has ended with.
      const bool turns = parts % c_.store_buffers != 0;
      If(elect_one(), [&] { bulk_wait_read(part == 0 && turns ? 0 : c_.store_buffers - 1); });
      sync_warp();
      for (int i = 0; i < products(); ++i) put(warp_rows(place(i), buffer), results(i, first));
      fence_async();
      sync_warp();
      If(elect_one(), [&] {
        for (int i = 0; i < products(); ++i) {
          const auto copy_rows = [&] {
            const auto there = domain_offset(
                {tile.row + warp_row(group, i), first_column(tile) + first, tile.batch}, d_);
            copy(store_, warp_rows(place(i), buffer),
                 local_tile(there, {kWarpRows, c_.store_columns, 1}, {0, 0, 0})(_, _, 0));
          };
          if (ends_inside_) {
            If(is_whole(tile, group, i), copy_rows);
          } else {
            copy_rows();
          }
        }
        bulk_commit();
      });
    }
  }

  // How many products a warpgroup has of a tile, each of 64 rows.
  int products() const { return c_.rows_of_group() / kProductRows; }
  // The rows of a tile in front of those of a warpgroup's product i.
  Int rows_before(const Int& group, int i) const {
    return (c_.ping_pong ? Int(i) : i * c_.groups + group) * kProductRows;
  }
  // The first row of a warp's in product i, in the tile, and whether all of them are rows of the result.
  Int warp_row(const Int& group, int i) const {
    return rows_before(group, i) + warp_id() % 4 * kWarpRows;
  }
  Bool is_whole(const GemmTile& tile, const Int& group, int i) const {
    return tile.row + warp_row(group, i) + kWarpRows <= tile.end;
  }
  // The first column that this block stores.
  Int first_column(const GemmTile& tile) const {
    return c_.split == 1 ? tile.column : tile.column + cluster_rank() * c_.columns();
  }
  // A warp's rows in a buffer, by their number.
  Tensor<D> warp_rows(const Int& number, int buffer) const {
    return local_tile(tiles_(_, _, buffer), {kWarpRows, c_.store_columns}, {number, 0});
  }
  // Puts a warp's rows of a product into its tile of shared memory.
  void put(const Tensor<D>& tile, const Fragment<D>& results) const {
    if constexpr (sizeof(D) == 2) {
      const Int row = lane_id() % 16, column = lane_id() / 16 * 8;
      for (int i = 0; i < c_.store_columns; i += 16) {
        stmatrix(tile.at({row, i + column}), results.slice(i / 2, 8));
      }
    } else {
      const Int row = lane_id() / 4, pair = lane_id() % 4;
      for (int i = 0; i < c_.store_columns; i += 8) {
        for (int below = 0; below < 2; ++below) {
          heddle::store(local_tile(tile, {1, 2}, {row + 8 * below, i / 2 + pair}),
                        results.slice(i / 2 + 2 * below, 2));
        }
      }
    }
  }

  GemmConfig c_;
  const Tensor<D, 3>& d_;
  bool ends_inside_;
  Tensor<D> tiles_;
  TmaAtom store_;
};

}  // namespace heddle::kernels
