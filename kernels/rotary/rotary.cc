#include "heddle/kernels/rotary/rotary.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/items.h"
#include "heddle/kernels/l2.h"

namespace heddle::kernels {
namespace {

constexpr int kThreads = 256;
// Heads of a thread, which share their angles, at most.
constexpr int kHeads = 4;

struct RotaryDeal {
  RotaryPairs pairs = RotaryPairs::kHalves;
  bool back = false;
  int width = 1;        // pairs that are neighbours, of a thread
  bool single = false;  // partners that are neighbours are not aligned as two
  int heads = 1;        // of a thread
  bool floods = false;  // the launch floods L2 (kernels/l2.h)
  friend bool operator==(const RotaryDeal&, const RotaryDeal&) = default;

  bool halves() const { return pairs == RotaryPairs::kHalves; }
  // Whether the two partners of a pair are accessed one by one.
  bool apart() const { return halves() || single; }
};

// Neighbouring angles, by 16 bytes at most.
std::vector<Float> angles(const Tensor<const float, 2>& of, const Int& token, const Int& first,
                          int count) {
  std::vector<Float> all;
  const int width = std::min(count, 4);
  for (int i = 0; i < count; i += width) {
    const auto part = of.assume_aligned().elements(width, token, first + i);
    for (int e = 0; e < width; ++e) all.push_back(part[e]);
  }
  return all;
}

// Partners of one head, as f32: those that turn towards the others, and these.
struct Partners {
  std::vector<Float> a, b;
};

template <class T>
class Heads {
 public:
  Heads(const RotaryDeal& deal, const Int& half) : deal_(deal), half_(half) {}

  template <class U>
  Partners load(const Tensor<U, 3>& x, const Int& token, const Int& head, const Int& first) const {
    const auto in = aligned_view(x, deal_.floods);
    const int width = deal_.width;
    Partners all;
    const auto add = [](std::vector<Float>& to, const auto& part, int begin, int step) {
      for (int e = begin; e < part.size(); e += step) to.push_back(cast<float>(Value<T>(part[e])));
    };
    if (deal_.apart()) {
      add(all.a, Fragment<T>(in.elements(width, token, head, place_of_a(first))), 0, 1);
      add(all.b, Fragment<T>(in.elements(width, token, head, place_of_b(first))), 0, 1);
    } else {
      const Fragment<T> both(in.elements(2 * width, token, head, first * 2));
      add(all.a, both, 0, 2);
      add(all.b, both, 1, 2);
    }
    return all;
  }
  void store(const Tensor<T, 3>& y, const Int& token, const Int& head, const Int& first,
             const Partners& all) const {
    const auto out = y.assume_aligned();
    const int width = deal_.width;
    if (deal_.apart()) {
      const auto put = [&](const std::vector<Float>& values, const Int& at) {
        Var<Fragment<float>> part(Fragment<float>(width, values[0]));
        for (int e = 1; e < width; ++e) part[e] = values[static_cast<size_t>(e)];
        out.elements(width, token, head, at) = Fragment<float>(part).template as<T>();
      };
      put(all.a, place_of_a(first));
      put(all.b, place_of_b(first));
    } else {
      Var<Fragment<float>> part(Fragment<float>(2 * width, all.a[0]));
      for (int e = 0; e < width; ++e) {
        part[2 * e] = all.a[static_cast<size_t>(e)];
        part[2 * e + 1] = all.b[static_cast<size_t>(e)];
      }
      out.elements(2 * width, token, head, first * 2) = Fragment<float>(part).template as<T>();
    }
  }

 private:
  // Of the partners of a pair.
  Int place_of_a(const Int& pair) const { return deal_.halves() ? pair : pair * 2; }
  Int place_of_b(const Int& pair) const { return deal_.halves() ? pair + half_ : pair * 2 + 1; }

