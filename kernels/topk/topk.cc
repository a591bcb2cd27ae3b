#include "heddle/kernels/topk/topk.h"

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

// Elements of a thread of a tile, about, and tiles that a stretch of a row has at least.
constexpr int kElements = 8, kLeastTiles = 4;
// Blocks of a multiprocessor that stretches of rows are made for, and that small blocks leave registers for.
constexpr int kBlocks = 6;
constexpr int kLeastGroups = 16, kMostGroups = 256;
// Bits of a digit of entries, and entries that are sorted as they are.
constexpr int kDigitBits = 10, kFewEntries = 512;
// Rows that a warp takes: their elements of a lane, at most, k, and the warps of a block.
constexpr int kLaneElements = 16, kMostOfWarp = 32, kWarps = 4;

// How rows are dealt out.
struct TopDeal {
  TileDeal tile;
  int groups = 0;  // of a tile's threads, whose best elements tell a bound; at least k, or none
  Extreme which = Extreme::kGreatest;
  friend bool operator==(const TopDeal&, const TopDeal&) = default;
};

// --- The order of elements ---
//
// An entry stands for an element: of two, the greater one is the one that comes first. Its upper half is the element's key,
// its lower half falls with its column. 0 is none's, nor is the greatest number.
constexpr uint32_t kColumns = 0xfffffffe;

template <class T>
UInt key_of(Extreme which, const Value<T>& x) {
  const bool greatest = which == Extreme::kGreatest;
  if constexpr (std::is_integral_v<T>) {
    const UInt key = bitcast<uint32_t>(x) ^ 0x80000000u;
    return greatest ? key : ~key;
  } else {
    const Float number = cast<float>(x) + 0.0f;  // -0 becomes 0
    const UInt bits = bitcast<uint32_t>(number),
               key = select((bits >> 31) != 0, ~bits, bits | 0x80000000u),
               with_nan = select(isnan(number), UInt(0xffffffffu), key);
    return greatest ? with_nan : ~with_nan;
  }
}
template <class T>
UInt64 entry_of(Extreme which, const Value<T>& x, const Int& column) {
  if constexpr (std::is_same_v<T, uint64_t>) {
    return x;  // is one
  } else {
    return cast<uint64_t>(key_of(which, x)) << 32 |
           cast<uint64_t>(kColumns - bitcast<uint32_t>(column));
  }
}
inline Int column_of(const UInt64& entry) {
  return bitcast<int32_t>(kColumns - cast<uint32_t>(entry));
}

// Tells of elements, for little, whether they may come before an entry; those in tiles behind its element's.
template <class T>
class Bar {
 public:
  Bar(Extreme which, const UInt64& entry) : which_(which), at_(at(which, entry)) {}
  Bool may_beat(const Value<T>& x) const {
    const bool greatest = which_ == Extreme::kGreatest;
    if constexpr (std::is_same_v<T, uint64_t>) {
      return x > at_;
    } else if constexpr (std::is_integral_v<T>) {
      return greatest ? x >= at_ : x <= at_;
    } else {
      // Neither way round is a NaN passed over, be it the element or the entry's.
      const Float number = cast<float>(x);
      return greatest ? !(number <= at_) : !(number >= at_);
    }
  }

 private:
  using Wide = std::conditional_t<std::is_integral_v<T>, T, float>;
  static Value<Wide> at(Extreme which, const UInt64& entry) {
    if constexpr (std::is_same_v<T, uint64_t>) {
      return entry;
    } else {
      const UInt upper = cast<uint32_t>(entry >> 32),
                 key = which == Extreme::kGreatest ? upper : ~upper;
      if constexpr (std::is_integral_v<T>) {
        return bitcast<T>(key ^ 0x80000000u);
      } else {
        return bitcast<float>(select((key >> 31) != 0, key & 0x7fffffffu, ~key));
      }
    }
  }

  const Extreme which_;
  const Value<Wide> at_;
};

// --- The best entries of a stretch of a row, by a block ---

template <class T>
class Top {
 public:
  // Of k entries.
  Top(const TopDeal& deal, const Tensor<const T, 2>& x, const Int& k)
      : deal_(deal),
        k_(k),
        tiles_(deal.tile, x, x.shape(1)),
        entries_(2 * deal.tile.elements()),
        bests_(std::max(deal.groups, 1)),
        count_(1),
        beating_(3),
        digits_(1 << kDigitBits),
        chosen_(3) {}

