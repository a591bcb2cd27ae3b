// What reductions are in double precision, and how far from it they may be.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "heddle/kernels/reduce/reduce.h"
#include "heddle/kernels/reference_internal.h"

namespace heddle::kernels {

// The place of the largest element by `sign`, the first of several; NaN counts as larger than all.
inline size_t place_of(const std::vector<double>& values, double sign) {
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    const bool larger = std::isnan(values[i]) || sign * values[i] > sign * values[best];
    if (larger && !std::isnan(values[best])) best = i;
  }
  return best;
}

// A place, or what integers become: exactly; sums and products wrap in 64 bits.
inline Close integers_by_reference(Reduction reduction, const std::vector<double>& values) {
  const double sign = reduction == Reduction::kMin || reduction == Reduction::kArgmin ? -1 : 1;
  if (reduction == Reduction::kArgmax || reduction == Reduction::kArgmin) {
    return {static_cast<double>(place_of(values, sign))};
  }
  if (reduction == Reduction::kMax || reduction == Reduction::kMin) {
    return {values.empty() ? 0 : values[place_of(values, sign)]};
  }
  uint64_t sum = 0, product = 1;
  for (const double v : values) {
    const auto term = static_cast<uint64_t>(static_cast<int64_t>(v));
    sum += term;
    product *= term;
  }
  return {
      static_cast<double>(static_cast<int64_t>(reduction == Reduction::kProduct ? product : sum))};
}

// What floats become. Each is rounded on its way through a thread, where a 32nd of the least part of a long row is
// added up one behind the other, a block, a cluster and a second launch.
inline Close reduced_by_reference(Reduction reduction, const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  const double roundings = 128 + n / 8192;
  Sum sum, squares;
  double product = 1, apart = 0;
  for (const double v : values) {
    sum.add(v);
    squares.add(v * v);
    product *= v;
  }
  for (const double v : values) apart += (v - sum.value / n) * (v - sum.value / n);
  const Close total = sum.within(roundings);
  switch (reduction) {
    case Reduction::kSum:
      return total;
    case Reduction::kMean:
      return {total.value / n, (total.tolerance + sum.magnitude * kRounding) / n};
    case Reduction::kProduct:
      return {product, std::abs(product) * n * kRounding + 0x1p-126};
    case Reduction::kNorm2: {
      const double norm = std::sqrt(squares.value);
      return {norm, norm * (roundings + 2) * kRounding};
    }
    // The mean is off by so many roundings, which a variance takes twice.
    case Reduction::kVar:
      return {apart / std::max(n - 1, 0.0),
              (apart + 2 * std::sqrt(apart * squares.value)) / (n - 1) * 2 * roundings * kRounding};
    default:
      return integers_by_reference(reduction, values);
  }
}

}  // namespace heddle::kernels
