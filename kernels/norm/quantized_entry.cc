// Norms in 8 bits as operations.
#include <algorithm>
#include <cmath>

#include "heddle/kernels/norm/quantized.h"
#include "heddle/kernels/norm/reference_internal.h"
#include "heddle/kernels/reference_internal.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

// Norms in 8 bits, and what they count by: the greatest of a row over 448.
std::map<std::string, runtime::Expected> quantised(const Settings& settings, const Tensors& tensors,
                                                   const std::vector<double>& x, bool centred) {
  const std::vector<Close> all = norms(settings, tensors, x, centred);
  const size_t columns = tensors.at("w").values.size();
  // By which a row is divided, and how far off it may be, relatively.
  const auto scale_of = [&](size_t row) {
    double peak = 0x1p-100, error = 0;
    for (size_t i = row * columns; i < (row + 1) * columns; ++i) {
      const double magnitude = std::abs(all[i].value);
      if (magnitude + all[i].tolerance >= peak) error = std::max(error, all[i].tolerance);
      peak = std::max(peak, magnitude);
    }
    return Close{peak / 448, error / peak + 4 * kRounding};
  };
  Close scale;
  return {
      {"y",
       elements(tensors.at("y"),
                [&](int64_t place) {
                  const auto i = static_cast<size_t>(place);
                  if (i % columns == 0) scale = scale_of(i / columns);
                  const double y = all[i].value / scale.value;
                  const double off = all[i].tolerance / scale.value + std::abs(y) * scale.tolerance;
                  const Rounding e4m3 = rounding_of(ir::Scalar::kE4M3);
                  return Close{y, off + std::max((std::abs(y) + off) * e4m3.relative, e4m3.least)};
                })},
      {"scales", elements(tensors.at("scales"), [&](int64_t row) {
         if (columns == 0) return Close{0, HUGE_VAL};  // not written
         const Close exact = scale_of(static_cast<size_t>(row));
         return Close{exact.value, exact.value * exact.tolerance};
       })}};
}

Outputs rms_norm_quantized_reference(const Settings& settings, const Tensors& tensors) {
  return quantised(settings, tensors, tensors.at("x").values, false);
}
Outputs layer_norm_quantized_reference(const Settings& settings, const Tensors& tensors) {
  return quantised(settings, tensors, tensors.at("x").values, true);
}
Outputs add_rms_norm_quantized_reference(const Settings& settings, const Tensors& tensors) {
  const std::vector<double> sums = sums_of(tensors);
  auto outputs = quantised(settings, tensors, sums, false);
  outputs.emplace("sum", exactly(tensors.at("sum"), sums));
  return outputs;
}

template <class T>
using RmsNormQuantized = Status(const Stream&, const TensorRef<const T, 2>&,
                                const TensorRef<const T, 1>&, const TensorRef<float8_e4m3, 2>&,
                                const TensorRef<float, 1>&, float);
template <class T>
using LayerNormQuantized = Status(const Stream&, const TensorRef<const T, 2>&,
                                  const TensorRef<const T, 1>&, const TensorRef<const T, 1>&,
                                  const TensorRef<float8_e4m3, 2>&, const TensorRef<float, 1>&,
                                  float);
template <class T>
using AddRmsNormQuantized = Status(const Stream&, const TensorRef<const T, 2>&,
                                   const TensorRef<const T, 2>&, const TensorRef<const T, 1>&,
                                   const TensorRef<float8_e4m3, 2>&, const TensorRef<float, 1>&,
                                   const TensorRef<T, 2>&, float);

const Registered registered_rms_norm_quantized({
    .name = "rms_norm_quantized",
    .summary = "y scales(r) = the rms_norm of x; scales(r) = the greatest magnitude of row r / 448",
    .arguments = {"x: dtype[rows, columns]", "w: dtype[columns]", "y: e4m3[rows, columns]",
                  "scales: f32[rows]", "eps: f32"},
    .functions = {host_function<RmsNormQuantized<float>>(rms_norm_quantized<float>),
                  host_function<RmsNormQuantized<half>>(rms_norm_quantized<half>),
                  host_function<RmsNormQuantized<bfloat16>>(rms_norm_quantized<bfloat16>)},
    .settings = {{.name = "dtype", .help = "element type of x and w"},
                 {.name = "eps", .help = "what is added under the root", .default_value = "1e-6"}},
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference = rms_norm_quantized_reference,
});

const Registered registered_layer_norm_quantized({
    .name = "layer_norm_quantized",
    .summary =
        "y scales(r) = the layer_norm of x; scales(r) = the greatest magnitude of row r / 448",
    .arguments = {"x: dtype[rows, columns]", "w: dtype[columns]", "b: dtype[columns]",
                  "y: e4m3[rows, columns]", "scales: f32[rows]", "eps: f32"},
    .functions = {host_function<LayerNormQuantized<float>>(layer_norm_quantized<float>),
                  host_function<LayerNormQuantized<half>>(layer_norm_quantized<half>),
                  host_function<LayerNormQuantized<bfloat16>>(layer_norm_quantized<bfloat16>)},
    .settings = {{.name = "dtype", .help = "element type of x, w and b"},
                 {.name = "eps", .help = "what is added under the root", .default_value = "1e-5"}},
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference = layer_norm_quantized_reference,
});

const Registered registered_add_rms_norm_quantized({
    .name = "add_rms_norm_quantized",
    .summary = "sum = x + residual; y and scales are the rms_norm_quantized of sum",
    .arguments = {"x: dtype[rows, columns]", "residual: dtype[rows, columns]", "w: dtype[columns]",
                  "y: e4m3[rows, columns]", "scales: f32[rows]", "sum: dtype[rows, columns]",
                  "eps: f32"},
    .functions = {host_function<AddRmsNormQuantized<float>>(add_rms_norm_quantized<float>),
                  host_function<AddRmsNormQuantized<half>>(add_rms_norm_quantized<half>),
                  host_function<AddRmsNormQuantized<bfloat16>>(add_rms_norm_quantized<bfloat16>)},
    .settings = {{.name = "dtype", .help = "element type of x, residual, sum and w"},
                 {.name = "eps", .help = "what is added under the root", .default_value = "1e-6"}},
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference = add_rms_norm_quantized_reference,
});

}  // namespace
}  // namespace heddle::kernels
