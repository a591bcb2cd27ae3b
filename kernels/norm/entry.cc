// Norms as operations.
#include <cmath>

#include "heddle/kernels/norm/norm.h"
#include "heddle/kernels/norm/reference_internal.h"
#include "heddle/kernels/reference_internal.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

// And rounded.
runtime::Expected normalised(const Settings& settings, const Tensors& tensors,
                             const std::vector<double>& x, bool centred) {
  const Rounding last = rounding_of(tensors.at("y").shape.dtype);
  const std::vector<Close> all = norms(settings, tensors, x, centred);
  return elements(tensors.at("y"), [&](int64_t i) {
    const Close& one = all[static_cast<size_t>(i)];
    return last.of(one.value, one.tolerance);
  });
}
Outputs normalised(const Settings& settings, const Tensors& tensors, bool centred) {
  return std::map<std::string, runtime::Expected>{
      {"y", normalised(settings, tensors, tensors.at("x").values, centred)}};
}

// The same of the sums with a residual.
Outputs normalised_sums(const Settings& settings, const Tensors& tensors, bool centred) {
  const std::vector<double> sums = sums_of(tensors);
  return std::map<std::string, runtime::Expected>{
      {"y", normalised(settings, tensors, sums, centred)},
      {"sum", exactly(tensors.at("sum"), sums)}};
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

Outputs backward_reference(const Settings& settings, const Tensors& tensors, bool centred) {
  const NormGradients all = norm_gradients(tensors.at("x").values, tensors.at("w").values,
                                           tensors.at("dy").values, centred, real(settings, "eps"));
  const Rounding last = rounding_of(tensors.at("dx").shape.dtype);
  const auto output = [&](const char* name, const std::vector<double>& values,
                          const std::vector<double>& errors) {
    return std::pair<const std::string, runtime::Expected>(
        name, elements(tensors.at(name),
                       [&](int64_t i) { return last.of(values[i], errors[i] + 0x1p-126); }));
  };
  std::map<std::string, runtime::Expected> outputs = {output("dx", all.dx, all.dx_error),
                                                      output("dw", all.dw, all.dw_error)};
  if (centred) outputs.insert(output("db", all.db, all.db_error));
  return outputs;
}

template <class T>
using RmsNormBackward = Status(const Stream&, const TensorRef<const T, 2>&,
                               const TensorRef<const T, 1>&, const TensorRef<const T, 2>&,
                               const TensorRef<T, 2>&, const TensorRef<T, 1>&, float);
template <class T>
using LayerNormBackward = Status(const Stream&, const TensorRef<const T, 2>&,
                                 const TensorRef<const T, 1>&, const TensorRef<const T, 2>&,
                                 const TensorRef<T, 2>&, const TensorRef<T, 1>&,
                                 const TensorRef<T, 1>&, float);

const Registered registered_rms_norm_backward({
    .name = "rms_norm_backward",
    .summary = "gradients of x and w from that of y = rms_norm(x, w)",
    .arguments = {"x: dtype[rows, columns]", "w: dtype[columns]", "dy: dtype[rows, columns]",
                  "dx: dtype[rows, columns]", "dw: dtype[columns]", "eps: f32"},
    .functions = {host_function<RmsNormBackward<float>>(rms_norm_backward<float>),
                  host_function<RmsNormBackward<half>>(rms_norm_backward<half>),
                  host_function<RmsNormBackward<bfloat16>>(rms_norm_backward<bfloat16>)},
    .settings = {{.name = "dtype", .help = "element type of all tensors"},
                 {.name = "eps", .help = "what is added under the root", .default_value = "1e-6"}},
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference =
        [](const Settings& settings, const Tensors& tensors) {
          return backward_reference(settings, tensors, false);
        },
});

const Registered registered_layer_norm_backward({
    .name = "layer_norm_backward",
    .summary = "gradients of x, w and b from that of y = layer_norm(x, w, b)",
    .arguments = {"x: dtype[rows, columns]", "w: dtype[columns]", "dy: dtype[rows, columns]",
                  "dx: dtype[rows, columns]", "dw: dtype[columns]", "db: dtype[columns]",
                  "eps: f32"},
    .functions = {host_function<LayerNormBackward<float>>(layer_norm_backward<float>),
                  host_function<LayerNormBackward<half>>(layer_norm_backward<half>),
                  host_function<LayerNormBackward<bfloat16>>(layer_norm_backward<bfloat16>)},
    .settings = {{.name = "dtype", .help = "element type of all tensors"},
                 {.name = "eps", .help = "what is added under the root", .default_value = "1e-5"}},
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference = [](const Settings& settings,
                    const Tensors& tensors) { return backward_reference(settings, tensors, true); },
});

}  // namespace
}  // namespace heddle::kernels
