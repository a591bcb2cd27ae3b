#include "heddle/kernels/norm/norm.h"

#include <optional>

#include "heddle/kernels/norm/arguments_internal.h"
#include "heddle/kernels/rows/moments_internal.h"
#include "heddle/kernels/rows/row_kernel.h"

namespace heddle::kernels {
namespace {

// Rows that are added before they are normalised, and where the sums go.
template <class T>
struct Residual {
  const Tensor<const T, 2>& of;
  const Tensor<T, 2>& sum;
};

// The rows that are normalised: those of x, or their sums with those of a residual, rounded to T.
template <class T>
class NormRows {
 public:
  NormRows(const RowThreads& threads, const InputRow<T>& x, const Residual<T>* residual) : x_(x) {
    if (residual == nullptr) return;
    residual_.emplace(threads, residual->of, T(0.0f));
    sum_.emplace(threads, residual->sum);
  }

  Float columns() const { return cast<float>(x_.columns()); }

  // As InputRow's.
  template <class X, class Of, class Merge>
  X fold(const X& nothing, Of of, Merge merge) const {
    if (!residual_) return x_.fold(nothing, of, merge);
    return x_.fold(
        nothing,
        [&](const RowPart<T>& part, const RowPart<T>& more) { return of(added(part, more)); },
        merge, *residual_);
  }
  // As InputRow's; stores the sums.
  template <class Body>
  void each(Body body) const {
    if (!residual_) return x_.each(body);
    x_.each(
        [&](const Int& number, const RowPart<T>& part, const RowPart<T>& more) {
          const RowPart<T> sum = added(part, more);
          sum_->store(number, sum);
          body(number, sum);
        },
        *residual_);
  }

 private:
  static RowPart<T> added(const RowPart<T>& part, const RowPart<T>& more) {
    return part.template map<T>(
        [](const Fragment<T>& a, const Fragment<T>& b) {
          return (wide(a) + wide(b)).template as<T>();
        },
        more);
  }

