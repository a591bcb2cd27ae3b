// Which tiles of a product a block computes, and where they lie in its matrices: of one product, of a
// batch, or of groups whose rows only the device knows. Internal to the kernels.
#pragma once

#include <utility>

#include "heddle/dsl/dsl.h"
#include "heddle/kernels/gemm/config.h"

namespace heddle::kernels {

// The further parameters of a kernel that a part of it takes.
template <class... P>
struct Parameters {};

// Rows of a wgmma's product that each warp has.
inline constexpr int kWarpRows = 16;

// Where a block's tile of a product lies, in elements: (row, k) of matrix `batch` of a, (column, k) of
// matrix `factor` of b, and (row, column) of matrix `batch` of d.
struct GemmTile {
  Int row, column;    // the first ones
  Int end;            // the row behind the last one of the product
  Int batch, factor;  // matrices of a and d, and of b
};

// Blocks along k, from the first one up to the one behind the last.
struct Depth {
  // The first one, and the one behind the last.
  Int first, behind;
};

// The blocks of a cluster, and how they walk over the tiles.
inline ClusterGrid cluster_of(const GemmConfig& c) { return {c.cluster_rows, c.cluster_columns}; }
inline TileOrder order_of(const GemmConfig& c) { return {.band = c.band, .cluster = c.cluster()}; }

// Tiles as a scheduler gives them out to clusters, and as the blocks of a cluster share them.
template <class Schedule>
class ClusterTiles {
 public:
  // The tiles that a schedule gives to the clusters of a configuration.
  ClusterTiles(const GemmConfig& c, Schedule schedule)
      : c_(c),
        schedule_(std::move(schedule)),
        row_(cluster_of(c).row()),
        column_(cluster_of(c).column()) {}

  // Which tiles the cluster has.
  const Schedule& schedule() const { return schedule_; }
  // The first row and column of this block's tile, and the number of the result.
  Tile at(const Int& i) const { return of_block(schedule_.at(i)); }
  Tile of_block(const Tile& tile) const {
    return {(tile.row * c_.cluster_rows + row_) * c_.m,
            (tile.column * c_.cluster_columns + column_) * c_.n, tile.batch};
  }

 private:
  GemmConfig c_;
  Schedule schedule_;
  Int row_, column_;
};

// The tiles of a batch of products: a and d have as many matrices as b.
class BatchTiles {
 public:
  // The kernel's further parameters, and its name.
  using Takes = Parameters<>;
  static constexpr const char* kName = "gemm(a, b, d, ...)";
  // Whether results end inside of d, where others begin, and whether blocks share tiles' depths (stream_k.h).
  static constexpr bool kEndsInside = false, kSharesDepths = false;

  // The tiles of d.
  template <class T, class D>
  BatchTiles(const GemmConfig& c, const Tensor<const T, 3>&, const Tensor<D, 3>& d)
      : tiles_(c, PersistentTiles(ceil_div(d.shape(0), c.m * c.cluster_rows),
                                  ceil_div(d.shape(1), c.n * c.cluster_columns), d.shape(2),
                                  order_of(c))),
        rows_(d.shape(0)) {}

  // The schedule, the numbers of this block's tiles, and where tile i lies.
  const auto& schedule() const { return tiles_.schedule(); }
  auto mine() const { return schedule().mine(); }
  GemmTile at(const Int& i) const {
    const Tile tile = tiles_.at(i);
    return {tile.row, tile.column, rows_, tile.batch, tile.batch};
  }

 private:
  ClusterTiles<PersistentTiles> tiles_;
  Int rows_;
};

// Groups of rows that follow each other in one matrix a and in one d: ends(g) is the row behind those of
// group g, which matrix g of b multiplies.
struct RowsInOneMatrix {
  Tensor<const int32_t, 1> ends;  // of the groups

  // A group's first row, the row behind its last one, and its matrix of a and d.
  Int first(const Int& group) const {
    return If(
        group == 0, [] { return Int(0); }, [&] { return max(Int(ends(group - 1)), 0); });
  }
  Int end(const Int& group) const { return ends(group); }
  Int batch(const Int&) const { return 0; }
};
// Groups that are the first rows(g) rows of matrix g of a, and of d.
struct RowsOfMatrices {
  Tensor<const int32_t, 1> rows;  // of the groups

  // A group's first row, the row behind its last one, and its matrix of a and d.
  Int first(const Int&) const { return 0; }
  Int end(const Int& group) const { return rows(group); }
  Int batch(const Int& group) const { return group; }
};

// The tiles of groups, by one of these two.
template <class Rows>
class GroupTiles {
 public:
  // The kernel's further parameters and its name, and what BatchTiles says of results.
  using Takes = Parameters<Tensor<const int32_t, 1>>;
  static constexpr const char* kName = "gemm_of_groups(a, b, d, ...)";
  static constexpr bool kEndsInside = true, kSharesDepths = false;

  // The tiles of d, of as many groups as b has matrices; `counts` is what Rows is made of.
  template <class T, class D>
  GroupTiles(const GemmConfig& c, const Tensor<const T, 3>& b, const Tensor<D, 3>& d,
             const Tensor<const int32_t, 1>& counts)
      : rows_{counts},
        most_(d.shape(0)),
        tiles_(c, Schedule(b.shape(2), ceil_div(d.shape(1), c.n * c.cluster_columns),
                           Heights{c.m * c.cluster_rows, rows_, most_}, order_of(c))) {}

  // The schedule, the numbers of this block's tiles, and where tile i lies.
  const auto& schedule() const { return tiles_.schedule(); }
  auto mine() const { return schedule().mine(); }
  GemmTile at(const Int& i) const {
    const Tile tile = tiles_.at(i);
    const Int& group = tile.batch;
    return {tile.row + rows_.first(group), tile.column, min(rows_.end(group), most_),
            rows_.batch(group), group};
  }

 private:
  // How many tiles of a cluster a group has below each other.
  struct Heights {
    int tile;
    Rows rows;
    Int most;
    Int operator()(const Int& group) const {
      const Int height = min(rows.end(group), most) - rows.first(group);
      return (max(height, 0) + (tile - 1)) / tile;
    }
  };
  using Schedule = GroupedTiles<Heights>;

  Rows rows_;
  Int most_;
  ClusterTiles<Schedule> tiles_;
};

}  // namespace heddle::kernels
