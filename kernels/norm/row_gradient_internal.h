// A row's gradient, of threads that meet for its sums. Internal to the norms.
#pragma once

#include "heddle/kernels/norm/gradient_internal.h"

namespace heddle::kernels {

// Two sums that are formed together.
struct TwoSums {
  Float first, second;
};
struct AddSums {
  TwoSums operator()(const TwoSums& a, const TwoSums& b) const {
    return {a.first + b.first, a.second + b.second};
  }
};

struct AddRowSums {
  RowSums operator()(const RowSums& a, const RowSums& b) const {
    return {a.squares + b.squares, a.of_s + b.of_s, a.of_products + b.of_products};
  }
};

// A row's gradient. With s = w dy, dx = scale (s - mean of s - (x - mean) scale² (mean of s (x - mean))); where rows are not
// centred the means of s and x do not take part. weights(number) are those beside a part.
template <class T, bool kCentred, class Weights>
RowScale store_gradient(const RowThreads& threads, const InputRow<T>& x, const InputRow<T>& dy,
                        Weights weights, const Row<T>& dx, const Float& eps) {
  const Float n = cast<float>(x.columns());
  // The mean first, and then what elements differ from it: a row is read once, or long ones again.
  const Float per_element = fast::rcp(n);
  const Float mean =
      kCentred ? threads.reduce(x.fold(
                                    Float(0),
                                    [&](const RowPart<T>& part) {
                                      return sum_of(part.template map<float>(
                                                 [](const Fragment<T>& v) { return wide(v); })) *
                                             per_element;
                                    },
                                    plus()),
                                plus())
               : Float(0);
  Var<float> squares(0.0f), of_s(0.0f), of_products(0.0f);
  x.each(
      [&](const Int& number, const RowPart<T>& part, const RowPart<T>& d) {
        const RowPart<float> s = d.template map<float>(scaled<T>, weights(number));
        const RowPart<float> apart = part.template map<float>(
            [&](const Fragment<T>& v) { return kCentred ? wide(v) - mean : wide(v); });
        // What is outside the row is 0, and so counts where it is set apart from the mean.
        squares += sum_of_products(apart, apart, kCentred);
        if (kCentred) of_s += sum_of(s);
        of_products += sum_of_products(s, apart);
      },
      dy);
  const auto in_row = [&]() -> RowSums {
    if constexpr (kCentred) {
      return threads.reduce(RowSums{squares, of_s, of_products}, AddRowSums());
    } else {
      const TwoSums two = threads.reduce(TwoSums{squares, of_products}, AddSums());
      return {two.first, Float(0), two.second};
    }
  };
  const RowSums sums = in_row();
  const Float scale = fast::rsqrt(fast::div(sums.squares, n) + eps),
              mean_of_s = fast::div(sums.of_s, n),
              slope = fast::div(sums.of_products, n) * scale * scale;
  x.each(
      [&](const Int& number, const RowPart<T>& part, const RowPart<T>& d) {
        const auto gradient = [&](const Fragment<T>& v, const Fragment<T>& g,
                                  const Fragment<T>& by) {
          return gradient_of<T, kCentred>(scaled(g, by), v, {mean, scale}, mean_of_s, slope);
        };
        dx.store(number, part.template map<T>(gradient, d, weights(number)));
      },
      dy);
  return {mean, scale};
}

}  // namespace heddle::kernels
