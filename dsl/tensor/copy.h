// Operations on all elements of a tensor: copies, fills, sums and matrix products.
//
//   copy(x_part, registers);                          // the widest accesses that are known legal
//   copy_if(within(where_part, {rows, columns}), x_part, registers);      // edges of the matrix
//   fill(sums, 0.0f);
//   gemm(a, b, sums);                                  // sums(m,n) += a(m,k) * b(n,k)
//   axpby(alpha, sums, beta, y_part);                  // y = alpha * sums + beta * y
//
// Elements correspond by their number, first mode first, whatever the tensors' shapes; the tensors
// have the same size. Neighbours in memory are moved by one access of up to 16 bytes, where layout
// and alignment are known to allow it for all arguments. Both sides may be memory of any kind.
// Element types are converted as by cast<T>(). Accesses are unrolled, so sizes must be host
// numbers, except for copies from memory to memory.
#pragma once

#include "heddle/dsl/tensor/tensor.h"

namespace heddle {

// A predicate for copy_if(): elements take part whose coordinate lies within a shape. An identity
// tensor, partitioned as the elements are, has the coordinates.
//
//   Tensor<Coord> where = make_identity_tensor({m, n});      // partitioned as x is
//   copy_if(within(where_part, {m, n}), x_part, registers);
struct Within {
  detail::AnyTensor coords;
  IntTuple shape;  // what each coordinate has to be less than
};
inline Within within(const Tensor<Coord>& coords, const IntTuple& shape) {
  return {coords.any(), shape};
}

namespace detail {

// Which elements take part: all, those whose flag is set, or those within a shape.
struct Predicate {
  const AnyTensor* flags = nullptr;
  const Within* within = nullptr;
};

// `exact`: elements of each access to memory; 0: as many as can be.
void copy_tensors(const Predicate& predicate, const AnyTensor& from, const AnyTensor& to,
                  SourceLoc loc, int exact = 0);
void fill_tensor(const AnyTensor& tensor, const Node& value, SourceLoc loc);
// y = alpha * x + beta * y, in y's type.
void axpby_tensors(const Node& alpha, const AnyTensor& x, const Node& beta, const AnyTensor& y,
                   SourceLoc loc);
void gemm_tensors(const AnyTensor& a, const AnyTensor& b, const AnyTensor& c, SourceLoc loc);
Node within_node(const IntTuple& coord, const IntTuple& shape, SourceLoc loc);
Within within_view(const AnyTensor& tensor, SourceLoc loc);
// All elements of a tensor by their number, as a fragment; and from one.
Node gather(const AnyTensor& tensor, SourceLoc loc);
void scatter(const AnyTensor& tensor, const Node& fragment, SourceLoc loc);

template <class X>
using ElementOf = std::remove_const_t<typename TensorElement<X>::type>;
template <class X>
concept Writable = TensorLike<X> && !std::is_const_v<typename TensorElement<X>::type>;

}  // namespace detail

// Elements take part that lie within the view that the tensor is a part of, as tiles at the edges of a
// matrix reach beyond it. The tensor has one layout to the view's coordinate, as its tiles and partitions do.
template <detail::TensorLike X>
Within within(const X& x, SourceLoc loc = SourceLoc::current()) {
  return detail::within_view(detail::as_tensor(x, loc).any(), loc);
}
// Whether a coordinate lies within a shape: each of its numbers is less than the extent.
inline Bool within(const IntTuple& coord, const IntTuple& shape,
                   SourceLoc loc = SourceLoc::current()) {
  return Bool(detail::within_node(coord, shape, loc));
}

// Copies all elements. Their number must be the same on both sides; types are converted.
template <detail::TensorLike From, detail::Writable To>
void copy(const From& from, const To& to, SourceLoc loc = SourceLoc::current()) {
  detail::copy_tensors({}, detail::as_tensor(from, loc).any(), detail::as_tensor(to, loc).any(),
                       loc);
}
// Copies the elements for which a predicate holds; the others are not accessed on either side. The
// predicate is a flag for each element, or a shape that coordinates lie within. Accesses stay wide
// where all elements of a vector have the same flag (stride 0), or where the shape cannot end
// within a vector.
template <detail::TensorLike From, detail::Writable To>
void copy_if(const Tensor<const bool>& predicate, const From& from, const To& to,
             SourceLoc loc = SourceLoc::current()) {
  detail::copy_tensors({.flags = &predicate.any()}, detail::as_tensor(from, loc).any(),
                       detail::as_tensor(to, loc).any(), loc);
}
template <detail::TensorLike From, detail::Writable To>
void copy_if(const Within& predicate, const From& from, const To& to,
             SourceLoc loc = SourceLoc::current()) {
  detail::copy_tensors({.within = &predicate}, detail::as_tensor(from, loc).any(),
                       detail::as_tensor(to, loc).any(), loc);
}

// Sets all elements to a value, or to zero (clear).
template <detail::Writable X>
void fill(const X& x, detail::Arg<detail::ElementOf<X>> value) {
  detail::fill_tensor(detail::as_tensor(x, value.loc).any(), value.node, value.loc);
}
template <detail::Writable X>
void clear(const X& x, SourceLoc loc = SourceLoc::current()) {
  fill(x, {detail::ElementOf<X>{}, loc});
}

// y = alpha * x + beta * y. Where beta is the host's 0, y is not read.
template <detail::TensorLike X, detail::Writable Y>
void axpby(detail::Arg<detail::ElementOf<Y>> alpha, const X& x,
           detail::Arg<detail::ElementOf<Y>> beta, const Y& y) {
  detail::axpby_tensors(alpha.node, detail::as_tensor(x, alpha.loc).any(), beta.node,
                        detail::as_tensor(y, alpha.loc).any(), alpha.loc);
}

// Matrix product: c(m,n) += the sum over k of a(m,k) * b(n,k), by fused multiply-adds in c's type,
// in the order of k. With a further mode in front, v, there is a product for each of its
// coordinates.
template <detail::TensorLike A, detail::TensorLike B, detail::Writable C>
void gemm(const A& a, const B& b, const C& c, SourceLoc loc = SourceLoc::current()) {
  detail::gemm_tensors(detail::as_tensor(a, loc).any(), detail::as_tensor(b, loc).any(),
                       detail::as_tensor(c, loc).any(), loc);
}

// All elements of a tensor as a Fragment, in the order of their number (load), and back (store).
// y(i) = f(x(i)) for every i is
//
//   store(y, f(load(x)));
template <detail::TensorLike X>
auto load(const X& x, SourceLoc loc = SourceLoc::current()) {
  return Fragment<detail::ElementOf<X>>(detail::gather(detail::as_tensor(x, loc).any(), loc));
}
template <detail::Writable X>
void store(const X& x, const Fragment<detail::ElementOf<X>>& values,
           SourceLoc loc = SourceLoc::current()) {
  detail::scatter(detail::as_tensor(x, loc).any(), values.node(), loc);
}

// Elements in place of tensors.
#define HEDDLE_REFUSED(name)                                                             \
  template <class... X>                                                                  \
  requires(detail::Readable<X> || ...) HEDDLE_MISTAKE(                                   \
      "an element is no tensor: where a tuple of the coordinate has _, t.slice({a, b}) " \
      "gives the tensor that t(a, b) does not")                                          \
  void name(const X&...);
HEDDLE_REFUSED(copy)
HEDDLE_REFUSED(copy_if)
HEDDLE_REFUSED(gemm)
#undef HEDDLE_REFUSED

}  // namespace heddle
