// row_sum as an operation.
#include "heddle/kernels/reference_internal.h"
#include "heddle/kernels/row_sum.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

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
    .reference = row_sums,
});

}  // namespace
}  // namespace heddle::kernels
