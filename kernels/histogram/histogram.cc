#include "heddle/kernels/histogram/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "heddle/kernels/rows/row_kernel.h"
#include "heddle/kernels/rows/row_tiles.h"
#include "heddle/kernels/views.h"

namespace heddle::kernels {
namespace {

constexpr int kThreads = 512, kVectors = 4;
// Blocks of a multiprocessor, where their tallies fit, and what a block's copies of these take at most.
constexpr int kBlocks = 4, kTallyBytes = 32 << 10;
// What else a block keeps in shared memory, with room to spare.
constexpr int kOtherBytes = 2 << 10;

struct HistogramDeal {
  TileDeal tile;
  int places =
      0;  // of a block's tally: the bins, or more; 0: elements are counted in `counts` at once
  int copies = 1;     // of the tally, so that the lanes of a warp seldom meet at one place
  bool wide = false;  // products of elements and bins have 64 bits
  friend bool operator==(const HistogramDeal&, const HistogramDeal&) = default;
};

// Which bin an element is in.
template <class T>
class Bins {
 public:
  static constexpr bool kExact = std::is_integral_v<T>;
  using Edge = std::conditional_t<kExact, int32_t, float>;

  // `scale`: bins / (upper - lower), of floats.
  Bins(const HistogramDeal& deal, const Value<Edge>& lower, const Value<Edge>& upper,
       const Float& scale, const Int& count)
      : wide_(deal.wide), lower_(lower), upper_(upper), scale_(scale), count_(count) {}

  // The element's bin, or `outside`. No branch, so that the threads of a warp stay together.
  template <class X>
  Int of(const X& element, const Int& outside) const {
    const Value<Edge> x = cast<Edge>(element);
    return select(x >= lower_ && x <= upper_, min(bin(x), count_ - 1), outside);
  }

 private:
  Int bin(const Value<Edge>& x) const {
    if constexpr (!kExact) {
      return cast<int32_t>((x - lower_) * scale_);
    } else {
      // Differences of i32 fit in 32 bits without a sign.
      const auto apart = [](const Int& a, const Int& b) {
        return bitcast<uint32_t>(a) - bitcast<uint32_t>(b);
      };
      const UInt beyond = apart(x, lower_), width = apart(upper_, lower_),
                 count = bitcast<uint32_t>(count_);
      if (!wide_) return bitcast<int32_t>(beyond * count / width);
      return cast<int32_t>(cast<uint64_t>(beyond) * cast<uint64_t>(count) / cast<uint64_t>(width));
    }
  }

  const bool wide_;
  const Value<Edge> lower_, upper_;
  const Float scale_;
  const Int count_;
};

// count(element, inside) of each element of the tiles of this block.
template <class T, class Count>
void each_element(const HistogramDeal& deal, const Tensor<const T, 2>& x, Count count) {
  const RowTiles<const T> tiles(deal.tile, x, x.shape(1));
  For(range(block_idx.x, deal.tile.tiles_of(x.shape(1)), grid_dim.x), [&](const Int& number) {
    const RowTile tile = tiles.at(0, number);
    const std::vector<Fragment<T>> vectors = tiles.load(tile);
    const auto each = [&](auto inside) {
      for (int v = 0; v < deal.tile.vectors; ++v) {
        for (int e = 0; e < deal.tile.width; ++e) {
          count(Value<T>(vectors[static_cast<size_t>(v)][e]), inside(tiles.column(tile, v) + e));
        }
      }
    };
    If(tiles.is_whole(tile), [&] { each([](const Int&) { return Bool(true); }); }).Else([&] {
      each([&](const Int& column) { return tiles.has(column, 1); });
    });
  });
}

// Bytes are counted by their values, for which a bin is found at the end.
template <class T>
constexpr bool kByValue = sizeof(T) == 1;

template <class T>
void tally(const HistogramDeal& deal, const Tensor<const T, 2>& x, const Bins<T>& bins,
           const Tensor<int32_t, 1>& counts) {
  const Int count = counts.shape(0);
  if (deal.places == 0) {
    return each_element(deal, x, [&](const Value<T>& element, const Bool& inside) {
      const Int bin = bins.of(element, count);
      If(inside && bin < count, [&] { atomic_add(counts(bin), 1); });
    });
  }
  // The copies of a place are neighbours, in banks of their own.
  const int words = deal.places * deal.copies, nowhere = deal.places - 1;
  Shared<uint32_t> tallies(words);
  for (const Int i : range(thread_idx.x, words, kThreads)) tallies(i) = 0u;
  sync_threads();
  const Int copy = lane_id() & (deal.copies - 1);
  each_element(deal, x, [&](const Value<T>& element, const Bool& inside) {
    const Int place = kByValue<T> ? cast<int32_t>(element) : bins.of(element, nowhere);
    atomic_add(tallies(select(inside, place, nowhere) * deal.copies + copy), 1u);
  });
  sync_threads();
  const Int tallied = kByValue<T> ? Int(nowhere) : count;
  for (const Int place : range(thread_idx.x, tallied, kThreads)) {
    Var<uint32_t> all(uint32_t{0});
    for (int c = 0; c < deal.copies; ++c) {
      all = all + tallies(place * deal.copies + ((copy + c) & (deal.copies - 1)));
    }
    const Int bin = kByValue<T> ? bins.of(place, count) : place;
    If(all > 0u && bin < count, [&] { atomic_add(counts(bin), bitcast<int32_t>(all.get())); });
  }
}

template <class T>
HistogramDeal deal_tallies(const RowsOf& of, int64_t bins, const DeviceInfo& device) {
  HistogramDeal deal{.tile = TileDeal::of(of)};
  deal.tile.threads = kThreads;
  deal.tile.vectors = deal.tile.width > 1 ? kVectors : 4 * kVectors;
  const int64_t most = (device.limits.max_shared_per_block - kOtherBytes) / 4,
                places = (kByValue<T> ? 256 : bins) + 1;
  if (places > most) return deal;
  // Kernels are made for few numbers of places.
  deal.places = static_cast<int>(
      std::min(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(places - 1))) + 1, most));
  while (deal.copies < kWarpSize && (deal.places - 1) * deal.copies * 2 * 4 <= kTallyBytes) {
    deal.copies *= 2;
  }
  return deal;
}

