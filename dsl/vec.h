// Register vectors and tiles.
//
//   Vec<float, 4> v = x.vec<4>(row, col);        // one 16-byte load
//   Float first = v[0];                          // free
//   Vec<float, 4> w = v * 2.0f + 1.0f;           // element by element
//   Fragment<float> acc(64, 0.0f);               // 64 registers a thread, carried by loops as one
//
// Vec<T, N> is at most one memory access wide (16 bytes; 32 on sm_100). A Fragment's size is a host
// number. Both are values: their elements never change, and are named by host indices.
#pragma once

#include "heddle/dsl/traced.h"

namespace heddle {

template <class T, int N>
class Vec;
template <class T>
class Fragment;

namespace detail {

// An operand of operator[], which takes no second argument for the line.
struct HostIndex {
  int value;
  SourceLoc loc;
  HostIndex(int index, SourceLoc where = SourceLoc::current()) : value(index), loc(where) {}
};

// An element of a vector or fragment, by host index.
template <class T>
Value<T> element(const Node& whole, int index, SourceLoc loc) {
  return Value<T>(emit_part(scalar_type<T>(), op::kExtract, whole, index, loc));
}

// The same elements as a value of another kind; they must be as many.
inline Node regrouped(const Node& elements, NodeType type, SourceLoc loc) {
  return emit_pack(type, &elements, 1, loc);
}

// Elementwise operators for `Self`, a vector or fragment of T; scalars spread over its elements.
template <class Self, class T>
struct ElementwiseOperators {
  // An operand: Self, or a scalar that becomes one at the other side's shape.
  struct Operand {
    Node node;
    SourceLoc loc;
    Operand(const Self& self, SourceLoc where = SourceLoc::current())
        : node(self.node()), loc(where) {}
    template <class X>
    requires std::is_convertible_v<X, Arg<T>> Operand(const X& x,
                                                      SourceLoc where = SourceLoc::current())
        : node(Value<T>(x).read_node(where)), loc(where) {}
  };

  friend Self operator-(const Self& a) { return Self(emit(op::kNeg, a.node(), {})); }
  friend Self abs(const Self& a) { return Self(emit(op::kAbs, a.node(), {})); }
  friend Self operator+(const Operand& a, const Operand& b) { return apply(op::kAdd, a, b); }
  friend Self operator-(const Operand& a, const Operand& b) { return apply(op::kSub, a, b); }
  friend Self operator*(const Operand& a, const Operand& b) { return apply(op::kMul, a, b); }
  friend Self operator/(const Operand& a, const Operand& b) { return apply(op::kDiv, a, b); }
  friend Self min(const Operand& a, const Operand& b) { return apply(op::kMin, a, b); }
  friend Self max(const Operand& a, const Operand& b) { return apply(op::kMax, a, b); }
  friend Self fma(const Operand& a, const Operand& b, const Operand& c) {
    const NodeType shape = widest(widest(a.node.type, b.node.type), c.node.type);
    return Self(emit(op::kFma, spread(a.node, shape, a.loc), spread(b.node, shape, b.loc),
                     spread(c.node, shape, c.loc), c.loc));
  }

 private:
  static NodeType widest(NodeType a, NodeType b) { return a.count >= b.count ? a : b; }
  static Self apply(ir::Opcode opcode, const Operand& a, const Operand& b) {
    const NodeType shape = widest(a.node.type, b.node.type);
    return Self(emit(opcode, spread(a.node, shape, a.loc), spread(b.node, shape, b.loc), b.loc));
  }
};

}  // namespace detail

template <class T, int N>
class Vec : public detail::ElementwiseOperators<Vec<T, N>, T> {
  static_assert(N == 2 || N == 4 || N == 8 || N == 16, "a vector has 2, 4, 8 or 16 elements");
  static_assert(N * sizeof(T) <= 32,
                "a vector is at most 16 bytes (32 on sm_100): use Fragment<T>");

