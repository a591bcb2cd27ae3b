#include "heddle/kernels/softmax/softmax.h"

#include <limits>

#include "heddle/kernels/rows/row_kernel.h"
#include "heddle/kernels/softmax/softmax_sum.h"

namespace heddle::kernels {
namespace {

template <class T, bool kLog>
void softmax_body(const RowDeal& deal, const Tensor<const T, 2>& x, const Tensor<T, 2>& y) {
  const T outside(-std::numeric_limits<float>::infinity());
  of_row(deal, x, outside, [&](const RowThreads& threads, const InputRow<T>& in) {
    const SoftmaxSum all = sum_of_row(threads, in);
    const Float scale = kLog ? log(all.sum) : fast::rcp(all.sum);
    const Row<T> out(threads, y);
    in.each([&](const Int& number, const RowPart<T>& part) {
      out.store(number, part.template map<T>([&](const Fragment<T>& v) {
        if constexpr (kLog) return (wide(v) - all.largest - scale).template as<T>();
        if constexpr (!kLog) return (weight<T>(wide(v), all.largest) * scale).template as<T>();
      }));
    });
  });
}

template <class T, bool kLog>
Status launch(const Stream& stream, const TensorRef<const T, 2>& in, const TensorRef<T, 2>& out) {
  static const auto kernels =
      kernel_family(kLog ? "log_softmax(x, y)" : "softmax(x, y)",
                    [](Host<RowDeal> deal, Tensor<const T, 2> x, Tensor<T, 2> y) {
                      softmax_body<T, kLog>(deal, x, y);
                    });
  if (Status s = check_same_extents(kLog ? "log_softmax" : "softmax", {"x", in}, {"y", out});
      !s.ok())
    return s;
  return launch_rows(stream, kernels, rows_of(in, out), in, out);
}

}  // namespace

template <class T>
Status softmax(const Stream& stream, const TensorRef<const T, 2>& x, const TensorRef<T, 2>& y) {
  return launch<T, false>(stream, x, y);
}
template <class T>
Status log_softmax(const Stream& stream, const TensorRef<const T, 2>& x, const TensorRef<T, 2>& y) {
  return launch<T, true>(stream, x, y);
}

#define HEDDLE_FOR(T)                                                                              \
  template Status softmax<T>(const Stream&, const TensorRef<const T, 2>&, const TensorRef<T, 2>&); \
  template Status log_softmax<T>(const Stream&, const TensorRef<const T, 2>&,                      \
                                 const TensorRef<T, 2>&);
HEDDLE_FOR(float)
HEDDLE_FOR(half)
HEDDLE_FOR(bfloat16)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
