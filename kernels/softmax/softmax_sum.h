// The sum that softmax divides by, found in one pass over a row (Milakov and Gimelshein 2018). Internal to the kernels.
#pragma once

#include <limits>
#include <type_traits>

#include "heddle/kernels/rows/input_row.h"

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

// Two sums as one, and those of a group of threads, where one weight for each is enough.
template <class T>
struct MergeSums {
  // Of two.
  SoftmaxSum operator()(const SoftmaxSum& a, const SoftmaxSum& b) const {
    const Float largest = max(a.largest, b.largest);
    return {largest, a.sum * weight<T>(a.largest, largest) + b.sum * weight<T>(b.largest, largest)};
  }
  // Of a group's threads.
  template <class Group>
  SoftmaxSum together(const SoftmaxSum& mine, const Group& group) const {
    const Float largest = group(mine.largest, maximum());
    return {largest, group(mine.sum * weight<T>(mine.largest, largest), plus())};
  }
};

// The largest number is finite at least, so that nothing is subtracted from -∞: where all elements are -∞ their
// weights are 0, and NaN stays.
template <class T>
SoftmaxSum sum_of(const RowPart<T>& part) {
  const auto same = [](const Fragment<T>& v) { return v; };
  const Float largest = max(cast<float>(part.template fold<T>(same, maximum())),
                            std::numeric_limits<float>::lowest());
  return {largest, part.template fold<float>(
                       [&](const Fragment<T>& v) { return weight<T>(wide(v), largest); }, plus())};
}

// Of a row; what is outside it is -∞.
template <class T>
SoftmaxSum sum_of_row(const RowThreads& threads, const InputRow<T>& in) {
  const SoftmaxSum nothing{std::numeric_limits<float>::lowest(), 0};
  return threads.reduce(in.fold(nothing, sum_of<T>, MergeSums<T>()), MergeSums<T>());
}

}  // namespace heddle::kernels
