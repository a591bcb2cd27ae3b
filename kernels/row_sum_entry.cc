// row_sum as an operation.
#include <cmath>

#include "heddle/kernels/row_sum.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

using runtime::Expected;
using runtime::HostValues;

// A sum of n numbers in f32, in any order, is within n * 2^-24 of the sum of their magnitudes; the
// kernel's tree is far better, and a wrong element shows all the same.
StatusOr<std::map<std::string, Expected>> row_sum_reference(
    const Settings&, const std::map<std::string, HostValues>& inputs) {
  const HostValues& x = inputs.at("x");
  const int64_t rows = x.shape.extents[0];
  const int64_t columns = x.shape.extents[1];
  constexpr double kUnit = 1.0 / (1 << 24);
  // Sums of at most this many terms meet in one accumulator, pairs and lanes included.
  const double depth = 64 + static_cast<double>(columns) / 64;
  Expected y;
  for (int64_t row = 0; row < rows; ++row) {
    double sum = 0;
    double magnitude = 0;
    for (int64_t column = 0; column < columns; ++column) {
      const double value = x.values[row * columns + column];
      sum += value;
      magnitude += std::abs(value);
    }
    y.values.push_back(sum);
    y.tolerance.push_back(depth * kUnit * magnitude);
  }
  return std::map<std::string, Expected>{{"y", std::move(y)}};
}

template <class T>
using RowSum = Status(const Stream&, const TensorRef<const T, 2>&, const TensorRef<float, 1>&);

const Registered registered_row_sum({
    .name = "row_sum",
    .summary = "y(r) = the sum of row r of x, in f32",
    .arguments = {"x: dtype[rows, columns]", "y: f32[rows]"},
    .functions = {host_function<RowSum<float>>(row_sum), host_function<RowSum<half>>(row_sum),
                  host_function<RowSum<bfloat16>>(row_sum)},
    .settings = {{.name = "dtype", .help = "element type of x"}},
    .sizes = {{"rows", 16384}, {"columns", 16384}},
    .reference = row_sum_reference,
});

}  // namespace
}  // namespace heddle::kernels
