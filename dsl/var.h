// Var<T>: a variable of the thread that may change.
//
//   Var<float> sum(0.0f);
//   for (Int i : range(n)) sum += x(i);
//   y(0) = sum;
//
//   Var<std::array<Float, 4>> best({…});      // arrays, vectors and fragments by element:
//   best[2] = x(i);                           // indices are host numbers
//
// T is a scalar or anything Traced: `Var<Welford> w(Welford{0, 0, 0})`. A Var costs nothing: the
// compiler turns it into carried values.
#pragma once

#include <array>

#include "heddle/dsl/element.h"

namespace heddle {

#define HEDDLE_NOT_COPIED                                                                          \
  HEDDLE_MISTAKE(                                                                                  \
      "a Var is not copied, for a copy would change instead of it: capture it by reference, [&], " \
      "and "                                                                                       \
      "pass it as Var<T>&; a second variable starts from its value, Var<T> b(a.get())")
#define HEDDLE_NEEDS_A_VALUE HEDDLE_MISTAKE("a Var starts from a value: Var<float> sum(0.0f)")

// A variable of one scalar; it reads as Value<T> and takes part in arithmetic.
template <class T>
class Var : public detail::Operators<T> {
  using Operand = detail::Arg<std::conditional_t<detail::is_promoted<T>, int32_t, T>>;

 public:
  using value_type = T;

  // A variable that starts from a value.
  explicit Var(detail::Arg<T> init) : slot_(detail::new_slot(init.node, init.loc)) {}
  HEDDLE_NOT_COPIED Var(const Var& other);
  HEDDLE_NEEDS_A_VALUE Var();

  Var& operator=(const detail::Arg<T>& value) { return set(value.node, value.loc); }
  Var& operator=(const Var& other) { return set(other.read_node({}), {}); }

#define HEDDLE_UPDATE(op)                                                        \
  Var& operator op##=(const Operand& b) {                                        \
    return set(detail::stored_as<T>(Value<T>(*this, b.loc) op b, b.loc), b.loc); \
  }
  HEDDLE_UPDATES(HEDDLE_UPDATE)
#undef HEDDLE_UPDATE
  Var& operator<<=(const detail::ShiftCount& n) {
    return set(detail::stored_as<T>(Value<T>(*this, n.loc) << n, n.loc), n.loc);
  }
  Var& operator>>=(const detail::ShiftCount& n) {
    return set(detail::stored_as<T>(Value<T>(*this, n.loc) >> n, n.loc), n.loc);
  }

  // What a by-value capture is.
  HEDDLE_NOT_COPIED Var& operator=(const detail::Arg<T>& value) const;

  // Increment and decrement: ++v gives the new number, v++ the old one.
  Var& operator++() requires(!std::is_same_v<T, bool>) { return *this += 1; }
  Var& operator--() requires(!std::is_same_v<T, bool>) { return *this -= 1; }
  Value<T> operator++(int) requires(!std::is_same_v<T, bool>) {
    const Value<T> before(*this, SourceLoc{});
    *this += 1;
    return before;
  }
  Value<T> operator--(int) requires(!std::is_same_v<T, bool>) {
    const Value<T> before(*this, SourceLoc{});
    *this -= 1;
    return before;
  }

  // Its present value.
  Value<T> get(SourceLoc loc = SourceLoc::current()) const { return Value<T>(read_node(loc)); }
  detail::Node read_node(SourceLoc loc) const {
    return detail::read_slot(slot_, detail::scalar_type<T>(), loc);
  }

 private:
  Var& set(const detail::Node& value, SourceLoc loc) {
    detail::write_slot(slot_, value, loc);
    return *this;
  }
  detail::Node slot_;
};

namespace detail {

// What a variable of T takes part in: the operators of vectors and fragments; structs bring their
// own.
template <class T>
struct VarOperators {};
template <Leaf T>
struct VarOperators<T> : GroupOperators<T, typename T::element_type> {};

// Variables whose elements host numbers name.
template <class T>
struct VarElement {};
template <Leaf T>
struct VarElement<T> {
  using type = typename T::element_type;
  static Access access(T& slots, HostIndex index) {
    const int at = checked_element(index.value, 1, slots.node().type.count, index.loc);
    return element_of_slot(slots.node(), at, index.loc);
  }
};
template <class E, std::size_t N>
struct VarElement<std::array<Value<E>, N>> {
  using type = E;
  static Access access(std::array<Value<E>, N>& slots, HostIndex index) {
    const int at = checked_element(index.value, 1, static_cast<int>(N), index.loc);
    return element_of_slot(slots[static_cast<std::size_t>(at)].node(), 0, index.loc);
  }
};

}  // namespace detail

// A variable of a vector, fragment, struct, tuple or array.
template <Traced T>
class Var<T> : public detail::VarOperators<T>, public detail::NoTracedIndex {
 public:
  using whole_type = T;

  // A variable that starts from a value.
  explicit Var(const T& init, SourceLoc loc = SourceLoc::current()) : slots_(init) {
    types_.append(init);
    detail::for_each_leaf(slots_, [&](detail::Node& node) { node = detail::new_slot(node, loc); });
  }
  HEDDLE_NOT_COPIED Var(const Var& other);
  HEDDLE_NEEDS_A_VALUE Var();

  // Assigns. assign() also records the caller's line, which an operator cannot.
  Var& operator=(const T& value) { return assign(value, SourceLoc{}); }
  Var& operator=(const Var& other) { return assign(other.get({}), SourceLoc{}); }
  Var& assign(const T& value, SourceLoc loc = SourceLoc::current()) {
    detail::NodeList slots, values;
    slots.append(slots_);
    values.append(value);
    for (int i = 0; i < slots.size(); ++i) {
      detail::write_slot(slots.data()[i], values.data()[i], loc);
    }
    return *this;
  }

  // Compound assignment, with whatever T's own operator takes.
#define HEDDLE_UPDATE(op)                     \
  template <class X>                          \
  requires requires(const T& a, const X& b) { \
    { a op b } -> std::same_as<T>;            \
  }                                           \
  Var& operator op##=(const X& b) { return assign(get({}) op b, SourceLoc{}); }
  HEDDLE_UPDATES(HEDDLE_UPDATE)
  HEDDLE_UPDATE(<<)
  HEDDLE_UPDATE(>>)
#undef HEDDLE_UPDATE

  // Element `index` of a vector, fragment or array of values, to read or assign.
  using NoTracedIndex::operator[];
  template <class Whole = T>
  requires requires { typename detail::VarElement<Whole>::type; }
  auto operator[](detail::HostIndex index) {
    using Element = detail::VarElement<Whole>;
    return detail::ElementRef<typename Element::type>(Element::access(slots_, index));
  }

  // Its present value.
  T get(SourceLoc loc = SourceLoc::current()) const {
    T result = slots_;
    int i = 0;
    detail::for_each_leaf(result, [&](detail::Node& node) {
      node = detail::read_slot(node, types_.data()[i++].type, loc);
    });
    return result;
  }
  operator T() const { return get(); }

 private:
  T slots_;                 // each leaf names its slot
  detail::NodeList types_;  // of the leaves' content
};

#undef HEDDLE_UPDATES
#undef HEDDLE_NOT_COPIED
#undef HEDDLE_NEEDS_A_VALUE

}  // namespace heddle
