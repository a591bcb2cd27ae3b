#include "heddle/kernels/scan/scan.h"

#include <algorithm>
#include <bit>
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

template <class T>
using Sum = std::conditional_t<std::is_integral_v<T>, int32_t, float>;

// How far tiles and groups of tiles have come: a word each, whose upper half says what the lower half, a sum, is of.
constexpr uint64_t kOwn = uint64_t{1} << 32, kToEnd = uint64_t{2} << 32;
template <class S>
class Progress {
 public:
  // `tiles` of a row.
  Progress(const Tensor<uint64_t, 1>& words, const Int& rows, const Int& tiles)
      : words_(words),
        tiles_(tiles),
        groups_((tiles + (kGroup - 1)) / kGroup),
        first_group_(rows * tiles) {}

  // The sum of what is in front of a tile of its row; a warp together. `own` is the tile's sum.
  Value<S> before(const Int& row, const Int& tile, const Value<S>& own) const {
    const Int lane = lane_id(), group = tile / kGroup, member = tile % kGroup;
    const Int place = row * tiles_ + tile;
    If(lane == 0, [&] { atomic_store(words_(place), word(kOwn, own)); });
    // Of the tiles of the group, in their order: this one's lane has its sum already.
    Var<uint64_t> seen(select(lane < member, UInt64(0), word(kOwn, own)));
    const auto waits = [&] { return ballot(UInt64(seen) < kOwn) != 0; };
    While(waits, [&] {
      If(UInt64(seen) < kOwn, [&] { seen = atomic_load(words_(place - member + lane)); });
    });
    const Value<S> sums = warp_scan(select(lane <= member, sum(seen), S(0)), plus());
    const Value<S> of_group = shfl(sums, kGroup - 1),
                   in_group = select(member > 0, shfl(sums, max(member - 1, 0)), S(0));
    const Int group_place = first_group_ + row * groups_ + group;
    const Bool ends = member == kGroup - 1 && lane == 0;
    If(ends, [&] { atomic_store(words_(group_place), word(kOwn, of_group)); });
    const Value<S> front = If(
        group > 0, [&] { return before_group(group_place, group); },
        [&] { return Value<S>(S(0)); });
    If(ends, [&] { atomic_store(words_(group_place), word(kToEnd, front + of_group)); });
    return front + in_group;
  }

 private:
  static UInt64 word(uint64_t what, const Value<S>& sum) {
    return what | cast<uint64_t>(bitcast<uint32_t>(sum));
  }
  static Value<S> sum(const UInt64& word) { return bitcast<S>(cast<uint32_t>(word)); }

  // The sum of the groups in front of one, which has some. Lane i looks at the group i + 1 in front of it; from the nearest
  // one whose sum reaches from the row's beginning to its end the others' are added one by one, so that the order of the
  // additions does not depend on who comes first.
  Value<S> before_group(const Int& place, const Int& group) const {
    const Int lane = lane_id();
    const auto look = [&] {
      return If(
          lane < group, [&] { return atomic_load(words_(place - 1 - lane)); },
          [&] { return UInt64(kToEnd); });
    };
    Var<uint64_t> seen(look());
    // Bits of the lanes up to the nearest such sum, all of which count.
    const auto ends = [&] { return ballot(UInt64(seen) >= kToEnd); };
    const auto counting = [&] { return ends() ^ (ends() - 1); };
    const auto waits = [&] {
      const UInt reach = ends(), missing = ballot(UInt64(seen) < kOwn);
      return reach == 0 || (missing & (reach ^ (reach - 1))) != 0;
    };
    While(waits, [&] { seen = look(); });
    const Int nearest = popc(counting()) - 1;
    const Value<S> mine = sum(seen);
    Var<S> all(shfl(mine, nearest));
    For(range(0, nearest), [&](const Int& i) { all = all + shfl(mine, nearest - 1 - i); });
    return all;
  }

  const Tensor<uint64_t, 1>& words_;
  const Int tiles_, groups_, first_group_;
};

