#include "heddle/kernels/softmax/softmax.h"

#include <limits>

#include "heddle/kernels/rows/each_row.h"

namespace heddle::kernels {
namespace {

// The largest element so far, and the sum of e^(element - largest).
struct SoftmaxSum {
  Float largest, sum;
};

// e^(x - largest), rounded as finely as T needs it.
template <class T, class X>
X weight(const X& x, const Float& largest) {
  if constexpr (std::is_same_v<T, float>) return exp(x - largest);
  const FlushSubnormals flush;  // weights of 16 bits are none
  if constexpr (!std::is_same_v<T, float>) return fast::exp(x - largest);
}

// One value for two parts of a row.
template <class T>
SoftmaxSum merge(const SoftmaxSum& a, const SoftmaxSum& b) {
  const Float largest = max(a.largest, b.largest);
  return {largest, a.sum * weight<T>(a.largest, largest) + b.sum * weight<T>(b.largest, largest)};
}

// The largest number is finite at least, so that nothing is subtracted from -∞: where all elements are -∞ their
// weights are 0, and NaN stays.
template <class T>
SoftmaxSum sum_of(const RowPart<T>& part) {
  const auto wide = [](const Fragment<T>& v) { return v.template as<float>(); };
  const Float largest =
      max(part.template fold<float>(wide, maximum()), std::numeric_limits<float>::lowest());
  return {largest, part.template fold<float>(
                       [&](const Fragment<T>& v) { return weight<T>(wide(v), largest); }, plus())};
}

template <class T, bool kLog>
void softmax_body(const RowDeal& deal, const Tensor<const T, 2>& x, const Tensor<T, 2>& y) {
  const T outside(-std::numeric_limits<float>::infinity());
  const auto merged = [](const SoftmaxSum& a, const SoftmaxSum& b) { return merge<T>(a, b); };
  each_row(deal, x, [&](const RowThreads& threads, const auto& in) {
    const Row<T> out(threads, y);
    const RowPart<T> first = in.load(0, outside);
    const SoftmaxSum mine = in.others(
        sum_of(first), outside,
        [&](const SoftmaxSum& sum, const RowPart<T>& part) { return merged(sum, sum_of(part)); });
    const SoftmaxSum all = threads.reduce(mine, merged);
    const Float scale = kLog ? log(all.sum) : fast::rcp(all.sum);
    const auto finish = [&](const RowPart<T>& part) {
      return part.template map<T>([&](const Fragment<T>& v) {
        const auto wide = v.template as<float>();
        if constexpr (kLog) return (wide - all.largest - scale).template as<T>();
        if constexpr (!kLog) return (weight<T>(wide, all.largest) * scale).template as<T>();
      });
    };
    out.store(0, finish(first));
    in.each_other(outside, [&](const Int& number, const RowPart<T>& part) {
      out.store(number, finish(part));
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
  if (Status s = check_same_extents(kLog ? "log_softmax" : "softmax", in, out); !s.ok()) return s;
  return launch_rows(stream, kernels, in, out, out);
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
