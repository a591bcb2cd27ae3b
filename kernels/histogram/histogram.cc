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
// How often elements are read at most, where each block counts a part of the bins.
constexpr int kMostParts = 16;
// What else a block keeps in shared memory, with room to spare.
constexpr int kOtherBytes = 2 << 10;

// How products of an integer and the number of bins, over the bins' width, are found: where they have 32 bits; by a
// reciprocal where there are at most as many bins as integers; by 64 bits.
enum class Division { kNarrow, kReciprocal, kWide };

struct HistogramDeal {
  TileDeal tile;
  int places =
      0;  // of a block's tally: the bins, or more; 0: elements are counted in `counts` at once
  int copies = 1;  // of the tally, so that the lanes of a warp seldom meet at one place
  Division division = Division::kNarrow;  // of integers
  bool in_parts = false;  // a block counts some of the bins, by its place in the grid's y
  friend bool operator==(const HistogramDeal&, const HistogramDeal&) = default;
};

// Which bin an element is in.
template <class T>
class Bins {
 public:
  static constexpr bool kExact = std::is_integral_v<T>;
  using Edge = std::conditional_t<kExact, int32_t, float>;

  // What bins / (upper - lower) is given as: of integers times 2^32, rounded down.
  using Scale = std::conditional_t<kExact, uint32_t, float>;

  Bins(const HistogramDeal& deal, const Value<Edge>& lower, const Value<Edge>& upper,
       const Value<Scale>& scale, const Int& count)
      : division_(deal.division), lower_(lower), upper_(upper), scale_(scale), count_(count) {}

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
      if (division_ == Division::kNarrow) return bitcast<int32_t>(beyond * count / width);
      const UInt64 product = cast<uint64_t>(beyond) * cast<uint64_t>(count),
                   by = cast<uint64_t>(width);
      if (division_ == Division::kWide) return cast<int32_t>(product / by);
      const UInt near = mulhi(beyond, scale_);  // the quotient, or one less
      const Bool less = product - cast<uint64_t>(near) * by >= by;
      return bitcast<int32_t>(near + select(less, UInt(1), UInt(0)));
    }
  }

  const Division division_;
  const Value<Edge> lower_, upper_;
  const Value<Scale> scale_;
  const Int count_;
};

// Bytes are counted by their values, for which a bin is found at the end.
template <class T>
constexpr bool kByValue = sizeof(T) == 1;

template <class T>
void tally(const HistogramDeal& deal, const Tensor<const T, 2>& x, const Bins<T>& bins,
           const Tensor<int32_t, 1>& counts) {
  const Int count = counts.shape(0);
  if (deal.places == 0) {
    // Lanes that meet at one bin add to it together.
    const UInt in_front = lanes_in_front();
    return each_element(deal.tile, x, [&](const Value<T>& element, const Bool& inside) {
      const Int bin = select(inside, bins.of(element, count), count);
      const UInt peers = match_any(bin);
      If((peers & in_front) == 0u && bin < count, [&] { atomic_add(counts(bin), popc(peers)); });
    });
  }
  // The copies of a place are neighbours, in banks of their own.
  const int words = deal.places * deal.copies, nowhere = deal.places - 1;
  Shared<uint32_t> tallies(words);
  for (const Int i : range(thread_idx.x, words, kThreads)) tallies(i) = 0u;
  sync_threads();
  const Int copy = lane_id() & (deal.copies - 1);
  const Int first = deal.in_parts ? block_idx.y * nowhere : Int(0);  // of the block's bins
  const auto place_of = [&](const Value<T>& element) {
    if (kByValue<T>) return cast<int32_t>(element);
    if (!deal.in_parts) return bins.of(element, nowhere);
    const Int place = bins.of(element, Int(-1)) - first;
    return select(place >= 0 && place < nowhere, place, nowhere);
  };
  each_element(deal.tile, x, [&](const Value<T>& element, const Bool& inside) {
    atomic_add(tallies(select(inside, place_of(element), nowhere) * deal.copies + copy), 1u);
  });
  sync_threads();
  const Int tallied = kByValue<T> ? Int(nowhere) : min(count - first, nowhere);
  for (const Int place : range(thread_idx.x, tallied, kThreads)) {
    Var<uint32_t> all(uint32_t{0});
    for (int c = 0; c < deal.copies; ++c) {
      all = all + tallies(place * deal.copies + ((copy + c) & (deal.copies - 1)));
    }
    const Int bin = kByValue<T> ? bins.of(place, count) : first + place;
    If(all > 0u && bin < count, [&] { atomic_add(counts(bin), bitcast<int32_t>(all.get())); });
  }
}