  // Finds those of tiles `first` to `last` of a row, and gives how many entries it has, in order: at least k, or as many as
  // there are elements.
  Int find(const Int& row, const Int& first, const Int& last) {
    const int size = deal_.tile.elements(), own = size / deal_.tile.threads;
    if (deal_.tile.threads <= 256) min_blocks_per_sm(kBlocks);
    const Bool leads = thread_idx.x == 0;
    If(leads, [&] {
      count_(0) = 0;
      for (int i = 0; i < 3; ++i) beating_(i) = 0;
    });
    sync_threads();
    Var<uint64_t> bound(uint64_t{0});  // all that is to be found is beyond it
    Var<int32_t> most(0);              // that are kept, at most
    for (const Int number : range(first, last)) {
      const RowTile tile = tiles_.at(row, number);
      const std::vector<Fragment<T>> vectors = tiles_.load(tile);
      const Bar<T> bar(deal_.which, bound);
      Var<uint32_t> beating(
          mask(tile, vectors, [&](const Value<T>& x, const Int&) { return bar.may_beat(x); }));
      const Int threads = threads_that(beating != 0, number);
      If(threads > 0, [&] {
        most = most + threads * own;
        // Where many do, as in the first tile, the least of the k best groups' best ones is a higher bound.
        If(threads > deal_.tile.threads * 3 / 4, [&] {
          if (deal_.groups > 0) bound = max(bound.get(), bound_of(tile, vectors) - 1);
          beating = mask(tile, vectors, [&](const Value<T>& x, const Int& column) {
            return entry_of(deal_.which, x, column) > bound;
          });
          most = size + 1;
        });
        keep(tile, vectors, beating, bound);
        If(most > size, [&] {
          sync_threads();
          most = assume_uniform(count_(0));
          If(most > size / 2, [&] {
            bound = max(bound.get(), keep_best(most) - 1);
            most = k_;
          });
        });
      });
    }
    sync_threads();
    const Int found = assume_uniform(count_(0));
    const Int kept = If(
        found > max(2 * k_, kFewEntries),
        [&] {
          keep_best(found);
          return k_;
        },
        [&] { return found; });
    sort(kept);
    return kept;
  }
  // The i-th best of those that were found.
  UInt64 entry(const Int& i) const { return entries_(i); }

