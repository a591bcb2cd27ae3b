// Rows that are normalised: with a residual or without, and by what. Internal to the norms.
#pragma once

#include <optional>

#include "heddle/kernels/rows/moments_internal.h"
#include "heddle/kernels/rows/row_kernel.h"

namespace heddle::kernels {

// Rows that are added before they are normalised, and where the sums go.
template <class T>
struct Residual {
  const Tensor<const T, 2>& of;
  const Tensor<T, 2>& sum;
};

// The sums of two rows' elements, rounded to T.
template <class T>
RowPart<T> sum_of_rows(const RowPart<T>& part, const RowPart<T>& more) {
  return part.template map<T>(
      [](const Fragment<T>& a, const Fragment<T>& b) {
        return (wide(a) + wide(b)).template as<T>();
      },
      more);
}

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
        [&](const RowPart<T>& part, const RowPart<T>& more) { return of(sum_of_rows(part, more)); },
        merge, *residual_);
  }
  // As InputRow's.
  template <class Body>
  void each(Body body) const {
    if (!residual_) return x_.each(body);
    x_.each([&](const Int& number, const RowPart<T>& part,
                const RowPart<T>& more) { body(number, sum_of_rows(part, more)); },
            *residual_);
  }
  // Stores what residuals have been added to.
  void store_sum(const Int& number, const RowPart<T>& part) const {
    if (sum_) sum_->store(number, part);
  }

 private:
  const InputRow<T>& x_;
  std::optional<InputRow<T>> residual_;
  std::optional<Row<T>> sum_;
};

// What a row is normalised by: y = (x - mean) scale w + b.
struct RowScale {
  Float mean, scale;
};

// By the mean of squares; the mean is no part of it.
template <class T>
RowScale scale_by_squares(const RowThreads& threads, const NormRows<T>& in, const Float& eps) {
  const Float mine = in.fold(
      Float(0),
      [](const RowPart<T>& part) {
        return part.template fold<float>([](const Fragment<T>& v) { return wide(v) * wide(v); },
                                         plus());
      },
      plus());
  const Float mean = fast::div(threads.reduce(mine, plus()), in.columns());
  return {Float(0), fast::rsqrt(mean + eps)};
}
// By mean and variance.
template <class T>
RowScale scale_by_moments(const RowThreads& threads, const NormRows<T>& in, const Float& eps) {
  const Moments all =
      threads.reduce(in.fold(Moments{0, 0, 0}, moments<T>, MergeMoments()), MergeMoments());
  return {all.mean, fast::rsqrt(fast::div(all.squares, in.columns()) + eps)};
}

// A part of a row, normalised and rounded to a type, by the weights beside it. Without biases rows are not centred.
template <class To, class T>
RowPart<To> normalised(const RowPart<T>& part, const RowScale& by, const RowPart<T>& weights,
                       const std::optional<RowPart<T>>& biases) {
  if (!biases) {
    return part.template map<To>(
        [&](const Fragment<T>& v, const Fragment<T>& weight) {
          return (wide(v) * by.scale * wide(weight)).template as<To>();
        },
        weights);
  }
  return part.template map<To>(
      [&](const Fragment<T>& v, const Fragment<T>& weight, const Fragment<T>& bias) {
        return ((wide(v) - by.mean) * by.scale * wide(weight) + wide(bias)).template as<To>();
      },
      weights, *biases);
}
// Likewise, of w and b; `out` is the row that it is for.
template <class To, class T, class Out>
RowPart<To> normalised(const RowPart<T>& part, const Row<Out>& out, const Int& number,
                       const RowScale& by, const Tensor<const T, 1>& w,
                       const Tensor<const T, 1>* b) {
  const RowPart<T> weights = out.template beside<T>(w, number);
  std::optional<RowPart<T>> biases;
  if (b != nullptr) biases = out.template beside<T>(*b, number);
  return normalised<To>(part, by, weights, biases);
}

// The rows of a norm of sums, of which two are read.
template <class T, class Y>
RowsOf rows_of_sums(const TensorRef<const T, 2>& x, const TensorRef<const T, 2>& residual,
                    const TensorRef<Y, 2>& y, const TensorRef<T, 2>& sum) {
  RowsOf of = rows_of(x, residual, y, sum);
  of.inputs = 2;
  return of;
}
// What is wrong with the matrices of a norm of sums, y aside.
template <class T>
Status check_sums(const char* kernel, const TensorRef<const T, 2>& x,
                  const TensorRef<const T, 2>& residual, const TensorRef<T, 2>& sum) {
  if (Status s = check_same_extents(kernel, {"x", x}, {"residual", residual}); !s.ok()) return s;
  return check_same_extents(kernel, {"x", x}, {"sum", sum});
}

}  // namespace heddle::kernels
