// A tile of an input that a map reads along another mode than it writes, where rows begin anywhere in memory. Internal to the
// kernels.
#pragma once

#include <vector>

#include "heddle/dsl/dsl.h"
#include "heddle/kernels/map/modes.h"
#include "heddle/kernels/vectors.h"

namespace heddle::kernels::detail {

// How many elements behind an aligned place each row of a matrix begins; bytes: of what is aligned, a power of two.
template <class T>
class Lead {
 public:
  // Of the matrix whose rows 0 and 1 begin there.
  template <class Address>
  Lead(const Address& row, const Address& next, int bytes)
      : elements_(bytes / int{sizeof(T)}), first_(element(row)), stride_(element(next) - first_) {}
  // Of a row of any number. Low bits of products are those of the factors' low bits, so that nothing overflows.
  Int operator()(const Int& row) const {
    return elements_ == 1 ? Int(0) : (first_ + row * stride_) & (elements_ - 1);
  }

 private:
  // The number of an element in memory, without its upper bits.
  template <class Address>
  static Int element(const Address& place) {
    return cast<int32_t>(address_of(place) / int{sizeof(T)});
  }
  const int elements_;
  const Int first_, stride_;
};

// Some rows of an input, and some elements of each. A warp loads a row's words, aligned ones, and stores each row's elements
// from the same place on. Rows are an odd number of words apart: elements of a column are in different banks.
template <class T>
class ShiftedTile {
 public:
  // Of so many rows from `first` on, of which some may lie in front of the input's or behind.
  ShiftedTile(int rows, const Lead<T>& lead, const Int& first)
      : turns_(static_cast<int>(divide_up(rows, kWarps * kMostTogether))),
        together_(static_cast<int>(divide_up(rows, kWarps * turns_))),
        rows_(turns_ * together_ * kWarps),
        lead_(lead),
        first_(first),
        tile_({rows_, (kWarpSize + 1) * kWidth}) {}

  // All threads of the block, which meet before they read. The input has `rows` of `elements` each, of which the tile's begin
  // at `begin`; load(row, element, count) gives neighbours of one.
  template <class Load>
  void fill(const Int& begin, const Int& rows, const Int& elements, Load load) const {
    const Int word = lane_id() * kWidth, warp = thread_idx.x / kWarpSize,
              // Of all of the warp's rows, which are a multiple of a word's elements apart.
        lead = lead_(first_ + warp), place = begin + word - lead;
    const auto each_row = [&](auto read) {
      For(range(0, turns_).unroll(1), [&](const Int& turn) {
        std::vector<Fragment<T>> loaded;
        const auto number = [&](int r) { return (turn * together_ + r) * kWarps + warp; };
        for (int r = 0; r < together_; ++r) loaded.push_back(read(first_ + number(r)));
        for (int r = 0; r < together_; ++r) {
          for (int e = 0; e < kWidth; ++e)
            tile_(number(r), word + (kWidth - lead) + e) = loaded[static_cast<size_t>(r)][e];
        }
      });
    };
    const Bool inside = first_ >= 0 && first_ + rows_ <= rows && begin >= kWidth - 1 &&
                        begin + kWarpSize * kWidth <= elements;
    If(inside, [&] {
      each_row([&](const Int& row) { return load(row, place, kWidth); });
    }).Else([&] {
      each_row([&](const Int& row) {
        Var<Fragment<T>> all(Fragment<T>(kWidth, Value<T>(T(0))));
        for (int e = 0; e < kWidth; ++e) {
          const Int element = place + e;
          If(row >= 0 && row < rows && element >= 0 && element < elements,
             [&] { all[e] = load(row, element, 1)[0]; });
        }
        return Fragment<T>(all);
      });
    });
  }

  // The element of a row of the input that stands so far behind the tile's first one.
  Value<T> at(const Int& row, const Int& element) const {
    return tile_(row - first_, element + kWidth);
  }

 private:
  // A word's elements; warps of a block, and rows of each whose loads are under way together.
  static constexpr int kWidth = kWordBytes / int{sizeof(T)}, kWarps = kMapThreads / kWarpSize,
                       kMostTogether = kWidth == 1 ? 18 : 9;
  const int turns_, together_, rows_;
  const Lead<T> lead_;
  const Int first_;
  const Shared<T, 2> tile_;
};

}  // namespace heddle::kernels::detail
