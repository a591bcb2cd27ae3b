// Operands of any extents for products, which take lines at multiples of 16 bytes: others are copied.
//
//   const StatusOr<Padded<half>> a = padded(stream, file);
//   Status s = gemm(stream, a->tensor, …);
#pragma once

#include <utility>

#include "heddle/runtime/heddle.h"

namespace heddle::kernels {

// An operand, and memory of its own where it is a copy.
template <class T>
struct Padded {
  TensorRef<const T, 2> tensor;
  Buffer memory = {};
};

constexpr int kPadThreads = 128;
// A block copies a line.
template <class T>
const auto& pad_lines() {
  static const auto kernel =
      define_kernel("pad_lines(x, y)", [](Tensor<const T, 2> x, Tensor<T, 2> y) {
        const Int line = block_idx.x;
        For(range(thread_idx.x, x.shape(1), kPadThreads),
            [&](const Int& i) { y(line, i) = x(line, i); });
      });
  return kernel;
}

// A row-major matrix without gaps, or a copy with gaps between its lines.
template <class T>
StatusOr<Padded<T>> padded(const Stream& stream, const TensorRef<const T, 2>& x) {
  constexpr int64_t kElements = 16 / sizeof(T);
  const int64_t lines = x.extents[0], length = x.extents[1];
  if (lines < 2 || length % kElements == 0) return Padded<T>{x};
  const int64_t pitch = (length / kElements + 1) * kElements;
  StatusOr<Buffer> memory =
      stream.device().allocate(static_cast<size_t>(lines * pitch) * sizeof(T));
  if (!memory.ok()) return memory.status();
  TensorRef<T, 2> copy = as_tensor<T>(*memory, {lines, pitch});
  copy.extents[1] = length;
  const Status copied =
      pad_lines<T>().launch(stream, {.grid = lines, .block = kPadThreads}, x, copy);
  if (!copied.ok()) return copied;
  return Padded<T>{copy, *std::move(memory)};
}

}  // namespace heddle::kernels
