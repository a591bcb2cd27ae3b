#include "heddle/kernels/norm/quantized.h"

#include "absl/strings/str_cat.h"
#include "heddle/kernels/norm/arguments_internal.h"
#include "heddle/kernels/norm/norm_rows_internal.h"

namespace heddle::kernels {
namespace {

constexpr float kGreatest = 448;  // of e4m3
constexpr float kLeastPeak = 0x1p-100f;

template <class T>
void quantized_body(const RowDeal& deal, const Tensor<const T, 2>& x, const Residual<T>* residual,
                    const Tensor<const T, 1>& w, const Tensor<const T, 1>* b,
                    const Tensor<float8_e4m3, 2>& y, const Tensor<float, 1>& scales,
                    const Float& eps) {
  of_row(deal, x, T(0.0f), [&](const RowThreads& threads, const InputRow<T>& row) {
    const NormRows<T> in(threads, row, residual);
    const RowScale by =
        b != nullptr ? scale_by_moments(threads, in, eps) : scale_by_squares(threads, in, eps);
    const Row<float8_e4m3> out(threads, y);
    // The greatest magnitude of all norms.
    Var<float> mine(kLeastPeak);
    in.each([&](const Int& number, const RowPart<T>& part) {
      const RowPart<float> norms = normalised<float>(part, out, number, by, w, b);
      mine = max(mine, norms.template fold_row<float>(
                           [](const Fragment<float>& v) { return abs(v); }, maximum(), Float(0)));
    });
    const Float peak = threads.reduce(Float(mine), maximum()), scale = peak * (1 / kGreatest),
                inverse = fast::rcp(scale);
    in.each([&](const Int& number, const RowPart<T>& part) {
      in.store_sum(number,
                   part);  // at the last reading: the sum may be the memory of x or of the residual
      out.store(number, normalised<float>(part, out, number, by, w, b)
                            .template map<float8_e4m3>([&](const Fragment<float>& v) {
                              return (v * inverse).template as<float8_e4m3>();
                            }));
    });
    If(threads.is_first(), [&] { scales(threads.row()) = scale; });
  });
}

// What is wrong with the results.
template <class T>
Status check_quantized(const char* kernel, const TensorRef<const T, 2>& x,
                       const TensorRef<float8_e4m3, 2>& y, const TensorRef<float, 1>& scales) {
  if (Status s = check_same_extents(kernel, {"x", x}, {"y", y}); !s.ok()) return s;
  if (scales.extents[0] == x.extents[0]) return OkStatus();
  return InvalidArgumentError(absl::StrCat(kernel, ": scales has ", scales.extents[0],
                                           " elements and x ", x.extents[0],
                                           " rows; scales takes one element a row"));
}

}  // namespace

template <class T>
Status rms_norm_quantized(const Stream& stream, const TensorRef<const T, 2>& x,
                          const TensorRef<const T, 1>& w, const TensorRef<float8_e4m3, 2>& y,
                          const TensorRef<float, 1>& scales, float eps) {
  static const auto kernels =
      kernel_family("rms_norm_quantized(x, w, y, scales, eps)",
                    [](Host<RowDeal> deal, Tensor<const T, 2> in, Tensor<const T, 1> weight,
                       Tensor<float8_e4m3, 2> out, Tensor<float, 1> of_rows, Float epsilon) {
                      quantized_body<T>(deal, in, nullptr, weight, nullptr, out, of_rows, epsilon);
                    });
  constexpr const char* kName = "rms_norm_quantized";
  if (Status s = check_quantized(kName, x, y, scales); !s.ok()) return s;
  if (Status s = check_columns(kName, "w", w.extents[0], x.extents[1]); !s.ok()) return s;
  return launch_rows(stream, kernels, rows_of(x, y), x, w, y, scales, eps);
}

template <class T>
Status layer_norm_quantized(const Stream& stream, const TensorRef<const T, 2>& x,
                            const TensorRef<const T, 1>& w, const TensorRef<const T, 1>& b,
                            const TensorRef<float8_e4m3, 2>& y, const TensorRef<float, 1>& scales,
                            float eps) {
  static const auto kernels =
      kernel_family("layer_norm_quantized(x, w, b, y, scales, eps)",
                    [](Host<RowDeal> deal, Tensor<const T, 2> in, Tensor<const T, 1> weight,
                       Tensor<const T, 1> bias, Tensor<float8_e4m3, 2> out,
                       Tensor<float, 1> of_rows, Float epsilon) {
                      quantized_body<T>(deal, in, nullptr, weight, &bias, out, of_rows, epsilon);
                    });
  constexpr const char* kName = "layer_norm_quantized";
  if (Status s = check_quantized(kName, x, y, scales); !s.ok()) return s;
  if (Status s = check_columns(kName, "w", w.extents[0], x.extents[1]); !s.ok()) return s;
  if (Status s = check_columns(kName, "b", b.extents[0], x.extents[1]); !s.ok()) return s;
  return launch_rows(stream, kernels, rows_of(x, y), x, w, b, y, scales, eps);
}

template <class T>
Status add_rms_norm_quantized(const Stream& stream, const TensorRef<const T, 2>& x,
                              const TensorRef<const T, 2>& residual, const TensorRef<const T, 1>& w,
                              const TensorRef<float8_e4m3, 2>& y, const TensorRef<float, 1>& scales,
                              const TensorRef<T, 2>& sum, float eps) {
  static const auto kernels =
      kernel_family("add_rms_norm_quantized(x, residual, w, y, scales, sum, eps)",
                    [](Host<RowDeal> deal, Tensor<const T, 2> in, Tensor<const T, 2> more,
                       Tensor<const T, 1> weight, Tensor<float8_e4m3, 2> out,
                       Tensor<float, 1> of_rows, Tensor<T, 2> total, Float epsilon) {
                      const Residual<T> added{more, total};
                      quantized_body<T>(deal, in, &added, weight, nullptr, out, of_rows, epsilon);
                    });
  constexpr const char* kName = "add_rms_norm_quantized";
  if (Status s = check_sums(kName, x, residual, sum); !s.ok()) return s;
  if (Status s = check_quantized(kName, x, y, scales); !s.ok()) return s;
  if (Status s = check_columns(kName, "w", w.extents[0], x.extents[1]); !s.ok()) return s;
  return launch_rows(stream, kernels, rows_of_sums(x, residual, y, sum), x, residual, w, y, scales,
                     sum, eps);
}

#define HEDDLE_FOR(T)                                                                             \
  template Status rms_norm_quantized<T>(                                                          \
      const Stream&, const TensorRef<const T, 2>&, const TensorRef<const T, 1>&,                  \
      const TensorRef<float8_e4m3, 2>&, const TensorRef<float, 1>&, float);                       \
  template Status layer_norm_quantized<T>(                                                        \
      const Stream&, const TensorRef<const T, 2>&, const TensorRef<const T, 1>&,                  \
      const TensorRef<const T, 1>&, const TensorRef<float8_e4m3, 2>&, const TensorRef<float, 1>&, \
      float);                                                                                     \
  template Status add_rms_norm_quantized<T>(                                                      \
      const Stream&, const TensorRef<const T, 2>&, const TensorRef<const T, 2>&,                  \
      const TensorRef<const T, 1>&, const TensorRef<float8_e4m3, 2>&, const TensorRef<float, 1>&, \
      const TensorRef<T, 2>&, float);
HEDDLE_FOR(float)
HEDDLE_FOR(half)
HEDDLE_FOR(bfloat16)
#undef HEDDLE_FOR

}  // namespace heddle::kernels
