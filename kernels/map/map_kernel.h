// The kernels of maps: how a thread walks through the modes that tensors have in common. Internal to the kernels.
#pragma once

#include <algorithm>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/kernels/l2.h"
#include "heddle/kernels/map/modes.h"
#include "heddle/kernels/map/shifted_tile.h"
#include "heddle/kernels/rows/row_part.h"

namespace heddle::kernels::detail {

// The element types that a map's function takes of elements of types T...: what its parameters say, or T... where they
// say nothing.
template <class F, class... T>
struct Taken {
  template <class C, class R, class... P>
  static std::tuple<typename std::remove_cvref_t<P>::value_type...> of(R (C::*)(P...) const);
  static auto find() {
    if constexpr (requires { &F::operator(); }) {
      return decltype(of(&F::operator()))();
    } else {
      return std::tuple<T...>();
    }
  }
  using Types = decltype(find());
};

// An argument of a map in its kernel: a tensor of elements, or a number that stands for all of them.
template <class T>
using MapIn = Tensor<const T, kMapModes>;
template <class In>
struct MapElement {
  using type = typename In::value_type;
};
template <class T>
struct MapElement<MapIn<T>> {
  using type = T;
};

// A place along each mode, the innermost last.
struct MapPlace {
  std::array<Int, kMapModes> of;

  // So many elements further along the innermost mode.
  MapPlace behind(const Int& by) const { return {{of[0], of[1], of[2], of[3], of[4] + by}}; }
  // Elements of a view from there on.
  template <class X>
  auto in(const X& x, int width) const {
    return x.elements(width, of[0], of[1], of[2], of[3], of[4]);
  }
  template <class X>
  auto address_in(const X& x) const {
    return x.at(of[0], of[1], of[2], of[3], of[4]);
  }
};

// Elements of each argument, as many of all.
template <class... In>
using MapParts = std::tuple<Fragment<typename MapElement<In>::type>...>;

// What F makes of them.
template <class F, class Y, class... In>
Fragment<Y> map_result(const MapParts<In...>& parts) {
  using Types = typename Taken<F, typename MapElement<In>::type...>::Types;
  return [&]<size_t... i>(std::index_sequence<i...>) {
    const auto taken =
        std::tuple(std::get<i>(parts).template as<std::tuple_element_t<i, Types>>()...);
    using R = decltype(F()(std::get<i>(taken)[0]...));
    using Element = typename std::remove_cvref_t<R>::value_type;
    std::vector<Value<Element>> elements;
    for (int e = 0; e < std::get<0>(taken).size(); ++e) {
      elements.push_back(Value<Element>(F()(std::get<i>(taken)[e]...)));
    }
    return packed(elements).template as<Y>();
  }
  (std::index_sequence_for<In...>());
}

// y = result(in…), of several elements at once. All maps of arguments of the same types share its code.
template <class Y, class... In>
class MapKernel {
 public:
  using Result = Fragment<Y> (*)(const MapParts<In...>&);
  MapKernel(const MapDeal& deal, const std::tuple<const In&...>& in, const Tensor<Y, kMapModes>& y,
            Result result)
      : deal_(deal), in_(in), y_(y), columns_(y.shape(kInner)), result_(result) {}

  void run() const {
    if (!deal_.tiled) {
      vectors();
    } else if (deal_.is_shifted()) {
      shifted_tiles();
    } else {
      tiles();
    }
  }

 private:
  static constexpr int kInner = kMapModes - 1, kAlong = kInner - 1;
  static constexpr auto kEach = std::index_sequence_for<In...>();
  using Parts = MapParts<In...>;
  template <size_t i>
  using InAt = std::tuple_element_t<i, std::tuple<In...>>;
  template <size_t i>
  static constexpr bool is_tensor = !requires {
    typename InAt<i>::value_type;
  };
  // The number of an argument among the tensors.
  template <size_t i>
  static constexpr int tensor_number() {
    return []<size_t... j>(std::index_sequence<j...>) { return (0 + ... + int{is_tensor<j>}); }
    (std::make_index_sequence<i>());
  }

  // f of each argument's number, as constants.
  template <class Of>
  static void each(Of f) {
    [&]<size_t... i>(std::index_sequence<i...>) { (f(std::integral_constant<size_t, i>()), ...); }
    (kEach);
  }
  // Fragments, of(number) of each argument.
  template <class Of>
  static Parts parts(Of of) {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return Parts{of(std::integral_constant<size_t, i>())...};
    }
    (kEach);
  }

