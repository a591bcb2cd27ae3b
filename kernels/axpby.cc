#include "heddle/kernels/axpby.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/vectors.h"
#include "heddle/kernels/views.h"

namespace heddle::kernels {
namespace {

constexpr int kThreads = 256;
// Vectors of each thread.
constexpr int kUnroll = 4;
// Accesses of each thread whose loads are in flight together: narrow ones, which arguments that are not
// aligned have, need more of them to keep the memory busy.
constexpr int kInFlight = 16;
// Elements of a block whatever the alignment, so that the grid follows from the extent alone.
template <class T>
constexpr int kTile = kThreads* kUnroll* kVectorBytes / static_cast<int>(sizeof(T));

// The block's tile, from `start` on: whole vectors where all of it is there, else single elements. Index is
// Int or Int64.
template <bool kReadsY, class T, class Index>
void update_tile(const Float& alpha, const Tensor<const T, 1>& x, const Float& beta,
                 const Tensor<T, 1>& y, const Index& start, const Index& lane, const Index& count) {
  const auto update = [&](int width, const std::vector<Index>& places) {
    std::vector<Fragment<float>> xs, ys;
    for (const Index& i : places) {
      xs.push_back(x.elements(width, i).template as<float>());
      if (kReadsY) ys.push_back(y.elements(width, i).template as<float>());
    }
    for (size_t k = 0; k < places.size(); ++k) {
      const Fragment<float> sum = kReadsY ? fma(alpha, xs[k], beta * ys[k]) : alpha * xs[k];
      y.elements(width, places[k]) = sum.template as<T>();
    }
  };
  const int width = std::min(x.vector_width(kVectorBytes), y.vector_width(kVectorBytes));
  If(count - start >= kTile<T>, [&] {
    const int sweep = kThreads * width;  // elements that the threads take with one access each
    const int together = std::min(kInFlight, kTile<T> / sweep);
    for (int first = 0; first < kTile<T>; first += together * sweep) {
      std::vector<Index> places;
      for (int k = 0; k < together; ++k)
        places.push_back(start + (first + k * sweep) + lane * width);
      update(width, places);
    }
  }).Else([&] {
    For(range(start + lane, count, kThreads), [&](const Index& i) { update(1, {i}); });
  });
}

template <class T, bool kReadsY>
void axpby_body(Float alpha, Tensor<const T, 1> x, Float beta, Tensor<T, 1> y) {
  if (x.extent_fits_32(0)) {
    update_tile<kReadsY>(alpha, x, beta, y, block_idx.x * kTile<T>, Int(thread_idx.x), x.shape(0));
  } else {
    update_tile<kReadsY>(alpha, x, beta, y, cast<int64_t>(block_idx.x) * kTile<T>,
                         cast<int64_t>(thread_idx.x), x.shape64(0));
  }
}

// How many elements stand in front of the first whose address is aligned in both tensors; 0 where there is no
// such element, or where another launch would cost more than alignment gains.
template <class T>
int64_t elements_to_peel(const TensorRef<const T, 1>& x, const TensorRef<T, 1>& y) {
  constexpr int64_t kWorthALaunch = 1 << 16;
  const auto has_memory = [](const auto& tensor) {
    const int64_t bytes = tensor.extents[0] * static_cast<int64_t>(sizeof(T));
    return tensor.strides[0] == 1 && (tensor.capacity_bytes < 0 || tensor.capacity_bytes >= bytes);
  };
  if (x.extents[0] < kWorthALaunch || !has_memory(x) || !has_memory(y)) return 0;
  const auto beyond = reinterpret_cast<uintptr_t>(x.data) % kVectorBytes;
  if (beyond == 0 || beyond != reinterpret_cast<uintptr_t>(y.data) % kVectorBytes) return 0;
  return static_cast<int64_t>((kVectorBytes - beyond) / sizeof(T));
}

template <class T>
Status launch_axpby(const Stream& stream, float alpha, const TensorRef<const T, 1>& x, float beta,
                    const TensorRef<T, 1>& y) {
  static const auto sum = define_kernel("axpby(alpha, x, beta, y)", axpby_body<T, true>);
  static const auto scale = define_kernel("axpby_beta_0(alpha, x, beta, y)", axpby_body<T, false>);
  const int64_t count = x.extents[0];
  if (y.extents[0] != count) {
    return InvalidArgumentError(absl::StrCat("axpby: x has ", count, " elements and y ",
                                             y.extents[0], "; both need the same number"));
  }
  if (count == 0) return OkStatus();
  if (const int64_t head = elements_to_peel(x, y); head > 0) {
    const Status status =
        launch_axpby(stream, alpha, part_of(x, 0, head), beta, part_of(y, 0, head));
    if (!status.ok()) return status;
    const int64_t rest = count - head;
    return launch_axpby(stream, alpha, part_of(x, head, rest), beta, part_of(y, head, rest));
  }
  const LaunchShape shape = {.grid = count / kTile<T> + (count % kTile<T> != 0), .block = kThreads};
  return (beta == 0 ? scale : sum).launch(stream, shape, alpha, x, beta, y);
}

}  // namespace

Status axpby(const Stream& stream, float alpha, const TensorRef<const float, 1>& x, float beta,
             const TensorRef<float, 1>& y) {
  return launch_axpby(stream, alpha, x, beta, y);
}
Status axpby(const Stream& stream, float alpha, const TensorRef<const half, 1>& x, float beta,
             const TensorRef<half, 1>& y) {
  return launch_axpby(stream, alpha, x, beta, y);
}
Status axpby(const Stream& stream, float alpha, const TensorRef<const bfloat16, 1>& x, float beta,
             const TensorRef<bfloat16, 1>& y) {
  return launch_axpby(stream, alpha, x, beta, y);
}

}  // namespace heddle::kernels