int64_t blocks_of(const HistogramDeal& deal, const DeviceInfo& device) {
  const int64_t bytes = int64_t{deal.places} * deal.copies * 4 + kOtherBytes;
  return device.sm_count * std::clamp<int64_t>(device.shared_per_sm / bytes, 1, kBlocks);
}

// In words what is wrong with the bins' edges; "" where nothing is.
template <class T>
std::string wrong_edges(double lower, double upper) {
  using Edge = typename Bins<T>::Edge;
  using Limits = std::numeric_limits<Edge>;
  for (const double edge : {lower, upper}) {
    if (!(edge >= Limits::lowest() && edge <= Limits::max())) {
      return absl::StrFormat("an edge of %.10g; edges are numbers that %s has", edge,
                             Bins<T>::kExact ? "i32" : "f32");
    }
    if (Bins<T>::kExact && edge != std::floor(edge)) {
      return absl::StrFormat("an edge of %.10g; those of integers are integers", edge);
    }
  }
  if (static_cast<Edge>(lower) < static_cast<Edge>(upper)) return "";
  return absl::StrCat("bins from ", lower, " to ", upper, "; lower must be less than upper");
}

}  // namespace

template <class T>
Status histogram(const Stream& stream, const TensorRef<const T, 1>& x, double lower, double upper,
                 const TensorRef<int32_t, 1>& counts) {
  using Edge = typename Bins<T>::Edge;
  static const auto clear = define_kernel("histogram_clear(counts)", [](Tensor<int32_t, 1> all) {
    const Int bin = block_idx.x * kThreads + thread_idx.x;
    If(bin < all.shape(0), [&] { all(bin) = 0; });
  });
  static const auto count =
      kernel_family("histogram(x, lower, upper, scale, counts)",
                    [](Host<HistogramDeal> deal, Tensor<const T, 2> in, Value<Edge> first,
                       Value<Edge> last, Float scale, Tensor<int32_t, 1> out) {
                      tally<T>(deal, in, Bins<T>(deal, first, last, scale, out.shape(0)), out);
                    });
  const int64_t bins = counts.extents[0], n = x.extents[0];
  if (std::max(n, bins) >= kMostCounted) {
    return InvalidArgumentError(absl::StrCat("histogram: ", n, " elements and ", bins,
                                             " bins; both are fewer than ", kMostCounted));
  }
  if (bins == 0) return InvalidArgumentError("histogram: no bins; counts has one element for each");
  if (const std::string wrong = wrong_edges<T>(lower, upper); !wrong.empty()) {
    return InvalidArgumentError(absl::StrCat("histogram: ", wrong));
  }
  if (Status s =
          clear.launch(stream, {.grid = divide_up(bins, kThreads), .block = kThreads}, counts);
      !s.ok() || n == 0) {
    return s;
  }
  const TensorRef<const T, 2> row = as_row(x);
  const DeviceInfo& device = stream.device().info();
  HistogramDeal deal = deal_tallies<T>(rows_of(row), bins, device);
  const double width = upper - lower;
  deal.wide = Bins<T>::kExact && width * static_cast<double>(bins) >= 0x1p32;
  const auto scale = static_cast<float>(
      static_cast<double>(bins) /
      (static_cast<Edge>(upper) - static_cast<double>(static_cast<Edge>(lower))));
  const int64_t blocks = std::min(deal.tile.tiles_of(n), blocks_of(deal, device));
  return count(deal).launch(stream, {.grid = blocks, .block = kThreads}, row,
                            static_cast<Edge>(lower), static_cast<Edge>(upper), scale, counts);
}

#define HEDDLE_FOR(T)                                                                       \
  template Status histogram<T>(const Stream&, const TensorRef<const T, 1>&, double, double, \
                               const TensorRef<int32_t, 1>&);
HEDDLE_FOR(float)
HEDDLE_FOR(half)
HEDDLE_FOR(bfloat16)
HEDDLE_FOR(int32_t)
HEDDLE_FOR(uint8_t)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
