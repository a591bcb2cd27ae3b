// cross_entropy and its gradient as operations.
#include <cmath>

#include "heddle/kernels/cross_entropy/cross_entropy.h"
#include "heddle/kernels/reference_internal.h"
#include "heddle/kernels/softmax/reference_internal.h"
#include "heddle/runtime/operation/registry.h"

namespace heddle::kernels {
namespace {

Outputs cross_entropy_reference(const Settings&, const Tensors& tensors) {
  const runtime::HostValues& x = tensors.at("x");
  const std::vector<double>& target = tensors.at("target").values;
  const int64_t classes = x.shape.extents[1];
  return only_output(tensors, "loss", [&](int64_t row) -> Close {
    if (target[row] < 0) return {0};
    const SoftmaxReference all(&x.values[row * classes], classes);
    const double d = x.values[row * classes + static_cast<int64_t>(target[row])] - all.largest;
    const double loss = std::log(all.sum) - d;
    return {loss, all.log_error() + (std::abs(d) + std::abs(loss)) * kRounding};
  });
}

Outputs cross_entropy_backward_reference(const Settings&, const Tensors& tensors) {
  const runtime::HostValues& x = tensors.at("x");
  const std::vector<double>&target = tensors.at("target").values,
        &dloss = tensors.at("dloss").values;
  const int64_t classes = x.shape.extents[1];
  const Rounding last = rounding_of(tensors.at("dx").shape.dtype);
  SoftmaxReference all;
  return only_output(tensors, "dx", [&, last, classes](int64_t i) -> Close {
    const int64_t row = i / classes, column = i % classes;
    if (column == 0) all = SoftmaxReference(&x.values[i], classes);
    if (target[row] < 0) return {0};
    const double d = x.values[i] - all.largest, weight = std::exp(d) / all.sum;
    const double distance = weight - (static_cast<double>(column) == target[row] ? 1 : 0);
    const double error =
        weight * (weight_error(d) + all.error + 4 * kRounding) + 2 * kRounding * std::abs(distance);
    return last.of(dloss[row] * distance, std::abs(dloss[row]) * (error + 0x1p-126));
  });
}

template <class T, class Index>
using Function = Status(const Stream&, const TensorRef<const T, 2>&,
                        const TensorRef<const Index, 1>&, const TensorRef<float, 1>&);
template <class T, class Index>
HostFunction function() {
  return host_function<Function<T, Index>>(cross_entropy<T, Index>);
}

template <class T, class Index>
using BackwardFunction = Status(const Stream&, const TensorRef<const T, 2>&,
                                const TensorRef<const Index, 1>&, const TensorRef<const float, 1>&,
                                const TensorRef<T, 2>&);
template <class T, class Index>
HostFunction backward_function() {
  return host_function<BackwardFunction<T, Index>>(cross_entropy_backward<T, Index>);
}

const Registered registered_cross_entropy({
    .name = "cross_entropy",
    .summary = "loss(r) = the logarithm of the sum of exp(x(r, ·)), less x(r, target(r))",
    .arguments = {"x: dtype[rows, columns]", "target: index[rows]", "loss: f32[rows]"},
    .functions = {function<float, int64_t>(), function<half, int64_t>(),
                  function<bfloat16, int64_t>(), function<float, int32_t>(),
                  function<half, int32_t>(), function<bfloat16, int32_t>()},
    .settings = {{.name = "dtype", .help = "element type of x"},
                 {.name = "index",
                  .help = "element type of target; a negative target makes no loss"}},
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference = cross_entropy_reference,
});

const Registered registered_cross_entropy_backward({
    .name = "cross_entropy_backward",
    .summary =
        "dx(r, c) = dloss(r) times what softmax makes of x(r, c), less 1 where c = target(r)",
    .arguments = {"x: dtype[rows, columns]", "target: index[rows]", "dloss: f32[rows]",
                  "dx: dtype[rows, columns]"},
    .functions = {backward_function<float, int64_t>(), backward_function<half, int64_t>(),
                  backward_function<bfloat16, int64_t>(), backward_function<float, int32_t>(),
                  backward_function<half, int32_t>(), backward_function<bfloat16, int32_t>()},
    .settings = {{.name = "dtype", .help = "element type of x and dx"},
                 {.name = "index",
                  .help = "element type of target; a negative target makes no gradient"}},
    .sizes = {{"rows", 8192}, {"columns", 8192}},
    .reference = cross_entropy_backward_reference,
});

}  // namespace
}  // namespace heddle::kernels
