#include <limits>

#include "heddle/kernels/cross_entropy/arguments_internal.h"
#include "heddle/kernels/cross_entropy/cross_entropy.h"
#include "heddle/kernels/softmax/softmax_sum.h"

namespace heddle::kernels {
namespace {

template <class T, class Index>
void backward_body(const RowDeal& deal, const Tensor<const T, 2>& x,
                   const Tensor<const Index, 1>& target, const Tensor<const float, 1>& dloss,
                   const Tensor<T, 2>& dx) {
  const T outside(-std::numeric_limits<float>::infinity());
  of_row(deal, x, outside, [&](const RowThreads& threads, const InputRow<T>& in) {
    const Int which = cast<int32_t>(target(threads.row()));
    const Float gradient = dloss(threads.row());
    const SoftmaxSum all = sum_of_row(threads, in);
    const Float scale = fast::rcp(all.sum);
    const Row<T> out(threads, dx);
    in.each([&](const Int& number, const RowPart<T>& part) {
      const auto finish = [&](const Fragment<T>& v, const Fragment<int32_t>& column) {
        const Fragment<float> weights = weight<T>(wide(v), all.largest) * scale;
        const Fragment<float> distance = select(column == which, weights - 1.0f, weights);
        // A row with a negative target has no gradient, whatever its elements are: NaN, too.
        return select(which >= 0, distance * gradient, 0.0f).template as<T>();
      };
      out.store(number, part.template map<T>(finish, out.columns_of(number)));
    });
  });
}

}  // namespace

template <class T, class Index>
Status cross_entropy_backward(const Stream& stream, const TensorRef<const T, 2>& x,
                              const TensorRef<const Index, 1>& target,
                              const TensorRef<const float, 1>& dloss, const TensorRef<T, 2>& dx) {
  static const auto kernels =
      kernel_family("cross_entropy_backward(x, target, dloss, dx)",
                    [](Host<RowDeal> deal, Tensor<const T, 2> in, Tensor<const Index, 1> of,
                       Tensor<const float, 1> by,
                       Tensor<T, 2> out) { backward_body<T, Index>(deal, in, of, by, out); });
  constexpr const char* kName = "cross_entropy_backward";
  if (Status s = check_same_extents(kName, {"x", x}, {"dx", dx}); !s.ok()) return s;
  if (Status s = check_rows_and_classes(
          kName, x, {{"target", target.extents[0]}, {"dloss", dloss.extents[0]}});
      !s.ok()) {
    return s;
  }
  return launch_rows(stream, kernels, rows_of(x, dx), x, target, dloss, dx);
}

#define HEDDLE_FOR(T, Index)                                                         \
  template Status cross_entropy_backward<T, Index>(                                  \
      const Stream&, const TensorRef<const T, 2>&, const TensorRef<const Index, 1>&, \
      const TensorRef<const float, 1>&, const TensorRef<T, 2>&);
HEDDLE_FOR(float, int32_t)
HEDDLE_FOR(half, int32_t)
HEDDLE_FOR(bfloat16, int32_t)
HEDDLE_FOR(float, int64_t)
HEDDLE_FOR(half, int64_t)
HEDDLE_FOR(bfloat16, int64_t)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
