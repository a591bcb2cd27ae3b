// Elementwise functions of several operands: what one of them gives, and its operands at one shape.
//
//   template <class A, class B, class S = detail::Together<A, B>>      // Float, Vec<float, 4>, …
//   requires detail::Elementwise<S, A, B>
//   S hypotenuse(const A& a, const B& b, SourceLoc loc = SourceLoc::current()) {
//     const auto [x, y] = detail::together<S>(loc, a, b);
//     return sqrt(x * x + y * y);
//   }
#pragma once

#include <array>
#include <utility>

#include "heddle/dsl/vec.h"

namespace heddle {

class SymInt;

namespace detail {

// Numbers of layouts have arithmetic of their own, which an integer of the kernel beside them
// joins.
template <class X>
concept OwnArithmetic = std::is_same_v<X, SymInt>;

// What an operand is by itself: a Value (of an int32_t where arithmetic promotes it), a Vec, a
// Fragment; void for a host number, which follows the others.
template <class X>
struct WholeOf {
  using type = void;
};
template <class X>
requires(Readable<X> && !OwnArithmetic<X> &&
         is_promoted<typename X::value_type>) struct WholeOf<X> {
  using type = Value<int32_t>;
};
template <class X>
requires(Readable<X> && !OwnArithmetic<X> &&
         !is_promoted<typename X::value_type>) struct WholeOf<X> {
  using type = Value<typename X::value_type>;
};
template <class X>
requires(Leaf<X> && !Readable<X>) struct WholeOf<X> {
  using type = X;
};
template <class X>
requires(!Leaf<X> && Leaf<typename X::whole_type>) struct WholeOf<X> {
  using type = typename X::whole_type;
};

template <class S>
inline constexpr bool is_group = !std::is_void_v<S> && !Readable<S>;

// The first vector or fragment among the operands, else the first value.
template <class... X>
struct TogetherOf {
  using type = void;
};
template <class First, class... Rest>
struct TogetherOf<First, Rest...> {
  using Whole = typename WholeOf<First>::type;
  using Others = typename TogetherOf<Rest...>::type;
  using type = std::conditional_t<std::is_void_v<Whole> || (!is_group<Whole> && is_group<Others>),
                                  Others, Whole>;
};
template <class... X>
using Together = typename TogetherOf<X...>::type;

template <class S>
struct OperandOf {
  using type = void;
};
template <class S>
requires requires { typename Shape<S>::Operand; }
struct OperandOf<S> {
  using type = typename Shape<S>::Operand;
};
// The elements of S; void where it is no shape.
template <class S>
struct ShapeElement {
  using type = void;
};
template <class S>
requires requires { typename Shape<S>::Element; }
struct ShapeElement<S> {
  using type = typename Shape<S>::Element;
};

// Whether all operands may stand together in an S.
template <class S, class... X>
concept Elementwise =
    !std::is_void_v<S> && (std::is_convertible_v<const X&, typename OperandOf<S>::type> && ...);

// The operands, each an S.
template <class S, class... X>
std::array<S, sizeof...(X)> together(SourceLoc loc, const X&... x) {
  Node nodes[] = {typename Shape<S>::Operand(x, loc).node...};
  if constexpr (is_group<S>) spread_all(nodes, sizeof...(X), loc);
  return [&]<std::size_t... I>(std::index_sequence<I...>)->std::array<S, sizeof...(X)> {
    return {S(nodes[I])...};
  }
  (std::make_index_sequence<sizeof...(X)>());
}

}  // namespace detail
}  // namespace heddle
