// What the reductions carry from element to element: a float, the place of an extremum, moments. Internal to the kernels.
//
// Each is a struct with
//   Element                    what elements are combined as
//   State                      what is carried, in registers
//   Stored, kStoredBytes       the same in memory
//   T outside<T>()             an element of x that changes no result
//   State nothing()            of no elements
//   State of(Elements<Element>)  of some
//   State merge(State, State)
//   State over(group, State)   of a group of threads; group(state, combine) reduces over it
//   Value<Result> result(State, n)   where n elements were combined
#pragma once

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "heddle/kernels/reduce/reduce.h"
#include "heddle/kernels/rows/moments_internal.h"

namespace heddle::kernels {

// Elements of a thread, in groups: the places of each one's elements lie `step` apart.
template <class Element>
struct Elements {
  struct Group {
    int size;
    Int first;                    // its first place along the mode that is reduced
    std::optional<Bool> present;  // whether they are there, or `outside`; none: they are
  };
  std::vector<Value<Element>> values;  // of one group after the other
  std::vector<Group> groups;  // in the order of their places, but the last one, if it may be absent
  int step = 1;
};

// An element that changes no sum, product or extremum.
template <class T>
T outside_of(Reduction reduction) {
  using Limits = std::numeric_limits<T>;
  const bool largest = reduction == Reduction::kMax || reduction == Reduction::kArgmax,
             smallest = reduction == Reduction::kMin || reduction == Reduction::kArgmin;
  if (!largest && !smallest) return T(reduction == Reduction::kProduct ? 1.0f : 0.0f);
  if constexpr (std::is_integral_v<T>) {
    return largest ? Limits::lowest() : Limits::max();
  } else {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return T(largest ? -kInfinity : kInfinity);
  }
}

// The functors that dsl/collective/reduce.h does not have.
struct Times {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a * b;
  }
};
struct MaxNan {
  Float operator()(const Float& a, const Float& b) const { return max_nan(a, b); }
};
struct MinNan {
  Float operator()(const Float& a, const Float& b) const { return min_nan(a, b); }
};

// f(functor) of sums, products and extrema of values.
template <class V, class F>
V with_functor(Reduction reduction, F f) {
  constexpr bool kFloats = std::is_same_v<V, Float>;
  switch (reduction) {
    case Reduction::kProduct:
      return f(Times());
    case Reduction::kMax:
      return f(std::conditional_t<kFloats, MaxNan, maximum>());
    case Reduction::kMin:
      return f(std::conditional_t<kFloats, MinNan, minimum>());
    default:
      return f(plus());
  }
}

// Sums, products and extrema: of floats in f32, of integers of 32 bits in 64.
template <class E>
struct ValuesOf {
  using Element = E;
  using Stored = std::conditional_t<std::is_integral_v<E>, int64_t, float>;
  using State = Value<Stored>;
  using Result = Stored;
  static constexpr int kStoredBytes = sizeof(Stored);

  Reduction reduction;
  friend bool operator==(const ValuesOf&, const ValuesOf&) = default;

  template <class T = Stored>
  T outside() const {
    return outside_of<T>(reduction);
  }
  State nothing() const { return outside(); }
  State of(const Elements<E>& elements) const {
    if (reduction == Reduction::kMax || reduction == Reduction::kMin) {
      return cast<Stored>(with_functor<Value<E>>(
          reduction, [&](auto combine) { return in_tree(elements.values, combine); }));
    }
    std::vector<State> all;
    for (const Value<E>& x : elements.values) {
      const State wide = cast<Stored>(x);
      all.push_back(reduction == Reduction::kNorm2 ? wide * wide : wide);
    }
    return in_tree(std::move(all), [&](const State& a, const State& b) { return merge(a, b); });
  }
  State merge(const State& a, const State& b) const {
    return with_functor<State>(reduction, [&](auto combine) { return combine(a, b); });
  }
  template <class Group>
  State over(const Group& group, const State& state) const {
    return with_functor<State>(reduction, [&](auto combine) { return group(state, combine); });
  }
  State result(const State& state, const Float& n) const {
    if constexpr (std::is_same_v<Stored, float>) {
      if (reduction == Reduction::kMean) return state / n;
      if (reduction == Reduction::kNorm2) return sqrt(state);
    }
    return state;
  }
};
using Values = ValuesOf<float>;
using IntegerValues = ValuesOf<int32_t>;

// Variances.
struct Spread {
  using Element = float;
  using State = Moments;
  using Stored = Moments;
  using Result = float;
  static constexpr int kStoredBytes = 3 * sizeof(float);

  Reduction reduction;
  friend bool operator==(const Spread&, const Spread&) = default;

  template <class T>
  T outside() const {
    return T(0);
  }
  State nothing() const { return {0, 0, 0}; }
  State of(const Elements<float>& elements) const {
    // What a group adds, if it is there.
    const auto added = [](const auto& group, const Float& x) {
      return group.present ? select(*group.present, x, 0.0f) : x;
    };
    std::vector<Float> counts;
    for (const auto& group : elements.groups) {
      counts.push_back(added(group, static_cast<float>(group.size)));
    }
    const Float count = in_tree(std::move(counts), plus());
    const Float mean = in_tree(elements.values, plus()) * fast::rcp(max(count, 1.0f));
    std::vector<Float> squares;
    auto next = elements.values.begin();
    for (const auto& group : elements.groups) {
      std::vector<Float> of_group;
      for (const auto end = next + group.size; next != end; ++next) {
        of_group.push_back((*next - mean) * (*next - mean));
      }
      squares.push_back(added(group, in_tree(std::move(of_group), plus())));
    }
    return {count, mean, in_tree(std::move(squares), plus())};
  }
  State merge(const State& a, const State& b) const { return MergeMoments()(a, b); }
  template <class Group>
  State over(const Group& group, const State& state) const {
    return group(state, MergeMoments());
  }
  Float result(const State& state, const Float& n) const {
    return state.squares / max(n - 1.0f, 0.0f);
  }
};

