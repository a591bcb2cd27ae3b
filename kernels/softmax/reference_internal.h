// What softmax divides by in double precision, and how far from it what is computed may be.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "heddle/kernels/reference_internal.h"

namespace heddle::kernels {

// How far a weight e^d, d ≤ 0, may be from the exact one, relatively: the difference is rounded, then multiplied
// by log2(e) and rounded, and what computes 2^x is within 2 ulps.
inline double weight_error(double d) { return (4 + 2.5 * std::abs(d)) * 2 * kRounding; }

// The sum of a row's weights.
struct SoftmaxReference {
  double largest = -HUGE_VAL, sum = 0;
  double error = 0;  // of the sum, relatively

  SoftmaxReference() = default;
  SoftmaxReference(const double* row, int64_t columns) {
    for (int64_t c = 0; c < columns; ++c) largest = std::max(largest, row[c]);
    for (int64_t c = 0; c < columns; ++c) {
      const double d = row[c] - largest, weight = std::exp(d);
      sum += weight;
      if (weight > 0) error += weight * weight_error(d);
    }
    // Roundings on the way of each term: within a thread, a warp, a block and a cluster, and in the parts of long
    // rows; between them sums are multiplied by weights.
    error = error / sum + (64 + static_cast<double>(columns) / 32768) * kRounding;
  }
  // How far the sum's logarithm may be from the exact one.
  double log_error() const { return error + 4 * std::log(sum) * 2 * kRounding; }
};

}  // namespace heddle::kernels
