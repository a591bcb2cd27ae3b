#include "heddle/kernels/sort/sort.h"

#include <algorithm>
#include <deque>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/map/copy.h"
#include "heddle/kernels/rows/row_tiles.h"
#include "heddle/kernels/views.h"

namespace heddle::kernels {
namespace {

constexpr int kDigitBits = 8, kDigits = 1 << kDigitBits;
constexpr int kMostElements = (1 << 30) - 65536;
// Blocks that count digits: threads, vectors of each, blocks of a multiprocessor, bytes of a block's tallies.
constexpr int kCountThreads = 512, kCountVectors = 4, kCountBlocks = 3, kTallyBytes = 64 << 10;

// --- Keys ---

// What bits of a type are computed with as.
template <class Bits>
using Register = std::conditional_t<sizeof(Bits) == 8, uint64_t, uint32_t>;

template <class T>
constexpr int kPasses = static_cast<int>(sizeof(T)) * 8 / kDigitBits;

// Elements of T as numbers without sign of the same order.
template <class T>
class Keys {
 public:
  // As they lie in memory, and as they are computed with.
  using Bits = std::conditional_t<sizeof(T) == 2, uint16_t,
                                  std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  using Key = Register<Bits>;

  explicit Keys(Order order) : order_(order) {}

  static Value<Key> of(const Value<Key>& bits) {
    if constexpr (kUnsigned) return bits;
    if constexpr (kInteger) return bits ^ kSign;
    return select((bits & kSign) != Key(0), ~bits & kOnes, bits | kSign);
  }
  static Value<Key> bits_of(const Value<Key>& key) {
    if constexpr (kUnsigned) return key;
    if constexpr (kInteger) return key ^ kSign;
    return select((key & kSign) != Key(0), key ^ kSign, ~key & kOnes);
  }
  // What elements are compared by: equal ones have the same.
  static Value<Key> compared(const Value<Key>& key) {
    if constexpr (kInteger) {
      return key;
    } else {
      // From that of -infinity to that of infinity; those of NaNs lie around them.
      constexpr Key kLeast = kSign - 1 - kInfinity, kGreatest = kSign | kInfinity;
      const Value<Key> number = select(key == Key(kSign - 1), Value<Key>(kSign), key);
      return select(key - kLeast <= Key(kGreatest - kLeast), number, Value<Key>(kOnes));
    }
  }
  // A digit of what elements are compared by: of two different ones, the least comes first.
  Int digit(const Value<Key>& compared, const Int& shift) const {
    const UInt digit = cast<uint32_t>(compared >> bitcast<uint32_t>(shift)) & (kDigits - 1);
    return bitcast<int32_t>(order_ == Order::kAscending ? digit : digit ^ (kDigits - 1));
  }

 private:
  static constexpr bool kInteger = std::is_integral_v<T>, kUnsigned = std::is_unsigned_v<T>;
  static constexpr int kBits = static_cast<int>(sizeof(T)) * 8;
  static constexpr Key kOnes = static_cast<Key>(~Key(0) >> (sizeof(Key) * 8 - kBits));
  static constexpr Key kSign = static_cast<Key>(Key(1) << (kBits - 1));
  static constexpr Key kInfinity = sizeof(T) == 4                ? 0x7f800000u
                                   : std::is_same_v<T, bfloat16> ? 0x7f80u
                                                                 : 0x7c00u;

