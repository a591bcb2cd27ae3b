// Traced: what loops, If, Var, select, shuffles and kernel parameters carry as one thing.
//
// Values, vectors and fragments are Traced, and so are plain structs (aggregates without bases, at
// most twelve members), tuples and std::arrays of them:
//
//   struct Welford { Float mean, m2; Int count; };       // nothing to register
//   Welford w = For(range(n), Welford{0, 0, 0}, [&](Int i, Welford w) { … return w2; });
#pragma once

#include <concepts>
#include <tuple>

#include "heddle/dsl/value.h"

namespace heddle {
namespace detail {

// A leaf holds one Node. Value, Vec and Fragment are leaves.
template <class T>
concept Leaf = requires(T& t, const T& c) {
  { t.node() } -> std::same_as<Node&>;
  { c.node() } -> std::same_as<const Node&>;
};

// What holds as many Nodes as the host decides.
template <class T>
concept LeafRow = requires(T& t) {
  { *t.nodes().begin() } -> std::same_as<Node&>;
};

template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};

// Stands for any member when members are counted.
struct AnyMember {
  template <class U>
  operator U() const;
};

template <class T, class... Members>
concept BracedFrom = requires {
  T{Members{}...};
};

// From the most down, since a Value has no default and so every member needs its initializer.
template <class T, std::size_t... I>
constexpr bool has_members(std::index_sequence<I...>) {
  return BracedFrom<T, std::conditional_t<(I >= 0), AnyMember, void>...>;
}
template <class T, int kMembers = 13>
constexpr int count_members() {
  if constexpr (kMembers == 0 || has_members<T>(std::make_index_sequence<kMembers>())) {
    return kMembers;
  } else {
    return count_members<T, kMembers - 1>();
  }
}

template <class T>
concept PlainStruct = std::is_class_v<T> && std::is_aggregate_v<T> && !TupleLike<T>;

// Calls visit(member) for each direct member of a struct, tuple or array.
template <class T, class Visit>
constexpr void for_each_member(T& t, Visit&& visit) {
  using Plain = std::remove_const_t<T>;
  if constexpr (TupleLike<Plain>) {
    using std::get;
    [&]<std::size_t... I>(std::index_sequence<I...>) { (visit(get<I>(t)), ...); }
    (std::make_index_sequence<std::tuple_size<Plain>::value>());
  } else {
    constexpr int kMembers = count_members<Plain>();
    static_assert(kMembers <= 12, "a traced struct has at most twelve members");
#define HEDDLE_BIND(n, ...)                                \
  if constexpr (kMembers == n) {                           \
    auto& [__VA_ARGS__] = t;                               \
    const auto all = [&](auto&... m) { (visit(m), ...); }; \
    all(__VA_ARGS__);                                      \
  }
    HEDDLE_BIND(1, a)
    HEDDLE_BIND(2, a, b)
    HEDDLE_BIND(3, a, b, c)
    HEDDLE_BIND(4, a, b, c, d)
    HEDDLE_BIND(5, a, b, c, d, e)
    HEDDLE_BIND(6, a, b, c, d, e, f)
    HEDDLE_BIND(7, a, b, c, d, e, f, g)
    HEDDLE_BIND(8, a, b, c, d, e, f, g, h)
    HEDDLE_BIND(9, a, b, c, d, e, f, g, h, i)
    HEDDLE_BIND(10, a, b, c, d, e, f, g, h, i, j)
    HEDDLE_BIND(11, a, b, c, d, e, f, g, h, i, j, k)
    HEDDLE_BIND(12, a, b, c, d, e, f, g, h, i, j, k, l)
#undef HEDDLE_BIND
  }
}

template <class T>
constexpr bool is_traced();

template <class T, std::size_t... I>
constexpr bool members_are_traced(std::index_sequence<I...>) {
  return (is_traced<std::tuple_element_t<I, T>>() && ...);
}

template <class T>
constexpr bool is_traced() {
  if constexpr (Leaf<T> || LeafRow<T>) {
    return true;
  } else if constexpr (TupleLike<T>) {
    return members_are_traced<T>(std::make_index_sequence<std::tuple_size<T>::value>());
  } else if constexpr (PlainStruct<T>) {
    return count_members<T>() > 0;
  } else {
    return false;
  }
}

}  // namespace detail