// The place of an extremum: the upper half orders elements, the lower half the places backwards, so that the first of several
// is the largest. Elements are combined as floats, or as integers of 32 bits.
template <class E>
struct PlacesOf {
  using Element = E;
  using State = UInt64;
  using Stored = uint64_t;
  using Result = int64_t;
  static constexpr int kStoredBytes = sizeof(uint64_t);

  Reduction reduction;
  friend bool operator==(const PlacesOf&, const PlacesOf&) = default;

  template <class T>
  T outside() const {
    return outside_of<T>(reduction);
  }
  State nothing() const { return uint64_t{0}; }
  State of(const Elements<E>& elements) const {
    // Extrema of a few elements each, then the place among the few that have the best: two operations an element, and not as
    // many as its place would take.
    std::vector<Few> all;
    auto next = elements.values.begin();
    for (const auto& group : elements.groups) {
      for (int first = 0; first < group.size; first += kFew) {
        const auto end = next + std::min(kFew, group.size - first);
        all.push_back(few(next, end, group.first + first * elements.step));
        next = end;
      }
    }
    const bool in_order = !elements.groups.back().present;
    const Few last = all.back();
    if (!in_order && all.size() > 1) all.pop_back();
    const Few first = in_tree(std::move(all), [&](const Few& a, const Few& b) {
      return chosen(is_better(b.best, a.best), a, b);
    });
    // An edge that is not there may have a place in the row: it is chosen only where all elements are as good as what is
    // outside, and then the first of all is the best.
    const auto against_last = [&] {
      const Bool as_good = !is_better(first.best, last.best) && last.first < first.first;
      return chosen(is_better(last.best, first.best) || as_good, first, last);
    };
    const Few best = in_order ? first : against_last();
    // From the last one, so that the first is what remains.
    std::vector<Int> behind = {Int(0)};
    for (int i = kFew - 1; i >= 0; --i) {
      const Value<E>& x = best.values[static_cast<size_t>(i)];
      // Where one is NaN, the best is, and equals none.
      const Bool found = kIntegers ? x == best.best : x == best.best || x != x;
      behind.push_back(select(found, i * elements.step, behind.back()));
    }
    const UInt place = ~cast<uint32_t>(best.first + behind.back());
    return cast<uint64_t>(order_of(best.best)) << 32u | cast<uint64_t>(place);
  }
  State merge(const State& a, const State& b) const { return max(a, b); }
  template <class Group>
  State over(const Group& group, const State& state) const {
    return group(state, maximum());
  }
  Int64 result(const State& state, const Float&) const {
    return cast<int64_t>(~cast<uint32_t>(state));
  }

 private:
  static constexpr bool kIntegers = std::is_integral_v<E>;
  static constexpr int kFew = 8;

  // Some elements, the last of them repeated, their first place, and the best of them.
  struct Few {
    Value<E> best;
    Int first;
    std::vector<Value<E>> values;
  };
  template <class Iterator>
  Few few(Iterator begin, Iterator end, const Int& first) const {
    std::vector<Value<E>> values(begin, end);
    const Value<E> best = in_tree(values, [&](const Value<E>& a, const Value<E>& b) {
      if constexpr (kIntegers) {
        return largest() ? max(a, b) : min(a, b);
      } else {
        return largest() ? max_nan(a, b) : min_nan(a, b);
      }
    });
    while (values.size() < kFew) values.push_back(Value<E>(values.back()));
    return {best, first, std::move(values)};
  }
  static Few chosen(const Bool& second, const Few& a, const Few& b) {
    Few out{select(second, b.best, a.best), select(second, b.first, a.first), {}};
    for (size_t i = 0; i < a.values.size(); ++i) {
      out.values.push_back(select(second, b.values[i], a.values[i]));
    }
    return out;
  }
  // NaN is better than all others, and no better than NaN.
  Bool is_better(const Value<E>& a, const Value<E>& b) const {
    if constexpr (kIntegers) {
      return largest() ? a > b : a < b;
    } else {
      return b == b && !(largest() ? a <= b : a >= b);
    }
  }
  bool largest() const { return reduction == Reduction::kArgmax; }

  // Numbers that are ordered as the elements are, or the other way round for the smallest; NaN is above all.
  UInt order_of(const Value<E>& x) const {
    const bool smallest = reduction == Reduction::kArgmin;
    if constexpr (kIntegers) {
      return cast<uint32_t>(x) ^ (smallest ? 0x7FFFFFFFu : 0x80000000u);
    } else {
      // Both zeros are the positive one.
      const UInt bits = bitcast<uint32_t>(smallest ? 0.0f - x : x + 0.0f);
      const Bool negative = bitcast<int32_t>(bits) < 0;
      return select(x == x, bits ^ select(negative, 0xFFFFFFFFu, 0x80000000u), 0xFFFFFFFFu);
    }
  }
};
using Places = PlacesOf<float>;
using IntegerPlaces = PlacesOf<int32_t>;

}  // namespace heddle::kernels
