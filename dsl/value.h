// Value<T>: an immutable value of a kernel, and its arithmetic.
//
//   Float a = x(i);                       // read from a tensor
//   Float b = fma(a, 2.0f, a);            // host numbers become constants of the kernel
//   Int n = cast<int>(b);                 // types never mix by themselves
//   Float c = select(n > 3, a, b);        // both are computed; If() chooses between computations
//
// The types are Bool, Int, UInt, Int64, UInt64, Half, BFloat16, Float and Double; and Int8, UInt8,
// Int16, UInt16, which become an Int where they are computed with, and Float8E4M3, Float8E5M2 and
// Float8E8M0, which are only kept and converted (Float4E2M1x2: narrow.h). A Value is never
// assigned: it names a result. What changes is a Var<T> (var.h) or carried by For and While
// (control.h). Meanings (overflow, NaN, shifts) are those of the ops in the language reference.
#pragma once

#include "heddle/dsl/node.h"

namespace heddle {

template <class T>
class Value;

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
using Half = Value<half>;
using BFloat16 = Value<bfloat16>;
using Float = Value<float>;
using Double = Value<double>;

namespace detail {

// What has a value of the kernel behind it: Value, Var, an element of a tensor, thread_idx.x …
template <class X>
concept Readable = requires(const X& x, SourceLoc loc) {
  typename X::value_type;
  {x.read_node(loc)};
};
template <class X, class T>
concept ReadsAs = Readable<X> && std::is_same_v<typename X::value_type, T>;

template <class X>
concept PromotesToInt = Readable<X> && is_promoted<typename X::value_type>;
// What may stand for a T unasked: a T, or, for an int32_t, a smaller integer.
template <class X, class T>
concept StandsFor = ReadsAs<X, T> ||(std::is_same_v<T, int32_t>&& PromotesToInt<X>);

// Reads it as a T.
template <class T, class X>
Node read_as(const X& x, SourceLoc loc) {
  if constexpr (ReadsAs<X, T>) {
    return x.read_node(loc);
  } else {
    return emit_as(scalar_type<T>(), op::kConvert, x.read_node(loc), loc);
  }
}

// An operand. The conversion to it captures the user's line, which an operator cannot.
template <class T>
struct Arg {
  Node node;
  SourceLoc loc;

  template <class X>
  requires StandsFor<X, T> Arg(const X& x, SourceLoc where = SourceLoc::current())
      : node(read_as<T>(x, where)), loc(where) {}
  template <class H>
  requires HostConstant<H, T> Arg(H host, SourceLoc where = SourceLoc::current())
      : node(host_constant<T>(host, where)), loc(where) {}
};

// A shift count: any 32-bit integer.
struct ShiftCount {
  Node node;
  SourceLoc loc;