  const Order order_;
};

// --- How many elements have each digit ---

struct CountDeal {
  TileDeal tile;
  Order order = Order::kAscending;
  friend bool operator==(const CountDeal&, const CountDeal&) = default;
};

// counts(256 p + d) += elements whose digit p, from the least on, is d.
template <class T>
void count_digits(const CountDeal& deal, const Tensor<const typename Keys<T>::Bits, 2>& x,
                  const Tensor<uint32_t, 1>& counts) {
  using Key = typename Keys<T>::Key;
  // The lanes of a warp seldom meet at one place, of which there are copies side by side.
  constexpr int kTallies = kPasses<T> * kDigits,
                kCopies = std::min(kTallyBytes / 4 / kTallies, kWarpSize), kCopyMask = kCopies - 1;
  const Keys<T> keys(deal.order);
  Shared<uint32_t> tallies(kTallies * kCopies);
  for (const Int i : range(thread_idx.x, kTallies * kCopies, kCountThreads)) tallies(i) = 0u;
  sync_threads();
  const Int copy = lane_id() & kCopyMask;
  const auto count = [&](const Value<Key>& bits) {
    const Value<Key> compared = keys.compared(keys.of(bits));
    for (int p = 0; p < kPasses<T>; ++p) {
      const Int digit = keys.digit(compared, Int(p * kDigitBits));
      atomic_add(tallies((digit + p * kDigits) * kCopies + copy), 1u);
    }
  };
  each_element(deal.tile, x, [&](const Value<typename Keys<T>::Bits>& bits, const Bool& inside) {
    If(inside, [&] { count(cast<Key>(bits)); });
  });
  sync_threads();
  for (const Int i : range(thread_idx.x, kTallies, kCountThreads)) {
    Var<uint32_t> all(uint32_t{0});
    for (int c = 0; c < kCopies; ++c) all = all + tallies(i * kCopies + ((copy + c) & kCopyMask));
    If(all > 0u, [&] { atomic_add(counts(i), all.get()); });
  }
}

// --- A pass ---

struct PassDeal {
  int threads = 384, items = 1;      // of a tile, a block each; of a thread
  int blocks = 2;                    // of a multiprocessor
  bool first = false, last = false;  // of the passes
  Order order = Order::kAscending;
  friend bool operator==(const PassDeal&, const PassDeal&) = default;

  int elements() const { return threads * items; }
  int warps() const { return threads / kWarpSize; }
};

// How far tiles have come: for each digit a word, whose upper bits say what the others count.
constexpr uint32_t kOwn = 1u << 30, kToEnd = 2u << 30, kCountMask = kOwn - 1;

// Of a digit: its elements in a tile, and in all of them.
struct DigitCount {
  Int tile, all;
};

// What a pass reads and writes, as bits.
template <class Bits>
struct Moved {
  const Tensor<const Bits, 1>& from;
  const Tensor<Bits, 1>& to;
};

// Moves the elements of a tile to where their digits belong; a block.
template <class T>
class SortPass {
 public:
  using Bits = typename Keys<T>::Bits;
  using Key = typename Keys<T>::Key;

  // Of n elements. `counts` of all passes' digits; `progress` has two times a word for each tile and digit: of this pass,
  // all 0 at first, and of the next one.
  SortPass(const PassDeal& deal, const Tensor<const uint32_t, 1>& counts,
           const Tensor<uint32_t, 1>& progress, const Int& pass, const Int& n)
      : deal_(deal),
        keys_(deal.order),
        counts_(counts),
        progress_(progress),
        pass_(pass),
        begin_(block_idx.x * deal.elements()),
        count_(min(n - begin_, deal.elements())),
        tallies_(deal.warps() * kDigits),
        firsts_(kDigits) {
    min_blocks_per_sm(deal.blocks);
  }

  // Keys, and values that go with them. Where all elements have one digit they stay where they are.
  template <class... ValueBits>
  void move(const Moved<Bits>& keys, const Moved<ValueBits>&... values) const {
    const std::vector<Value<Key>> mine = load_keys(keys.from);
    const Int digit = digit_of(key_of(cast<Key>(Value<Bits>(keys.from(0)))));
    const UInt alike = counts_(pass_ * kDigits + digit);
    If(bitcast<int32_t>(alike) == keys.from.shape(0), [&] {
      (copy(values), ...);
      for (int i = 0; i < deal_.items; ++i) {
        If(is_there(own(i)), [&] { keys.to(begin_ + own(i)) = bits_of(mine[i]); });
      }
      If(thread_idx.x < kDigits, [&] { progress_(word_of_next_pass()) = 0u; });
    }).Else([&] { distribute(mine, keys, values...); });
  }

 private:
  // A thread's digit: where the tile's elements begin, in the tile and in the result but for those of tiles in front, and
  // how many there are.
  struct Digit {
    Int first_in_tile, first_of_all, in_tile;
  };
  // The places of this thread's keys in the tile, and its digit.
  struct Ranked {
    std::vector<Int> places;
    Digit digit;
  };

  // The tile's place of this thread's element i: the lanes of a warp side by side, then its elements, then warps.
  Int own(int i) const {
    return warp_id() * (deal_.items * kWarpSize) + (i * kWarpSize + lane_id());
  }
  Bool is_there(const Int& place) const { return place < count_; }

