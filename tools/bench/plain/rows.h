// Loops over the rows of a matrix, one block a row.
#pragma once

#include <limits>

#include "heddle/dsl/dsl.h"

namespace heddle::plain {

// y = a x.
inline const auto scale_rows =
    define_kernel("scale_rows(x, y, a)", [](Tensor<const float, 2> x, Tensor<float, 2> y, Float a) {
      const Int row = block_idx.x;
      for (Int i : range(thread_idx.x, x.shape(1), block_dim.x)) y(row, i) = a * x(row, i);
    });

// The largest element so far, and the sum of exp(element - largest).
struct SoftmaxSum {
  Float largest, sum;
};
inline SoftmaxSum merge(const SoftmaxSum& a, const SoftmaxSum& b) {
  const Float largest = max(a.largest, b.largest);
  return {largest, a.sum * exp(a.largest - largest) + b.sum * exp(b.largest - largest)};
}

// Online softmax (Milakov and Gimelshein 2018): one pass for the sum, one for the result.
template <class T>
void softmax_body(Tensor<const T, 2> x, Tensor<T, 2> y) {
  const Int row = block_idx.x, columns = x.shape(1);
  const SoftmaxSum mine = For(range(thread_idx.x, columns, block_dim.x),
                              SoftmaxSum{std::numeric_limits<float>::lowest(), 0},
                              [&](Int i, const SoftmaxSum& so_far) {
                                return merge(so_far, {cast<float>(x(row, i)), 1});
                              });
  const SoftmaxSum all = block_reduce(mine, merge);
  const Float scale = 1.0f / all.sum;
  for (Int i : range(thread_idx.x, columns, block_dim.x)) {
    y(row, i) = cast<T>(exp(cast<float>(x(row, i)) - all.largest) * scale);
  }
}
inline const auto softmax = define_kernel("softmax(x, y)", softmax_body<float>);
inline const auto softmax_bf16 = define_kernel("softmax_bf16(x, y)", softmax_body<bfloat16>);

// How many elements, their mean, and the sum of their squared distances from it.
struct Moments {
  Float count, mean, squares;
};
inline Moments merge(const Moments& a, const Moments& b) {
  const Float count = a.count + b.count, part = select(count > 0, b.count / count, 0.0f);
  const Float apart = b.mean - a.mean;
  return {count, a.mean + apart * part, a.squares + b.squares + apart * apart * a.count * part};
}

// Layer norm by Welford's method, with a weight and a bias for each column.
inline const auto layer_norm = define_kernel(
    "layer_norm(x, weight, bias, y)", [](Tensor<const float, 2> x, Tensor<const float, 1> weight,
                                         Tensor<const float, 1> bias, Tensor<float, 2> y) {
      const Int row = block_idx.x, columns = x.shape(1);
      const Moments mine =
          For(range(thread_idx.x, columns, block_dim.x), Moments{0, 0, 0},
              [&](Int i, const Moments& so_far) {
                const Float count = so_far.count + 1, apart = x(row, i) - so_far.mean;
                const Float mean = so_far.mean + fast::div(apart, count);
                return Moments{count, mean, so_far.squares + apart * (x(row, i) - mean)};
              });
      const Moments all =
          block_reduce(mine, [](const Moments& a, const Moments& b) { return merge(a, b); });
      const Float scale = rsqrt(all.squares / cast<float>(columns) + 1e-5f);
      for (Int i : range(thread_idx.x, columns, block_dim.x)) {
        y(row, i) = (x(row, i) - all.mean) * scale * weight(i) + bias(i);
      }
    });

// What was quantised by groups of a row, each with a scale of its own. Indices have 64 bits, as frameworks have them.
inline const auto group_scale =
    define_kernel("group_scale(x, scales, y)",
                  [](Tensor<const float, 2> x, Tensor<const float, 2> scales, Tensor<float, 2> y) {
                    const Int row = block_idx.x;
                    const Int64 columns = cast<int64_t>(x.shape(1));
                    const Int64 group = columns / cast<int64_t>(scales.shape(1));
                    for (Int64 i : range(cast<int64_t>(Int(thread_idx.x)), columns,
                                         cast<int64_t>(Int(block_dim.x))))
                      y(row, i) = x(row, i) * scales(row, i / group);
                  });

}  // namespace heddle::plain
