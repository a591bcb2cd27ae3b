// Norms as operations.
#include <cmath>

#include "heddle/kernels/norm/norm.h"
#include "heddle/kernels/reference_internal.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

// What a row is normalised by, and how far from it the computed numbers may be.
struct RowStatistics {
  double mean = 0, scale = 0;
  double mean_error = 0;   // absolute
  double scale_error = 0;  // relative
};

// Roundings of a sum on the way of each term: within a thread, a warp, a block and a cluster, and in parts of rows;
// merging moments rounds a few times at each step.
double roundings(int64_t columns) { return 128 + static_cast<double>(columns) / 8192; }

RowStatistics statistics(const double* row, int64_t columns, bool centred, double eps) {
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

// y = (x - mean) scale w + b, without b where there is none; of these x.
runtime::Expected normalised(const Settings& settings, const Tensors& tensors,
                             const std::vector<double>& x, bool centred) {
  const std::vector<double>& w = tensors.at("w").values;
  const auto columns = static_cast<int64_t>(w.size());
  const double eps = real(settings, "eps");
  const Rounding last = rounding_of(tensors.at("y").shape.dtype);
  RowStatistics row;
  return elements(tensors.at("y"), [&](int64_t i) {
    const int64_t c = i % columns;
    if (c == 0) row = statistics(&x[i], columns, centred, eps);
    const double factor = row.scale * w[c], product = (x[i] - row.mean) * factor;
    const double b = centred ? tensors.at("b").values[c] : 0;
    const double error = row.mean_error * std::abs(factor) +
                         std::abs(product) * (row.scale_error + 4 * kRounding) +
                         std::abs(product + b) * kRounding;
    return last.of(product + b, error + 0x1p-126);
  });
}
Outputs normalised(const Settings& settings, const Tensors& tensors, bool centred) {
  return std::map<std::string, runtime::Expected>{
      {"y", normalised(settings, tensors, tensors.at("x").values, centred)}};
}

// The nearest number of a type; halves go to even ones.
double rounded(double x, ir::Scalar dtype) {
  // Rounding in steps gives the same: each format has more than twice the digits of the next.
  const auto f = static_cast<float>(x);
  if (dtype == ir::Scalar::kF16) return static_cast<float>(half(f));
  if (dtype == ir::Scalar::kBF16) return static_cast<float>(bfloat16(f));
  return f;
}
// The same of the sums with a residual, which are exact but for their rounding.
Outputs normalised_sums(const Settings& settings, const Tensors& tensors, bool centred) {
  std::vector<double> sums = tensors.at("x").values;
  const std::vector<double>& residual = tensors.at("residual").values;
  const ir::Scalar dtype = tensors.at("sum").shape.dtype;
  for (size_t i = 0; i < sums.size(); ++i) sums[i] = rounded(sums[i] + residual[i], dtype);
  return std::map<std::string, runtime::Expected>{
      {"y", normalised(settings, tensors, sums, centred)},
      {"sum", elements(tensors.at("sum"), [&](int64_t i) { return Close{sums[i]}; })}};
}

Outputs rms_norm_reference(const Settings& settings, const Tensors& tensors) {
  return normalised(settings, tensors, false);
}
Outputs layer_norm_reference(const Settings& settings, const Tensors& tensors) {
  return normalised(settings, tensors, true);
}
Outputs add_rms_norm_reference(const Settings& settings, const Tensors& tensors) {
  return normalised_sums(settings, tensors, false);
}
Outputs add_layer_norm_reference(const Settings& settings, const Tensors& tensors) {
  return normalised_sums(settings, tensors, true);
}

template <class T>
using RmsNorm = Status(const Stream&, const TensorRef<const T, 2>&, const TensorRef<const T, 1>&,
                       const TensorRef<T, 2>&, float);
template <class T>
using LayerNorm = Status(const Stream&, const TensorRef<const T, 2>&, const TensorRef<const T, 1>&,
                         const TensorRef<const T, 1>&, const TensorRef<T, 2>&, float);

template <class T>
using AddRmsNorm = Status(const Stream&, const TensorRef<const T, 2>&, const TensorRef<const T, 2>&,
                          const TensorRef<const T, 1>&, const TensorRef<T, 2>&,
                          const TensorRef<T, 2>&, float);
template <class T>
using AddLayerNorm = Status(const Stream&, const TensorRef<const T, 2>&,
                            const TensorRef<const T, 2>&, const TensorRef<const T, 1>&,
                            const TensorRef<const T, 1>&, const TensorRef<T, 2>&,
                            const TensorRef<T, 2>&, float);

const Registered registered_rms_norm({
    .name = "rms_norm",
    .summary =
        "y(r, c) = x(r, c) w(c) over the square root of eps + the mean of the squares of row r",
    .arguments = {"x: dtype[rows, columns]", "w: dtype[columns]", "y: dtype[rows, columns]",
                  "eps: f32"},
    .functions = {host_function<RmsNorm<float>>(rms_norm<float>),
                  host_function<RmsNorm<half>>(rms_norm<half>),
                  host_function<RmsNorm<bfloat16>>(rms_norm<bfloat16>)},
    .settings = {{.name = "dtype", .help = "element type of x, w and y"},
                 {.name = "eps", .help = "what is added under the root", .default_value = "1e-6"}},
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference = rms_norm_reference,
});

const Registered registered_layer_norm({
    .name = "layer_norm",
    .summary = "y(r, c) = (x(r, c) - mean of row r) w(c) over the square root of eps + its "
               "variance, + b(c)",
    .arguments = {"x: dtype[rows, columns]", "w: dtype[columns]", "b: dtype[columns]",
                  "y: dtype[rows, columns]", "eps: f32"},
    .functions = {host_function<LayerNorm<float>>(layer_norm<float>),
                  host_function<LayerNorm<half>>(layer_norm<half>),
                  host_function<LayerNorm<bfloat16>>(layer_norm<bfloat16>)},
    .settings = {{.name = "dtype", .help = "element type of x, w, b and y"},
                 {.name = "eps", .help = "what is added under the root", .default_value = "1e-5"}},
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference = layer_norm_reference,
});

const Registered registered_add_rms_norm({
    .name = "add_rms_norm",
    .summary = "sum = x + residual; y is the rms_norm of sum",
    .arguments = {"x: dtype[rows, columns]", "residual: dtype[rows, columns]", "w: dtype[columns]",
                  "y: dtype[rows, columns]", "sum: dtype[rows, columns]", "eps: f32"},
    .functions = {host_function<AddRmsNorm<float>>(add_rms_norm<float>),
                  host_function<AddRmsNorm<half>>(add_rms_norm<half>),
                  host_function<AddRmsNorm<bfloat16>>(add_rms_norm<bfloat16>)},
    .settings = {{.name = "dtype", .help = "element type of all matrices and w"},
                 {.name = "eps", .help = "what is added under the root", .default_value = "1e-6"}},
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference = add_rms_norm_reference,
});

const Registered registered_add_layer_norm({
    .name = "add_layer_norm",
    .summary = "sum = x + residual; y is the layer_norm of sum",
    .arguments = {"x: dtype[rows, columns]", "residual: dtype[rows, columns]", "w: dtype[columns]",
                  "b: dtype[columns]", "y: dtype[rows, columns]", "sum: dtype[rows, columns]",
                  "eps: f32"},
    .functions = {host_function<AddLayerNorm<float>>(add_layer_norm<float>),
                  host_function<AddLayerNorm<half>>(add_layer_norm<half>),
                  host_function<AddLayerNorm<bfloat16>>(add_layer_norm<bfloat16>)},
    .settings = {{.name = "dtype", .help = "element type of all matrices, w and b"},
                 {.name = "eps", .help = "what is added under the root", .default_value = "1e-5"}},
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference = add_layer_norm_reference,
});

}  // namespace
}  // namespace heddle::kernels