  // This thread's elements; 0 for those that are not there.
  template <class B>
  std::vector<Value<Register<B>>> load(const Tensor<const B, 1>& from) const {
    std::deque<Var<Register<B>>> all;
    for (int i = 0; i < deal_.items; ++i) all.emplace_back(Register<B>(0));
    const auto load_one = [&](int i) { all[i] = cast<Register<B>>(from(begin_ + own(i))); };
    If(count_ == deal_.elements(), [&] {
      for (int i = 0; i < deal_.items; ++i) load_one(i);
    }).Else([&] {
      for (int i = 0; i < deal_.items; ++i) If(is_there(own(i)), [&] { load_one(i); });
    });
    return {all.begin(), all.end()};
  }

  Value<Key> key_of(const Value<Key>& bits) const { return deal_.first ? keys_.of(bits) : bits; }
  Value<Bits> bits_of(const Value<Key>& key) const {
    return cast<Bits>(deal_.last ? keys_.bits_of(key) : key);
  }
  std::vector<Value<Key>> load_keys(const Tensor<const Bits, 1>& from) const {
    std::vector<Value<Key>> keys;
    for (const Value<Key>& bits : load(from)) keys.push_back(key_of(bits));
    return keys;
  }

  template <class B>
  void copy(const Moved<B>& values) const {
    const auto mine = load(values.from);
    for (int i = 0; i < deal_.items; ++i) {
      If(is_there(own(i)), [&] { values.to(begin_ + own(i)) = cast<B>(mine[i]); });
    }
  }

  // Moves the tile by way of shared memory, so that elements of one digit leave side by side.
  template <class... ValueBits>
  void distribute(const std::vector<Value<Key>>& mine, const Moved<Bits>& keys,
                  const Moved<ValueBits>&... values) const {
    const Ranked ranked = rank(mine);
    const auto tile = in_order<Bits>(ranked.places, mine);
    const std::tuple<Shared<ValueBits>...> more = {
        in_order<ValueBits>(ranked.places, load(values.from))...};
    If(thread_idx.x < kDigits, [&] {
      const Digit& own = ranked.digit;
      firsts_(thread_idx.x) = own.first_of_all + look_back(own.in_tile) - own.first_in_tile;
    });
    sync_threads();
    for (int i = 0; i < deal_.items; ++i) {
      const Int at = i * deal_.threads + thread_idx.x;
      const Value<Key> key = cast<Key>(Value<Bits>(tile(at)));
      const Int to = at + firsts_(digit_of(key));
      If(is_there(at), [&] {
        keys.to(to) = bits_of(key);
        std::apply([&](const auto&... tiles) { ((values.to(to) = tiles(at)), ...); }, more);
      });
    }
  }

  // The tile with this thread's elements at their places.
  template <class B>
  Shared<B> in_order(const std::vector<Int>& places,
                     const std::vector<Value<Register<B>>>& elements) const {
    const Shared<B> tile(deal_.elements());
    for (size_t i = 0; i < places.size(); ++i) tile(places[i]) = cast<B>(elements[i]);
    return tile;
  }

  Int digit_of(const Value<Key>& key) const {
    return keys_.digit(keys_.compared(key), pass_ * kDigitBits);
  }
  // The lanes of the warp that have the same digit.
  UInt peers_of(const Int& digit) const {
    // match_any() is one instruction, and takes longer than these where digits differ.
    Var<uint32_t> peers(~uint32_t{0});
    for (int bit = 0; bit < kDigitBits; ++bit) {
      const Bool set = (digit & (1 << bit)) != 0;
      peers = peers & (ballot(set) ^ select(set, UInt(0), ~UInt(0)));
    }
    return peers;
  }

  // Those that are not there come last.
  Int digit_of_own(int i, const Value<Key>& key) const {
    return select(is_there(own(i)), digit_of(key), kDigits - 1);
  }

  // Digits are counted before elements are ranked, so that tiles behind learn of them soon.
  Ranked rank(const std::vector<Value<Key>>& keys) const {
    const Int first = warp_id() * kDigits, lane = lane_id();
    for (int i = 0; i < kDigits; i += kWarpSize) tallies_(first + (i + lane)) = 0;
    sync_warp();
    // What is computed within branches is not kept in registers behind them.
    If(count_ == deal_.elements(), [&] {
      for (const Value<Key>& key : keys) atomic_add(tallies_(first + digit_of(key)), 1);
    }).Else([&] {
      for (int i = 0; i < deal_.items; ++i) {
        atomic_add(tallies_(first + digit_of_own(i, keys[i])), 1);
      }
    });
    sync_threads();
    const Digit mine = start_digits();
    const UInt in_front = lanes_in_front();
    std::vector<Int> places;
    for (int i = 0; i < deal_.items; ++i) {
      const Int digit = digit_of_own(i, keys[i]);
      const UInt peers = peers_of(digit), before = peers & in_front;
      const Int tally = first + digit, so_far = tallies_(tally);
      sync_warp();
      If(before == 0u, [&] { tallies_(tally) = so_far + popc(peers); });
      sync_warp();
      places.push_back(so_far + popc(before));
    }
    return {std::move(places), mine};
  }