// What loops, If, Var, select, shuffles and kernel parameters carry: a value, vector or fragment;
// or a plain struct, tuple or std::array of such.
template <class T>
concept Traced = detail::is_traced<T>();

namespace detail {

// Calls visit(Node&) for every leaf, in order of declaration.
template <class T, class Visit>
constexpr void for_each_leaf(T& t, Visit&& visit) {
  using Plain = std::remove_const_t<T>;
  if constexpr (Leaf<Plain>) {
    visit(t.node());
  } else if constexpr (LeafRow<Plain>) {
    for (auto& node : t.nodes()) visit(node);
  } else {
    static_assert(TupleLike<Plain> || PlainStruct<Plain>,
                  "only values, vectors, fragments and structs, tuples and arrays of them are "
                  "traced: keep host data out of what a loop or If() carries");
    for_each_member(t, [&](auto& member) { for_each_leaf(member, visit); });
  }
}

template <class T>
constexpr int leaf_count(const T& t) {
  int count = 0;
  for_each_leaf(t, [&](const Node&) { ++count; });
  return count;
}

// Makes any Traced type that has no Fragment in it: its leaves are zeros, to be counted or filled.
struct Blank {
  template <class T>
  requires(is_traced<T>()) operator T() const {
    if constexpr (Leaf<T>) {
      return T(T::blank());
    } else {
      constexpr int kMembers = [] {
        if constexpr (TupleLike<T>) {
          return static_cast<int>(std::tuple_size<T>::value);
        } else {
          return count_members<T>();
        }
      }();
      return make<T>(std::make_index_sequence<kMembers>());
    }
  }
  template <class T, std::size_t... I>
  T make(std::index_sequence<I...>) const {
    if constexpr (requires { T{(static_cast<void>(I), *this)...}; }) {
      return T{(static_cast<void>(I), *this)...};
    } else {
      return T(std::tuple_element_t<I, T>(*this)...);
    }
  }
};
template <class T>
T blank() {
  return Blank().operator T();
}

// A small list of nodes on the stack: the leaves of what a construct carries.
class NodeList {
 public:
  static constexpr int kMax = 64;

  template <class T>
  void append(const T& t) {
    for_each_leaf(t, [this](const Node& node) {
      if (size_ < kMax) nodes_[size_] = node;
      ++size_;
    });
  }
  // Writes the nodes back into the leaves of `t`, from position `first` on; returns the next one.
  template <class T>
  int write_to(T& t, int first = 0) const {
    for_each_leaf(t, [&](Node& node) { node = nodes_[first++]; });
    return first;
  }

  Node* data() { return nodes_; }
  const Node* data() const { return nodes_; }
  int size() const { return size_ < kMax ? size_ : kMax; }
  bool overflown() const { return size_ > kMax; }

 private:
  Node nodes_[kMax];
  int size_ = 0;
};

// The Traced type of an argument: its own, or the Value that it reads as.
template <class X>
struct TracedOf {
  using type = X;
};
template <class X>
requires(Readable<X> && !Leaf<X>) struct TracedOf<X> {
  using type = Value<typename X::value_type>;
};
template <class X>
requires is_scalar<X>
struct TracedOf<X> {
  using type = Value<X>;
};
template <class X>
requires requires { typename X::whole_type; }
struct TracedOf<X> {
  using type = typename X::whole_type;
};
template <class X>
using traced_t = typename TracedOf<std::remove_cvref_t<X>>::type;

}  // namespace detail

// select() on anything Traced, leaf by leaf.
template <Traced T>
requires(!detail::Readable<T>) T
    select(const Bool& condition, const T& a, const T& b, SourceLoc loc = SourceLoc::current()) {
  T result = a;
  detail::NodeList left, right;
  left.append(a);
  right.append(b);
  for (int i = 0; i < left.size(); ++i) {
    left.data()[i] =
        detail::emit(detail::op::kSelect, condition.node(), left.data()[i], right.data()[i], loc);
  }
  left.write_to(result);
  return result;
}

}  // namespace heddle
