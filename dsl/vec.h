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

// The index of a vector or fragment, a host number, with the caller's line.
struct HostIndex {
  int value;      // the index
  SourceLoc loc;  // the line that gave it
  // From a host number.
  HostIndex(int index, SourceLoc where = SourceLoc::current()) : value(index), loc(where) {}
};

// An element of a vector or fragment, by host index.
template <class T>
Value<T> element(const Node& whole, int index, SourceLoc loc) {
  return Value<T>(emit_part(scalar_type<T>(), op::kExtract, whole, index, loc));
}

// What converts to a vector or fragment without being one: a Var of one, neighbouring elements of a
// tensor.
template <class X, class Self>
concept ReadsAsGroup = !std::is_same_v<X, Self> && std::is_convertible_v<const X&, Self>;

template <class Self>
struct GroupOperand : GroupOperandBase {
  using T = typename Self::element_type;
  GroupOperand(const Self& self, SourceLoc where = SourceLoc::current())
      : GroupOperandBase{self.node(), where} {}
  template <class X>
  requires ReadsAsGroup<X, Self> GroupOperand(const X& x, SourceLoc where = SourceLoc::current())
      : GroupOperandBase{static_cast<Self>(x).node(), where} {}
  template <class X>
  requires std::is_convertible_v<X, Arg<T>> GroupOperand(const X& x,
                                                         SourceLoc where = SourceLoc::current())
      : GroupOperandBase{Arg<T>(x, where).node, where} {}
};

// Shift counts: one for all elements, or one each.
template <class Ints, class UInts>
struct GroupCount : GroupOperandBase {
  template <class X>
  requires std::is_convertible_v<const X&, UInts> GroupCount(const X& x,
                                                             SourceLoc where = SourceLoc::current())
      : GroupOperandBase{static_cast<UInts>(x).node(), where} {}
  template <class X>
  requires std::is_convertible_v<const X&, Ints> GroupCount(const X& x,
                                                            SourceLoc where = SourceLoc::current())
      : GroupOperandBase{static_cast<Ints>(x).node(), where} {}
  template <class X>
  requires std::is_convertible_v<X, ShiftCount> GroupCount(const X& x,
                                                           SourceLoc where = SourceLoc::current())
      : GroupOperandBase{ShiftCount(x, where).node, where} {}
};

template <class T, int N>
struct Shape<Vec<T, N>> {
  using Element = T;
  using Operand = GroupOperand<Vec<T, N>>;
  using Condition = GroupOperand<Vec<bool, N>>;
  using Count = GroupCount<Vec<int32_t, N>, Vec<uint32_t, N>>;
  template <class U>
  using With = Vec<U, N>;
};
template <class T>
struct Shape<Fragment<T>> {
  using Element = T;
  using Operand = GroupOperand<Fragment<T>>;
  using Condition = GroupOperand<Fragment<bool>>;
  using Count = GroupCount<Fragment<int32_t>, Fragment<uint32_t>>;
  template <class U>
  using With = Fragment<U>;
};

// Small integers in vectors and fragments have no arithmetic, as small floats have none anywhere.
template <class Self, class T>
using GroupOperators = OperatorFamily<T, Self, ChoiceOperators<Self>>;

// Refuses an index that the kernel computes.
struct NoTracedIndex {
  template <Readable X>
  HEDDLE_MISTAKE(
      "the elements of vectors, fragments and arrays of values are registers, named by host "
      "numbers: for an index that the kernel computes use a Local<T> (an array of the thread) or "
      "a Constant<T> (a lookup table)")
  void
  operator[](const X&) const;
};

}  // namespace detail