  const RotaryDeal& deal_;
  const Int half_;
};

template <class T>
void turn(const RotaryDeal& deal, const Tensor<const T, 3>& x, const Int& slab,
          const Tensor<const float, 2>& cosine, const Tensor<const float, 2>& sine,
          const Tensor<T, 3>& y) {
  const Int half = x.shape(2) / 2, vectors = half / deal.width;
  const ItemOfRow at = item_of_row(slab, x.shape(0), x.shape(1) / deal.heads * vectors, kThreads);
  const Divmod<int32_t> part = FastDivmod(vectors).divmod(at.item);
  const Int token = at.row, head = part.quotient * deal.heads, first = part.remainder * deal.width;
  If(at.inside, [&] {
    const Heads<T> heads(deal, half);
    const std::vector<Float> c = angles(cosine, token, first, deal.width),
                             s = angles(sine, token, first, deal.width);
    std::vector<Partners> all;
    for (int h = 0; h < deal.heads; ++h) all.push_back(heads.load(x, token, head + h, first));
    for (int h = 0; h < deal.heads; ++h) {
      const Partners& from = all[static_cast<size_t>(h)];
      Partners turned;
      for (size_t i = 0; i < c.size(); ++i) {
        const Float sin = deal.back ? -s[i] : s[i];
        turned.a.push_back(fma(from.a[i], c[i], -(from.b[i] * sin)));
        turned.b.push_back(fma(from.b[i], c[i], from.a[i] * sin));
      }
      heads.store(y, token, head + h, first, turned);
    }
  });
}

// Whether vectors of so many bytes are aligned in a tensor, wherever its rows begin.
template <class T, int kRank>
bool is_aligned(const TensorRef<T, kRank>& x, int64_t bytes) {
  bool aligned = reinterpret_cast<uintptr_t>(x.data) % static_cast<uintptr_t>(bytes) == 0 &&
                 x.strides[kRank - 1] == 1;
  for (int mode = 0; mode < kRank - 1; ++mode) {
    aligned = aligned && x.strides[mode] * static_cast<int64_t>(sizeof(T)) % bytes == 0;
  }
  return aligned;
}

template <class T>
Status check_extents(const char* kernel, const TensorRef<const T, 3>& x, const TensorRef<T, 3>& y,
                     const TensorRef<const float, 2>& cosine,
                     const TensorRef<const float, 2>& sine) {
  const int64_t tokens = x.extents[0], elements = x.extents[2];
  for (int mode = 0; mode < 3; ++mode) {
    if (x.extents[mode] != y.extents[mode]) {
      return InvalidArgumentError(absl::StrCat(kernel, ": extent ", mode, " of the input is ",
                                               x.extents[mode], " and that of the output ",
                                               y.extents[mode], "; both need the same"));
    }
    if (x.extents[mode] >= kMostCounted) {
      return InvalidArgumentError(absl::StrCat(kernel, ": extent ", mode, " is ", x.extents[mode],
                                               "; it is less than ", kMostCounted));
    }
  }
  const int64_t heads = x.extents[1];
  if (heads > 0 && elements > kMostCounted / heads) {
    return InvalidArgumentError(absl::StrCat(kernel, ": tokens of ", heads, " × ", elements,
                                             " elements; they have at most ", kMostCounted));
  }
  if (elements % 2 != 0) {
    return InvalidArgumentError(
        absl::StrCat(kernel, ": heads of ", elements, " elements, which do not make pairs"));
  }
  for (const auto& [name, angles] : {std::pair("cosine", cosine), std::pair("sine", sine)}) {
    if (angles.extents[0] != tokens || angles.extents[1] != elements / 2) {
      return InvalidArgumentError(absl::StrCat(kernel, ": ", name, " is ", angles.extents[0], " × ",
                                               angles.extents[1], "; it has to be ", tokens, " × ",
                                               elements / 2));
    }
  }
  return OkStatus();
}

template <class T>
Status launch(const char* name, RotaryDeal deal, const Stream& stream,
              const TensorRef<const T, 3>& x, const TensorRef<const float, 2>& cosine,
              const TensorRef<const float, 2>& sine, const TensorRef<T, 3>& y) {
  static const auto kernel =
      kernel_family("rotary(x, slab, cosine, sine, y)",
                    [](Host<RotaryDeal> d, Tensor<const T, 3> from, Int slab,
                       Tensor<const float, 2> cosines, Tensor<const float, 2> sines,
                       Tensor<T, 3> to) { turn<T>(d, from, slab, cosines, sines, to); });
  if (Status s = check_extents(name, x, y, cosine, sine); !s.ok()) return s;
  const int64_t tokens = x.extents[0], heads = x.extents[1], half = x.extents[2] / 2;
  if (tokens == 0 || heads == 0 || half == 0) return OkStatus();
  // As many pairs of a thread as one access of each tensor takes.
  constexpr int kBytes = static_cast<int>(sizeof(T));
  const int most = kVectorBytes / kBytes / (deal.halves() ? 1 : 2);
  const auto fits = [&](int width) {
    const int64_t bytes = int64_t{width} * kBytes * (deal.halves() ? 1 : 2),
                  of_angles = std::min(width, 4) * int64_t{sizeof(float)};
    return half % width == 0 && is_aligned(x, bytes) && is_aligned(y, bytes) &&
           is_aligned(cosine, of_angles) && is_aligned(sine, of_angles);
  };
  deal.floods = floods_l2(stored_bytes(y), stream.device().info());
  deal.single = !fits(1);
  for (int width = 2; width <= most && fits(width); width *= 2) deal.width = width;
  while (deal.heads < kHeads && heads % (deal.heads * 2) == 0) deal.heads *= 2;
  const ItemGrid grid = item_grid(tokens, heads / deal.heads * (half / deal.width), kThreads);
  return kernel(deal).launch(stream, grid.shape, x, grid.slab, cosine, sine, y);
}

}  // namespace

template <class T>
Status rotary(const Stream& stream, RotaryPairs pairs, const TensorRef<const T, 3>& x,
              const TensorRef<const float, 2>& cosine, const TensorRef<const float, 2>& sine,
              const TensorRef<T, 3>& y) {
  return launch<T>("rotary", {.pairs = pairs}, stream, x, cosine, sine, y);
}

template <class T>
Status rotary_backward(const Stream& stream, RotaryPairs pairs, const TensorRef<const T, 3>& dy,
                       const TensorRef<const float, 2>& cosine,
                       const TensorRef<const float, 2>& sine, const TensorRef<T, 3>& dx) {
  return launch<T>("rotary_backward", {.pairs = pairs, .back = true}, stream, dy, cosine, sine, dx);
}

#define HEDDLE_FOR(T)                                                                           \
  template Status rotary<T>(const Stream&, RotaryPairs, const TensorRef<const T, 3>&,           \
                            const TensorRef<const float, 2>&, const TensorRef<const float, 2>&, \
                            const TensorRef<T, 3>&);                                            \
  template Status rotary_backward<T>(const Stream&, RotaryPairs, const TensorRef<const T, 3>&,  \
                                     const TensorRef<const float, 2>&,                          \
                                     const TensorRef<const float, 2>&, const TensorRef<T, 3>&);
HEDDLE_FOR(float)
HEDDLE_FOR(half)
HEDDLE_FOR(bfloat16)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
