#include "heddle/kernels/scan/scan.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/rows/row_kernel.h"
#include "heddle/kernels/rows/row_tiles.h"

namespace heddle::kernels {
namespace {

// Threads of a block that has a row, rows, or a tile of one, and the vectors, or elements, of each.
constexpr int kThreads = 512, kSharedThreads = 128, kTileThreads = 256;
constexpr int kVectors = 4, kSingles = 16, kTileVectors = 10, kTileShortVectors = 12,
              kTileSingles = 32;
// Tiles of a row whose sums are added up together before those of other such groups count.
constexpr int kGroup = kWarpSize;

// How rows are dealt out.
struct ScanDeal {
  TileDeal tile;       // of a row, or all of it
  int rows = 1;        // of a block
  bool tiles = false;  // a row is many blocks'
  Prefix prefix = Prefix::kInclusive;
  friend bool operator==(const ScanDeal&, const ScanDeal&) = default;

  int lanes() const { return std::min(tile.threads, kWarpSize); }
  int warps() const { return tile.threads / lanes(); }
};

// How far tiles and groups of tiles have come: a word each, whose upper half says what the lower half, a sum, is of.
constexpr uint64_t kOwn = uint64_t{1} << 32, kToEnd = uint64_t{2} << 32,
                   kBegins = uint64_t{4} << 32;

// What is added up, and how: sums of elements of T.
template <class T>
struct Sums {
  using Scalar = std::conditional_t<std::is_integral_v<T>, int32_t, float>;
  using State = Value<Scalar>;
  using Combine = plus;
  static State nothing() { return Scalar(0); }
  static Value<Scalar> sum(const State& state) { return state; }
  static UInt64 word(uint64_t what, const State& state) {
    return what | cast<uint64_t>(bitcast<uint32_t>(state));
  }
  static State state(const UInt64& word) { return bitcast<Scalar>(cast<uint32_t>(word)); }
  // What a word says of how far its tile has come.
  static UInt64 reach(const UInt64& word) { return word; }
};

// Sums up to the last beginning of a segment, and whether one begins in what they are of.
template <class S>
struct SegmentSum {
  Value<S> sum;
  Bool begins;
};
struct AddSegments {
  template <class S>
  SegmentSum<S> operator()(const SegmentSum<S>& a, const SegmentSum<S>& b) const {
    return {select(b.begins, b.sum, a.sum + b.sum), a.begins || b.begins};
  }
};
template <class T>
struct SegmentSums {
  using Scalar = typename Sums<T>::Scalar;
  using State = SegmentSum<Scalar>;
  using Combine = AddSegments;
  static State nothing() { return {Scalar(0), false}; }
  static Value<Scalar> sum(const State& state) { return state.sum; }
  static UInt64 word(uint64_t what, const State& state) {
    return Sums<T>::word(what, state.sum) | select(state.begins, UInt64(kBegins), UInt64(0));
  }
  static State state(const UInt64& word) { return {Sums<T>::state(word), (word & kBegins) != 0}; }
  static UInt64 reach(const UInt64& word) { return word & ~kBegins; }
};

template <class Of>
class Progress {
 public:
  using State = typename Of::State;
  // `tiles` of a row.
  Progress(const Tensor<uint64_t, 1>& words, const Int& rows, const Int& tiles)
      : words_(words),
        tiles_(tiles),
        groups_((tiles + (kGroup - 1)) / kGroup),
        first_group_(rows * tiles) {}

