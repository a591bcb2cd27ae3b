// The greatest or least of some values together with where it is, for reductions and scans.
//
//   ValueAt<float> best = block_reduce(ValueAt<float>{x(i), i}, argmax());     // best.value, best.index
//
// Of equal ones the one of the lowest index; indices differ, or equal ones have the same bits. A NaN is none's, as for maximum() and minimum(): any number comes before it.
#pragma once

#include "heddle/dsl/collective/reduce.h"

namespace heddle {

// A value and where it is.
template <class T>
struct ValueAt {
  Value<T> value;  // the value
  Int index;       // its place
};

namespace detail {

template <class T, class Better>
ValueAt<T> better_of(const ValueAt<T>& a, const ValueAt<T>& b, Better better) {
  const Bool first = b.index < a.index,
             beats = better(b.value, a.value) || (b.value == a.value && first);
  if constexpr (std::is_integral_v<T>) {
    return select(beats, b, a);
  } else {
    return select(beats || (isnan(a.value) && (!isnan(b.value) || first)), b, a);
  }
}

}  // namespace detail

// The greater one, in front among equals.
struct argmax {
  // Of two.
  template <class T>
  ValueAt<T> operator()(const ValueAt<T>& a, const ValueAt<T>& b) const {
    return detail::better_of(a, b, [](const auto& x, const auto& y) { return x > y; });
  }
};
// The lesser one, in front among equals.
struct argmin {
  // Of two.
  template <class T>
  ValueAt<T> operator()(const ValueAt<T>& a, const ValueAt<T>& b) const {
    return detail::better_of(a, b, [](const auto& x, const auto& y) { return x < y; });
  }
};

namespace detail {

// Which of two it is does not depend on their order, where their indices differ.
template <class T>
inline constexpr bool kLanesAgree<ValueAt<T>, argmax> = true;
template <class T>
inline constexpr bool kLanesAgree<ValueAt<T>, argmin> = true;

}  // namespace detail
}  // namespace heddle
