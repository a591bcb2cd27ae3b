// Copies and elementwise operations as operations.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "heddle/kernels/map/copy.h"
#include "heddle/kernels/map/elementwise.h"
#include "heddle/kernels/reference_internal.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

using Functions = std::vector<HostFunction>;

// A function for each element type; Of<T>::run is it.
template <template <class> class Of, class... T>
Functions functions() {
  return {host_function<std::remove_pointer_t<decltype(&Of<T>::run)>>(Of<T>::run)...};
}

// An operation of matrices.
OperationSpec of_matrices(const char* name, const char* summary, std::vector<std::string> arguments,
                          Functions functions, std::vector<runtime::Setting> settings,
                          std::function<Outputs(const Tensors&)> reference) {
  return {.name = name,
          .summary = summary,
          .arguments = std::move(arguments),
          .functions = std::move(functions),
          .settings = std::move(settings),
          .sizes = {{"rows", 8192}, {"columns", 8192}},
          .reference = [of = std::move(reference)](const Settings&, const Tensors& tensors) {
            return of(tensors);
          }};
}
const std::vector<runtime::Setting> kDtype = {{.name = "dtype", .help = "element type"}};

// --- copies ---

template <class T>
struct Copy {
  static Status run(const Stream& stream, const TensorRef<const T, 2>& x,
                    const TensorRef<T, 2>& y) {
    return copy(stream, x, y);
  }
};
template <class T>
struct Transpose {
  static Status run(const Stream& stream, const TensorRef<const T, 2>& x,
                    const TensorRef<T, 2>& y) {
    return copy(stream, permuted(x, {1, 0}), y);
  }
};
template <class From>
struct CastFrom {
  template <class To>
  struct Into {
    static Status run(const Stream& stream, const TensorRef<const From, 2>& x,
                      const TensorRef<To, 2>& y) {
      return cast(stream, x, y);
    }
  };
};

Outputs copy_reference(const Tensors& tensors) {
  const std::vector<double>& x = tensors.at("x").values;
  return only_output(tensors, "y", [&](int64_t i) { return Close{x[i]}; });
}
Outputs transpose_reference(const Tensors& tensors) {
  const runtime::HostValues& x = tensors.at("x");
  const int64_t rows = x.shape.extents[0], columns = x.shape.extents[1];
  return only_output(tensors, "y",
                     [&](int64_t i) { return Close{x.values[i % rows * columns + i / rows]}; });
}
// A float as an integer between two: cut off; a NaN is 0.
Close cut_off(double x, double lowest, double largest) {
  return {std::isnan(x) ? 0 : std::clamp(std::trunc(x), lowest, largest)};
}
Outputs cast_reference(const Tensors& tensors) {
  const std::vector<double>& x = tensors.at("x").values;
  const ir::Scalar to = tensors.at("y").shape.dtype;
  return only_output(tensors, "y", [&](int64_t i) {
    if (to == ir::Scalar::kI32) return cut_off(x[i], -0x1p31, 0x1p31 - 1);
    if (to == ir::Scalar::kU8) return cut_off(x[i], 0, 255);
    return rounding_of(to).of(x[i], 0);
  });
}

const Registered registered_copy(of_matrices("copy", "y(r, c) = x(r, c), bit by bit",
                                             {"x: dtype[rows, columns]", "y: dtype[rows, columns]"},
                                             functions<Copy, float, half, bfloat16, uint8_t>(),
                                             kDtype, copy_reference));
const Registered registered_transpose(of_matrices(
    "transpose", "y(c, r) = x(r, c), bit by bit",
    {"x: dtype[rows, columns]", "y: dtype[columns, rows]"},
    functions<Transpose, float, half, bfloat16, uint8_t>(), kDtype, transpose_reference));