  // The sum of what is in front of a tile of its row; a warp together. `own` is the tile's sum.
  State before(const Int& row, const Int& tile, const State& own) const {
    const Int lane = lane_id(), group = tile / kGroup, member = tile % kGroup;
    const Int place = row * tiles_ + tile;
    If(lane == 0, [&] { atomic_store(words_(place), Of::word(kOwn, own)); });
    // Of the tiles of the group, in their order: this one's lane has its sum already.
    Var<uint64_t> seen(select(lane < member, UInt64(0), Of::word(kOwn, own)));
    const auto waits = [&] { return ballot(UInt64(seen) < kOwn) != 0; };
    While(waits, [&] {
      If(UInt64(seen) < kOwn, [&] { seen = atomic_load(words_(place - member + lane)); });
    });
    const State sums = warp_scan(select(lane <= member, Of::state(seen), Of::nothing()), combine_);
    const State of_group = shfl(sums, kGroup - 1),
                in_group = select(member > 0, shfl(sums, max(member - 1, 0)), Of::nothing());
    const Int group_place = first_group_ + row * groups_ + group;
    const Bool ends = member == kGroup - 1 && lane == 0;
    If(ends, [&] { atomic_store(words_(group_place), Of::word(kOwn, of_group)); });
    const State front = If(
        group > 0, [&] { return before_group(group_place, group); }, [&] { return Of::nothing(); });
    If(ends,
       [&] { atomic_store(words_(group_place), Of::word(kToEnd, combine_(front, of_group))); });
    return combine_(front, in_group);
  }

 private:
  // The sum of the groups in front of one, which has some. Lane i looks at the group i + 1 in front of it; from the nearest
  // one whose sum reaches from the row's beginning to its end the others' are added one by one, so that the order of the
  // additions does not depend on who comes first.
  State before_group(const Int& place, const Int& group) const {
    const Int lane = lane_id();
    const auto look = [&] {
      return If(
          lane < group, [&] { return atomic_load(words_(place - 1 - lane)); },
          [&] { return UInt64(kToEnd); });
    };
    Var<uint64_t> seen(look());
    // Bits of the lanes up to the nearest such sum, all of which count.
    const auto ends = [&] { return ballot(Of::reach(seen) >= kToEnd); };
    const auto counting = [&] { return ends() ^ (ends() - 1); };
    const auto waits = [&] {
      const UInt reach = ends(), missing = ballot(UInt64(seen) < kOwn);
      return reach == 0 || (missing & (reach ^ (reach - 1))) != 0;
    };
    While(waits, [&] { seen = look(); });
    const Int nearest = popc(counting()) - 1;
    const State mine = Of::state(seen);
    return For(range(0, nearest), State(shfl(mine, nearest)), [&](const Int& i, const State& all) {
      return combine_(all, shfl(mine, nearest - 1 - i));
    });
  }

  const Tensor<uint64_t, 1>& words_;
  const Int tiles_, groups_, first_group_;
  const typename Of::Combine combine_{};
};

// Rows of x to rows of y; segments begin where `heads` are not 0, or nowhere.
template <class T, class Of>
class ScanKernel {
 public:
  ScanKernel(const ScanDeal& deal, const Tensor<const T, 2>& x, const Tensor<T, 2>& y,
             const Tensor<const uint8_t, 2>* heads = nullptr)
      : deal_(deal),
        rows_(x.shape(0)),
        columns_(x.shape(1)),
        x_(deal.tile, x, columns_),
        y_(deal.tile, y, columns_) {
    if (heads != nullptr) heads_.emplace(deal.tile, *heads, columns_);
  }

  // Of whole rows.
  void rows() const {
    const Int row = block_idx.x * deal_.rows + (deal_.rows > 1 ? Int(thread_idx.y) : Int(0));
    const RowTile tile = x_.at(min(row, rows_ - 1), 0);
    const Parts parts = load(tile);
    const Reached sums = scan_parts(parts);
    const State front = Of::nothing();
    If(row < rows_, [&] { store(tile, parts, sums, front); });
  }
  // Of tiles, a block each.
  void tiles(const Tensor<uint64_t, 1>& words) const {
    const Int of_row = at_launch(deal_.tile.tiles_of(columns_));
    const Progress<Of> progress(words, rows_, of_row);
    const heddle::detail::WarpSlots<State> in_front(Of::nothing(), 1);
    const Int row = block_idx.x / of_row, number = block_idx.x % of_row;
    const RowTile tile = x_.at(row, number);
    const Parts parts = load(tile);
    const Reached sums = scan_parts(parts);
    If(warp_id() == 0, [&] {
      const State front = progress.before(row, number, sums.all);
      If(lane_id() == 0, [&] { in_front.store(front, 0); });
    });
    sync_threads();
    store(tile, parts, sums, in_front.load(Of::nothing(), 0));
  }