template <class T>
HistogramDeal deal_tallies(const RowsOf& of, int64_t bins, const DeviceInfo& device) {
  HistogramDeal deal{.tile = TileDeal::of(of)};
  deal.tile.threads = kThreads;
  deal.tile.vectors = deal.tile.width > 1 ? kVectors : 4 * kVectors;
  const int64_t most = (device.limits.max_shared_per_block - kOtherBytes) / 4 - 1,
                places = kByValue<T> ? 256 : bins;
  if (places > kMostParts * most) return deal;
  deal.in_parts = places > most;
  // Kernels are made for few numbers of places.
  const auto rounded = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(places)));
  deal.places = static_cast<int>(std::min(rounded, most)) + 1;
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
std::string wrong_edges(double lower, double upper, int64_t bins) {
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
  const double width =
      static_cast<double>(static_cast<Edge>(upper)) - static_cast<double>(static_cast<Edge>(lower));
  if (!(width > 0)) {
    return absl::StrCat("bins from ", lower, " to ", upper, "; lower must be less than upper");
  }
  if (!Bins<T>::kExact && std::max(width, static_cast<double>(bins) / width) > Limits::max()) {
    return absl::StrCat(bins, " bins from ", lower, " to ", upper,
                        "; neither upper - lower nor bins over that may be more than f32 has");
  }
  return "";
}

}  // namespace

template <class T>
Status histogram(const Stream& stream, const TensorRef<const T, 1>& x, double lower, double upper,
                 const TensorRef<int32_t, 1>& counts) {
  using Edge = typename Bins<T>::Edge;
  using Scale = typename Bins<T>::Scale;
  static const auto clear = define_kernel("histogram_clear(counts)", [](Tensor<int32_t, 1> all) {
    const Int bin = block_idx.x * kThreads + thread_idx.x;
    If(bin < all.shape(0), [&] { all(bin) = 0; });
  });
  static const auto count =
      kernel_family("histogram(x, lower, upper, scale, counts)",
                    [](Host<HistogramDeal> deal, Tensor<const T, 2> in, Value<Edge> first,
                       Value<Edge> last, Value<Scale> scale, Tensor<int32_t, 1> out) {
                      tally<T>(deal, in, Bins<T>(deal, first, last, scale, out.shape(0)), out);
                    });
  const int64_t bins = counts.extents[0], n = x.extents[0];
  if (std::max(n, bins) >= kMostCounted) {
    return InvalidArgumentError(absl::StrCat("histogram: ", n, " elements and ", bins,
                                             " bins; both are fewer than ", kMostCounted));
  }
  if (bins == 0) return InvalidArgumentError("histogram: no bins; counts has one element for each");
  if (const std::string wrong = wrong_edges<T>(lower, upper, bins); !wrong.empty()) {
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
  const auto first = static_cast<Edge>(lower), last = static_cast<Edge>(upper);
  const double width = static_cast<double>(last) - static_cast<double>(first);
  Scale scale;
  if constexpr (Bins<T>::kExact) {
    deal.division = width * static_cast<double>(bins) < 0x1p32 ? Division::kNarrow
                    : static_cast<double>(bins) <= width       ? Division::kReciprocal
                                                               : Division::kWide;
    scale = static_cast<Scale>(std::min<uint64_t>(
        (static_cast<uint64_t>(bins) << 32) / static_cast<uint64_t>(width), UINT32_MAX));
  } else {
    scale = static_cast<Scale>(static_cast<double>(bins) / width);
  }
  const int64_t parts = deal.in_parts ? divide_up(bins, deal.places - 1) : 1,
                blocks = std::min(deal.tile.tiles_of(n), divide_up(blocks_of(deal, device), parts));
  return count(deal).launch(stream, {.grid = {blocks, parts}, .block = kThreads}, row, first, last,
                            scale, counts);
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