 private:
  void sort(const Int& count) const {
    block_sort(entries_, count, [](const UInt64& a, const UInt64& b) { return a > b; });
  }
  // Keeps those of the thread's elements whose bits are set; in the places of those that are not beyond the bound, none.
  void keep(const RowTile& tile, const std::vector<Fragment<T>>& vectors, const UInt& bits,
            const UInt64& bound) const {
    const Int own = cast<int32_t>(popc(bits)), up_to = warp_scan(own, plus());
    Var<int32_t> first(0);
    If(lane_id() == kWarpSize - 1, [&] { first = atomic_add(count_(0), up_to); });
    const Int place = shfl(first.get(), kWarpSize - 1) + up_to - own;
    for (int v = 0; v < deal_.tile.vectors; ++v) {
      for (int e = 0; e < deal_.tile.width; ++e) {
        const uint32_t bit = 1u << (v * deal_.tile.width + e);
        If((bits & bit) != 0, [&] {
          const UInt64 entry =
              entry_of(deal_.which, Value<T>(vectors[v][e]), tiles_.column(tile, v) + e);
          entries_(place + cast<int32_t>(popc(bits & (bit - 1)))) =
              select(entry > bound, entry, UInt64(0));
        });
      }
    }
  }
  // Keeps the k best of more entries, in any order, and gives the last of them: by their digits, from the first one on. At
  // least k of them are elements'.
  UInt64 keep_best(const Int& count) const {
    constexpr int kDigits = 1 << kDigitBits;
    const int threads = deal_.tile.threads, each = kDigits / threads;
    Var<uint64_t> prefix(uint64_t{0});  // of the last one
    Var<int32_t> shift(64), wanted(k_), with_prefix(count);
    While([&] { return with_prefix > wanted; },
          [&] {
            const Int bits = min(shift, kDigitBits), before = shift;
            shift = shift - bits;
            for (int i = 0; i < each; ++i) digits_(thread_idx.x + i * threads) = 0;
            sync_threads();
            for (const Int i : range(thread_idx.x, count, threads)) {
              const UInt64 entry = entries_(i);
              // All 64 bits of a number are not shifted out.
              If(before == 64 || (entry >> min(before, 63)) == prefix, [&] {
                atomic_add(digits_(cast<int32_t>(entry >> shift) & ((1 << bits) - 1)), 1);
              });
            }
            sync_threads();
            // From the greatest digit on; a thread has neighbours.
            const Int first = kDigits - 1 - thread_idx.x * each;
            Var<int32_t> own(0);
            for (int i = 0; i < each; ++i) own = own + digits_(first - i);
            const Int in_front = block_scan_exclusive(own.get(), Int(0), plus());
            If(in_front < wanted && wanted <= in_front + own, [&] {
              Var<int32_t> so_far(in_front);
              for (int i = 0; i < each; ++i) {
                const Int here = digits_(first - i);
                If(so_far < wanted && wanted <= so_far + here, [&] {
                  chosen_(0) = first - i;
                  chosen_(1) = wanted - so_far;
                  chosen_(2) = here;
                });
                so_far = so_far + here;
              }
            });
            sync_threads();
            prefix = prefix << bits | cast<uint64_t>(Int(chosen_(0)));
            wanted = assume_uniform(chosen_(1));
            with_prefix = assume_uniform(chosen_(2));
          });
    // Entries move to places whose own have been read.
    const UInt64 last = max(prefix << min(shift, 63), UInt64(1));
    If(thread_idx.x == 0, [&] { count_(0) = 0; });
    For(range((count + threads - 1) / threads), [&](const Int& round) {
      const Int i = round * threads + thread_idx.x;
      const UInt64 entry = If(
          i < count, [&] { return UInt64(entries_(i)); }, [&] { return UInt64(0); });
      sync_threads();
      If(entry >= last, [&] { entries_(atomic_add(count_(0), 1)) = entry; });
    });
    sync_threads();
    return last;
  }
  // How many threads' elements are, in the tile of a number; of tiles one behind the other, with a barrier each.
  Int threads_that(const Bool& are, const Int& number) const {
    const Int those = cast<int32_t>(popc(ballot(are))), place = number % 3;
    If(lane_id() == 0 && those > 0, [&] { atomic_add(beating_(place), those); });
    If(thread_idx.x == 0, [&] { beating_((number + 1) % 3) = 0; });  // all have read it
    sync_threads();
    return assume_uniform(beating_(place));
  }
  // A bit for each of the thread's elements of which is(x, column) says so, that lie in the row.
  template <class Is>
  UInt mask(const RowTile& tile, const std::vector<Fragment<T>>& vectors, Is is) const {
    Var<uint32_t> bits(uint32_t{0}), inside(~uint32_t{0});
    const int width = deal_.tile.width;
    for (int v = 0; v < deal_.tile.vectors; ++v) {
      for (int e = 0; e < width; ++e) {
        const Bool set = is(vectors[v][e], tiles_.column(tile, v) + e);
        bits = bits | select(set, UInt(1u << (v * width + e)), UInt(0));
      }
    }
    If(!tiles_.is_whole(tile), [&] {
      inside = 0;
      for (int v = 0; v < deal_.tile.vectors; ++v) {
        for (int e = 0; e < width; ++e) {
          const Bool in = tiles_.has(tiles_.column(tile, v) + e, 1);
          inside = inside | select(in, UInt(1u << (v * width + e)), UInt(0));
        }
      }
    });
    return bits & inside;
  }
  // Of the best element of each group the k-th best, which k elements reach.
  UInt64 bound_of(const RowTile& tile, const std::vector<Fragment<T>>& vectors) const {
    Var<uint64_t> best(uint64_t{0});
    for (int v = 0; v < deal_.tile.vectors; ++v) {
      for (int e = 0; e < deal_.tile.width; ++e) {
        const Int column = tiles_.column(tile, v) + e;
        const UInt64 entry = entry_of(deal_.which, Value<T>(vectors[v][e]), column);
        best = max(best.get(), select(tiles_.has(column, 1), entry, UInt64(0)));
      }
    }
    const int lanes = deal_.tile.threads / deal_.groups;
    const UInt64 of_group = warp_reduce(best.get(), maximum(), lanes);
    If(thread_idx.x % lanes == 0, [&] { bests_(thread_idx.x / lanes) = of_group; });
    block_sort(bests_, deal_.groups, [](const UInt64& a, const UInt64& b) { return a > b; });
    const UInt64 least = bests_(k_ - 1);
    sync_threads();
    return max(least, UInt64(1));
  }

  const TopDeal& deal_;
  const Int k_;
  const RowTiles<const T> tiles_;
  const Shared<uint64_t> entries_, bests_;
  const Shared<int32_t> count_, beating_, digits_, chosen_;
};

// What stands at a result's place.
template <class T>
class Results {
 public:
  Results(const Tensor<const T, 2>& x, const Tensor<T, 2>& values,
          const Tensor<int64_t, 2>& indices)
      : x_(x), values_(values), indices_(indices) {}
  void store(const Int& row, const Int& i, const UInt64& entry) const {
    const Int column = column_of(entry);
    values_(row, i) = x_(row, column);
    indices_(row, i) = cast<int64_t>(column);
  }

