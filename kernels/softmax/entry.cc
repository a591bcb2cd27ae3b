// softmax and log_softmax as operations.
#include <cmath>

#include "heddle/kernels/reference_internal.h"
#include "heddle/kernels/softmax/reference_internal.h"
#include "heddle/kernels/softmax/softmax.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

template <class Element>
Outputs each_element(const Tensors& tensors, Element element) {
  const runtime::HostValues& x = tensors.at("x");
  const int64_t columns = x.shape.extents[1];
  const Rounding last = rounding_of(tensors.at("y").shape.dtype);
  SoftmaxReference row;
  return only_output(tensors, "y", [&](int64_t i) {
    if (i % columns == 0) row = SoftmaxReference(&x.values[i], columns);
    return element(x.values[i] - row.largest, row.sum, row.error, last);
  });
}

Outputs softmax_reference(const Settings&, const Tensors& tensors) {
  return each_element(tensors, [](double d, double sum, double error, const Rounding& last) {
    const double y = std::exp(d) / sum;
    return last.of(y, y * (weight_error(d) + error + 4 * kRounding) + 0x1p-126);
  });
}

Outputs log_softmax_reference(const Settings&, const Tensors& tensors) {
  return each_element(tensors, [](double d, double sum, double error, const Rounding& last) {
    const double y = d - std::log(sum);
    return last.of(y, error + (std::abs(d) + 4 * std::log(sum) + std::abs(y)) * 2 * kRounding);
  });
}

template <class T>
using OfRows = Status(const Stream&, const TensorRef<const T, 2>&, const TensorRef<T, 2>&);

OperationSpec of_rows(const char* name, const char* summary, std::vector<HostFunction> functions,
                      Outputs (*reference)(const Settings&, const Tensors&)) {
  return {.name = name,
          .summary = summary,
          .arguments = {"x: dtype[rows, columns]", "y: dtype[rows, columns]"},
          .functions = std::move(functions),
          .settings = {{.name = "dtype", .help = "element type of x and y"}},
          .sizes = {{"rows", 8192}, {"columns", 8192}},
          .reference = reference};
}

const Registered registered_softmax(of_rows("softmax",
                                            "y(r, c) = exp(x(r, c)) over the sum of those of row r",
                                            {host_function<OfRows<float>>(softmax<float>),
                                             host_function<OfRows<half>>(softmax<half>),
                                             host_function<OfRows<bfloat16>>(softmax<bfloat16>)},
                                            softmax_reference));
const Registered registered_log_softmax(
    of_rows("log_softmax", "y(r, c) = x(r, c) - the logarithm of the sum of exp(x(r, ·))",
            {host_function<OfRows<float>>(log_softmax<float>),
             host_function<OfRows<half>>(log_softmax<half>),
             host_function<OfRows<bfloat16>>(log_softmax<bfloat16>)},
            log_softmax_reference));

// dx from rows of y and dy: of(y, dy, Σ of the row) and how far off it may be, the sum being by weight(y) of dy.
template <class Weight, class Of>
Outputs backward_reference(const Tensors& tensors, Weight weight, Of of) {
  const runtime::HostValues &y = tensors.at("y"), &dy = tensors.at("dy");
  const int64_t columns = y.shape.extents[1];
  const Rounding last = rounding_of(tensors.at("dx").shape.dtype);
  double sum = 0, error = 0;
  return only_output(tensors, "dx", [&, last, columns](int64_t i) {
    if (i % columns == 0) {
      double terms = 0;
      sum = 0;
      for (int64_t c = i; c < i + columns; ++c) {
        const double term = weight(y.values[c]) * dy.values[c];
        sum += term, terms += std::abs(term);
      }
      // Each term is rounded, and added up within a thread, a warp, a block, a cluster and the parts of long rows.
      error = terms * (64 + static_cast<double>(columns) / 32768) * kRounding;
    }
    return of(y.values[i], dy.values[i], sum, error, last);
  });
}

Outputs softmax_backward_reference(const Settings&, const Tensors& tensors) {
  return backward_reference(
      tensors, [](double y) { return y; },
      [](double y, double dy, double sum, double error, const Rounding& last) {
        const double dx = y * (dy - sum);
        return last.of(
            dx, std::abs(y) * (error + 4 * kRounding * (std::abs(dy) + std::abs(sum))) + 0x1p-126);
      });
}

Outputs log_softmax_backward_reference(const Settings&, const Tensors& tensors) {
  return backward_reference(
      tensors, [](double) { return 1; },
      [](double y, double dy, double sum, double error, const Rounding& last) {
        const double weight = std::exp(y);
        return last.of(dy - weight * sum,
                       weight * (error + std::abs(sum) * weight_error(y)) +
                           4 * kRounding * (std::abs(dy) + std::abs(weight * sum)) + 0x1p-126);
      });
}

template <class T>
using OfTwo = Status(const Stream&, const TensorRef<const T, 2>&, const TensorRef<const T, 2>&,
                     const TensorRef<T, 2>&);

OperationSpec backward(const char* name, const char* summary, std::vector<HostFunction> functions,
                       Outputs (*reference)(const Settings&, const Tensors&)) {
  return {.name = name,
          .summary = summary,
          .arguments = {"y: dtype[rows, columns]", "dy: dtype[rows, columns]",
                        "dx: dtype[rows, columns]"},
          .functions = std::move(functions),
          .settings = {{.name = "dtype", .help = "element type of y, dy and dx"}},
          .sizes = {{"rows", 8192}, {"columns", 8192}},
          .reference = reference};
}

const Registered registered_softmax_backward(
    backward("softmax_backward", "dx(r, c) = y(r, c) (dy(r, c) - the sum of y(r, ·) dy(r, ·))",
             {host_function<OfTwo<float>>(softmax_backward<float>),
              host_function<OfTwo<half>>(softmax_backward<half>),
              host_function<OfTwo<bfloat16>>(softmax_backward<bfloat16>)},
             softmax_backward_reference));
const Registered registered_log_softmax_backward(
    backward("log_softmax_backward", "dx(r, c) = dy(r, c) - exp(y(r, c)) times the sum of dy(r, ·)",
             {host_function<OfTwo<float>>(log_softmax_backward<float>),
              host_function<OfTwo<half>>(log_softmax_backward<half>),
              host_function<OfTwo<bfloat16>>(log_softmax_backward<bfloat16>)},
             log_softmax_backward_reference));

}  // namespace
}  // namespace heddle::kernels
