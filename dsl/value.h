// Value<T>: an immutable value of a kernel, and its arithmetic.
//
//   Float a = x(i);                       // read from a tensor
//   Float b = fma(a, 2.0f, a);            // host numbers become constants of the kernel
//   Int n = cast<int>(b);                 // types never mix by themselves
//   Float c = select(n > 3, a, b);        // both are computed; If() chooses between computations
//
// The types are Bool, Int, UInt, Int64, UInt64, Half, BFloat16, Float and Double; and Int8, UInt8,
// Int16, UInt16, which become an Int where they are computed with, and Float8E4M3, Float8E5M2, Float8E8M0
// and TFloat32, which are only kept and converted (Float4E2M1x2: narrow.h). A Value is never
// assigned: it names a result. What changes is a Var<T> (var.h) or carried by For and While
// (control.h). Meanings (overflow, NaN, shifts) are those of the ops in the language reference.
#pragma once

#include "heddle/dsl/operators.h"

namespace heddle {

// A value of the kernel, by element type.
using Bool = Value<bool>;
using Int = Value<int32_t>;
using UInt = Value<uint32_t>;
using Int64 = Value<int64_t>;
using UInt64 = Value<uint64_t>;
using Int8 = Value<int8_t>;
using UInt8 = Value<uint8_t>;
using Int16 = Value<int16_t>;
using UInt16 = Value<uint16_t>;
using Float8E4M3 = Value<float8_e4m3>;
using Float8E5M2 = Value<float8_e5m2>;
using Float8E8M0 = Value<float8_e8m0>;
using Float4E2M1x2 = Value<float4_e2m1x2>;
using TFloat32 = Value<tfloat32>;
using Half = Value<half>;
using BFloat16 = Value<bfloat16>;
using Float = Value<float>;
using Double = Value<double>;

// A value of the kernel: the result of an operation, which never changes. Copies name the same
// value. Its operators and functions are those of detail::FloatOperators, detail::IntegerOperators
// or detail::BoolOperators, by T.
template <class T>
class Value : public detail::Operators<T>, public detail::NeverChanges {
  static_assert(detail::is_scalar<T>,
                "Value<T> takes bool, an integer of 8 to 64 bits, float8_e4m3, float8_e5m2, "
                "float8_e8m0, float4_e2m1x2, half, bfloat16, tfloat32, float or double");

 public:
  using value_type = T;

  // A host number: a constant of the kernel.
  template <class H>
  requires detail::HostConstant<H, T> Value(H host, SourceLoc loc = SourceLoc::current())
      : node_(detail::host_constant<T>(host, loc)) {}
  // The present value of a Var, an element of a tensor or thread_idx.x.
  template <class X>
  requires detail::StandsFor<X, T> Value(const X& x, SourceLoc loc = SourceLoc::current())
      : node_(detail::read_as<T>(x, loc)) {}
  // Conversion from another type, as by cast<T>().
  template <class X>
  requires(
      detail::Readable<X> && !detail::StandsFor<X, T> && !detail::is_pair<T> &&
      !detail::is_pair<typename X::value_type>) explicit Value(const X& x,
                                                               SourceLoc loc = SourceLoc::current())
      : node_(detail::emit_as(detail::scalar_type<T>(), detail::op::kConvert, x.read_node(loc),
                              loc)) {}

  Value(const Value&) = default;
  // Refused: a result has one value, which others may have used already.
  HEDDLE_MISTAKE(
      "a value never changes: declare it as a Var<T>, or let the loop or If() return the new one; "
      "elements of a Tensor<const T> are only read")
  Value& operator=(const Value&);

  detail::Node read_node(SourceLoc) const { return node_; }
  // For those who build proxies: a Value around a recorded result; and a zero.
  static detail::Node blank() { return detail::host_node(T{}); }
  explicit Value(detail::Node node) : node_(node) {}
  detail::Node& node() { return node_; }
  const detail::Node& node() const { return node_; }

 private:
  detail::Node node_;
};

namespace detail {

template <class X>
concept BoolReadable = ReadsAs<X, bool>;

}  // namespace detail

// Logic of conditions. Both sides are computed: there is no short circuit. Use If() where the right
// side must not run.
template <detail::BoolReadable A, class B>
requires(detail::BoolReadable<B> || std::is_same_v<B, bool>) Bool operator&&(const A& a,
                                                                             const B& b) {
  return Bool(detail::emit(detail::op::kAnd, Bool(a).node(), Bool(b).node(), {}));
}
template <detail::BoolReadable A, class B>
requires(detail::BoolReadable<B> || std::is_same_v<B, bool>) Bool operator||(const A& a,
                                                                             const B& b) {
  return Bool(detail::emit(detail::op::kOr, Bool(a).node(), Bool(b).node(), {}));
}
template <detail::BoolReadable A>
Bool operator!(const A& a) {
  return Bool(detail::emit(detail::op::kNot, a.read_node({}), {}));
}

// Converts between scalar types: `cast<float>(i)`. From float to integer it truncates and
// saturates.
template <class To, detail::Readable X>
Value<To> cast(const X& x, SourceLoc loc = SourceLoc::current()) {
  if constexpr (detail::ReadsAs<X, To>) {
    return Value<To>(x.read_node(loc));
  } else {
    return Value<To>(x, loc);
  }
}

// The same bits as another type of the same width: `bitcast<uint32_t>(f)`.
template <class To, detail::Readable X>
requires(sizeof(To) ==
         sizeof(typename X::value_type)) Value<To> bitcast(const X& x,
                                                           SourceLoc loc = SourceLoc::current()) {
  return Value<To>(
      detail::emit_as(detail::scalar_type<To>(), detail::op::kBitcast, x.read_node(loc), loc));
}

// Chooses between two host numbers: `select(p, 1.0f, 0.0f)`.
template <class H>
requires detail::is_scalar<H> Value<H> select(const Bool& condition, H a, H b,
                                              SourceLoc loc = SourceLoc::current()) {
  return Value<H>(detail::emit(detail::op::kSelect, condition.read_node(loc), detail::host_node(a),
                               detail::host_node(b), loc));
}

}  // namespace heddle
