// Random layouts, with numbers that are known or not, and what the unknown ones may turn out to be.
#pragma once

#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "heddle/dsl/layout/layout.h"
#include "heddle/dsl/layout/modes_internal.h"
#include "heddle/dsl/layout/polynomial_internal.h"

namespace heddle {

// What unknown numbers are, by their serial numbers.
using Substitution = std::map<uint64_t, int64_t>;

inline int64_t substituted(const SymInt& value, const Substitution& known);

inline int64_t substituted(const detail::Symbol& symbol, const Substitution& known) {
  if (symbol.kind == detail::SymbolKind::kUnknown) return known.at(symbol.serial);
  const SymInt a = substituted(symbol.a, known), b = substituted(symbol.b, known);
  switch (symbol.kind) {
    case detail::SymbolKind::kCeilDiv:
      return ceil_div(a, b).value();
    case detail::SymbolKind::kFloorDiv:
      return floor_div(a, b).value();
    case detail::SymbolKind::kMod:
      return mod(a, b).value();
    case detail::SymbolKind::kMin:
      return min(a, b).value();
    default:
      ADD_FAILURE() << "a symbol that no random layout has";
      return 0;
  }
}

inline int64_t substituted(const SymInt& value, const Substitution& known) {
  if (value.is_constant()) return value.value();
  int64_t sum = 0;
  for (const detail::Term& term : value.polynomial().terms) {
    int64_t product = term.numerator;
    for (const detail::SymbolRef& symbol : term.symbols) product *= substituted(*symbol, known);
    EXPECT_EQ(product % term.denominator, 0) << "a quotient that does not come out even";
    sum += product / term.denominator;
  }
  return sum;
}

inline IntTuple substituted(const IntTuple& t, const Substitution& known) {
  absl::InlinedVector<detail::TupleNode, 12> nodes(&t.node(), &t.node() + t.node().span);
  for (detail::TupleNode& node : nodes) {
    if (node.is_int()) node.value = substituted(node.value, known);
  }
  return detail::TupleBuilder::build(nodes.front());
}

inline Layout substituted(const Layout& layout, const Substitution& known) {
  return Layout(substituted(layout.shape(), known), substituted(layout.stride(), known));
}

class RandomLayouts {
 public:
  explicit RandomLayouts(uint32_t seed) : random_(seed) {}

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  template <size_t N>
  int one_of(const int (&values)[N]) {
    return values[below(static_cast<int>(N))];
  }

  IntTuple shape(int deepest = 2) {
    if (deepest == 0 || below(2) == 0) return one_of({1, 2, 2, 3, 4, 4, 6, 8});
    IntTuple result;
    for (int i = 0, modes = 1 + below(3); i < modes; ++i)
      result = append(result, shape(deepest - 1));
    return result;
  }

  // Compact, compact in some order, or of any strides.
  Layout layout() {
    const IntTuple s = shape();
    switch (below(5)) {
      case 0:
      case 1:
        return make_layout(s);
      case 2: {
        return Layout(s, compact_order(s, each(s, [&] { return below(100); })));
      }
      case 3:
        return make_layout(s, GenRowMajor{});
      default:
        return Layout(s, each(s, [&] { return one_of({0, 1, 2, 3, 4, 6, 8, 12, 16, 24}); }));
    }
  }

  // Of powers of two, in some order, with gaps.
  Layout layout_of_bits() {
    IntTuple s, room, order;
    for (int i = 0, modes = 1 + below(3); i < modes; ++i) {
      const int extent = one_of({1, 2, 4, 4, 8, 16});
      s = append(s, extent);
      room = append(room, below(4) == 0 ? 2 * extent : extent);
      order = append(order, below(100));
    }
    return Layout(s, compact_order(room, order));
  }

  // Of basis strides: modes of several numbers of a coordinate, with gaps, in no order. No two of
  // its coordinates are the same.
  Layout layout_of_coordinates() {
    const std::vector<std::vector<std::vector<int>>> profiles = {
        {{0}}, {{0}, {1}}, {{1}}, {{0}, {1}, {2}}, {{0, 0}, {0, 1}, {1}}, {{1}, {2, 0}, {2, 1}}};
    std::vector<std::pair<int, IntTuple>> modes;
    for (const auto& path :
         profiles[static_cast<size_t>(below(static_cast<int>(profiles.size())))]) {
      int64_t stride = one_of({1, 1, 2, 3});
      for (int i = below(3); i > 0; --i) {
        const int extent = one_of({1, 2, 3, 4});
        modes.emplace_back(extent,
                           path.size() == 1 ? E({path[0]}, stride) : E({path[0], path[1]}, stride));
        stride *= extent * one_of({1, 1, 2});
      }
    }
    if (modes.empty()) modes.emplace_back(2, E({0}, 3));
    std::shuffle(modes.begin(), modes.end(), random_);
    IntTuple s, d;
    for (const auto& [extent, stride] : modes) {
      s = append(s, extent);
      d = append(d, stride);
    }
    return Layout(s, d);
  }

  // The same with some numbers forgotten but for a divisor. Equal numbers are one or several
  // unknown ones; strides that follow from the shape may still do so.
  Layout forget(const Layout& layout) {
    if (below(2) == 0) {
      const IntTuple s = forget(layout.shape(), 2);
      return below(2) == 0 ? make_layout(s) : make_layout(s, GenRowMajor{});
    }
    return Layout(forget(layout.shape(), 3), forget(layout.stride(), 4));
  }

  // Some number for each unknown one.
  Substitution substitution() {
    Substitution result;
    for (const auto& [serial, divisor] : unknown_)
      result[serial] = divisor * one_of({1, 1, 2, 3, 4, 5, 6, 7, 9, 16, 35});
    return result;
  }
  void forget_all() { unknown_.clear(); }

 private:
  template <class Make>
  static IntTuple each(const IntTuple& t, const Make& make) {
    absl::InlinedVector<detail::TupleNode, 12> nodes(&t.node(), &t.node() + t.node().span);
    for (detail::TupleNode& node : nodes) {
      if (node.is_int()) node.value = make();
    }
    return detail::TupleBuilder::build(nodes.front());
  }

  // One in `odds` numbers.
  IntTuple forget(const IntTuple& t, int odds) {
    absl::InlinedVector<detail::TupleNode, 12> nodes(&t.node(), &t.node() + t.node().span);
    for (detail::TupleNode& node : nodes) {
      if (!node.is_int() || node.value.value() < 1 || below(odds) != 0) continue;
      const int64_t divisor = one_of({1, 2, 4, 4, 8, 16});
      node.value = SymInt::unknown(divisor);
      unknown_[node.value.polynomial().terms[0].symbols[0]->serial] = divisor;
    }
    return detail::TupleBuilder::build(nodes.front());
  }

  std::mt19937 random_;
  std::map<uint64_t, int64_t> unknown_;
};

}  // namespace heddle
