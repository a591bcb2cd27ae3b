// reduce as an operation.
#include <algorithm>

#include "heddle/kernels/reduce/reference_internal.h"
#include "heddle/kernels/reduce/rows_deal_internal.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

const std::vector<std::string>& modes() {
  static const auto& names = *new std::vector<std::string>{"last", "first", "all"};
  return names;
}
// The place of a setting's value among its choices.
template <class E>
E chosen(const Settings& settings, const char* name, const std::vector<std::string>& choices) {
  const auto found = std::find(choices.begin(), choices.end(), settings.find(name)->second);
  return static_cast<E>(found - choices.begin());
}

Outputs reduce_reference(const Settings& settings, const Tensors& tensors) {
  const auto reduction = chosen<Reduction>(settings, "op", reduction_names());
  const auto along = chosen<Along>(settings, "dim", modes());
  const runtime::HostValues& x = tensors.at("x");
  const int64_t rows = x.shape.extents[0], columns = x.shape.extents[1];
  // The elements of y(i): `count` of them, `step` apart.
  const int64_t count = along == Along::kLast    ? columns
                        : along == Along::kFirst ? rows
                                                 : rows * columns;
  const int64_t step = along == Along::kFirst ? columns : 1;
  return only_output(tensors, "y", [&](int64_t i) {
    const int64_t first = along == Along::kFirst ? i : i * count;
    std::vector<double> values;
    for (int64_t k = 0; k < count; ++k) values.push_back(x.values[first + k * step]);
    return tensors.at("y").shape.dtype == ir::Scalar::kI64
               ? integers_by_reference(reduction, values)
               : reduced_by_reference(reduction, values);
  });
}

template <class T, class R>
using Reduce = Status(const Stream&, Reduction, Along, const TensorRef<const T, 2>&,
                      const TensorRef<R, 1>&);

const Registered registered_reduce({
    .name = "reduce",
    .summary = "y = the sum, mean, … of x over a mode or all of it; places and what becomes of "
               "integers are i64",
    .arguments = {"op: choice", "dim: choice", "x: dtype[rows, columns]",
                  "y: i64[rows] if dim=last and op=argmax|argmin",
                  "y: i64[rows] if dim=last and dtype=i32|u8", "y: f32[rows] if dim=last",
                  "y: i64[columns] if dim=first and op=argmax|argmin",
                  "y: i64[columns] if dim=first and dtype=i32|u8", "y: f32[columns] if dim=first",
                  "y: i64[1] if op=argmax|argmin", "y: i64[1] if dtype=i32|u8", "y: f32[1]"},
    .functions = {host_function<Reduce<float, float>>(reduce<float>),
                  host_function<Reduce<half, float>>(reduce<half>),
                  host_function<Reduce<bfloat16, float>>(reduce<bfloat16>),
                  host_function<Reduce<float, int64_t>>(reduce<float>),
                  host_function<Reduce<half, int64_t>>(reduce<half>),
                  host_function<Reduce<bfloat16, int64_t>>(reduce<bfloat16>),
                  host_function<Reduce<int32_t, int64_t>>(reduce<int32_t>),
                  host_function<Reduce<uint8_t, int64_t>>(reduce<uint8_t>)},
    .settings = {{.name = "dtype", .help = "element type of x"},
                 {.name = "op",
                  .help = "what becomes of the elements",
                  .default_value = "sum",
                  .choices = reduction_names()},
                 {.name = "dim",
                  .help = "which are combined: of a row, of a column, all",
                  .default_value = "last",
                  .choices = modes()}},
    .sizes = {{"rows", 16384}, {"columns", 16384}},
    .reference = reduce_reference,
});

}  // namespace
}  // namespace heddle::kernels