 private:
  const Tensor<const T, 2>& x_;
  const Tensor<T, 2>& values_;
  const Tensor<int64_t, 2>& indices_;
};

// The best of each of a row's stretches, of which the grid's x has the number: entries, one stretch's behind the other's.
template <class T>
void find_in_stretches(const TopDeal& deal, const Tensor<const T, 2>& x,
                       const Tensor<uint64_t, 2>& entries, const Int& k) {
  Top<T> top(deal, x, k);
  const Int tiles = at_launch(deal.tile.tiles_of(x.shape(1))),
            each = (tiles + grid_dim.x - 1) / grid_dim.x;
  const Int row = block_idx.y, first = min(block_idx.x * each, tiles);
  const Int found = top.find(row, first, min(first + each, tiles));
  for (const Int i : range(thread_idx.x, k, deal.tile.threads)) {
    entries(row, block_idx.x * k + i) = If(
        i < found, [&] { return top.entry(i); }, [&] { return UInt64(0); });
  }
}
// The best of whole rows of x, or of entries that are x's.
template <class T, class Of>
void find_in_rows(const TopDeal& deal, const Tensor<const Of, 2>& in, const Tensor<const T, 2>& x,
                  const Tensor<T, 2>& values, const Tensor<int64_t, 2>& indices) {
  const Int k = values.shape(1), row = block_idx.x;
  Top<Of> top(deal, in, k);
  top.find(row, 0, deal.tile.tiles_of(in.shape(1)));
  const Results<T> results(x, values, indices);
  for (const Int i : range(thread_idx.x, k, deal.tile.threads)) {
    results.store(row, i, top.entry(i));
  }
}

// --- Short rows, a warp each ---

struct ShortDeal {
  int elements = 1;  // of a lane
  Extreme which = Extreme::kGreatest;
  friend bool operator==(const ShortDeal&, const ShortDeal&) = default;
};
template <class T>
void find_in_short_rows(const ShortDeal& deal, const Tensor<const T, 2>& x,
                        const Tensor<T, 2>& values, const Tensor<int64_t, 2>& indices) {
  const Int row = block_idx.x * kWarps + thread_idx.y, lane = thread_idx.x, k = values.shape(1);
  const Int last = min(row, x.shape(0) - 1);
  std::vector<UInt64> entries;
  for (int e = 0; e < deal.elements; ++e) {
    const Int column = lane + e * kWarpSize;
    entries.push_back(If(
        column < x.shape(1),
        [&] { return entry_of(deal.which, Value<T>(x(last, column)), column); },
        [&] { return UInt64(0); }));
  }
  // Lane i keeps the i-th best, each of which is beyond the next ones.
  Var<uint64_t> kept(uint64_t{0}), before(~uint64_t{0});
  For(range(k), [&](const Int& i) {
    Var<uint64_t> best(uint64_t{0});
    for (const UInt64& entry : entries) {
      best = max(best.get(), select(entry < before, entry, UInt64(0)));
    }
    before = warp_reduce(best.get(), maximum());
    kept = select(lane == i, before.get(), kept.get());
  });
  If(row < x.shape(0) && lane < k, [&] { Results<T>(x, values, indices).store(row, lane, kept); });
}

// --- The host ---

TopDeal deal_top(const RowsOf& of, int64_t k, Extreme which, int64_t shared_bytes) {
  TopDeal deal{.tile = TileDeal::of(of), .which = which};
  const bool few = k <= 64 && of.columns <= 1024;
  // Entries of two tiles lie in shared memory, with what else a block has there.
  const bool has_room = shared_bytes >= int64_t{2 * 1024 * kElements} * 8 + 8192;
  deal.tile.threads = few ? 128 : k <= 128 ? 256 : k <= 256 || !has_room ? 512 : 1024;
  deal.tile.vectors = std::max(kElements / deal.tile.width, 1);
  // Twice as many groups as the k best elements lie in: the bound is then near the k-th.
  const int groups =
      std::max(static_cast<int>(std::bit_ceil(static_cast<uint64_t>(2 * k))), kLeastGroups);
  if (groups <= std::min(deal.tile.threads, kMostGroups)) deal.groups = groups;
  return deal;
}

template <class T>
class Launches {
 public:
  Launches(const Stream& stream, Extreme which, const TensorRef<const T, 2>& x,
           const TensorRef<T, 2>& values, const TensorRef<int64_t, 2>& indices)
      : stream_(stream), which_(which), x_(x), values_(values), indices_(indices) {}