// A register vector: 2, 4, 8 or 16 elements of T, at most 16 bytes (32 on sm_100), so that one
// access moves it. Operators work element by element; a scalar beside a vector counts for all its
// elements.
template <class T, int N>
class Vec : public detail::GroupOperators<Vec<T, N>, T>,
            public detail::NeverChanges,
            public detail::NoTracedIndex {
  static_assert(N == 2 || N == 4 || N == 8 || N == 16, "a vector has 2, 4, 8 or 16 elements");
  static_assert(N * sizeof(T) <= 32,
                "a vector is at most 16 bytes (32 on sm_100): use Fragment<T>");

 public:
  using element_type = T;
  // Elements.
  static constexpr int size() { return N; }

  // All elements are `x`; or N elements, one by one.
  explicit Vec(const Value<T>& x, SourceLoc loc = SourceLoc::current())
      : node_(detail::emit_as(type(), detail::op::kSplat, x.node(), loc)) {}
  template <class... X>
  requires(sizeof...(X) == N &&
           (std::is_convertible_v<X, detail::Arg<T>> && ...)) explicit Vec(const X&... elements) {
    const detail::Node nodes[] = {Value<T>(elements).node()...};
    node_ = detail::emit_pack(type(), nodes, N, {});
  }
  Vec(const Vec&) = default;
  HEDDLE_MISTAKE(
      "a Vec is a value, which never changes: declare it as a Var<Vec<T, N>>, or let the loop or "
      "If() return "
      "the new one")
  Vec& operator=(const Vec&);
  explicit Vec(detail::Node node) : node_(node) {}

  using detail::NoTracedIndex::operator[];
  // Element `index`, a host number; another one than 0 to size() - 1 is an error of the kernel.
  Value<T> operator[](detail::HostIndex index) const { return get(index.value, index.loc); }
  Value<T> get(int index, SourceLoc loc = SourceLoc::current()) const {
    return detail::element<T>(node_, index, loc);
  }
  // For `auto [a, b] = v`.
  template <std::size_t kIndex>
  Value<T> get() const {
    return detail::element<T>(node_, static_cast<int>(kIndex), {});
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
  static detail::Node blank() { return {.type = type()}; }
  detail::Node& node() { return node_; }
  const detail::Node& node() const { return node_; }

 private:
  detail::Node node_;
};

// A register tile: any number of elements of T, a host number, which the thread keeps in registers.
// Operators work element by element, between fragments of the same size; a scalar counts for all
// elements.
template <class T>
class Fragment : public detail::GroupOperators<Fragment<T>, T>,
                 public detail::NeverChanges,
                 public detail::NoTracedIndex {
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
  HEDDLE_MISTAKE(
      "a Fragment is a value, which never changes: declare it as a Var<Fragment<T>>, or let the "
      "loop or If() return "
      "the new one")
  Fragment& operator=(const Fragment&);
  explicit Fragment(detail::Node node) : node_(node) {}

  // Elements.
  int size() const { return node_.type.count; }
  using detail::NoTracedIndex::operator[];
  // Element `index`, a host number; another one than 0 to size() - 1 is an error of the kernel.
  Value<T> operator[](detail::HostIndex index) const { return get(index.value, index.loc); }
  Value<T> get(int index, SourceLoc loc = SourceLoc::current()) const {
    return detail::element<T>(node_, index, loc);
  }
  // The `count` elements from `first` on.
  Fragment slice(int first, int count, SourceLoc loc = SourceLoc::current()) const {
    return Fragment(detail::emit_part(detail::fragment_type(detail::scalar_of<T>(), count, loc),
                                      detail::op::kSlice, node_, first, loc));
  }
  // Element-by-element conversion, as by cast<To>().
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

// Element by element, as cast<To>() of a value: v.as<To>().
template <class To, class T, int N>
auto cast(const Vec<T, N>& v, SourceLoc loc = SourceLoc::current()) {
  return v.template as<To>(loc);
}
template <class To, class T>
Fragment<To> cast(const Fragment<T>& v, SourceLoc loc = SourceLoc::current()) {
  return v.template as<To>(loc);
}

// Negation of conditions, element by element.
template <int N>
Vec<bool, N> operator!(const Vec<bool, N>& v) {
  return Vec<bool, N>(detail::emit(detail::op::kNot, v.node(), {}));
}
inline Fragment<bool> operator!(const Fragment<bool>& v) {
  return Fragment<bool>(detail::emit(detail::op::kNot, v.node(), {}));
}

}  // namespace heddle

template <class T, int N>
struct std::tuple_size<heddle::Vec<T, N>> : std::integral_constant<std::size_t, N> {};
template <std::size_t kIndex, class T, int N>
struct std::tuple_element<kIndex, heddle::Vec<T, N>> {
  using type = heddle::Value<T>;
};
