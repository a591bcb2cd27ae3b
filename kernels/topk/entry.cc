// topk as an operation.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "heddle/kernels/reference_internal.h"
#include "heddle/kernels/topk/topk.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

// Each row sorted, by the order that topk.h states.
Outputs topk_reference(const Settings& settings, const Tensors& tensors) {
  const runtime::HostValues& x = tensors.at("x");
  const int64_t rows = x.shape.extents[0], columns = x.shape.extents[1],
                k = tensors.at("values").shape.extents[1];
  if (k > columns) {
    return InvalidArgumentError("topk: k is more than a row's elements");
  }
  const bool greatest = settings.find("which")->second == "greatest";
  runtime::Expected values, indices;
  std::vector<int64_t> order(static_cast<size_t>(columns));
  for (int64_t r = 0; r < rows; ++r) {
    const double* const row = x.values.data() + r * columns;
    const auto above = [&](int64_t a, int64_t b) {
      return std::isnan(row[a]) ? !std::isnan(row[b]) : row[a] > row[b];
    };
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + k, order.end(), [&](int64_t a, int64_t b) {
      if (above(a, b)) return greatest;
      if (above(b, a)) return !greatest;
      return a < b;
    });
    for (int64_t i = 0; i < k; ++i) {
      values.values.push_back(row[order[static_cast<size_t>(i)]]);
      indices.values.push_back(static_cast<double>(order[static_cast<size_t>(i)]));
    }
  }
  values.tolerance.assign(values.values.size(), 0);
  indices.tolerance = values.tolerance;
  return std::map<std::string, runtime::Expected>{{"values", values}, {"indices", indices}};
}

template <class T>
using TopK = Status(const Stream&, Extreme, const TensorRef<const T, 2>&, const TensorRef<T, 2>&,
                    const TensorRef<int64_t, 2>&);

const Registered registered_topk({
    .name = "topk",
    .summary =
        "values(r, ·) = the k greatest of x(r, ·), the greatest first; indices are their columns",
    .arguments = {"which: choice", "x: dtype[rows, columns]", "values: dtype[rows, k]",
                  "indices: i64[rows, k]"},
    .functions = {host_function<TopK<float>>(topk<float>), host_function<TopK<half>>(topk<half>),
                  host_function<TopK<bfloat16>>(topk<bfloat16>),
                  host_function<TopK<int32_t>>(topk<int32_t>)},
    .settings = {{.name = "dtype", .help = "element type of x and values"},
                 {.name = "which",
                  .help = "the greatest of each row, or the least",
                  .default_value = "greatest",
                  .choices = {"greatest", "least"}},
                 {.name = "k", .help = "how many of each row, 1024 at most", .default_value = "8"}},
    .sizes = {{"rows", 8192}, {"columns", 8192}, {"k", 8}},
    .reference = topk_reference,
});

}  // namespace
}  // namespace heddle::kernels