  const InputRow<T>& x_;
  std::optional<InputRow<T>> residual_;
  std::optional<Row<T>> sum_;
};

template <class T>
void rms_norm_body(const RowDeal& deal, const Tensor<const T, 2>& x, const Residual<T>* residual,
                   const Tensor<const T, 1>& w, const Tensor<T, 2>& y, const Float& eps) {
  of_row(deal, x, T(0.0f), [&](const RowThreads& threads, const InputRow<T>& row) {
    const NormRows<T> in(threads, row, residual);
    const Float mine = in.fold(
        Float(0),
        [](const RowPart<T>& part) {
          return part.template fold<float>([](const Fragment<T>& v) { return wide(v) * wide(v); },
                                           plus());
        },
        plus());
    const Float mean = fast::div(threads.reduce(mine, plus()), in.columns());
    const Float scale = fast::rsqrt(mean + eps);
    const Row<T> out(threads, y);
    in.each([&](const Int& number, const RowPart<T>& part) {
      const auto scaled = [&](const Fragment<T>& v, const Fragment<T>& weight) {
        return (wide(v) * scale * wide(weight)).template as<T>();
      };
      out.store(number, part.template map<T>(scaled, out.beside(w, number)));
    });
  });
}

template <class T>
void layer_norm_body(const RowDeal& deal, const Tensor<const T, 2>& x, const Residual<T>* residual,
                     const Tensor<const T, 1>& w, const Tensor<const T, 1>& b,
                     const Tensor<T, 2>& y, const Float& eps) {
  of_row(deal, x, T(0.0f), [&](const RowThreads& threads, const InputRow<T>& row) {
    const NormRows<T> in(threads, row, residual);
    const Moments all =
        threads.reduce(in.fold(Moments{0, 0, 0}, moments<T>, MergeMoments()), MergeMoments());
    const Float scale = fast::rsqrt(fast::div(all.squares, in.columns()) + eps);
    const Row<T> out(threads, y);
    in.each([&](const Int& number, const RowPart<T>& part) {
      const auto scaled = [&](const Fragment<T>& v, const Fragment<T>& weight,
                              const Fragment<T>& bias) {
        return ((wide(v) - all.mean) * scale * wide(weight) + wide(bias)).template as<T>();
      };
      out.store(number, part.template map<T>(scaled, out.beside(w, number), out.beside(b, number)));
    });
  });
}

// What is wrong with the matrices of a norm of sums.
template <class T>
Status check_sums(const char* kernel, const TensorRef<const T, 2>& x,
                  const TensorRef<const T, 2>& residual, const TensorRef<T, 2>& y,
                  const TensorRef<T, 2>& sum) {
  if (Status s = check_same_extents(kernel, {"x", x}, {"residual", residual}); !s.ok()) return s;
  if (Status s = check_same_extents(kernel, {"x", x}, {"y", y}); !s.ok()) return s;
  return check_same_extents(kernel, {"x", x}, {"sum", sum});
}
// Their rows, of which two are read.
template <class T>
RowsOf rows_of_sums(const TensorRef<const T, 2>& x, const TensorRef<const T, 2>& residual,
                    const TensorRef<T, 2>& y, const TensorRef<T, 2>& sum) {
  RowsOf of = rows_of(x, residual, y, sum);
  of.inputs = 2;
  return of;
}

}  // namespace

template <class T>
Status rms_norm(const Stream& stream, const TensorRef<const T, 2>& x,
                const TensorRef<const T, 1>& w, const TensorRef<T, 2>& y, float eps) {
  static const auto kernels = kernel_family(
      "rms_norm(x, w, y, eps)",
      [](Host<RowDeal> deal, Tensor<const T, 2> in, Tensor<const T, 1> weight, Tensor<T, 2> out,
         Float epsilon) { rms_norm_body<T>(deal, in, nullptr, weight, out, epsilon); });
  if (Status s = check_same_extents("rms_norm", {"x", x}, {"y", y}); !s.ok()) return s;
  if (Status s = check_columns("rms_norm", "w", w.extents[0], x.extents[1]); !s.ok()) return s;
  return launch_rows(stream, kernels, rows_of(x, y), x, w, y, eps);
}

template <class T>
Status layer_norm(const Stream& stream, const TensorRef<const T, 2>& x,
                  const TensorRef<const T, 1>& w, const TensorRef<const T, 1>& b,
                  const TensorRef<T, 2>& y, float eps) {
  static const auto kernels =
      kernel_family("layer_norm(x, w, b, y, eps)",
                    [](Host<RowDeal> deal, Tensor<const T, 2> in, Tensor<const T, 1> weight,
                       Tensor<const T, 1> bias, Tensor<T, 2> out, Float epsilon) {
                      layer_norm_body<T>(deal, in, nullptr, weight, bias, out, epsilon);
                    });
  if (Status s = check_same_extents("layer_norm", {"x", x}, {"y", y}); !s.ok()) return s;
  if (Status s = check_columns("layer_norm", "w", w.extents[0], x.extents[1]); !s.ok()) return s;
  if (Status s = check_columns("layer_norm", "b", b.extents[0], x.extents[1]); !s.ok()) return s;
  return launch_rows(stream, kernels, rows_of(x, y), x, w, b, y, eps);
}

template <class T>
Status add_rms_norm(const Stream& stream, const TensorRef<const T, 2>& x,
                    const TensorRef<const T, 2>& residual, const TensorRef<const T, 1>& w,
                    const TensorRef<T, 2>& y, const TensorRef<T, 2>& sum, float eps) {
  static const auto kernels = kernel_family(
      "add_rms_norm(x, residual, w, y, sum, eps)",
      [](Host<RowDeal> deal, Tensor<const T, 2> in, Tensor<const T, 2> more,
         Tensor<const T, 1> weight, Tensor<T, 2> out, Tensor<T, 2> total, Float epsilon) {
        const Residual<T> added{more, total};
        rms_norm_body<T>(deal, in, &added, weight, out, epsilon);
      });
  constexpr const char* kName = "add_rms_norm";
  if (Status s = check_sums(kName, x, residual, y, sum); !s.ok()) return s;
  if (Status s = check_columns(kName, "w", w.extents[0], x.extents[1]); !s.ok()) return s;
  return launch_rows(stream, kernels, rows_of_sums(x, residual, y, sum), x, residual, w, y, sum,
                     eps);
}

template <class T>
Status add_layer_norm(const Stream& stream, const TensorRef<const T, 2>& x,
                      const TensorRef<const T, 2>& residual, const TensorRef<const T, 1>& w,
                      const TensorRef<const T, 1>& b, const TensorRef<T, 2>& y,
                      const TensorRef<T, 2>& sum, float eps) {
  static const auto kernels =
      kernel_family("add_layer_norm(x, residual, w, b, y, sum, eps)",
                    [](Host<RowDeal> deal, Tensor<const T, 2> in, Tensor<const T, 2> more,
                       Tensor<const T, 1> weight, Tensor<const T, 1> bias, Tensor<T, 2> out,
                       Tensor<T, 2> total, Float epsilon) {
                      const Residual<T> added{more, total};
                      layer_norm_body<T>(deal, in, &added, weight, bias, out, epsilon);
                    });
  constexpr const char* kName = "add_layer_norm";
  if (Status s = check_sums(kName, x, residual, y, sum); !s.ok()) return s;
  if (Status s = check_columns(kName, "w", w.extents[0], x.extents[1]); !s.ok()) return s;
  if (Status s = check_columns(kName, "b", b.extents[0], x.extents[1]); !s.ok()) return s;
  return launch_rows(stream, kernels, rows_of_sums(x, residual, y, sum), x, residual, w, b, y, sum,
                     eps);
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
