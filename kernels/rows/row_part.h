// What a thread holds of a row in registers. Internal to the kernels.
#pragma once

#include <utility>
#include <vector>

#include "heddle/dsl/dsl.h"

namespace heddle::kernels {

// In f32, in which kernels of rows compute.
template <class T>
Fragment<float> wide(const Fragment<T>& v) {
  return v.template as<float>();
}

// Values one after the other.
template <class T>
Fragment<T> packed(const std::vector<Value<T>>& values) {
  Var<Fragment<T>> all(Fragment<T>(static_cast<int>(values.size()), values[0]));
  for (size_t i = 1; i < values.size(); ++i) all[static_cast<int>(i)] = values[i];
  return all;
}

// Combined in a tree: neighbours first, then neighbours of what these gave.
template <class X, class Combine>
X in_tree(std::vector<X> all, Combine combine) {
  while (all.size() > 1) {
    std::vector<X> next;
    for (size_t i = 0; i + 1 < all.size(); i += 2) next.push_back(combine(all[i], all[i + 1]));
    if (all.size() % 2 != 0) next.push_back(all.back());
    all = std::move(next);
  }
  return all[0];
}

// What a thread holds of a row: vectors, and where vectors do not begin with the row, an element of its edges.
template <class T>
struct RowPart {
  std::vector<Fragment<T>> vectors;  // the last one is the edges' element, where there are edges
  std::vector<Bool> in_row;          // whether each of them lies in the row; none: all do

  // f(Fragment, the others' Fragments) of each; the others are parts of as many vectors.
  template <class To, class F, class... U>
  RowPart<To> map(F f, const RowPart<U>&... others) const {
    RowPart<To> out{{}, in_row};
    for (size_t i = 0; i < vectors.size(); ++i)
      out.vectors.push_back(f(vectors[i], others.vectors[i]...));
    return out;
  }
  // How many elements lie in the row.
  Float count() const {
    std::vector<Float> counts;
    for (size_t i = 0; i < vectors.size(); ++i) {
      const auto size = static_cast<float>(vectors[i].size());
      counts.push_back(in_row.empty() ? Float(size) : select(in_row[i], size, 0.0f));
    }
    return in_tree(std::move(counts), plus());
  }
  // All elements of f(Fragment), combined in a tree.
  template <class To, class F, class Combine>
  Value<To> fold(F f, Combine combine) const {
    std::vector<Value<To>> all;
    for (const Fragment<T>& v : vectors) all.push_back(elements(f(v), combine));
    return in_tree(std::move(all), combine);
  }
  // Of those in the row; `nothing` is what changes no result.
  template <class To, class F, class Combine>
  Value<To> fold_row(F f, Combine combine, const Value<To>& nothing) const {
    std::vector<Value<To>> all;
    for (size_t i = 0; i < vectors.size(); ++i) {
      const Value<To> one = elements(f(vectors[i]), combine);
      all.push_back(in_row.empty() ? one : select(in_row[i], one, nothing));
    }
    return in_tree(std::move(all), combine);
  }

 private:
  template <class To, class Combine>
  static Value<To> elements(const Fragment<To>& v, Combine combine) {
    std::vector<Value<To>> all;
    for (int i = 0; i < v.size(); ++i) all.push_back(v[i]);
    return in_tree(std::move(all), combine);
  }
};

// The sum of all elements of a part.
inline Float sum_of(const RowPart<float>& part) {
  return part.fold<float>([](const Fragment<float>& v) { return v; }, plus());
}
// The sum of the products of two vectors' elements, one after the other.
inline Float chained_products(const Fragment<float>& a, const Fragment<float>& b) {
  std::vector<Float> sums = {a[0] * b[0]};
  for (int i = 1; i < a.size(); ++i) sums.push_back(fma(a[i], b[i], sums.back()));
  return sums.back();
}
// The sum of the products of two parts' elements: fused operations, one after the other of a vector's, and then a tree. Of those
// in the row alone, where `only_row`.
inline Float sum_of_products(const RowPart<float>& a, const RowPart<float>& b,
                             bool only_row = false) {
  std::vector<Float> all;
  for (size_t v = 0; v < a.vectors.size(); ++v) {
    const Float sum = chained_products(a.vectors[v], b.vectors[v]);
    all.push_back(only_row && !a.in_row.empty() ? select(a.in_row[v], sum, 0.0f) : sum);
  }
  return in_tree(std::move(all), plus());
}

}  // namespace heddle::kernels
