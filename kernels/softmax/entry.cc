// softmax and log_softmax as operations.
#include <algorithm>
#include <cmath>

#include "heddle/kernels/reference_internal.h"
#include "heddle/kernels/softmax/softmax.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

// What is subtracted from the elements of a row before the exponential, and the sum of these.
struct RowSum {
  double largest = -HUGE_VAL, sum = 0;
};
RowSum sum_of(const double* row, int64_t columns) {
  RowSum all;
  for (int64_t c = 0; c < columns; ++c) all.largest = std::max(all.largest, row[c]);
  for (int64_t c = 0; c < columns; ++c) all.sum += std::exp(row[c] - all.largest);
  return all;
}

// How far a weight e^d, d ≤ 0, may be from the exact one, relatively: the difference is rounded, then multiplied
// by log2(e) and rounded, and what computes 2^x is within 2 ulps; a sum of weights that each are so far
// from theirs is no farther, but for its roundings.
double weight_error(double d) { return (4 + 2.5 * std::abs(d)) * 2 * kRounding; }
// Roundings of a sum on the way of each term: within a thread, a warp, a block and a cluster, and in the parts of
// long rows; between them sums are multiplied by weights.
double sum_roundings(int64_t columns) { return 64 + static_cast<double>(columns) / 32768; }

template <class Element>
Outputs each_element(const Tensors& tensors, Element element) {
  const runtime::HostValues& x = tensors.at("x");
  const int64_t columns = x.shape.extents[1];
  const Rounding last = rounding_of(tensors.at("y").shape.dtype);
  RowSum all;
  // The weights that make up a sum lie near 1, or count for little.
  double error = 0;
  return only_output(tensors, "y", [&](int64_t i) {
    if (i % columns == 0) {
      const double* row = &x.values[i];
      all = sum_of(row, columns);
      error = 0;
      for (int64_t c = 0; c < columns; ++c) {
        const double d = row[c] - all.largest;
        if (std::exp(d) > 0) error += std::exp(d) * weight_error(d);
      }
      error = error / all.sum + sum_roundings(columns) * kRounding;
    }
    return element(x.values[i] - all.largest, all.sum, error, last);
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
