#include "heddle/tools/command/check.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "heddle/ir/wording.h"
#include "heddle/tools/elements.h"

namespace heddle::tools {
namespace {

double error_of(double actual, double expected) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return 0;
  const double error = std::abs(actual - expected);
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
}

// "y[3, 17]"
std::string element_name(absl::string_view name, const runtime::TensorShape& shape, size_t at) {
  std::vector<size_t> coordinates(shape.extents.size());
  for (size_t mode = shape.extents.size(); mode-- > 0;) {
    const auto extent = static_cast<size_t>(shape.extents[mode]);
    coordinates[mode] = at % extent;
    at /= extent;
  }
  return absl::StrCat(name, "[", absl::StrJoin(coordinates, ", "), "]");
}

}  // namespace

Comparison compare(absl::Span<const double> actual, const runtime::Expected& expected) {
  Comparison result;
  result.count = actual.size();
  for (size_t i = 0; i < actual.size(); ++i) {
    const double error = error_of(actual[i], expected.values[i]);
    if (error > result.max_error) {
      result.max_error = error;
      result.max_error_at = i;
    }
    // A NaN as tolerance allows no difference.
    if (error == 0 || error <= expected.tolerance[i]) continue;
    ++result.wrong;
    if (!result.first_wrong) result.first_wrong = i;
  }
  return result;
}

std::string describe(const Comparison& comparison, absl::string_view name,
                     const runtime::TensorShape& shape, absl::Span<const double> actual,
                     const runtime::Expected& expected) {
  const std::string largest =
      comparison.max_error == 0
          ? "max error 0"
          : absl::StrFormat("max error %.3g at %s", comparison.max_error,
                            element_name(name, shape, comparison.max_error_at));
  if (!comparison.first_wrong) {
    return absl::StrCat(name, ": all ",
                        ir::counted(static_cast<int64_t>(comparison.count), "element"), " right, ",
                        largest);
  }
  const size_t i = *comparison.first_wrong;
  return absl::StrFormat(
      "%s: %d of %s wrong, %s; the first is %s = %.9g, which should be %.9g ± %.3g", name,
      comparison.wrong, ir::counted(static_cast<int64_t>(comparison.count), "element"), largest,
      element_name(name, shape, i), actual[i], expected.values[i], expected.tolerance[i]);
}

StatusOr<Verdict> check_results(const ChosenKernel& kernel, const HostArrays& inputs,
                                const HostArrays& outputs) {
  std::map<std::string, runtime::HostValues> values;
  for (const auto& [name, array] : outputs) values[name].shape = array.shape;
  for (const auto& [name, array] : inputs) {
    values[name] = {array.shape, to_doubles(array.shape.dtype, array.bytes())};
  }
  const StatusOr<std::map<std::string, runtime::Expected>> expected =
      kernel.operation->spec().reference(kernel.settings, values);
  if (!expected.ok()) return expected.status();
  Verdict verdict;
  for (const auto& [name, reference] : *expected) {
    const auto output = outputs.find(name);
    const size_t count = reference.values.size();
    if (output == outputs.end() || reference.tolerance.size() != count) {
      return InternalError(absl::StrCat("the reference of kernel '", kernel.operation->name(),
                                        "' speaks of '", name,
                                        "' in a way that does not fit its outputs"));
    }
    const HostArray& array = output->second;
    const std::vector<double> actual = to_doubles(array.shape.dtype, array.bytes());
    if (actual.size() != count) {
      return InternalError(absl::StrCat("the reference of kernel '", kernel.operation->name(),
                                        "' has ",
                                        ir::counted(static_cast<int64_t>(count), "element"),
                                        " for '", name, "', which has ", actual.size()));
    }
    const Comparison comparison = compare(actual, reference);
    absl::StrAppend(&verdict.text, describe(comparison, name, array.shape, actual, reference),
                    "\n");
    verdict.right = verdict.right && comparison.wrong == 0;
  }
  return verdict;
}

}  // namespace heddle::tools
