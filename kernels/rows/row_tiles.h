// Rows of a matrix in tiles, of which each thread of a block has vectors, wherever rows begin in memory. Internal to the
// kernels.
//
//   const RowTiles<const T> tiles(deal, x, x.shape(1));
//   const RowTile tile = tiles.at(row, number);
//   std::vector<Fragment<T>> vectors = tiles.load(tile);    // 0 for what is not in the row
#pragma once

#include <deque>
#include <type_traits>
#include <vector>

#include "heddle/kernels/l2.h"
#include "heddle/kernels/rows/deal.h"

namespace heddle::kernels {

// How a tile is dealt out: vector v of thread t is the tile's (v * threads + t)-th.
struct TileDeal {
  int threads = 32;     // that share a tile
  int width = 1;        // elements of a vector
  int vectors = 1;      // of a thread
  bool peeled = false;  // vectors begin where memory is aligned, the first one in front of the row
  bool floods = false;  // the launch floods L2 (kernels/l2.h)
  friend bool operator==(const TileDeal&, const TileDeal&) = default;

  // As wide as rows of this kind allow.
  static TileDeal of(const RowsOf& rows) {
    TileDeal deal;
    deal.width = rows.aligned || rows.alike ? kVectorBytes / rows.element_bytes : 1;
    deal.peeled = deal.width > 1 && !rows.aligned;
    return deal;
  }
  int elements() const { return threads * vectors * width; }
  // Of rows of so many elements, wherever they begin.
  template <class X>
  X vectors_of(const X& columns) const {
    return (columns + ((peeled ? width - 1 : 0) + width - 1)) / width;
  }
  template <class X>
  X tiles_of(const X& columns) const {
    return (vectors_of(columns) + (threads * vectors - 1)) / (threads * vectors);
  }
};

// A row's elements from a column on: of the first tile, up to a vector in front of the row.
struct RowTile {
  Int row;    // its number
  Int begin;  // the column of the first element
};

// A matrix whose rows are taken in tiles.
template <class T>
class RowTiles {
 public:
  // Of the matrix.
  using Element = std::remove_const_t<T>;
  // Deal and matrix must outlive it. Of `columns` columns, which all matrices of a kernel have.
  RowTiles(const TileDeal& deal, const Tensor<T, 2>& x, const Int& columns)
      : deal_(deal), x_(x), view_(aligned_view(x, deal.floods)), columns_(columns) {}

  // A row's tile of a number, from 0 on.
  RowTile at(const Int& row, const Int& number) const {
    const Int begin = number * deal_.elements();
    if (!deal_.peeled) return {row, begin};
    const Int beyond = cast<int32_t>(address_of(x_.at(row, 0))) & (kVectorBytes - 1);
    return {row, begin - beyond / static_cast<int>(sizeof(T))};
  }
  // Of the first element of this thread's vector v, a host number or one that the kernel computes.
  template <class V>
  Int column(const RowTile& tile, const V& v) const {
    return tile.begin + (thread_idx.x + v * deal_.threads) * deal_.width;
  }
  // Whether the row has all of a tile's elements; and so many from a column on.
  Bool is_whole(const RowTile& tile) const { return has(tile.begin, deal_.elements()); }
  Bool has(const Int& first, int elements) const {
    const Bool ends = first + elements <= columns_;
    return deal_.peeled ? first >= 0 && ends : ends;
  }

  // This thread's vectors.
  std::vector<Fragment<Element>> load(const RowTile& tile) const {
    std::deque<Var<Fragment<Element>>> all;
    for (int v = 0; v < deal_.vectors; ++v) all.emplace_back(nothing());
    const auto whole = [&](int v) {
      return Fragment<Element>(view_.elements(deal_.width, tile.row, column(tile, v)));
    };
    If(is_whole(tile), [&] {
      for (int v = 0; v < deal_.vectors; ++v) all[v] = whole(v);
    }).Else([&] {
      for (int v = 0; v < deal_.vectors; ++v) {
        const Int first = column(tile, v);
        all[v] = If(
            has(first, deal_.width), [&] { return whole(v); },
            [&] { return deal_.width == 1 ? nothing() : part(tile.row, first); });
      }
    });
    return {all.begin(), all.end()};
  }
  // Writes this thread's vectors, as far as they lie in the row.
  void store(const RowTile& tile, const std::vector<Fragment<Element>>& vectors) const {
    const auto whole = [&](int v) {
      view_.elements(deal_.width, tile.row, column(tile, v)) = vectors[v];
    };
    If(is_whole(tile), [&] {
      for (int v = 0; v < deal_.vectors; ++v) whole(v);
    }).Else([&] {
      for (int v = 0; v < deal_.vectors; ++v) {
        const Int first = column(tile, v);
        If(has(first, deal_.width), [&] { whole(v); }).Else([&] {
          for (int e = 0; deal_.width > 1 && e < deal_.width; ++e) {
            If(has(first + e, 1), [&] { view_(tile.row, first + e) = vectors[v][e]; });
          }
        });
      }
    });
  }

 private:
  Fragment<Element> nothing() const {
    return Fragment<Element>(deal_.width, Value<Element>(Element(0)));
  }
  // A vector of which the row has a part at most.
  Fragment<Element> part(const Int& row, const Int& first) const {
    Var<Fragment<Element>> all(nothing());
    for (int e = 0; e < deal_.width; ++e) {
      If(has(first + e, 1), [&] { all[e] = view_(row, first + e); });
    }
    return all;
  }

  const TileDeal& deal_;
  const Tensor<T, 2>& x_;
  const heddle::detail::View<T, 2> view_;
  const Int columns_;
};

// visit(element, inside) of each element of a matrix of one row, in tiles that the grid's blocks take in turns; `inside`: whether
// the row has it. All threads of a block take part.
template <class T, class Visit>
void each_element(const TileDeal& deal, const Tensor<const T, 2>& x, Visit visit) {
  const RowTiles<const T> tiles(deal, x, x.shape(1));
  For(range(block_idx.x, deal.tiles_of(x.shape(1)), grid_dim.x), [&](const Int& number) {
    const RowTile tile = tiles.at(0, number);
    const std::vector<Fragment<T>> vectors = tiles.load(tile);
    const auto each = [&](auto inside) {
      for (int v = 0; v < deal.vectors; ++v) {
        for (int e = 0; e < deal.width; ++e) {
          visit(Value<T>(vectors[static_cast<size_t>(v)][e]), inside(tiles.column(tile, v) + e));
        }
      }
    };
    If(tiles.is_whole(tile), [&] { each([](const Int&) { return Bool(true); }); }).Else([&] {
      each([&](const Int& column) { return tiles.has(column, 1); });
    });
  });
}

}  // namespace heddle::kernels