  // An argument's elements that stand beside `width` of the output's, from a place on.
  template <size_t i>
  auto read(int width, MapRead how, const MapPlace& place) const {
    const auto& in = std::get<i>(in_);
    if constexpr (!is_tensor<i>) {
      return Fragment<typename InAt<i>::value_type>(width, in);
    } else {
      using T = typename MapElement<InAt<i>>::type;
      const auto view = aligned_view(in, deal_.floods);
      const auto load = [&](int count, const MapPlace& from) {
        return Fragment<T>(from.in(view, count));
      };
      if (how == MapRead::kVector) return load(width, place);
      if (how == MapRead::kSame) return Fragment<T>(width, load(1, place)[0]);
      std::vector<Value<T>> elements;
      for (int e = 0; e < width; ++e) elements.push_back(load(1, place.behind(e))[0]);
      return packed(elements);
    }
  }
  Parts read_all(int width, const MapPlace& place) const {
    return parts([&](auto i) { return read<i>(width, how<i>(), place); });
  }
  template <size_t i>
  MapRead how() const {
    return is_tensor<i> ? deal_.reads[tensor_number<i>()] : MapRead::kSame;
  }
  // Elements that nobody uses.
  Parts nothing(int width) const {
    return parts([&](auto i) {
      using T = typename MapElement<InAt<i>>::type;
      if constexpr (is_tensor<i>) return Fragment<T>(width, Value<T>(T(0)));
      if constexpr (!is_tensor<i>) return Fragment<T>(width, std::get<i>(in_));
    });
  }
  void store(int width, const MapPlace& place, const Parts& parts) const {
    place.in(y_.assume_aligned(), width) = result_(parts);
  }

  // The place of row `number` of those that all but the `left` innermost modes make; these begin where `inner` says.
  MapPlace place_of_row(const Int& number, int left, const Int& along, const Int& inner) const {
    const int first = kMapModes - deal_.modes, last = kInner - left;
    std::vector<Int> backwards;  // the places along the modes from `last` to 0
    Var<int32_t> rest(number);
    for (int mode = last; mode >= 0; --mode) {
      const Int before = rest;
      backwards.push_back(mode > first ? before % y_.shape(mode) : mode == first ? before : Int(0));
      if (mode > first) rest = before / y_.shape(mode);
    }
    const auto of = [&](int mode) {
      return mode <= last ? backwards[static_cast<size_t>(last - mode)]
                          : (mode == kInner ? inner : along);
    };
    return {{of(0), of(1), of(2), of(3), of(4)}};
  }
  Int rows() const {
    std::vector<Int> extents = {1};
    for (int mode = kMapModes - deal_.modes; mode < kInner; ++mode)
      extents.push_back(y_.shape(mode));
    return in_tree(extents, [](const Int& a, const Int& b) { return a * b; });
  }

  // Vectors of the output's rows, one after the other.
  void vectors() const {
    const int width = deal_.width;
    const Int of_row = at_launch(deal_.vectors_of_row(columns_)),
              count = at_launch(of_row * rows()),
              first = block_idx.x * (kMapThreads * deal_.vectors) + thread_idx.x;
    std::vector<MapPlace> places;
    std::vector<Bool> exist, whole;
    std::vector<Parts> loaded;
    for (int v = 0; v < deal_.vectors; ++v) {
      const Int number = first + v * kMapThreads;
      exist.push_back(number < count);
      const Int row = deal_.modes == 1 ? Int(0) : number / of_row,
                begin = (deal_.modes == 1 ? number : number % of_row) * width;
      const MapPlace start = place_of_row(row, 1, 0, 0);
      places.push_back(start.behind(deal_.peeled ? begin - beyond(start) : begin));
      const Int& column = places.back().of[kInner];
      whole.push_back(!deal_.peeled ? exist.back()
                                    : exist.back() && column >= 0 && column + width <= columns_);
      loaded.emplace_back(If(
          whole.back(), [&] { return read_all(width, places.back()); },
          [&] { return nothing(width); }));
    }
    for (int v = 0; v < deal_.vectors; ++v) {
      If(whole[v], [&] { store(width, places[v], loaded[v]); });
    }
    if (!deal_.peeled) return;
    for (int v = 0; v < deal_.vectors; ++v) {
      If(exist[v] && !whole[v], [&] {
        For(range(0, width), [&](const Int& e) {
          const MapPlace place = places[v].behind(e);
          const Int& column = place.of[kInner];
          If(column >= 0 && column < columns_, [&] { store(1, place, read_all(1, place)); });
        });
      });
    }
  }
  // How many elements a row of the output begins behind the beginning of a vector.
  Int beyond(const MapPlace& row) const {
    const Int bytes = cast<int32_t>(address_of(row.address_in(y_)) & (kVectorBytes - 1));
    return bytes / int{sizeof(Y)} & (deal_.width - 1);
  }