template <class T>
class ScanKernel {
 public:
  ScanKernel(const ScanDeal& deal, const Tensor<const T, 2>& x, const Tensor<T, 2>& y)
      : deal_(deal),
        rows_(x.shape(0)),
        columns_(x.shape(1)),
        x_(deal.tile, x, columns_),
        y_(deal.tile, y, columns_) {}

  // Of whole rows.
  void rows() const {
    const Int row = block_idx.x * deal_.rows + (deal_.rows > 1 ? Int(thread_idx.y) : Int(0));
    const RowTile tile = x_.at(min(row, rows_ - 1), 0);
    const Parts parts = load(tile);
    const Sums sums = scan_parts(parts);
    const Value<S> front = S(0);
    If(row < rows_, [&] { store(tile, parts, sums, front); });
  }
  // Of tiles, a block each.
  void tiles(const Tensor<uint64_t, 1>& words) const {
    const Int of_row = at_launch(deal_.tile.tiles_of(columns_));
    const Progress<S> progress(words, rows_, of_row);
    Shared<S> in_front(1);
    const Int row = block_idx.x / of_row, number = block_idx.x % of_row;
    const RowTile tile = x_.at(row, number);
    const Parts parts = load(tile);
    const Sums sums = scan_parts(parts);
    If(warp_id() == 0, [&] {
      const Value<S> front = progress.before(row, number, sums.all);
      If(lane_id() == 0, [&] { in_front(0) = front; });
    });
    sync_threads();
    store(tile, parts, sums, in_front(0));
  }

 private:
  using S = Sum<T>;
  using Parts = std::vector<Fragment<S>>;
  struct Sums {
    std::vector<Value<S>>
        front;     // of each of the thread's vectors: the sum of the tile in front of it
    Value<S> all;  // of the tile
  };

  Parts load(const RowTile& tile) const {
    Parts parts;
    for (const Fragment<T>& part : x_.load(tile)) parts.push_back(part.template as<S>());
    return parts;
  }

  // The sum of a vector, from its beginning on.
  static Value<S> total(const Fragment<S>& part) {
    std::vector<Value<S>> all = {part[0]};
    for (int e = 1; e < part.size(); ++e) all.push_back(all.back() + part[e]);
    return all.back();
  }
  Sums scan_parts(const Parts& parts) const {
    std::vector<Value<S>> to_lane, own;
    for (const Fragment<S>& part : parts) {
      own.push_back(total(part));
      to_lane.push_back(warp_scan(own.back(), plus(), deal_.lanes()));
    }
    // In front of a lane is what its neighbour's sum reaches to.
    const Int lane = lane_id() % deal_.lanes();
    const auto in_front = [&](const Value<S>& sum) {
      return deal_.lanes() == 1 ? Value<S>(S(0)) : select(lane > 0, shfl_up(sum, 1), S(0));
    };
    const auto of_lanes = [&](const Value<S>& sum) {
      return shfl(sum, lane_id() / deal_.lanes() * deal_.lanes() + (deal_.lanes() - 1));
    };
    std::vector<Value<S>> front;
    if (deal_.warps() == 1) {
      std::vector<Value<S>> so_far = {Value<S>(S(0))};
      for (const Value<S>& sum : to_lane) {
        front.push_back(so_far.back() + in_front(sum));
        so_far.push_back(so_far.back() + of_lanes(sum));
      }
      return {std::move(front), so_far.back()};
    }
    // Warps' sums, in the order of the tile; the first warp finds what is in front of each.
    const int count = deal_.tile.vectors * deal_.warps(),
              each = (count + kWarpSize - 1) / kWarpSize;
    Shared<S> of_warps(each * kWarpSize), all(1);
    for (int v = 0; v < deal_.tile.vectors; ++v) {
      If(lane_id() == kWarpSize - 1, [&] { of_warps(v * deal_.warps() + warp_id()) = to_lane[v]; });
    }
    sync_threads();
    If(warp_id() == 0, [&] {
      std::vector<Value<S>> sums;
      Var<S> own_sum(S(0));
      for (int i = 0; i < each; ++i) {
        const Int at = lane_id() * each + i;
        sums.push_back(own_sum);
        own_sum = own_sum + If(
                                at < count, [&] { return Value<S>(of_warps(at)); },
                                [&] { return Value<S>(S(0)); });
      }
      const Value<S> reached = warp_scan(own_sum, plus());
      const Value<S> before = select(lane_id() > 0, shfl_up(reached, 1), S(0));
      for (int i = 0; i < each; ++i) of_warps(lane_id() * each + i) = before + sums[i];
      If(lane_id() == kWarpSize - 1, [&] { all(0) = reached; });
    });
    sync_threads();
    for (int v = 0; v < deal_.tile.vectors; ++v) {
      front.push_back(of_warps(v * deal_.warps() + warp_id()) + in_front(to_lane[v]));
    }
    return {std::move(front), all(0)};
  }