Functions casts() {
  Functions all = functions<CastFrom<float>::Into, half, bfloat16, float8_e4m3, int32_t, uint8_t>();
  for (const Functions& more :
       {functions<CastFrom<half>::Into, float, bfloat16, float8_e4m3>(),
        functions<CastFrom<bfloat16>::Into, float, half, float8_e4m3>(),
        functions<CastFrom<float8_e4m3>::Into, float, half, bfloat16>(),
        functions<CastFrom<int32_t>::Into, float>(), functions<CastFrom<uint8_t>::Into, float>()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}
const Registered registered_cast(of_matrices(
    "cast", "y(r, c) = x(r, c), rounded to the nearest float, or cut off to an integer",
    {"x: dtype[rows, columns]", "y: to[rows, columns]"}, casts(),
    {{.name = "dtype", .help = "element type of x"}, {.name = "to", .help = "element type of y"}},
    cast_reference));

// --- functions of elements ---

// An exact result, and how far off f32 may be before it is rounded to the output's type.
struct Exact {
  double value, error;
};
Exact rounded(double value) { return {value, std::abs(value) * kRounding}; }

// y = kMap(x) or kMap(a, b).
template <const auto& kMap>
struct Mapped {
  template <class T>
  struct Of {
    static Status run(const Stream& stream, const TensorRef<const T, 2>& x,
                      const TensorRef<T, 2>& y) {
      return kMap(stream, x, y);
    }
  };
  template <class T>
  struct OfBoth {
    static Status run(const Stream& stream, const TensorRef<const T, 2>& a,
                      const TensorRef<const T, 2>& b, const TensorRef<T, 2>& y) {
      return kMap(stream, a, b, y);
    }
  };
};
template <class T>
struct Gelu {
  static Status run(const Stream& stream, const TensorRef<const T, 2>& x,
                    const TensorRef<T, 2>& y) {
    return gelu(stream, x, y);
  }
};

OperationSpec of_one(const char* name, const char* summary, Functions functions,
                     Exact (*exact)(double x, bool narrow)) {
  return of_matrices(name, summary, {"x: dtype[rows, columns]", "y: dtype[rows, columns]"},
                     std::move(functions), kDtype, [exact](const Tensors& tensors) {
                       const std::vector<double>& x = tensors.at("x").values;
                       const ir::Scalar scalar = tensors.at("y").shape.dtype;
                       return only_output(tensors, "y", [&](int64_t i) {
                         const Exact y = exact(x[i], scalar != ir::Scalar::kF32);
                         return rounding_of(scalar).of(y.value, y.error);
                       });
                     });
}
OperationSpec of_both(const char* name, const char* summary, const char* a, const char* b,
                      const char* output, Functions functions, Exact (*exact)(double a, double b)) {
  const std::string extents = ": dtype[rows, columns]";
  return of_matrices(name, summary, {a + extents, b + extents, output + extents},
                     std::move(functions), kDtype, [a, b, output, exact](const Tensors& tensors) {
                       const std::vector<double>&first = tensors.at(a).values,
                             &second = tensors.at(b).values;
                       const Rounding last = rounding_of(tensors.at(output).shape.dtype);
                       return only_output(tensors, output, [&](int64_t i) {
                         const Exact y = exact(first[i], second[i]);
                         return last.of(y.value, y.error);
                       });
                     });
}

// exp is off by roundings of its argument too, and what is subnormal on the way becomes 0.
Exact exact_silu(double x) {
  const double y = x / (1 + std::exp(-x));
  return {y, std::abs(y) * (8 + 2 * std::abs(x)) * kRounding + std::abs(x) * 0x1p-125};
}
// 1 + erf(x / sqrt(2)) has some roundings of numbers up to 2; the narrow form is off relatively.
Exact exact_gelu(double x, bool narrow) {
  const double y = x / 2 * std::erfc(-x * M_SQRT1_2);
  return {y,
          std::abs(x) * (narrow ? 0x1p-27 : 4 * kRounding) + (narrow ? std::abs(y) * 0x1p-12 : 0)};
}

template <const auto& kMap>
Functions functions_of_one() {
  return functions<Mapped<kMap>::template Of, float, half, bfloat16>();
}
template <const auto& kMap>
Functions functions_of_both() {
  return functions<Mapped<kMap>::template OfBoth, float, half, bfloat16>();
}

const Registered registered_relu(of_one("relu", "y = x, or 0 where x is negative",
                                        functions_of_one<relu>(), [](double x, bool) {
                                          return Exact{x < 0 ? 0 : x, 0};
                                        }));
const Registered registered_silu(of_one("silu", "y = x / (1 + exp(-x))", functions_of_one<silu>(),
                                        [](double x, bool) { return exact_silu(x); }));
const Registered registered_gelu(of_one("gelu", "y = x times the normal distribution function of x",
                                        functions<Gelu, float, half, bfloat16>(), exact_gelu));
const Registered registered_add(of_both("add", "y = a + b", "a", "b", "y", functions_of_both<add>(),
                                        [](double a, double b) { return rounded(a + b); }));
const Registered registered_multiply(of_both("multiply", "y = a b", "a", "b", "y",
                                             functions_of_both<multiply>(), [](double a, double b) {
                                               return Exact{a * b, rounded(a * b).error + 0x1p-149};
                                             }));
const Registered registered_swiglu(
    of_both("swiglu", "y = silu(gate) up", "gate", "up", "y", functions_of_both<swiglu>(),
            [](double gate, double up) {
              const Exact half_way = exact_silu(gate);
              const double y = half_way.value * up;
              return Exact{y, half_way.error * std::abs(up) + rounded(y).error + 0x1p-149};
            }));

// --- their gradients ---

// The logistic function is off as the exponential is, as far as that matters, and by some roundings; the difference of 1 and it
// by a rounding of 1 more.
Exact exact_silu_backward(double x, double dy) {
  const double logistic = 1 / (1 + std::exp(-x)), rest = 1 / (1 + std::exp(x));
  const double derivative = logistic * (1 + x * rest);
  const double relative = ((8 + 2 * std::abs(x)) * rest + 3) * kRounding;
  const double error =
      logistic * (std::abs(x) * (logistic * relative + kRounding) + 3 * kRounding) +
      std::abs(derivative) * (relative + 3 * kRounding) + std::abs(x) * 0x1p-125;
  return {dy * derivative, std::abs(dy) * error + 0x1p-149};
}
// The distribution is off as in exact_gelu; the exponential by roundings of its argument, too.
Exact exact_gelu_backward(double x, double dy) {
  const double density = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
  const double derivative = std::erfc(-x * M_SQRT1_2) / 2 + x * density;
  const double error = 6 * kRounding + std::abs(x) * density * (8 + 2 * x * x) * kRounding +
                       std::abs(derivative) * 2 * kRounding + std::abs(x) * 0x1p-125;
  return {dy * derivative, std::abs(dy) * error + 0x1p-149};
}

const Registered registered_relu_backward(of_both("relu_backward",
                                                  "dx = dy, or 0 where x is not positive", "x",
                                                  "dy", "dx", functions_of_both<relu_backward>(),
                                                  [](double x, double dy) {
                                                    return Exact{x <= 0 ? 0 : dy, 0};
                                                  }));
const Registered registered_silu_backward(of_both("silu_backward", "dx of dy, where y = silu(x)",
                                                  "x", "dy", "dx",
                                                  functions_of_both<silu_backward>(),
                                                  exact_silu_backward));
const Registered registered_gelu_backward(of_both("gelu_backward", "dx of dy, where y = gelu(x)",
                                                  "x", "dy", "dx",
                                                  functions_of_both<gelu_backward>(),
                                                  exact_gelu_backward));

}  // namespace
}  // namespace heddle::kernels