  Status run() {
    static const auto short_rows = kernel_family(
        "topk_short(x, values, indices)",
        [](Host<ShortDeal> deal, Tensor<const T, 2> x, Tensor<T, 2> values,
           Tensor<int64_t, 2> indices) { find_in_short_rows<T>(deal, x, values, indices); });
    if (k() > kMostOfWarp || x_.extents[1] > kLaneElements * kWarpSize) return find<T>(x_);
    const ShortDeal deal{static_cast<int>(divide_up(x_.extents[1], kWarpSize)), which_};
    return short_rows(deal).launch(
        stream_, {.grid = divide_up(rows(), kWarps), .block = {kWarpSize, kWarps}}, x_, values_,
        indices_);
  }

 private:
  int64_t rows() const { return x_.extents[0]; }
  int64_t k() const { return values_.extents[1]; }

  // Of x, or of entries.
  template <class Of>
  Status find(const TensorRef<const Of, 2>& in) {
    static const auto whole = kernel_family(
        "topk(in, x, values, indices)",
        [](Host<TopDeal> deal, Tensor<const Of, 2> from, Tensor<const T, 2> x, Tensor<T, 2> values,
           Tensor<int64_t, 2> indices) { find_in_rows<T, Of>(deal, from, x, values, indices); });
    static const auto in_stretches =
        kernel_family("topk_stretches(in, entries, k)",
                      [](Host<TopDeal> deal, Tensor<const Of, 2> from, Tensor<uint64_t, 2> entries,
                         Int count) { find_in_stretches<Of>(deal, from, entries, count); });
    const TopDeal deal =
        deal_top(rows_of(in), k(), which_, stream_.device().info().limits.max_shared_per_block);
    const int64_t columns = in.extents[1], tiles = deal.tile.tiles_of(columns);
    const int64_t wanted = kBlocks * stream_.device().info().sm_count / rows(),
                  stretches = std::min(wanted, tiles / kLeastTiles);
    if (stretches < 2) {
      return whole(deal).launch(stream_, {.grid = rows(), .block = deal.tile.threads}, in, x_,
                                values_, indices_);
    }
    StatusOr<Buffer> memory =
        stream_.allocate(static_cast<size_t>(rows() * stretches * k()) * sizeof(uint64_t));
    if (!memory.ok()) return memory.status();
    const Status status = in_stretches(deal).launch(
        stream_, {.grid = {stretches, rows()}, .block = deal.tile.threads}, in,
        as_tensor<uint64_t>(*memory, {rows(), stretches * k()}), static_cast<int32_t>(k()));
    if (!status.ok()) return status;
    return find<uint64_t>(as_tensor<const uint64_t>(*memory, {rows(), stretches * k()}));
  }

  const Stream& stream_;
  const Extreme which_;
  const TensorRef<const T, 2>& x_;
  const TensorRef<T, 2>& values_;
  const TensorRef<int64_t, 2>& indices_;
};

}  // namespace

template <class T>
Status topk(const Stream& stream, Extreme which, const TensorRef<const T, 2>& x,
            const TensorRef<T, 2>& values, const TensorRef<int64_t, 2>& indices) {
  if (Status s = check_same_extents("topk", {"values", values}, {"indices", indices}); !s.ok()) {
    return s;
  }
  const int64_t rows = x.extents[0], columns = x.extents[1], k = values.extents[1];
  if (values.extents[0] != rows) {
    return InvalidArgumentError(
        absl::StrCat("topk: x has ", rows, " rows and values ", values.extents[0]));
  }
  if (Status s = check_rows_counted("topk", rows); !s.ok()) return s;
  if (k > std::min(columns, kMostTop)) {
    return InvalidArgumentError(absl::StrCat("topk: k is ", k, " and rows have ", columns,
                                             " elements; fix: a k of at most ",
                                             std::min(columns, kMostTop)));
  }
  if (Status s = check_columns_counted("topk", columns); !s.ok()) return s;
  if (rows == 0 || k == 0) return OkStatus();
  return Launches<T>(stream, which, x, values, indices).run();
}

#define HEDDLE_FOR(T)                                                           \
  template Status topk<T>(const Stream&, Extreme, const TensorRef<const T, 2>&, \
                          const TensorRef<T, 2>&, const TensorRef<int64_t, 2>&);
HEDDLE_FOR(float)
HEDDLE_FOR(half)
HEDDLE_FOR(bfloat16)
HEDDLE_FOR(int32_t)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