  // Tiles of the two innermost modes. A thread loads kMapAcross elements along inputs' innermost mode from as many rows as
  // a group has elements, and stores each group to shared memory at once, where groups of a row change places so that
  // threads beside each other use different banks.
  void tiles() const {
    const Int across = y_.shape(kAlong);
    const MapPlace start = tile_of_block();
    const Int &along = start.of[kAlong], &inner = start.of[kInner];
    const auto shared = tiles_of_inputs();
    each([&](auto i) {
      if constexpr (is_tensor<i>) {
        if (how<i>() == MapRead::kThrough) load_tile<i>(start, across, *std::get<i>(shared));
      }
    });
    sync_threads();
    const int width = deal_.width, of_row = deal_.tile_down() / width,
              of_thread = deal_.tile_across() * of_row / kMapThreads,
              together = std::min(of_thread, kMapTogether);
    For(range(0, of_thread / together), [&](const Int& turn) {
      std::vector<MapPlace> places;
      std::vector<Bool> exist;
      std::vector<Parts> loaded;
      for (int v = 0; v < together; ++v) {
        const Int vector = (turn * together + v) * kMapThreads + thread_idx.x, i = vector / of_row,
                  j = vector % of_row * width;
        places.push_back({{start.of[0], start.of[1], start.of[2], along + i, inner + j}});
        const MapPlace& place = places.back();
        exist.push_back(place.of[kAlong] < across && place.of[kInner] < columns_);
        const auto load = [&] {
          return parts([&](auto k) {
            if constexpr (is_tensor<k>) {
              if (how<k>() == MapRead::kThrough) return read_tile<k>(*std::get<k>(shared), i, j);
            }
            return read<k>(width, how<k>(), place);
          });
        };
        loaded.emplace_back(If(exist.back(), load, [&] { return nothing(width); }));
      }
      for (int v = 0; v < together; ++v) {
        If(exist[v], [&] { store(width, places[v], loaded[v]); });
      }
    });
  }
  // The first element of the block's tile, where rows are not shifted.
  MapPlace tile_of_block() const {
    const Int tiles_down = at_launch(deal_.tiles_down(columns_, sizeof(Y))),
              tiles_across = at_launch((y_.shape(kAlong) - 1) / deal_.tile_across() + 1);
    const Int number = block_idx.x, row = number / tiles_down;
    return place_of_row(row / tiles_across, 2, row % tiles_across * deal_.tile_across(),
                        number % tiles_down * deal_.tile_down());
  }