  void store(const RowTile& tile, const Parts& parts, const Sums& sums,
             const Value<S>& front) const {
    const int width = deal_.tile.width;
    std::vector<Fragment<T>> rounded;
    for (size_t v = 0; v < parts.size(); ++v) {
      std::vector<Value<S>> reached = {front + sums.front[v]};
      for (int e = 0; e < width; ++e) reached.push_back(reached.back() + parts[v][e]);
      const size_t skipped = deal_.prefix == Prefix::kInclusive ? 1 : 0;
      Var<Fragment<S>> out(Fragment<S>(width, reached[skipped]));
      for (int e = 1; e < width; ++e) out[e] = reached[skipped + static_cast<size_t>(e)];
      rounded.push_back(Fragment<S>(out).template as<T>());
    }
    y_.store(tile, rounded);
  }

  const ScanDeal& deal_;
  const Int rows_, columns_;
  const RowTiles<const T> x_;
  const RowTiles<T> y_;
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

}  // namespace

template <class T>
Status scan(const Stream& stream, Prefix prefix, const TensorRef<const T, 2>& x,
            const TensorRef<T, 2>& y) {
  static const auto of_rows =
      kernel_family("scan(x, y)", [](Host<ScanDeal> deal, Tensor<const T, 2> from,
                                     Tensor<T, 2> to) { ScanKernel<T>(deal, from, to).rows(); });
  static const auto of_tiles = kernel_family(
      "scan_tiles(x, y, progress)",
      [](Host<ScanDeal> deal, Tensor<const T, 2> from, Tensor<T, 2> to,
         Tensor<uint64_t, 1> progress) { ScanKernel<T>(deal, from, to).tiles(progress); });
  if (Status s = check_same_extents("scan", {"x", x}, {"y", y}); !s.ok()) return s;
  const int64_t rows = x.extents[0], columns = x.extents[1];
  if (Status s = check_rows_counted("scan", rows); !s.ok()) return s;
  if (rows == 0 || columns == 0) return OkStatus();
  if (Status s = check_columns_counted("scan", columns); !s.ok()) return s;
  const ScanDeal deal = deal_scan(rows_of(x, y), rows, prefix, stream.device().info().sm_count);
  if (!deal.tiles) {
    return of_rows(deal).launch(
        stream,
        {.grid = (rows + deal.rows - 1) / deal.rows, .block = {deal.tile.threads, deal.rows}}, x,
        y);
  }
  const int64_t tiles = deal.tile.tiles_of(columns),
                words = rows * (tiles + (tiles + kGroup - 1) / kGroup);
  StatusOr<Buffer> progress = stream.allocate(static_cast<size_t>(words) * sizeof(uint64_t));
  if (!progress.ok()) return progress.status();
  if (Status s = progress->fill(stream, 0); !s.ok()) return s;
  return of_tiles(deal).launch(stream, {.grid = rows * tiles, .block = deal.tile.threads}, x, y,
                               as_tensor<uint64_t>(*progress, {words}));
}

#define HEDDLE_FOR(T)                                                          \
  template Status scan<T>(const Stream&, Prefix, const TensorRef<const T, 2>&, \
                          const TensorRef<T, 2>&);
HEDDLE_FOR(float)
HEDDLE_FOR(half)
HEDDLE_FOR(bfloat16)
HEDDLE_FOR(int32_t)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