 private:
  using S = typename Of::Scalar;
  using State = typename Of::State;
  static constexpr bool kSegmented = !std::is_same_v<State, Value<S>>;

  // A thread's vectors.
  struct Parts {
    std::vector<Fragment<S>> values;
    std::vector<Fragment<uint8_t>> heads;  // of segments

    Bool begins(size_t v, int e) const { return heads[v][e] != 0; }
    State element(size_t v, int e) const {
      if constexpr (kSegmented) {
        return {values[v][e], begins(v, e)};
      } else {
        return values[v][e];
      }
    }
  };
  struct Reached {
    std::vector<State>
        front;  // of each of the thread's vectors: the sum of the tile in front of it
    State all;  // of the tile
  };

  Parts load(const RowTile& tile) const {
    Parts parts;
    for (const Fragment<T>& part : x_.load(tile)) parts.values.push_back(part.template as<S>());
    if (heads_) parts.heads = heads_->load(tile);
    return parts;
  }

  // The sum of a vector, from its beginning on.
  State total(const Parts& parts, size_t v) const {
    std::vector<State> all = {parts.element(v, 0)};
    for (int e = 1; e < deal_.tile.width; ++e) {
      all.push_back(combine_(all.back(), parts.element(v, e)));
    }
    return all.back();
  }
  Reached scan_parts(const Parts& parts) const {
    std::vector<State> to_lane, own;
    for (size_t v = 0; v < parts.values.size(); ++v) {
      own.push_back(total(parts, v));
      to_lane.push_back(warp_scan(own.back(), combine_, deal_.lanes()));
    }
    // In front of a lane is what its neighbour's sum reaches to.
    const Int lane = lane_id() % deal_.lanes();
    const auto in_front = [&](const State& sum) {
      return deal_.lanes() == 1 ? Of::nothing()
                                : State(select(lane > 0, shfl_up(sum, 1), Of::nothing()));
    };
    const auto of_lanes = [&](const State& sum) {
      return shfl(sum, lane_id() / deal_.lanes() * deal_.lanes() + (deal_.lanes() - 1));
    };
    std::vector<State> front;
    if (deal_.warps() == 1) {
      std::vector<State> so_far = {Of::nothing()};
      for (const State& sum : to_lane) {
        front.push_back(combine_(so_far.back(), in_front(sum)));
        so_far.push_back(combine_(so_far.back(), of_lanes(sum)));
      }
      return {std::move(front), so_far.back()};
    }
    // Warps' sums, in the order of the tile; the first warp finds what is in front of each.
    const int count = deal_.tile.vectors * deal_.warps(),
              each = (count + kWarpSize - 1) / kWarpSize;
    const heddle::detail::WarpSlots<State> of_warps(Of::nothing(), each * kWarpSize),
        all(Of::nothing(), 1);
    for (int v = 0; v < deal_.tile.vectors; ++v) {
      If(lane_id() == kWarpSize - 1,
         [&] { of_warps.store(to_lane[static_cast<size_t>(v)], v * deal_.warps() + warp_id()); });
    }
    sync_threads();
    If(warp_id() == 0, [&] {
      std::vector<State> sums = {Of::nothing()};
      for (int i = 0; i < each; ++i) {
        const Int at = lane_id() * each + i;
        const State own_sum = If(
            at < count, [&] { return of_warps.load(Of::nothing(), at); },
            [&] { return Of::nothing(); });
        sums.push_back(combine_(sums.back(), own_sum));
      }
      const State reached = warp_scan(sums.back(), combine_);
      const State before = select(lane_id() > 0, shfl_up(reached, 1), Of::nothing());
      for (int i = 0; i < each; ++i) {
        of_warps.store(combine_(before, sums[static_cast<size_t>(i)]), lane_id() * each + i);
      }
      If(lane_id() == kWarpSize - 1, [&] { all.store(reached, 0); });
    });
    sync_threads();
    for (int v = 0; v < deal_.tile.vectors; ++v) {
      front.push_back(combine_(of_warps.load(Of::nothing(), v * deal_.warps() + warp_id()),
                               in_front(to_lane[static_cast<size_t>(v)])));
    }
    return {std::move(front), all.load(Of::nothing(), 0)};
  }