  template <class X>
  requires ReadsAs<X, uint32_t> ShiftCount(const X& x, SourceLoc where = SourceLoc::current())
      : node(x.read_node(where)), loc(where) {}
  template <class X>
  requires StandsFor<X, int32_t> ShiftCount(const X& x, SourceLoc where = SourceLoc::current())
      : node(emit_as(scalar_type<uint32_t>(), op::kBitcast, read_as<int32_t>(x, where), where)),
        loc(where) {}
  template <class H>
  requires HostConstant<H, uint32_t> ShiftCount(H host, SourceLoc where = SourceLoc::current())
      : node(host_constant<uint32_t>(host, where)), loc(where) {}
};

// Value<bool>, in a form that a template looks at only when it is instantiated.
template <class T>
using BoolFor = Value<std::conditional_t<std::is_void_v<T>, T, bool>>;

template <class T>
using IntFor = Value<std::conditional_t<std::is_void_v<T>, T, int32_t>>;

// A small count of type T as an int32_t.
template <class T>
Node to_int(const Node& count, SourceLoc loc) {
  if constexpr (std::is_same_v<T, int32_t>) return count;
  return emit_as(scalar_type<int32_t>(), op::kConvert, count, loc);
}

// Catches a kernel's value where C++ wants a bool.
struct NoHostCondition {
  template <class B>
  requires std::is_same_v<B, bool>
  explicit operator B() const {
    static_assert(!std::is_same_v<B, bool>,
                  "device condition used in host control flow: use If(), While() or select()");
    return false;
  }
};

#define HEDDLE_UNARY(name, opcode) \
  friend Value<T> name(const Arg<T>& a) { return Value<T>(emit(op::opcode, a.node, a.loc)); }
#define HEDDLE_BINARY(name, opcode)                           \
  friend Value<T> name(const Arg<T>& a, const Arg<T>& b) {    \
    return Value<T>(emit(op::opcode, a.node, b.node, b.loc)); \
  }
#define HEDDLE_COMPARE(name, opcode)                            \
  friend BoolFor<T> name(const Arg<T>& a, const Arg<T>& b) {    \
    return BoolFor<T>(emit(op::opcode, a.node, b.node, b.loc)); \
  }

// Operators as hidden friends of one base, so that Value, Var and elements of tensors share them.
template <class T>
struct CommonOperators : NoHostCondition {
  HEDDLE_COMPARE(operator==, kEq)
  HEDDLE_COMPARE(operator!=, kNe)
  friend Value<T> select(const Arg<bool>& condition, const Arg<T>& a, const Arg<T>& b) {
    return Value<T>(emit(op::kSelect, condition.node, a.node, b.node, condition.loc));
  }
};

template <class T>
struct NumberOperators : CommonOperators<T> {
  HEDDLE_BINARY(operator+, kAdd)
  HEDDLE_BINARY(operator-, kSub)
  HEDDLE_BINARY(operator*, kMul)
  HEDDLE_BINARY(operator/, kDiv)
  HEDDLE_UNARY(operator-, kNeg)
  HEDDLE_BINARY(min, kMin)
  HEDDLE_BINARY(max, kMax)
  HEDDLE_UNARY(abs, kAbs)
  HEDDLE_COMPARE(operator<, kLt)
  HEDDLE_COMPARE(operator<=, kLe)
  HEDDLE_COMPARE(operator>, kGt)
  HEDDLE_COMPARE(operator>=, kGe)
  // a * b + c, rounded once.
  friend Value<T> fma(const Arg<T>& a, const Arg<T>& b, const Arg<T>& c) {
    return Value<T>(emit(op::kFma, a.node, b.node, c.node, c.loc));
  }
};

template <class T>
struct FloatOperators : NumberOperators<T> {
  HEDDLE_UNARY(sqrt, kSqrt)
  HEDDLE_UNARY(rcp, kRcp)            // 1 / a, correctly rounded
  HEDDLE_UNARY(rsqrt, kRsqrt)        // within 2 units in the last place; not for double
  HEDDLE_UNARY(saturate, kSaturate)  // between 0 and 1; a NaN gives 0
  // A NaN operand gives a NaN, where min and max take the other one; not for double.
  HEDDLE_BINARY(min_nan, kMinNan)
  HEDDLE_BINARY(max_nan, kMaxNan)
  // The integer below, above, toward zero, and nearest (ties to even), as a float.
  HEDDLE_UNARY(floor, kFloor)
  HEDDLE_UNARY(ceil, kCeil)
  HEDDLE_UNARY(trunc, kTrunc)
  HEDDLE_UNARY(rint, kRint)
};

template <class T>
struct IntegerOperators : NumberOperators<T> {
  HEDDLE_BINARY(operator%, kRem)
  HEDDLE_BINARY(mulhi, kMulHi)  // the upper half of the product
  HEDDLE_UNARY(brev, kBrev)     // the bits in reverse order
  // Set bits; zeros above the highest set bit (all of them for 0); the lowest set bit's number,
  // counted from 1 (0 for 0).
  friend IntFor<T> popc(const Arg<T>& a) {
    return IntFor<T>(to_int<T>(emit(op::kPopc, a.node, a.loc), a.loc));
  }
  friend IntFor<T> clz(const Arg<T>& a) {
    return IntFor<T>(to_int<T>(emit(op::kClz, a.node, a.loc), a.loc));
  }
  friend IntFor<T> ffs(const Arg<T>& a) {
    const Node lowest = emit(op::kAnd, a.node, emit(op::kNeg, a.node, a.loc), a.loc);
    const Node above = to_int<T>(emit(op::kClz, lowest, a.loc), a.loc);
    constexpr int32_t kBits = sizeof(T) * 8;
    return IntFor<T>(emit(op::kSub, host_node(kBits), above, a.loc));
  }
  HEDDLE_BINARY(operator&, kAnd)
  HEDDLE_BINARY(operator|, kOr)
  HEDDLE_BINARY(operator^, kXor)
  HEDDLE_UNARY(operator~, kNot)
  friend Value<T> operator<<(const Arg<T>& a, const ShiftCount& n) {
    return Value<T>(emit(op::kShl, a.node, n.node, a.loc));
  }
  friend Value<T> operator>>(const Arg<T>& a, const ShiftCount& n) {
    return Value<T>(emit(op::kShr, a.node, n.node, a.loc));
  }
};

template <class T>
struct BoolOperators : CommonOperators<T> {
  HEDDLE_BINARY(operator&, kAnd)
  HEDDLE_BINARY(operator|, kOr)
  HEDDLE_BINARY(operator^, kXor)
};

#undef HEDDLE_UNARY
#undef HEDDLE_BINARY
#undef HEDDLE_COMPARE

// Of what is only kept.
template <class T>
struct StorageOperators : NoHostCondition {
  friend Value<T> select(const Arg<bool>& condition, const Arg<T>& a, const Arg<T>& b) {
    return Value<T>(emit(op::kSelect, condition.node, a.node, b.node, condition.loc));
  }
};

// Smaller integers have int32_t's, whose operands they may be.
template <class T>
struct OperatorsOf {
  using Integer = IntegerOperators<std::conditional_t<is_promoted<T>, int32_t, T>>;
  using type = std::conditional_t<
      is_floating<T>, FloatOperators<T>,
      std::conditional_t<is_float8<T> || is_pair<T>, StorageOperators<T>, Integer>>;
};
template <>
struct OperatorsOf<bool> {
  using type = BoolOperators<bool>;
};
template <class T>
using Operators = typename OperatorsOf<T>::type;

}  // namespace detail

// Never true: what a compiler prints where a Value, Vec or Fragment is assigned.
template <class T>
concept ValuesNeverChangeUseVarOrANonConstTensor = std::is_void_v<std::add_pointer_t<T>>;

template <class T>
class Value : public detail::Operators<T> {
  static_assert(detail::is_scalar<T>,
                "Value<T> takes bool, an integer of 8 to 64 bits, float8_e4m3, float8_e5m2, "
                "float8_e8m0, float4_e2m1x2, half, bfloat16, float or double");

 public:
  using value_type = T;

  // A host number: a constant of the kernel.
  template <class H>
  requires detail::HostConstant<H, T> Value(H host, SourceLoc loc = SourceLoc::current())
      : node_(detail::host_constant<T>(host, loc)) {}
  // What a Var, an element of a tensor or thread_idx.x holds now.
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
  Value& operator=(const Value&) requires ValuesNeverChangeUseVarOrANonConstTensor<T>;

  detail::Node read_node(SourceLoc) const { return node_; }
  // For those who build proxies: a Value around a recorded result.
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

// Both sides are computed: there is no short circuit. Use If() where the right side must not run.
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

// Converts between scalar types: `cast<float>(i)`. Floats to integers truncate and saturate.
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