  // Makes of how often a warp has a digit where in the tile those elements begin, and tells the tiles behind how often this
  // one has it. A thread for each digit.
  Digit start_digits() const {
    const Int digit = thread_idx.x;
    const Bool has_digit = digit < kDigits;
    Var<int32_t> total(0), all(0);
    If(has_digit, [&] {
      for (int w = 0; w < deal_.warps(); ++w) {
        const Int own = tallies_(w * kDigits + digit);
        tallies_(w * kDigits + digit) = total.get();
        total = total + own;
      }
      const uint32_t own = kOwn, to_end = kToEnd;
      atomic_store(progress_(word(block_idx.x)),
                   bitcast<uint32_t>(total.get()) | select(block_idx.x == 0, to_end, own));
      progress_(word_of_next_pass()) = 0u;
      all = bitcast<int32_t>(UInt(counts_(pass_ * kDigits + digit)));
    });
    const DigitCount first =
        block_scan_exclusive(DigitCount{total, all}, DigitCount{Int(0), Int(0)},
                             [](const DigitCount& a, const DigitCount& b) {
                               return DigitCount{a.tile + b.tile, a.all + b.all};
                             });
    If(has_digit, [&] {
      for (int w = 0; w < deal_.warps(); ++w) {
        tallies_(w * kDigits + digit) = tallies_(w * kDigits + digit) + first.tile;
      }
    });
    sync_threads();
    return {first.tile, first.all, total};
  }

  // The words of this thread's digit.
  Int word(const Int& tile) const {
    return (pass_ % 2 * grid_dim.x + tile) * kDigits + thread_idx.x;
  }
  Int word_of_next_pass() const {
    return ((1 - pass_ % 2) * grid_dim.x + block_idx.x) * kDigits + thread_idx.x;
  }
  // How many elements of this thread's digit, of which this tile has some, the tiles in front have: they have begun, since
  // blocks begin in the order of their numbers.
  Int look_back(const Int& in_tile) const {
    Var<int32_t> before(0), tile(block_idx.x - 1);
    While([&] { return tile >= 0; },
          [&] {
            const UInt seen = atomic_load(progress_(word(tile)));
            before = before + bitcast<int32_t>(seen & kCountMask);
            tile = select(seen >= kToEnd, Int(-1), tile - select(seen >= kOwn, Int(1), Int(0)));
          });
    If(block_idx.x > 0, [&] {
      atomic_store(progress_(word(block_idx.x)), bitcast<uint32_t>(before + in_tile) | kToEnd);
    });
    return before;
  }

  const PassDeal& deal_;
  const Keys<T> keys_;
  const Tensor<const uint32_t, 1>& counts_;
  const Tensor<uint32_t, 1>& progress_;
  const Int pass_, begin_, count_;  // of the passes; the tile's first element, and its elements
  const Shared<int32_t> tallies_, firsts_;
};

// --- The host ---

// The launches of one sort. V is void where keys go alone.
template <class T, class V>
class Sorting {
 public:
  using Bits = typename Keys<T>::Bits;
  using ValueBits = typename Keys<std::conditional_t<std::is_void_v<V>, T, V>>::Bits;
  static constexpr bool kPairs = !std::is_void_v<V>;
  using From = TensorRef<const Bits, 1>;
  using To = TensorRef<Bits, 1>;
  using ValuesFrom = TensorRef<const ValueBits, 1>;
  using ValuesTo = TensorRef<ValueBits, 1>;

  Sorting(const Stream& stream, Order order, int64_t n)
      : stream_(stream), order_(order), n_(n), deal_(deal_of(order, n, stream.device().info())) {}

