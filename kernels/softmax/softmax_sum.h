// The sum that softmax divides by, found in one pass over a row (Milakov and Gimelshein 2018). Internal to the kernels.
#pragma once

#include <limits>
#include <type_traits>

#include "heddle/kernels/rows/row.h"

namespace heddle::kernels {

// The largest element so far, and the sum of e^(element - largest).
struct SoftmaxSum {
  Float largest;  // finite at least
  Float sum;      // of the weights
};

// e^(x - largest), rounded as finely as T needs it.
template <class T, class X>
X weight(const X& x, const Float& largest) {
  if constexpr (std::is_same_v<T, float>) return exp(x - largest);
  const FlushSubnormals flush;  // for results of 16 bits, weights below 2^-126 may be zero
  if constexpr (!std::is_same_v<T, float>) return fast::exp(x - largest);
}

// One value for two parts of a row.
template <class T>
SoftmaxSum merge(const SoftmaxSum& a, const SoftmaxSum& b) {
  const Float largest = max(a.largest, b.largest);
  return {largest, a.sum * weight<T>(a.largest, largest) + b.sum * weight<T>(b.largest, largest)};
}

// The largest number is finite at least, so that nothing is subtracted from -∞: where all elements are -∞ their
// weights are 0, and NaN stays.
template <class T>
SoftmaxSum sum_of(const RowPart<T>& part) {
  const Float largest =
      max(part.template fold<float>(wide<T>, maximum()), std::numeric_limits<float>::lowest());
  return {largest, part.template fold<float>(
                       [&](const Fragment<T>& v) { return weight<T>(wide(v), largest); }, plus())};
}

// Of a row, of which `first` is the first part; `outside` is -∞.
template <class T, class In>
SoftmaxSum sum_of_row(const RowThreads& threads, const In& in, const RowPart<T>& first,
                      const T& outside) {
  const auto merged = [](const SoftmaxSum& a, const SoftmaxSum& b) { return merge<T>(a, b); };
  const SoftmaxSum mine = in.others(
      sum_of(first), outside,
      [&](const SoftmaxSum& sum, const RowPart<T>& part) { return merged(sum, sum_of(part)); });
  return threads.reduce(mine, merged);
}

}  // namespace heddle::kernels
