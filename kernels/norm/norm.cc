#include "heddle/kernels/norm/norm.h"

#include "heddle/kernels/norm/arguments_internal.h"
#include "heddle/kernels/norm/norm_deal_internal.h"
#include "heddle/kernels/norm/norm_staged_internal.h"

namespace heddle::kernels {
namespace {

template <class T>
void norm_body(const TurnDeal& how, const Tensor<const T, 2>& x, const Residual<T>* residual,
               const Tensor<const T, 1>& w, const Tensor<const T, 1>* b, const Tensor<T, 2>& y,
               const Float& eps) {
  if (how.in_turn()) return staged_norm_body(how, x, residual, w, b, y, eps);
  of_row(how.rows, x, T(0.0f), [&](const RowThreads& threads, const InputRow<T>& row) {
    const NormRows<T> in(threads, row, residual);
    const RowScale by =
        b != nullptr ? scale_by_moments(threads, in, eps) : scale_by_squares(threads, in, eps);
    const Row<T> out(threads, y);
    in.each([&](const Int& number, const RowPart<T>& part) {
      in.store_sum(number, part);
      out.store(number, normalised<T>(part, out, number, by, w, b));
    });
  });
}

template <class Family, class T, class... Rest>
Status launch_norm(const Stream& stream, const Family& family, const RowsOf& of, bool centred,
                   const TensorRef<const T, 2>& x, const Rest&... rest) {
  static const runtime::Tunable<NormProblem, TurnDeal> tunable(kernel_name(family), norm_deals,
                                                               deal_norm);
  const int64_t rows = x.extents[0];
  return launch_rows(
      stream, tunable, family, NormProblem{{of, rows}, centred},
      [&](const TurnDeal& deal, const DeviceInfo& device) {
        return deal.in_turn() ? turn_shape(deal, rows, device) : row_shape(deal.rows, rows);
      },
      x, rest...);
}

}  // namespace

template <class T>
Status rms_norm(const Stream& stream, const TensorRef<const T, 2>& x,
                const TensorRef<const T, 1>& w, const TensorRef<T, 2>& y, float eps) {
  static const auto kernels = kernel_family(
      "rms_norm(x, w, y, eps)",
      [](Host<TurnDeal> how, Tensor<const T, 2> in, Tensor<const T, 1> weight, Tensor<T, 2> out,
         Float epsilon) { norm_body<T>(how, in, nullptr, weight, nullptr, out, epsilon); });
  if (Status s = check_same_extents("rms_norm", {"x", x}, {"y", y}); !s.ok()) return s;
  if (Status s = check_columns("rms_norm", "w", w.extents[0], x.extents[1]); !s.ok()) return s;
  return launch_norm(stream, kernels, rows_of(x, y), /*centred=*/false, x, w, y, eps);
}

template <class T>
Status layer_norm(const Stream& stream, const TensorRef<const T, 2>& x,
                  const TensorRef<const T, 1>& w, const TensorRef<const T, 1>& b,
                  const TensorRef<T, 2>& y, float eps) {
  static const auto kernels =
      kernel_family("layer_norm(x, w, b, y, eps)",
                    [](Host<TurnDeal> how, Tensor<const T, 2> in, Tensor<const T, 1> weight,
                       Tensor<const T, 1> bias, Tensor<T, 2> out, Float epsilon) {
                      norm_body<T>(how, in, nullptr, weight, &bias, out, epsilon);
                    });
  if (Status s = check_same_extents("layer_norm", {"x", x}, {"y", y}); !s.ok()) return s;
  if (Status s = check_columns("layer_norm", "w", w.extents[0], x.extents[1]); !s.ok()) return s;
  if (Status s = check_columns("layer_norm", "b", b.extents[0], x.extents[1]); !s.ok()) return s;
  return launch_norm(stream, kernels, rows_of(x, y), /*centred=*/true, x, w, b, y, eps);
}

template <class T>
Status add_rms_norm(const Stream& stream, const TensorRef<const T, 2>& x,
                    const TensorRef<const T, 2>& residual, const TensorRef<const T, 1>& w,
                    const TensorRef<T, 2>& y, const TensorRef<T, 2>& sum, float eps) {
  static const auto kernels = kernel_family(
      "add_rms_norm(x, residual, w, y, sum, eps)",
      [](Host<TurnDeal> how, Tensor<const T, 2> in, Tensor<const T, 2> more,
         Tensor<const T, 1> weight, Tensor<T, 2> out, Tensor<T, 2> total, Float epsilon) {
        const Residual<T> added{more, total};
        norm_body<T>(how, in, &added, weight, nullptr, out, epsilon);
      });
  constexpr const char* kName = "add_rms_norm";
  if (Status s = check_sums(kName, x, residual, sum); !s.ok()) return s;
  if (Status s = check_same_extents(kName, {"x", x}, {"y", y}); !s.ok()) return s;
  if (Status s = check_columns(kName, "w", w.extents[0], x.extents[1]); !s.ok()) return s;
  return launch_norm(stream, kernels, rows_of_sums(x, residual, y, sum), /*centred=*/false, x,
                     residual, w, y, sum, eps);
}

template <class T>
Status add_layer_norm(const Stream& stream, const TensorRef<const T, 2>& x,
                      const TensorRef<const T, 2>& residual, const TensorRef<const T, 1>& w,
                      const TensorRef<const T, 1>& b, const TensorRef<T, 2>& y,
                      const TensorRef<T, 2>& sum, float eps) {
  static const auto kernels =
      kernel_family("add_layer_norm(x, residual, w, b, y, sum, eps)",
                    [](Host<TurnDeal> how, Tensor<const T, 2> in, Tensor<const T, 2> more,
                       Tensor<const T, 1> weight, Tensor<const T, 1> bias, Tensor<T, 2> out,
                       Tensor<T, 2> total, Float epsilon) {
                      const Residual<T> added{more, total};
                      norm_body<T>(how, in, &added, weight, &bias, out, epsilon);
                    });
  constexpr const char* kName = "add_layer_norm";
  if (Status s = check_sums(kName, x, residual, sum); !s.ok()) return s;
  if (Status s = check_same_extents(kName, {"x", x}, {"y", y}); !s.ok()) return s;
  if (Status s = check_columns(kName, "w", w.extents[0], x.extents[1]); !s.ok()) return s;
  if (Status s = check_columns(kName, "b", b.extents[0], x.extents[1]); !s.ok()) return s;
  return launch_norm(stream, kernels, rows_of_sums(x, residual, y, sum), /*centred=*/true, x,
                     residual, w, b, y, sum, eps);
}

#define HEDDLE_FOR(T)                                                                           \
  template Status rms_norm<T>(const Stream&, const TensorRef<const T, 2>&,                      \
                              const TensorRef<const T, 1>&, const TensorRef<T, 2>&, float);     \
  template Status layer_norm<T>(const Stream&, const TensorRef<const T, 2>&,                    \
                                const TensorRef<const T, 1>&, const TensorRef<const T, 1>&,     \
                                const TensorRef<T, 2>&, float);                                 \
  template Status add_rms_norm<T>(const Stream&, const TensorRef<const T, 2>&,                  \
                                  const TensorRef<const T, 2>&, const TensorRef<const T, 1>&,   \
                                  const TensorRef<T, 2>&, const TensorRef<T, 2>&, float);       \
  template Status add_layer_norm<T>(const Stream&, const TensorRef<const T, 2>&,                \
                                    const TensorRef<const T, 2>&, const TensorRef<const T, 1>&, \
                                    const TensorRef<const T, 1>&, const TensorRef<T, 2>&,       \
                                    const TensorRef<T, 2>&, float);
HEDDLE_FOR(float)
HEDDLE_FOR(half)
HEDDLE_FOR(bfloat16)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