  void store(const RowTile& tile, const Parts& parts, const Reached& sums,
             const State& front) const {
    const int width = deal_.tile.width;
    const bool inclusive = deal_.prefix == Prefix::kInclusive;
    std::vector<Fragment<T>> rounded;
    for (size_t v = 0; v < parts.values.size(); ++v) {
      std::vector<State> reached = {combine_(front, sums.front[v])};
      for (int e = 0; e < width; ++e) {
        reached.push_back(combine_(reached.back(), parts.element(v, e)));
      }
      // In front of a segment's first element there is nothing of it.
      const auto result = [&](int e) {
        const Value<S> sum = Of::sum(reached[static_cast<size_t>(e) + (inclusive ? 1 : 0)]);
        if constexpr (kSegmented) {
          if (!inclusive) return Value<S>(select(parts.begins(v, e), S(0), sum));
        }
        return sum;
      };
      Var<Fragment<S>> out(Fragment<S>(width, result(0)));
      for (int e = 1; e < width; ++e) out[e] = result(e);
      rounded.push_back(Fragment<S>(out).template as<T>());
    }
    y_.store(tile, rounded);
  }

  const ScanDeal& deal_;
  const Int rows_, columns_;
  const RowTiles<const T> x_;
  const RowTiles<T> y_;
  std::optional<RowTiles<const uint8_t>> heads_;
  const typename Of::Combine combine_{};
};

ScanDeal deal_scan(const RowsOf& of, int64_t rows, Prefix prefix, int sm_count) {
  ScanDeal deal{.tile = TileDeal::of(of), .prefix = prefix};
  TileDeal& tile = deal.tile;
  const bool wide = tile.width > 1;
  const int most = wide ? kVectors : kSingles;
  const int64_t vectors = tile.vectors_of(of.columns), threads = divide_up(vectors, most);
  deal.tiles = threads > kThreads;
  if (deal.tiles) {
    // Large tiles wait less for each other: as large as leaves registers for three blocks, two of 16-bit elements. Small
    // ones keep all multiprocessors busy.
    tile.threads = kTileThreads;
    tile.vectors = !wide ? kTileSingles : of.element_bytes < 4 ? kTileShortVectors : kTileVectors;
    if (rows * tile.tiles_of(of.columns) < 4 * sm_count) tile.vectors = most;
    return deal;
  }
  if (threads <= kWarpSize) {
    tile.threads = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(threads)));
    deal.rows = kSharedThreads / tile.threads;
  } else {
    tile.threads = static_cast<int>(divide_up(threads, kWarpSize) * kWarpSize);
  }
  tile.vectors = static_cast<int>(divide_up(vectors, tile.threads));
  return deal;
}

