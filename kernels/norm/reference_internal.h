// The norms in double precision, and how far off f32 may be. Internal to the kernels, and to their tests.
#pragma once

#include <cmath>
#include <vector>

#include "heddle/kernels/reference_internal.h"

namespace heddle::kernels {

// What a row is normalised by, and how far from it the computed numbers may be.
struct RowStatistics {
  double mean = 0, scale = 0;
  double mean_error = 0;   // absolute
  double scale_error = 0;  // relative
};

// Roundings of a sum on the way of each term: within a thread, a warp, a block and a cluster, and in parts of rows;
// merging moments rounds a few times at each step.
inline double roundings(int64_t columns) { return 128 + static_cast<double>(columns) / 8192; }

inline RowStatistics statistics(const double* row, int64_t columns, bool centred, double eps) {
  const auto n = static_cast<double>(columns);
  const double steps = roundings(columns) * kRounding;
  RowStatistics all;
  double magnitude = 0, squares = 0;
  for (int64_t c = 0; c < columns; ++c) {
    all.mean += row[c] / n;
    magnitude += std::abs(row[c]) / n;
  }
  if (!centred) all.mean = 0;
  if (centred) all.mean_error = steps * magnitude;
  for (int64_t c = 0; c < columns; ++c) squares += (row[c] - all.mean) * (row[c] - all.mean) / n;
  all.scale = 1 / std::sqrt(squares + eps);
  // Differences of means and elements from a mean are off by its error.
  const double apart = all.mean_error * (2 * std::sqrt(squares) + all.mean_error);
  all.scale_error = (steps * squares + apart) / (squares + eps) + 6 * kRounding;
  return all;
}

// y = (x - mean) scale w + b, without b where there is none; of these x, and before y is rounded.
inline std::vector<Close> norms(const runtime::Settings& settings, const Tensors& tensors,
                                const std::vector<double>& x, bool centred) {
  const std::vector<double>& w = tensors.at("w").values;
  const auto columns = static_cast<int64_t>(w.size());
  const double eps = real(settings, "eps");
  RowStatistics row;
  std::vector<Close> all;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t c = i % w.size();
    if (c == 0) row = statistics(&x[i], columns, centred, eps);
    const double factor = row.scale * w[c], product = (x[i] - row.mean) * factor;
    const double b = centred ? tensors.at("b").values[c] : 0;
    const double error = row.mean_error * std::abs(factor) +
                         std::abs(product) * (row.scale_error + 4 * kRounding) +
                         std::abs(product + b) * kRounding;
    all.push_back({product + b, error + 0x1p-126});
  }
  return all;
}
// The nearest number of a type; halves go to even ones.
inline double rounded(double x, ir::Scalar dtype) {
  // Rounding in steps gives the same: each format has more than twice the digits of the next.
  const auto f = static_cast<float>(x);
  if (dtype == ir::Scalar::kF16) return static_cast<float>(half(f));
  if (dtype == ir::Scalar::kBF16) return static_cast<float>(bfloat16(f));
  return f;
}
// The sums with a residual, which are exact but for their rounding.
inline std::vector<double> sums_of(const Tensors& tensors) {
  std::vector<double> sums = tensors.at("x").values;
  const std::vector<double>& residual = tensors.at("residual").values;
  const ir::Scalar dtype = tensors.at("sum").shape.dtype;
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = rounded(sums[i] + residual[i], dtype);
  return sums;
}
inline runtime::Expected exactly(const runtime::HostValues& output,
                                 const std::vector<double>& values) {
  return elements(output, [&](int64_t i) { return Close{values[static_cast<size_t>(i)]}; });
}
// The gradients of x and of the weights from those of y, in double precision, and how far off they may be.
struct NormGradients {
  std::vector<double> dx, dx_error;
  std::vector<double> dw, dw_error, db, db_error;
};

// Of x and dy, rows of as many columns as w has elements.
inline NormGradients norm_gradients(const std::vector<double>& x, const std::vector<double>& w,
                                    const std::vector<double>& dy, bool centred, double eps) {
  const auto columns = static_cast<int64_t>(w.size());
  const int64_t rows = columns == 0 ? 0 : static_cast<int64_t>(x.size()) / columns;
  const auto n = static_cast<double>(columns);
  NormGradients all;
  for (auto* of : {&all.dw, &all.dw_error, &all.db, &all.db_error}) of->resize(w.size());
  const double steps = roundings(columns) * kRounding;
  // A column's terms meet one after the other.
  const double column_steps = (static_cast<double>(rows) + 128) * kRounding;
  for (int64_t r = 0; r < rows; ++r) {
    const double *const from = &x[r * columns], *const by = &dy[r * columns];
    const RowStatistics row = statistics(from, columns, centred, eps);
    // Means of s = w dy and of s (x - mean), and of their magnitudes.
    double of_s = 0, of_product = 0, s_magnitude = 0, product_magnitude = 0;
    for (int64_t c = 0; c < columns; ++c) {
      const double s = w[c] * by[c], product = s * (from[c] - row.mean);
      of_s += s / n, s_magnitude += std::abs(s) / n;
      of_product += product / n, product_magnitude += std::abs(product) / n;
    }
    if (!centred) of_s = 0;
    const double slope = row.scale * row.scale * of_product,
                 slope_magnitude = row.scale * row.scale * product_magnitude;
    // How far (x - mean) scale may be off because of the mean.
    const double off = row.mean_error * row.scale;
    for (int64_t c = 0; c < columns; ++c) {
      const double apart = from[c] - row.mean, s = w[c] * by[c];
      const double magnitude = row.scale * (std::abs(s) + (centred ? s_magnitude : 0) +
                                            std::abs(apart) * slope_magnitude);
      all.dx.push_back(row.scale * (s - of_s - apart * slope));
      all.dx_error.push_back(magnitude * (3 * row.scale_error + 4 * steps + 8 * kRounding) +
                             row.scale * s_magnitude * off * 2 * (1 + std::abs(apart) * row.scale));
      const double term = by[c] * apart * row.scale;
      all.dw[c] += term;
      all.dw_error[c] +=
          std::abs(term) * (row.scale_error + column_steps + 4 * kRounding) + std::abs(by[c]) * off;
      all.db[c] += by[c];
      all.db_error[c] += std::abs(by[c]) * column_steps;
    }
  }
  return all;
}

}  // namespace heddle::kernels
