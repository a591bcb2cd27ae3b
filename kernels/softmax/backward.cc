#include "heddle/kernels/rows/row_kernel.h"
#include "heddle/kernels/softmax/softmax.h"

namespace heddle::kernels {
namespace {

template <class T, bool kLog>
void backward_body(const RowDeal& deal, const Tensor<const T, 2>& y, const Tensor<const T, 2>& dy,
                   const Tensor<T, 2>& dx) {
  const T zero(0.0f);
  of_row(deal, y, zero, [&](const RowThreads& threads, const InputRow<T>& in) {
    const InputRow<T> gradient(threads, dy, zero);
    const auto sum_of = [](const RowPart<T>& part, const RowPart<T>& by) {
      const auto term = [](const Fragment<T>& v, const Fragment<T>& d) {
        return kLog ? wide(d) : wide(v) * wide(d);
      };
      return part.template map<float>(term, by).template fold<float>(
          [](const Fragment<float>& v) { return v; }, plus());
    };
    const Float sum = threads.reduce(in.fold(Float(0), sum_of, plus(), gradient), plus());
    const Row<T> out(threads, dx);
    const auto finish = [&](const Fragment<T>& v, const Fragment<T>& d) {
      if constexpr (kLog) return (wide(d) - exp(wide(v)) * sum).template as<T>();
      if constexpr (!kLog) return (wide(v) * (wide(d) - sum)).template as<T>();
    };
    const auto store = [&](const Int& number, const RowPart<T>& part, const RowPart<T>& by) {
      out.store(number, part.template map<T>(finish, by));
    };
    in.each(store, gradient);
  });
}

template <class T, bool kLog>
Status launch(const Stream& stream, const TensorRef<const T, 2>& y, const TensorRef<const T, 2>& dy,
              const TensorRef<T, 2>& dx) {
  constexpr const char* kName = kLog ? "log_softmax_backward" : "softmax_backward";
  static const auto kernels =
      kernel_family(kLog ? "log_softmax_backward(y, dy, dx)" : "softmax_backward(y, dy, dx)",
                    [](Host<RowDeal> deal, Tensor<const T, 2> of, Tensor<const T, 2> by,
                       Tensor<T, 2> to) { backward_body<T, kLog>(deal, of, by, to); });
  if (Status s = check_same_extents(kName, {"y", y}, {"dy", dy}); !s.ok()) return s;
  if (Status s = check_same_extents(kName, {"y", y}, {"dx", dx}); !s.ok()) return s;
  RowsOf of = rows_of(y, dy, dx);
  of.inputs = 2;
  return launch_rows(stream, kernels, of, y, dy, dx);
}

}  // namespace

template <class T>
Status softmax_backward(const Stream& stream, const TensorRef<const T, 2>& y,
                        const TensorRef<const T, 2>& dy, const TensorRef<T, 2>& dx) {
  return launch<T, false>(stream, y, dy, dx);
}
template <class T>
Status log_softmax_backward(const Stream& stream, const TensorRef<const T, 2>& y,
                            const TensorRef<const T, 2>& dy, const TensorRef<T, 2>& dx) {
  return launch<T, true>(stream, y, dy, dx);
}

#define HEDDLE_FOR(T)                                                                        \
  template Status softmax_backward<T>(const Stream&, const TensorRef<const T, 2>&,           \
                                      const TensorRef<const T, 2>&, const TensorRef<T, 2>&); \
  template Status log_softmax_backward<T>(const Stream&, const TensorRef<const T, 2>&,       \
                                          const TensorRef<const T, 2>&, const TensorRef<T, 2>&);
HEDDLE_FOR(float)
HEDDLE_FOR(half)
HEDDLE_FOR(bfloat16)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
