// histogram as an operation.
#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/numbers.h"
#include "heddle/kernels/histogram/histogram.h"
#include "heddle/kernels/reference_internal.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

double edge(const Settings& settings, const char* name) {
  double number = 0;
  (void)absl::SimpleAtod(settings.find(name)->second, &number);
  return number;
}

// Exact of integers, and of floats with the roundings that histogram.h states.
Outputs histogram_reference(const Settings& settings, const Tensors& tensors) {
  const runtime::HostValues& x = tensors.at("x");
  const int64_t bins = tensors.at("counts").shape.extents[0];
  const bool exact = !ir::is_float(x.shape.dtype);
  const auto rounded = [&](double number) { return exact ? number : static_cast<float>(number); };
  const double lower = rounded(edge(settings, "lower")), upper = rounded(edge(settings, "upper")),
               scale = rounded(static_cast<double>(bins) / (upper - lower));
  runtime::Expected counts;
  counts.values.assign(static_cast<size_t>(bins), 0);
  counts.tolerance = counts.values;
  for (const double element : x.values) {
    if (!(element >= lower && element <= upper)) continue;
    const double beyond = rounded(element - lower);
    // A difference of i32 by a number of bins fits in 64 bits.
    const auto bin =
        exact ? static_cast<int64_t>(static_cast<uint64_t>(beyond) * static_cast<uint64_t>(bins) /
                                     static_cast<uint64_t>(upper - lower))
              : static_cast<int64_t>(std::min(rounded(beyond * scale), 0x1p62));
    counts.values[static_cast<size_t>(std::min(bin, bins - 1))] += 1;
  }
  return std::map<std::string, runtime::Expected>{{"counts", counts}};
}

template <class T>
using Histogram = Status(const Stream&, const TensorRef<const T, 1>&, double, double,
                         const TensorRef<int32_t, 1>&);

const Registered registered_histogram({
    .name = "histogram",
    .summary = "counts(b) = how many elements of x lie in bin b of [lower, upper]",
    .arguments = {"x: dtype[n]", "lower: f64", "upper: f64", "counts: i32[bins]"},
    .functions = {host_function<Histogram<float>>(histogram<float>),
                  host_function<Histogram<half>>(histogram<half>),
                  host_function<Histogram<bfloat16>>(histogram<bfloat16>),
                  host_function<Histogram<int32_t>>(histogram<int32_t>),
                  host_function<Histogram<uint8_t>>(histogram<uint8_t>)},
    .settings = {{.name = "dtype", .help = "element type of x"},
                 {.name = "lower", .help = "where the first bin begins", .default_value = "0"},
                 {.name = "upper", .help = "where the last bin ends", .default_value = "1"},
                 {.name = "bins", .help = "how many bins", .default_value = "256"}},
    .sizes = {{"n", 1 << 26}, {"bins", 256}},
    .reference = histogram_reference,
});

}  // namespace
}  // namespace heddle::kernels
