// Functions of elements over whole tensors, with broadcasting, and reductions.
//
//   transform(y, [](const Float& a, const Float& b) { return a * b; }, x, row);   // y = x * row
//   Float total = reduce(x, plus());                               // over all elements
//   Tensor<float> sums = reduce(x, 1, plus());                     // over mode 1: one for each row
//
// Elements correspond by their coordinates. Broadcasting repeats a mode of one element as often as
// needed: beside x of shape (8,4), a `row` is (1,4) and a `column` (8,1) or (8).
#pragma once

#include <vector>

#include "heddle/dsl/collective/reduce.h"
#include "heddle/dsl/tensor/copy.h"

namespace heddle {
namespace detail {

AnyTensor broadcast(const AnyTensor& tensor, const IntTuple& shape, SourceLoc loc);
// A mode's layout, and that of all others in its place among them.
struct SplitModes {
  AnyTensor tensor;  // (mode,others)
  IntTuple others;
};
SplitModes split_off(const AnyTensor& tensor, int mode, SourceLoc loc);

template <class T, class Op>
Value<T> reduced(const Fragment<T>& values, int first, int count, const Op& op) {
  if (count == 1) return values.get(first);
  // A tree: no longer than its depth, and more exact than a row.
  const int half = count / 2;
  return op(reduced(values, first, half, op), reduced(values, first + half, count - half, op));
}

}  // namespace detail

// Broadcasting: the tensor with another shape, where modes of one element are repeated (stride 0).
template <detail::TensorLike X>
auto broadcast(const X& x, const IntTuple& shape, SourceLoc loc = SourceLoc::current()) {
  using Result = Tensor<typename detail::TensorElement<X>::type>;
  return Result(detail::broadcast(detail::as_tensor(x, loc).any(), shape, loc));
}

// Applies a function elementwise: y(c) = f(x(c)…) for each coordinate c of y. The operands are
// broadcast.
template <detail::Writable Y, class F, detail::TensorLike... X>
requires(sizeof...(X) > 0) void transform(const Y& y, F&& f, const X&... x) {
  using T = detail::ElementOf<Y>;
  const SourceLoc loc{};
  const Tensor<T> out = detail::as_tensor(y, loc);
  const auto apply = [&](const auto&... values) {
    const int counts[] = {values.size()...};
    const int count = counts[0];
    std::vector<detail::Node> results;
    for (int i = 0; i < count; ++i) results.push_back(Value<T>(f(values.get(i)...)).node());
    store(out,
          Fragment<T>(detail::emit_pack(detail::fragment_type(detail::scalar_of<T>(), count, loc),
                                        results.data(), count, loc)),
          loc);
  };
  if (out.ok()) apply(load(broadcast(x, out.shape(), loc), loc)...);
}

// Reduces all elements of a fragment or tensor to one, by a binary tree over halves, whose order is
// fixed.
template <class T, class Op>
Value<T> reduce(const Fragment<T>& values, const Op& op) {
  return detail::reduced(values, 0, values.size(), op);
}
template <detail::TensorLike X, class Op>
auto reduce(const X& x, const Op& op, SourceLoc loc = SourceLoc::current()) {
  return reduce(load(x, loc), op);
}
// Reduces over one mode; the result is a tensor in registers with the other modes.
template <detail::TensorLike X, class Op>
auto reduce(const X& x, int mode, const Op& op, SourceLoc loc = SourceLoc::current()) {
  using T = detail::ElementOf<X>;
  const detail::SplitModes split = detail::split_off(detail::as_tensor(x, loc).any(), mode, loc);
  Tensor<T> result = make_tensor<T>(make_layout(split.others), loc);
  if (!split.tensor.layout.ok() || !result.ok()) return result;
  const Fragment<T> values(detail::gather(split.tensor, loc));
  const int count = static_cast<int>(size(get(split.tensor.layout, 0)).value());
  std::vector<detail::Node> results;
  for (int first = 0; first < values.size(); first += count) {
    results.push_back(detail::reduced(values, first, count, op).node());
  }
  const int others = static_cast<int>(results.size());
  store(result,
        Fragment<T>(detail::emit_pack(detail::fragment_type(detail::scalar_of<T>(), others, loc),
                                      results.data(), others, loc)),
        loc);
  return result;
}

}  // namespace heddle
