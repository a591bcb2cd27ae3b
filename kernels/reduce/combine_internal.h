// What the reductions carry from element to element: a float, the place of an extremum, moments. Internal to the kernels.
//
// Each is a struct with
//   State                      what is carried, in registers
//   Stored, kStoredBytes       the same in memory
//   float outside              an element that changes no result
//   State nothing()            of no elements
//   State of(Elements)         of some
//   State merge(State, State)
//   State over(group, State)   of a group of threads; group(state, combine) reduces over it
//   Value<Result> result(State, n)   where n elements were combined
#pragma once

#include <limits>
#include <vector>

#include "heddle/kernels/reduce/reduce.h"
#include "heddle/kernels/rows/moments_internal.h"

namespace heddle::kernels {

// Elements of a thread, in f32.
struct Elements {
  std::vector<Float> values;
  std::vector<Int> places;  // along the mode that is reduced
  // Of so many after each other: whether they are there, or `outside`; none: all are.
  std::vector<std::pair<int, Bool>> present;
};

// The functors that dsl/collective/reduce.h does not have.
struct Times {
  Float operator()(const Float& a, const Float& b) const { return a * b; }
};
struct MaxNan {
  Float operator()(const Float& a, const Float& b) const { return max_nan(a, b); }
};
struct MinNan {
  Float operator()(const Float& a, const Float& b) const { return min_nan(a, b); }
};

// Sums, products and extrema.
struct Values {
  using State = Float;
  using Stored = float;
  using Result = float;
  static constexpr int kStoredBytes = sizeof(float);

  Reduction reduction;
  friend bool operator==(const Values&, const Values&) = default;

  float outside() const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    switch (reduction) {
      case Reduction::kProduct:
        return 1;
      case Reduction::kMax:
        return -kInfinity;
      case Reduction::kMin:
        return kInfinity;
      default:
        return 0;
    }
  }
  State nothing() const { return outside(); }
  State of(const Elements& elements) const {
    std::vector<Float> all = elements.values;
    if (reduction == Reduction::kNorm2) {
      for (Float& x : all) heddle::detail::replace_leaves(x, x * x);
    }
    return in_tree(std::move(all), [&](const State& a, const State& b) { return merge(a, b); });
  }
  State merge(const State& a, const State& b) const {
    return by([&](auto combine) -> Float { return combine(a, b); });
  }
  template <class Group>
  State over(const Group& group, const State& state) const {
    return by([&](auto combine) -> Float { return group(state, combine); });
  }
  Float result(const State& state, const Float& n) const {
    switch (reduction) {
      case Reduction::kMean:
        return state / n;
      case Reduction::kNorm2:
        return sqrt(state);
      default:
        return state;
    }
  }

 private:
  template <class F>
  Float by(F f) const {
    switch (reduction) {
      case Reduction::kProduct:
        return f(Times());
      case Reduction::kMax:
        return f(MaxNan());
      case Reduction::kMin:
        return f(MinNan());
      default:
        return f(plus());
    }
  }
};

// Variances.
struct Spread {
  using State = Moments;
  using Stored = Moments;
  using Result = float;
  static constexpr int kStoredBytes = 3 * sizeof(float);

  Reduction reduction;
  friend bool operator==(const Spread&, const Spread&) = default;

  float outside() const { return 0; }
  State nothing() const { return {0, 0, 0}; }
  State of(const Elements& elements) const {
    const auto all = static_cast<int>(elements.values.size());
    const std::vector<std::pair<int, Bool>> whole = {{all, Bool(true)}};
    const auto& groups = elements.present.empty() ? whole : elements.present;
    std::vector<Float> counts;
    for (const auto& [size, present] : groups) {
      counts.push_back(select(present, static_cast<float>(size), 0.0f));
    }
    const Float count = in_tree(std::move(counts), plus());
    const Float mean = in_tree(elements.values, plus()) * fast::rcp(max(count, 1.0f));
    std::vector<Float> squares;
    auto next = elements.values.begin();
    for (const auto& [size, present] : groups) {
      std::vector<Float> of_group;
      for (const auto end = next + size; next != end; ++next) {
        of_group.push_back((*next - mean) * (*next - mean));
      }
      squares.push_back(select(present, in_tree(std::move(of_group), plus()), 0.0f));
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

// The place of an extremum: the upper half orders elements as the floats are, the lower half the places backwards, so
// that the first of several is the largest.
struct Places {
  using State = UInt64;
  using Stored = uint64_t;
  using Result = int64_t;
  static constexpr int kStoredBytes = sizeof(uint64_t);

  Reduction reduction;
  friend bool operator==(const Places&, const Places&) = default;

  float outside() const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return reduction == Reduction::kArgmin ? kInfinity : -kInfinity;
  }
  State nothing() const { return uint64_t{0}; }
  State of(const Elements& elements) const {
    const bool largest = reduction == Reduction::kArgmax;
    const Float best = in_tree(elements.values, [&](const Float& a, const Float& b) {
      return largest ? max_nan(a, b) : min_nan(a, b);
    });
    // Where one is NaN, `best` is, and equals none.
    std::vector<Int> places;
    for (size_t i = 0; i < elements.values.size(); ++i) {
      const Float& x = elements.values[i];
      places.push_back(select(x == best || x != x, elements.places[i], kBehind));
    }
    const UInt place = ~cast<uint32_t>(in_tree(std::move(places), minimum()));
    return cast<uint64_t>(order_of(best)) << 32u | cast<uint64_t>(place);
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
  static constexpr int32_t kBehind = std::numeric_limits<int32_t>::max();  // all places

  // Numbers that are ordered as the floats are, or the other way round for the smallest; NaN is above all.
  UInt order_of(const Float& x) const {
    // Both zeros are the positive one.
    const UInt bits = bitcast<uint32_t>(reduction == Reduction::kArgmin ? 0.0f - x : x + 0.0f);
    const Bool negative = bitcast<int32_t>(bits) < 0;
    return select(x == x, bits ^ select(negative, 0xFFFFFFFFu, 0x80000000u), 0xFFFFFFFFu);
  }
};

}  // namespace heddle::kernels