  Status run(const From& keys, const To& sorted, const ValuesFrom& values,
             const ValuesTo& moved) const {
    // Counts, progress, and what odd passes write.
    const int64_t tiles = divide_up(n_, deal_.elements()), counts = kPasses<T> * kDigits,
                  words = counts + 2 * tiles * kDigits;
    StatusOr<Buffer> memory = stream_.allocate(static_cast<size_t>(words) * sizeof(uint32_t));
    if (!memory.ok()) return memory.status();
    if (Status s = memory->fill(stream_, 0); !s.ok()) return s;
    const auto all = as_tensor<uint32_t>(*memory, {words});
    if (Status s = count(keys, part_of(all, 0, counts)); !s.ok()) return s;
    // An even number of passes: the first writes other memory, and so reads its input while nobody writes there.
    static_assert(kPasses<T> % 2 == 0);
    const StatusOr<Buffer> other = stream_.allocate(static_cast<size_t>(n_) * sizeof(Bits)),
                           other_values = stream_.allocate(
                               kPairs ? static_cast<size_t>(n_) * sizeof(ValueBits) : 1);
    if (!other.ok()) return other.status();
    if (!other_values.ok()) return other_values.status();
    const To between = as_tensor<Bits>(*other, {n_});
    const ValuesTo values_between = as_tensor<ValueBits>(*other_values, {kPairs ? n_ : 0});
    for (int pass = 0; pass < kPasses<T>; ++pass) {
      PassDeal deal = deal_;
      deal.first = pass == 0;
      deal.last = pass == kPasses<T> - 1;
      // The last pass writes the result, and so does every second one in front of it.
      const bool to_result = (kPasses<T> - 1 - pass) % 2 == 0;
      const From from = pass == 0 ? keys : From(to_result ? between : sorted);
      const ValuesFrom values_from =
          pass == 0 ? values : ValuesFrom(to_result ? values_between : moved);
      const Status s = move(deal, pass, tiles, from, to_result ? sorted : between, values_from,
                            to_result ? moved : values_between, part_of(all, 0, counts),
                            part_of(all, counts, words - counts));
      if (!s.ok()) return s;
    }
    return OkStatus();
  }

 private:
  // Of many elements: as many a tile as registers and shared memory hold. Pairs of 8 bytes and more go in tiles of one
  // block a multiprocessor: elements of one digit then leave in longer runs. Of few: a tile for each block that runs at
  // once, in steps, so that few kernels are made.
  static PassDeal deal_of(Order order, int64_t n, const DeviceInfo& device) {
    constexpr int kBytes = static_cast<int>(sizeof(T) + (kPairs ? sizeof(ValueBits) : 0));
    std::vector<PassDeal> deals;  // the fewest elements first
    for (const int items : {7, 11, 15}) deals.push_back({.items = items, .order = order});
    if (!kPairs) {
      deals.push_back({.items = sizeof(T) == 8 ? 16 : 30, .order = order});
    } else if (kBytes < 8) {
      deals.push_back({.items = 22, .order = order});
    } else {
      deals.push_back({.threads = 512, .items = kBytes > 8 ? 16 : 26, .blocks = 1, .order = order});
    }
    PassDeal chosen = deals[0];
    for (const PassDeal& deal : deals) {
      if (shared_bytes(deal, kBytes) > device.limits.max_shared_per_block) break;
      chosen = deal;
      if (n <= int64_t{deal.elements()} * deal.blocks * device.sm_count) break;
    }
    return chosen;
  }
  // A block's shared memory: the tile, tallies of its warps, where digits begin, and what a scan takes.
  static int64_t shared_bytes(const PassDeal& deal, int bytes) {
    constexpr int kScan = 2 * kWarpSize * static_cast<int>(sizeof(int32_t));
    return int64_t{deal.elements()} * bytes +
           (deal.warps() + 1) * kDigits * static_cast<int>(sizeof(int32_t)) + kScan;
  }

  Status count(const From& keys, const TensorRef<uint32_t, 1>& counts) const {
    static const auto kernel = kernel_family(
        "sort_count(x, counts)", [](Host<CountDeal> deal, Tensor<const Bits, 2> x,
                                    Tensor<uint32_t, 1> all) { count_digits<T>(deal, x, all); });
    const TensorRef<const Bits, 2> row = as_row(keys);
    CountDeal deal{.tile = TileDeal::of(rows_of(row)), .order = order_};
    deal.tile.threads = kCountThreads;
    deal.tile.vectors = deal.tile.width > 1 ? kCountVectors : 4 * kCountVectors;
    const int64_t blocks =
        std::min<int64_t>(deal.tile.tiles_of(n_), kCountBlocks * stream_.device().info().sm_count);
    return kernel(deal).launch(stream_, {.grid = blocks, .block = kCountThreads}, row, counts);
  }

