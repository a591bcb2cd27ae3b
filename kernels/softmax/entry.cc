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

}  // namespace
}  // namespace heddle::kernels
