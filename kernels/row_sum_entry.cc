// row_sum for the heddle command.
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "heddle/kernels/dispatch.h"
#include "heddle/kernels/row_sum.h"
#include "heddle/runtime/registry.h"

namespace heddle::kernels {
namespace {

using runtime::Expected;
using runtime::HostValues;
using runtime::Setting;

absl::StatusOr<ir::Scalar> dtype_of(const Settings& settings) {
  const std::string& name = settings.at("dtype");
  const std::optional<ir::Scalar> dtype = ir::scalar_from_name(name);
  if (!dtype) return absl::InvalidArgumentError(absl::StrCat("unknown element type '", name, "'"));
  return *dtype;
}

absl::StatusOr<const ir::KernelSource*> source_for(ir::Scalar dtype) {
  return dispatch<float, half, bfloat16>(
      dtype, [](auto tag) -> absl::StatusOr<const ir::KernelSource*> {
        return &row_sum_kernel<typename decltype(tag)::type>().source();
      });
}

// For matrices of long rows, contiguous and aligned as the kernel likes them.
absl::StatusOr<Variant> row_sum_variant(const Settings& settings) {
  const absl::StatusOr<ir::Scalar> dtype = dtype_of(settings);
  if (!dtype.ok()) return dtype.status();
  const absl::StatusOr<const ir::KernelSource*> source = source_for(*dtype);
  if (!source.ok()) return source.status();
  constexpr int64_t kTypicalColumns = 16384;
  CompileOptions options;
  options.block = row_sum_shape(kTypicalColumns, kTypicalColumns, ir::bytes_of(*dtype)).block;
  return Variant{
      .source = *source,
      .signature = {tensor({kAny, kAny}).aligned(16).strides_divisible_by(16), tensor({kAny})},
      .options = options};
}

absl::StatusOr<LaunchPlan> row_sum_plan(const Settings& settings,
                                        const std::map<std::string, TensorShape>& inputs) {
  const absl::StatusOr<ir::Scalar> dtype = dtype_of(settings);
  if (!dtype.ok()) return dtype.status();
  const absl::StatusOr<const ir::KernelSource*> source = source_for(*dtype);
  if (!source.ok()) return source.status();
  const auto x = inputs.find("x");
  if (x == inputs.end()) return absl::InvalidArgumentError("row_sum needs its input x");
  if (x->second.extents.size() != 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        "row_sum's input x is a matrix, of rank 2; this one has rank ", x->second.extents.size()));
  }
  if (x->second.dtype != *dtype) {
    return absl::InvalidArgumentError(absl::StrCat("row_sum's input x holds ",
                                                   ir::info(x->second.dtype).name, " and dtype is ",
                                                   ir::info(*dtype).name));
  }
  const int64_t rows = x->second.extents[0];
  const LaunchShape shape = row_sum_shape(rows, x->second.extents[1], ir::bytes_of(*dtype));
  LaunchPlan plan;
  plan.source = *source;
  plan.parameters = {{.name = "x", .shape = x->second},
                     {.name = "y", .output = true, .shape = {ir::Scalar::kF32, {rows}}}};
  plan.config.grid = shape.grid;
  plan.config.block = shape.block;
  return plan;
}

// A sum of n numbers in f32, in any order, is within n * 2^-24 of the sum of their magnitudes; the
// kernel's tree is far better, and a wrong element shows all the same.
absl::StatusOr<std::map<std::string, Expected>> row_sum_reference(
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

const Registered registered_row_sum({.name = "row_sum",
                                     .summary = "y(r) = the sum of row r of x, in f32",
                                     .settings = {Setting{.name = "dtype",
                                                          .help = "element type of x",
                                                          .default_value = "f32",
                                                          .choices = {"f32", "f16", "bf16"}}},
                                     .variant = row_sum_variant,
                                     .plan = row_sum_plan,
                                     .reference = row_sum_reference});

}  // namespace
}  // namespace heddle::kernels
