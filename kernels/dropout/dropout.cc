#include "heddle/kernels/dropout/dropout.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/dropout/philox.h"
#include "heddle/kernels/items.h"
#include "heddle/kernels/l2.h"
#include "heddle/kernels/rows/row_kernel.h"

namespace heddle::kernels {
namespace {

constexpr int kThreads = 256;
// Elements that share a hash.
constexpr int kWords = 4;

// Words below it drop their elements.
uint32_t threshold_of(float probability) {
  return static_cast<uint32_t>(static_cast<double>(probability) * 0x1p32);
}

struct DropoutDeal {
  int elements = 2 * kWords;  // of a thread in a row
  int width = 1;              // elements that are read and written at once; a row has whole ones
  bool floods = false;        // the launch floods L2 (kernels/l2.h)
  friend bool operator==(const DropoutDeal&, const DropoutDeal&) = default;
};

struct Dropping {
  UInt seed_low, seed_high, threshold;
  Float scale;  // of elements that stay
};

template <class T>
void drop(const DropoutDeal& deal, const Tensor<const T, 2>& x, const Int& slab,
          const Tensor<T, 2>& y, const Dropping& by) {
  const Int columns = x.shape(1);
  const ItemOfRow at =
      item_of_row(slab, x.shape(0), (columns + (deal.elements - 1)) / deal.elements, kThreads);
  const Int row = at.row, first = at.item * deal.elements;
  const auto in = aligned_view(x, deal.floods);
  const auto out = y.assume_aligned();
  // A row ends between elements that are read one by one, or at a thread's last.
  const auto has = [&](int e) { return deal.width > 1 ? Bool(true) : first + e < columns; };
  If(at.inside, [&] {
    // Loads are under way while the words are computed.
    std::vector<Fragment<float>> parts;
    for (int e = 0; e < deal.elements; e += deal.width) {
      parts.push_back(If(
          has(e), [&] { return in.elements(deal.width, row, first + e).template as<float>(); },
          [&] { return Fragment<float>(deal.width, Float(0)); }));
    }
    std::vector<Bool> stays;
    for (int e = 0; e < deal.elements; e += kWords) {
      const UInt counter = bitcast<uint32_t>(first + e) / kWords;
      for (const UInt& word :
           philox({counter, bitcast<uint32_t>(row), 0u, 0u}, {by.seed_low, by.seed_high})) {
        stays.push_back(word >= by.threshold);
      }
    }
    for (int e = 0; e < deal.elements; e += deal.width) {
      Var<Fragment<float>> part(parts[static_cast<size_t>(e / deal.width)] * by.scale);
      for (int i = 0; i < deal.width; ++i) {
        part[i] = select(stays[static_cast<size_t>(e + i)], part[i], Float(0));
      }
      If(has(e), [&] {
        out.elements(deal.width, row, first + e) = Fragment<float>(part).template as<T>();
      });
    }
  });
}

}  // namespace

template <class T>
Status dropout(const Stream& stream, const TensorRef<const T, 2>& x, float probability,
               uint64_t seed, const TensorRef<T, 2>& y) {
  static const auto kernel =
      kernel_family("dropout(x, slab, seed_low, seed_high, threshold, scale, y)",
                    [](Host<DropoutDeal> deal, Tensor<const T, 2> from, Int slab, UInt seed_low,
                       UInt seed_high, UInt threshold, Float scale, Tensor<T, 2> to) {
                      drop<T>(deal, from, slab, to, {seed_low, seed_high, threshold, scale});
                    });
  if (!(probability >= 0 && probability < 1)) {
    return InvalidArgumentError(
        absl::StrCat("dropout: a probability of ", probability, "; it is at least 0 and below 1"));
  }
  if (Status s = check_same_extents("dropout", {"x", x}, {"y", y}); !s.ok()) return s;
  const int64_t rows = x.extents[0], columns = x.extents[1];
  if (Status s = check_rows_counted("dropout", rows); !s.ok()) return s;
  if (Status s = check_columns_counted("dropout", columns); !s.ok()) return s;
  if (rows == 0 || columns == 0) return OkStatus();
  DropoutDeal deal{.floods = floods_l2(stored_bytes(y), stream.device().info())};
  const int widest = std::min(deal.elements, kVectorBytes / static_cast<int>(sizeof(T)));
  if (rows_of(x, y).aligned && columns % widest == 0) {
    deal.width = widest;
    if (columns % deal.elements != 0) deal.elements = widest;
  }
  const ItemGrid grid = item_grid(rows, divide_up(columns, deal.elements), kThreads);
  return kernel(deal).launch(stream, grid.shape, x, grid.slab, static_cast<uint32_t>(seed),
                             static_cast<uint32_t>(seed >> 32), threshold_of(probability),
                             1 / (1 - probability), y);
}

bool dropout_keeps(float probability, uint64_t seed, uint32_t row, uint32_t column) {
  std::array<uint32_t, 4> c = {column / kWords, row, 0, 0};
  uint32_t key[] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c[column % kWords] >= threshold_of(probability);
}

#define HEDDLE_FOR(T)                                                                      \
  template Status dropout<T>(const Stream&, const TensorRef<const T, 2>&, float, uint64_t, \
                             const TensorRef<T, 2>&);
HEDDLE_FOR(float)
HEDDLE_FOR(half)
HEDDLE_FOR(bfloat16)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