 public:
  using element_type = T;
  static constexpr int size() { return N; }

  // Every element is `x`; or one element each.
  explicit Vec(const Value<T>& x, SourceLoc loc = SourceLoc::current())
      : node_(detail::emit_as(type(), detail::op::kSplat, x.node(), loc)) {}
  template <class... X>
  requires(sizeof...(X) == N &&
           (std::is_convertible_v<X, detail::Arg<T>> && ...)) explicit Vec(const X&... elements) {
    const detail::Node nodes[] = {Value<T>(elements).node()...};
    node_ = detail::emit_pack(type(), nodes, N, {});
  }
  Vec(const Vec&) = default;
  Vec& operator=(const Vec&) requires ValuesNeverChangeUseVarOrANonConstTensor<T>;
  explicit Vec(detail::Node node) : node_(node) {}

  Value<T> operator[](detail::HostIndex index) const { return get(index.value, index.loc); }
  Value<T> get(int index, SourceLoc loc = SourceLoc::current()) const {
    return detail::element<T>(node_, index, loc);
  }
  // The elements of a fragment of N.
  explicit Vec(const Fragment<T>& fragment, SourceLoc loc = SourceLoc::current())
      : node_(detail::regrouped(fragment.node(), type(), loc)) {}

  // Element-by-element conversion: a Vec, or a Fragment where that would be too wide.
  template <class To>
  auto as(SourceLoc loc = SourceLoc::current()) const {
    if constexpr (std::is_same_v<To, T>) {
      return *this;
    } else if constexpr (N * sizeof(To) > 32) {
      return Fragment<T>(*this, loc).template as<To>(loc);
    } else {
      return Vec<To, N>(detail::emit_as(Vec<To, N>::type(), detail::op::kConvert, node_, loc));
    }
  }

  static detail::NodeType type() { return detail::vector_type(detail::scalar_of<T>(), N); }
  detail::Node& node() { return node_; }
  const detail::Node& node() const { return node_; }

 private:
  detail::Node node_;
};

template <class T>
class Fragment : public detail::ElementwiseOperators<Fragment<T>, T> {
 public:
  using element_type = T;

  // `count` elements, all `x`.
  Fragment(int count, const Value<T>& x, SourceLoc loc = SourceLoc::current())
      : node_(detail::emit_as(detail::fragment_type(detail::scalar_of<T>(), count, loc),
                              detail::op::kSplat, x.node(), loc)) {}
  // The elements of a vector.
  template <int N>
  explicit Fragment(const Vec<T, N>& vec, SourceLoc loc = SourceLoc::current())
      : node_(detail::regrouped(vec.node(), detail::fragment_type(detail::scalar_of<T>(), N, loc),
                                loc)) {}
  Fragment(const Fragment&) = default;
  Fragment& operator=(const Fragment&) requires ValuesNeverChangeUseVarOrANonConstTensor<T>;
  explicit Fragment(detail::Node node) : node_(node) {}

  int size() const { return node_.type.count; }
  Value<T> operator[](detail::HostIndex index) const { return get(index.value, index.loc); }
  Value<T> get(int index, SourceLoc loc = SourceLoc::current()) const {
    return detail::element<T>(node_, index, loc);
  }
  // The `count` elements from `first` on.
  Fragment slice(int first, int count, SourceLoc loc = SourceLoc::current()) const {
    return Fragment(detail::emit_part(detail::fragment_type(detail::scalar_of<T>(), count, loc),
                                      detail::op::kSlice, node_, first, loc));
  }
  template <class To>
  Fragment<To> as(SourceLoc loc = SourceLoc::current()) const {
    return Fragment<To>(detail::emit_as(detail::fragment_type(detail::scalar_of<To>(), size(), loc),
                                        detail::op::kConvert, node_, loc));
  }

  detail::Node& node() { return node_; }
  const detail::Node& node() const { return node_; }

 private:
  detail::Node node_;
};

}  // namespace heddle