  Status move(const PassDeal& deal, int pass, int64_t tiles, const From& from, const To& to,
              const ValuesFrom& values_from, const ValuesTo& values_to,
              const TensorRef<const uint32_t, 1>& counts,
              const TensorRef<uint32_t, 1>& progress) const {
    const LaunchShape shape{.grid = tiles, .block = deal.threads};
    if constexpr (kPairs) {
      static const auto kernel = kernel_family(
          "sort_pairs(keys, values, sorted_keys, sorted_values, counts, progress, pass)",
          [](Host<PassDeal> d, Tensor<const Bits, 1> in, Tensor<const ValueBits, 1> values,
             Tensor<Bits, 1> out, Tensor<ValueBits, 1> moved, Tensor<const uint32_t, 1> all,
             Tensor<uint32_t, 1> words, Int number) {
            SortPass<T>(d, all, words, number, in.shape(0))
                .move(Moved<Bits>{in, out}, Moved<ValueBits>{values, moved});
          });
      return kernel(deal).launch(stream_, shape, from, values_from, to, values_to, counts, progress,
                                 pass);
    } else {
      static const auto kernel = kernel_family(
          "sort(x, y, counts, progress, pass)",
          [](Host<PassDeal> d, Tensor<const Bits, 1> in, Tensor<Bits, 1> out,
             Tensor<const uint32_t, 1> all, Tensor<uint32_t, 1> words, Int number) {
            SortPass<T>(d, all, words, number, in.shape(0)).move(Moved<Bits>{in, out});
          });
      return kernel(deal).launch(stream_, shape, from, to, counts, progress, pass);
    }
  }

  const Stream& stream_;
  const Order order_;
  const int64_t n_;
  const PassDeal deal_;
};

Status check_lengths(const char* kernel, int64_t n,
                     std::initializer_list<std::pair<const char*, int64_t>> others,
                     const char* first) {
  for (const auto& [name, length] : others) {
    if (length != n) {
      return InvalidArgumentError(absl::StrCat(kernel, ": ", first, " has ", n, " elements and ",
                                               name, " ", length, "; all need the same number"));
    }
  }
  if (n <= kMostElements) return OkStatus();
  return InvalidArgumentError(
      absl::StrCat(kernel, ": ", n, " elements; it takes at most ", kMostElements));
}

}  // namespace

template <class T>
Status sort(const Stream& stream, Order order, const TensorRef<const T, 1>& x,
            const TensorRef<T, 1>& y) {
  const int64_t n = x.extents[0];
  if (Status s = check_lengths("sort", n, {{"y", y.extents[0]}}, "x"); !s.ok()) return s;
  if (n == 0) return OkStatus();
  return Sorting<T, void>(stream, order, n).run(detail::as_bits(x), detail::as_bits(y), {}, {});
}

template <class T, class V>
Status sort_pairs(const Stream& stream, Order order, const TensorRef<const T, 1>& keys,
                  const TensorRef<const V, 1>& values, const TensorRef<T, 1>& sorted_keys,
                  const TensorRef<V, 1>& sorted_values) {
  const int64_t n = keys.extents[0];
  if (Status s = check_lengths("sort_pairs", n,
                               {{"values", values.extents[0]},
                                {"sorted_keys", sorted_keys.extents[0]},
                                {"sorted_values", sorted_values.extents[0]}},
                               "keys");
      !s.ok()) {
    return s;
  }
  if (n == 0) return OkStatus();
  return Sorting<T, V>(stream, order, n)
      .run(detail::as_bits(keys), detail::as_bits(sorted_keys), detail::as_bits(values),
           detail::as_bits(sorted_values));
}

#define HEDDLE_FOR_PAIRS(T, V)                                                           \
  template Status sort_pairs<T, V>(const Stream&, Order, const TensorRef<const T, 1>&,   \
                                   const TensorRef<const V, 1>&, const TensorRef<T, 1>&, \
                                   const TensorRef<V, 1>&);
#define HEDDLE_FOR(T)                                                         \
  template Status sort<T>(const Stream&, Order, const TensorRef<const T, 1>&, \
                          const TensorRef<T, 1>&);                            \
  HEDDLE_FOR_PAIRS(T, int32_t)                                                \
  HEDDLE_FOR_PAIRS(T, float)                                                  \
  HEDDLE_FOR_PAIRS(T, int64_t)
HEDDLE_FOR(float)
HEDDLE_FOR(half)
HEDDLE_FOR(bfloat16)
HEDDLE_FOR(int32_t)
HEDDLE_FOR(uint32_t)
HEDDLE_FOR(int64_t)
#undef HEDDLE_FOR
#undef HEDDLE_FOR_PAIRS

}  // namespace heddle::kernels