// Launches what scans rows of these matrices, or their tiles with a word for how far each has come.
template <class Rows, class Tiles, class T, class... Tensors>
Status launch_scan(const Stream& stream, const char* name, Prefix prefix, const Rows& of_rows,
                   const Tiles& of_tiles, const RowsOf& matrices, const TensorRef<const T, 2>& x,
                   const Tensors&... rest) {
  const int64_t rows = x.extents[0], columns = x.extents[1];
  if (Status s = check_rows_counted(name, rows); !s.ok()) return s;
  if (rows == 0 || columns == 0) return OkStatus();
  if (Status s = check_columns_counted(name, columns); !s.ok()) return s;
  const DeviceInfo& device = stream.device().info();
  ScanDeal deal = deal_scan(matrices, rows, prefix, device.sm_count);
  deal.tile.floods = floods_l2((0 + ... + stored_bytes(rest)), device);
  if (!deal.tiles) {
    return of_rows(deal).launch(
        stream,
        {.grid = (rows + deal.rows - 1) / deal.rows, .block = {deal.tile.threads, deal.rows}}, x,
        rest...);
  }
  const int64_t tiles = deal.tile.tiles_of(columns),
                words = rows * (tiles + (tiles + kGroup - 1) / kGroup);
  StatusOr<Buffer> progress = stream.allocate(static_cast<size_t>(words) * sizeof(uint64_t));
  if (!progress.ok()) return progress.status();
  if (Status s = progress->fill(stream, 0); !s.ok()) return s;
  return of_tiles(deal).launch(stream, {.grid = rows * tiles, .block = deal.tile.threads}, x,
                               rest..., as_tensor<uint64_t>(*progress, {words}));
}

}  // namespace

template <class T>
Status scan(const Stream& stream, Prefix prefix, const TensorRef<const T, 2>& x,
            const TensorRef<T, 2>& y) {
  static const auto of_rows = kernel_family(
      "scan(x, y)", [](Host<ScanDeal> deal, Tensor<const T, 2> from, Tensor<T, 2> to) {
        ScanKernel<T, Sums<T>>(deal, from, to).rows();
      });
  static const auto of_tiles = kernel_family(
      "scan_tiles(x, y, progress)",
      [](Host<ScanDeal> deal, Tensor<const T, 2> from, Tensor<T, 2> to,
         Tensor<uint64_t, 1> progress) { ScanKernel<T, Sums<T>>(deal, from, to).tiles(progress); });
  if (Status s = check_same_extents("scan", {"x", x}, {"y", y}); !s.ok()) return s;
  return launch_scan(stream, "scan", prefix, of_rows, of_tiles, rows_of(x, y), x, y);
}

template <class T>
Status segmented_scan(const Stream& stream, Prefix prefix, const TensorRef<const T, 2>& x,
                      const TensorRef<const uint8_t, 2>& heads, const TensorRef<T, 2>& y) {
  static const auto of_rows = kernel_family(
      "segmented_scan(x, heads, y)",
      [](Host<ScanDeal> deal, Tensor<const T, 2> from, Tensor<const uint8_t, 2> begins,
         Tensor<T, 2> to) { ScanKernel<T, SegmentSums<T>>(deal, from, to, &begins).rows(); });
  static const auto of_tiles = kernel_family(
      "segmented_scan_tiles(x, heads, y, progress)",
      [](Host<ScanDeal> deal, Tensor<const T, 2> from, Tensor<const uint8_t, 2> begins,
         Tensor<T, 2> to, Tensor<uint64_t, 1> progress) {
        ScanKernel<T, SegmentSums<T>>(deal, from, to, &begins).tiles(progress);
      });
  constexpr const char* kName = "segmented_scan";
  if (Status s = check_same_extents(kName, {"x", x}, {"heads", heads}); !s.ok()) return s;
  if (Status s = check_same_extents(kName, {"x", x}, {"y", y}); !s.ok()) return s;
  return launch_scan(stream, kName, prefix, of_rows, of_tiles, rows_of(x, heads, y), x, heads, y);
}

#define HEDDLE_FOR(T)                                                                    \
  template Status scan<T>(const Stream&, Prefix, const TensorRef<const T, 2>&,           \
                          const TensorRef<T, 2>&);                                       \
  template Status segmented_scan<T>(const Stream&, Prefix, const TensorRef<const T, 2>&, \
                                    const TensorRef<const uint8_t, 2>&, const TensorRef<T, 2>&);
HEDDLE_FOR(float)
HEDDLE_FOR(half)
HEDDLE_FOR(bfloat16)
HEDDLE_FOR(int32_t)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
