// Var<T>: a variable of the thread that may change.
//
//   Var<float> sum(0.0f);
//   for (Int i : range(n)) sum += x(i);
//   y(0) = sum;
//
// T is a scalar or anything Traced: `Var<Welford> w(Welford{0, 0, 0})`. A Var costs nothing: the
// compiler turns it into carried values.
#pragma once

#include "heddle/dsl/traced.h"

namespace heddle {

#define HEDDLE_UPDATE(op) \
  Var& operator op##=(const detail::Arg<T>& b) { return set(Value<T>(*this, b.loc) op b, b.loc); }

// A variable of one scalar; it reads as Value<T> and takes part in arithmetic.
template <class T>
class Var : public detail::Operators<T> {
 public:
  using value_type = T;

  explicit Var(detail::Arg<T> init) : slot_(detail::new_slot(init.node, init.loc)) {}
  // A copy is a variable of its own.
  Var(const Var& other, SourceLoc loc = SourceLoc::current())
      : slot_(detail::new_slot(other.read_node(loc), loc)) {}

  Var& operator=(const detail::Arg<T>& value) {
    detail::write_slot(slot_, value.node, value.loc);
    return *this;
  }
  Var& operator=(const Var& other) { return *this = Value<T>(other); }

  HEDDLE_UPDATE(+)
  HEDDLE_UPDATE(-)
  HEDDLE_UPDATE(*)
  HEDDLE_UPDATE(/)
  HEDDLE_UPDATE(%)
  HEDDLE_UPDATE(&)
  HEDDLE_UPDATE(|)
  HEDDLE_UPDATE(^)
  Var& operator<<=(const detail::ShiftCount& n) { return set(Value<T>(*this, n.loc) << n, n.loc); }
  Var& operator>>=(const detail::ShiftCount& n) { return set(Value<T>(*this, n.loc) >> n, n.loc); }

  detail::Node read_node(SourceLoc loc) const {
    return detail::read_slot(slot_, detail::scalar_type<T>(), loc);
  }

 private:
  Var& set(const Value<T>& value, SourceLoc loc) {
    detail::write_slot(slot_, value.node(), loc);
    return *this;
  }
  detail::Node slot_;
};

#undef HEDDLE_UPDATE

// A variable of a vector, fragment, struct, tuple or array.
template <Traced T>
class Var<T> {
 public:
  explicit Var(const T& init, SourceLoc loc = SourceLoc::current()) : slots_(init) {
    types_.append(init);
    detail::for_each_leaf(slots_, [&](detail::Node& node) { node = detail::new_slot(node, loc); });
  }
  Var(const Var&) = delete;

  // Has no place for a line, and so takes the value's.
  Var& operator=(const T& value) { return assign(value, SourceLoc{}); }
  Var& assign(const T& value, SourceLoc loc = SourceLoc::current()) {
    detail::NodeList slots, values;
    slots.append(slots_);
    values.append(value);
    for (int i = 0; i < slots.size(); ++i) {
      detail::write_slot(slots.data()[i], values.data()[i], loc);
    }
    return *this;
  }

  // The value it holds now.
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

}  // namespace heddle
