// sort and sort_pairs as operations.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include "heddle/kernels/reference_internal.h"
#include "heddle/kernels/sort/sort.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

// Where sorted keys stood, by the order that sort.h states. An error for integers that a double does not tell apart.
StatusOr<std::vector<int64_t>> sorted_places(const Settings& settings,
                                             const runtime::HostValues& from) {
  const std::vector<double>& keys = from.values;
  const auto is_wide = [](double key) { return std::abs(key) > 0x1p53; };
  if (from.shape.dtype == ir::Scalar::kI64 && std::any_of(keys.begin(), keys.end(), is_wide)) {
    return InvalidArgumentError("keys of more than 53 bits cannot be checked; fix: smaller ones");
  }
  const bool ascending = settings.find("order")->second == "ascending";
  const auto less = [](double a, double b) { return !std::isnan(a) && (std::isnan(b) || a < b); };
  std::vector<int64_t> places(keys.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
    const double one = keys[static_cast<size_t>(a)], other = keys[static_cast<size_t>(b)];
    return ascending ? less(one, other) : less(other, one);
  });
  return places;
}
runtime::Expected at_places(const std::vector<int64_t>& places, const std::vector<double>& values) {
  runtime::Expected moved;
  for (const int64_t place : places) moved.values.push_back(values[static_cast<size_t>(place)]);
  moved.tolerance.assign(places.size(), 0);
  return moved;
}

Outputs sort_reference(const Settings& settings, const Tensors& tensors) {
  const runtime::HostValues& x = tensors.at("x");
  const StatusOr<std::vector<int64_t>> places = sorted_places(settings, x);
  if (!places.ok()) return places.status();
  return std::map<std::string, runtime::Expected>{{"y", at_places(*places, x.values)}};
}
Outputs sort_pairs_reference(const Settings& settings, const Tensors& tensors) {
  const runtime::HostValues& keys = tensors.at("keys");
  const StatusOr<std::vector<int64_t>> places = sorted_places(settings, keys);
  if (!places.ok()) return places.status();
  return std::map<std::string, runtime::Expected>{
      {"sorted_keys", at_places(*places, keys.values)},
      {"sorted_values", at_places(*places, tensors.at("values").values)}};
}

template <class T>
using Sort = Status(const Stream&, Order, const TensorRef<const T, 1>&, const TensorRef<T, 1>&);
template <class T, class V>
using SortPairs = Status(const Stream&, Order, const TensorRef<const T, 1>&,
                         const TensorRef<const V, 1>&, const TensorRef<T, 1>&,
                         const TensorRef<V, 1>&);

// Of each type, and of pairs with each type of values.
template <class... T>
std::vector<runtime::HostFunction> sorts() {
  return {host_function<Sort<T>>(sort<T>)...};
}
template <class V, class... T>
void add_pairs(std::vector<runtime::HostFunction>& all) {
  (all.push_back(host_function<SortPairs<T, V>>(sort_pairs<T, V>)), ...);
}
template <class... V>
std::vector<runtime::HostFunction> sorts_of_pairs() {
  std::vector<runtime::HostFunction> all;
  (add_pairs<V, float, half, bfloat16, int32_t, uint32_t, int64_t>(all), ...);
  return all;
}

const runtime::Setting kOrder = {.name = "order",
                                 .help = "which comes first: the least, or the greatest",
                                 .default_value = "ascending",
                                 .choices = {"ascending", "descending"}};

const Registered registered_sort({
    .name = "sort",
    .summary = "y = the elements of x in order; equal ones keep theirs",
    .arguments = {"order: choice", "x: dtype[n]", "y: dtype[n]"},
    .functions = sorts<float, half, bfloat16, int32_t, uint32_t, int64_t>(),
    .settings = {{.name = "dtype", .help = "element type of x and y"}, kOrder},
    .sizes = {{"n", 1 << 26}},
    .reference = sort_reference,
});

const Registered registered_sort_pairs({
    .name = "sort_pairs",
    .summary = "keys in order, and values that go with them; equal keys keep their order",
    .arguments = {"order: choice", "keys: dtype[n]", "values: value[n]", "sorted_keys: dtype[n]",
                  "sorted_values: value[n]"},
    .functions = sorts_of_pairs<int32_t, float, int64_t>(),
    .settings = {{.name = "dtype", .help = "element type of the keys"},
                 {.name = "value", .help = "element type of the values"},
                 kOrder},
    .sizes = {{"n", 1 << 26}},
    .reference = sort_pairs_reference,
});

}  // namespace
}  // namespace heddle::kernels
