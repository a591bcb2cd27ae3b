#include "heddle/kernels/cross_entropy/cross_entropy.h"

#include <limits>

#include "heddle/kernels/cross_entropy/arguments_internal.h"
#include "heddle/kernels/softmax/softmax_sum.h"

namespace heddle::kernels {
namespace {

template <class T, class Index>
void cross_entropy_body(const RowDeal& deal, const Tensor<const T, 2>& x,
                        const Tensor<const Index, 1>& target, const Tensor<float, 1>& loss) {
  const T outside(-std::numeric_limits<float>::infinity());
  of_row(deal, x, outside, [&](const RowThreads& threads, const InputRow<T>& in) {
    const SoftmaxSum all = sum_of_row(threads, in);
    If(threads.is_first(), [&] {
      const Value<Index> which = target(threads.row());
      loss(threads.row()) = If(
          which >= 0,
          [&] { return log(all.sum) - (cast<float>(x(threads.row(), which)) - all.largest); },
          [&] { return Float(0); });
    });
  });
}

}  // namespace

template <class T, class Index>
Status cross_entropy(const Stream& stream, const TensorRef<const T, 2>& x,
                     const TensorRef<const Index, 1>& target, const TensorRef<float, 1>& loss) {
  static const auto kernels =
      kernel_family("cross_entropy(x, target, loss)",
                    [](Host<RowDeal> deal, Tensor<const T, 2> in, Tensor<const Index, 1> of,
                       Tensor<float, 1> out) { cross_entropy_body<T, Index>(deal, in, of, out); });
  if (Status s = check_rows_and_classes("cross_entropy", x,
                                        {{"target", target.extents[0]}, {"loss", loss.extents[0]}});
      !s.ok()) {
    return s;
  }
  return launch_rows(stream, kernels, rows_of(x), x, target, loss);
}

#define HEDDLE_FOR(T, Index)                                                           \
  template Status cross_entropy<T, Index>(const Stream&, const TensorRef<const T, 2>&, \
                                          const TensorRef<const Index, 1>&,            \
                                          const TensorRef<float, 1>&);
HEDDLE_FOR(float, int32_t)
HEDDLE_FOR(half, int32_t)
HEDDLE_FOR(bfloat16, int32_t)
HEDDLE_FOR(float, int64_t)
HEDDLE_FOR(half, int64_t)
HEDDLE_FOR(bfloat16, int64_t)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