  // Tiles whose rows, of the output, begin where a sector of memory does, each in front of where the tile would; so all stores
  // are of words, and of whole sectors, but those at the ends of rows. A warp stores words of as many rows as a word has
  // elements: those it reads together in shared memory are in different banks or in one word where the rows of the output are an
  // odd number of elements apart, and else in few.
  void shifted_tiles() const {
    const Int across = y_.shape(kAlong);
    const MapPlace start = tile_of_block();
    const Int &along = start.of[kAlong], &inner = start.of[kInner];
    const auto place = [&](const Int& of_along, const Int& of_inner) {
      return MapPlace{{start.of[0], start.of[1], start.of[2], of_along, of_inner}};
    };
    constexpr int kLead = kSectorBytes / int{sizeof(Y)};
    const Lead<Y> lead(place(0, 0).address_in(y_), place(1, 0).address_in(y_), kSectorBytes);
    const auto shared = shifted_inputs(start, inner - kLead, across);
    sync_threads();
    const auto parts_at = [&](int elements, const MapPlace& at) {
      return parts([&](auto k) {
        if constexpr (is_tensor<k>) {
          if (how<k>() == MapRead::kThrough) {
            std::vector<Value<typename MapElement<InAt<k>>::type>> of_column;
            for (int e = 0; e < elements; ++e)
              of_column.push_back(
                  std::get<k>(shared)->at(at.of[kInner] + e, at.of[kAlong] - along));
            return packed(of_column);
          }
        }
        return read<k>(elements, how<k>(), at);
      });
    };
    // Each warp has words side by side of as many rows as a word has elements; then of rows further on.
    const int width = deal_.width, side = deal_.tile_down() / kWarpSize,
              rows_of_turn = kMapThreads / kWarpSize / side * width;
    const Int lane = lane_id(), warp = thread_idx.x / kWarpSize,
              row_of_thread = warp / side * width + lane % width,
              column = warp % side * kWarpSize + lane / width * width;
    const auto each_word = [&](auto body) {
      For(range(0, deal_.tile_across() / rows_of_turn).unroll(kMapTogether), [&](const Int& turn) {
        const Int row = along + turn * rows_of_turn + row_of_thread;
        body(place(row, inner - lead(row) + column));
      });
    };
    If(inner >= kLead && inner + deal_.tile_down() <= columns_ &&
           along + deal_.tile_across() <= across,
       [&] { each_word([&](const MapPlace& word) { store(width, word, parts_at(width, word)); }); })
        .Else([&] {
          each_word([&](const MapPlace& word) {
            For(range(0, width).unroll(1), [&](const Int& e) {
              const MapPlace one = word.behind(e);
              If(one.of[kAlong] < across && one.of[kInner] >= 0 && one.of[kInner] < columns_,
                 [&] { store(1, one, parts_at(1, one)); });
            });
          });
        });
  }
  template <size_t i>
  using Shifted = std::optional<ShiftedTile<typename MapElement<InAt<i>>::type>>;
  // The inputs' tiles, whose rows begin with `first`, on their way to shared memory.
  auto shifted_inputs(const MapPlace& start, const Int& first, const Int& across) const {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      std::tuple<Shifted<i>...> all;
      (shift<i>(start, first, across, std::get<i>(all)), ...);
      return all;
    }
    (kEach);
  }
  template <size_t i>
  void shift(const MapPlace& start, const Int& first, const Int& across, Shifted<i>& tile) const {
    if constexpr (is_tensor<i>) {
      if (how<i>() != MapRead::kThrough) return;
      using T = typename MapElement<InAt<i>>::type;
      const auto& in = std::get<i>(in_);
      const auto view = aligned_view(in, deal_.floods);
      const auto place = [&](const Int& row, const Int& element) {
        return MapPlace{{start.of[0], start.of[1], start.of[2], row, element}};
      };
      tile.emplace(deal_.tile_down() + kSectorBytes / int{sizeof(Y)},
                   Lead<T>(place(0, 0).address_in(in), place(1, 0).address_in(in), kWordBytes),
                   first);
      tile->fill(start.of[kAlong], columns_, across,
                 [&](const Int& row, const Int& element, int count) {
                   return Fragment<T>(place(row, element).in(view, count));
                 });
    }
  }
  template <size_t i>
  using Tile = std::optional<Shared<typename MapElement<InAt<i>>::type, 2>>;
  auto tiles_of_inputs() const {
    return [&]<size_t... i>(std::index_sequence<i...>) {
      std::tuple<Tile<i>...> all;
      (
          [&] {
            if (how<i>() != MapRead::kThrough) return;
            const int64_t extents[] = {deal_.tile_across(), deal_.tile_down()};
            std::get<i>(all).emplace(extents);
          }(),
          ...);
      return all;
    }
    (kEach);
  }
  // Where a tile has an element that stands in place j of its row, the row's vectors being `number`.
  Int in_tile(const Int& number, const Int& j) const {
    const int places = std::min(kMapThreads / deal_.across, 8);
    return ((j / deal_.group) ^ (number % places)) * deal_.group + j % deal_.group;
  }
  template <size_t i, class Shared>
  void load_tile(const MapPlace& start, const Int& across, const Shared& tile) const {
    using T = typename MapElement<InAt<i>>::type;
    const auto view = aligned_view(std::get<i>(in_), deal_.floods);
    const int width = deal_.in_width, vectors = kMapAcross / width;
    const Int lane = thread_idx.x % deal_.across, j = thread_idx.x / deal_.across * deal_.group;
    std::vector<Fragment<T>> loaded;
    for (int v = 0; v < vectors; ++v) {
      const Int along = start.of[kAlong] + (v * deal_.across + lane) * width;
      for (int r = 0; r < deal_.group; ++r) {
        const Int inner = start.of[kInner] + j + r;
        // The input's two innermost modes are the other way round.
        const MapPlace place{{start.of[0], start.of[1], start.of[2], inner, along}};
        loaded.push_back(If(
            along < across && inner < columns_, [&] { return Fragment<T>(place.in(view, width)); },
            [&] { return Fragment<T>(width, Value<T>(T(0))); }));
      }
    }
    for (int v = 0; v < vectors; ++v) {
      const Int number = v * deal_.across + lane;
      for (int e = 0; e < width; ++e) {
        std::vector<Value<T>> group;
        for (int r = 0; r < deal_.group; ++r) group.push_back(loaded[v * deal_.group + r][e]);
        tile.elements(deal_.group, number * width + e, in_tile(number, j)) = packed(group);
      }
    }
  }
  template <size_t i, class Shared>
  auto read_tile(const Shared& tile, const Int& along, const Int& inner) const {
    using T = typename MapElement<InAt<i>>::type;
    return Fragment<T>(tile.elements(deal_.width, along, in_tile(along / deal_.in_width, inner)));
  }

  const MapDeal& deal_;
  const std::tuple<const In&...> in_;
  const Tensor<Y, kMapModes>& y_;
  const Int columns_;
  const Result result_;
};

}  // namespace heddle::kernels::detail
