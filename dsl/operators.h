// Operators and elementwise functions of Values, Vecs and Fragments, each defined once. Var,
// elements of tensors and thread_idx.x convert to one of these.
#pragma once

#include "heddle/dsl/mistake.h"
#include "heddle/dsl/trace/node.h"

namespace heddle {

template <class T>
class Value;

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
// What converts to a T implicitly: a T, or, for an int32_t, a smaller integer.
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

// An operand of a scalar operator, of whatever type.
struct ScalarOperand {
  Node node;
  SourceLoc loc;
};

// A parameter that takes a value of the kernel or a host number, where a T is wanted. The
// conversion to it captures the user's line, which an operator cannot.
template <class T>
struct Arg : ScalarOperand {
  // A value of type T: a Value, a Var, an element of a tensor, thread_idx.x; or a smaller integer,
  // where T is int32_t.
  template <class X>
  requires StandsFor<X, T> Arg(const X& x, SourceLoc where = SourceLoc::current())
      : ScalarOperand{read_as<T>(x, where), where} {}
  // A host number that a T can hold: a constant of the kernel.
  template <class H>
  requires HostConstant<H, T> Arg(H host, SourceLoc where = SourceLoc::current())
      : ScalarOperand{host_constant<T>(host, where), where} {}
};

// A shift count: any 32-bit integer.
struct ShiftCount : ScalarOperand {
  template <class X>
  requires ReadsAs<X, uint32_t> ShiftCount(const X& x, SourceLoc where = SourceLoc::current())
      : ScalarOperand{x.read_node(where), where} {}
  template <class X>
  requires StandsFor<X, int32_t> ShiftCount(const X& x, SourceLoc where = SourceLoc::current())
      : ScalarOperand{
            emit_as(scalar_type<uint32_t>(), op::kBitcast, read_as<int32_t>(x, where), where),
            where} {}
  template <class H>
  requires HostConstant<H, uint32_t> ShiftCount(H host, SourceLoc where = SourceLoc::current())
      : ScalarOperand{host_constant<uint32_t>(host, where), where} {}
};

// An operand of an elementwise operator: a vector or fragment, or a scalar for all elements of one.
struct GroupOperandBase {
  Node node;
  SourceLoc loc;
};

// One op; of groups, on each element, scalars beside them spread over all.
inline Node combine(ir::Opcode opcode, const ScalarOperand& a) {
  return emit(opcode, a.node, a.loc);
}
inline Node combine(ir::Opcode opcode, const ScalarOperand& a, const ScalarOperand& b) {
  return emit(opcode, a.node, b.node, b.loc);
}
inline Node combine(ir::Opcode opcode, const ScalarOperand& a, const ScalarOperand& b,
                    const ScalarOperand& c) {
  return emit(opcode, a.node, b.node, c.node, c.loc);
}
inline Node combine(ir::Opcode opcode, const GroupOperandBase& a) {
  return emit(opcode, a.node, a.loc);
}
inline Node combine(ir::Opcode opcode, const GroupOperandBase& a, const GroupOperandBase& b) {
  return emit_spread(opcode, a.node, b.node, b.loc);
}
inline Node combine(ir::Opcode opcode, const GroupOperandBase& a, const GroupOperandBase& b,
                    const GroupOperandBase& c) {
  return emit_spread(opcode, a.node, b.node, c.node, c.loc);
}
// Selects element by element: that of a where the condition's holds, else that of b. For groups,
// the condition may be a scalar.
inline Node choose(const ScalarOperand& condition, const ScalarOperand& a, const ScalarOperand& b) {
  return emit(op::kSelect, condition.node, a.node, b.node, condition.loc);
}
inline Node choose(const GroupOperandBase& condition, const GroupOperandBase& a,
                   const GroupOperandBase& b) {
  return emit_select(condition.node, a.node, b.node, condition.loc);
}
// Shifted by one count, or each element by its own.
inline Node shifted(ir::Opcode opcode, const ScalarOperand& a, const ScalarOperand& n) {
  return emit(opcode, a.node, n.node, a.loc);
}
inline Node shifted(ir::Opcode opcode, const GroupOperandBase& a, const GroupOperandBase& n) {
  return emit_shift(opcode, a.node, n.node, a.loc);
}

// What an operator's family knows of the type that it gives, Self: Value<T>, Vec<T, N> or
// Fragment<T>.
//   Element     T
//   Operand     what an operand of T converts to
//   Condition   likewise a bool, Count a shift count
//   With<U>     the same shape of U's
template <class Self>
struct Shape;

template <class T>
struct Shape<Value<T>> {
  using Element = T;
  using Operand = Arg<T>;
  using Condition = Arg<bool>;
  using Count = ShiftCount;
  template <class U>
  using With = Value<U>;
};

// A count of bits, as int32_t's.
Node emit_count(const Node& count, SourceLoc loc);

// Catches a kernel's value where C++ itself would need it.
struct NoHostCondition {
  template <class B>
  requires std::is_same_v<B, bool> HEDDLE_MISTAKE(
      "a condition that the kernel computes cannot steer C++ itself: use If(), While() or select()")
  explicit operator B() const;
  template <class H>
  requires(std::is_arithmetic_v<H> && !std::is_same_v<H, bool>) HEDDLE_MISTAKE(
      "there is no number yet while the kernel is traced: cast<T>(x) converts it in the kernel; "
      "the host "
      "reads results from a buffer")
  explicit operator H() const;
};

// Of what names a result.
struct NeverChanges {
#define HEDDLE_REFUSED(op)                                                             \
  template <class X>                                                                   \
  HEDDLE_MISTAKE(                                                                      \
      "a value never changes: declare it as a Var<T>, or let the loop or If() return " \
      "the new one")                                                                   \
  void                                                                                 \
  operator op(const X&) const;
  HEDDLE_REFUSED(+=)
  HEDDLE_REFUSED(-=)
  HEDDLE_REFUSED(*=)
  HEDDLE_REFUSED(/=)
  HEDDLE_REFUSED(%=)
  HEDDLE_REFUSED(&=)
  HEDDLE_REFUSED(|=)
  HEDDLE_REFUSED(^=)
  HEDDLE_REFUSED(<<=)
  HEDDLE_REFUSED(>>=)
#undef HEDDLE_REFUSED
};

#define HEDDLE_UNARY(name, opcode) \
  friend Self name(const Operand& a) { return Self(combine(op::opcode, a)); }
#define HEDDLE_BINARY(name, opcode) \
  friend Self name(const Operand& a, const Operand& b) { return Self(combine(op::opcode, a, b)); }
#define HEDDLE_COMPARE(name, opcode) \
  friend Bools name(const Operand& a, const Operand& b) { return Bools(combine(op::opcode, a, b)); }
// What every type has: select().
//
// The operators and functions of values, vectors and fragments are hidden friends of such bases, so
// that Value, Var, elements of tensors and thread_idx.x share them. In their declarations, Self is
// the type itself (Value<T>, Vec<T, N> or Fragment<T>), an Operand converts to it, and Bools, Ints
// are conditions and Ints of the same shape.
template <class Self>
struct ChoiceOperators : NoHostCondition {
  // Selects: `a` where the condition holds, else `b`. Both are computed; If() runs only one side.
  // Of vectors and fragments, element by element.
  friend Self select(const typename Shape<Self>::Condition& condition,
                     const typename Shape<Self>::Operand& a,
                     const typename Shape<Self>::Operand& b) {
    return Self(choose(condition, a, b));
  }
};

// Equality. All types have it but 8-bit and 4-bit floats.
template <class Self>
struct CommonOperators : ChoiceOperators<Self> {
  using Operand = typename Shape<Self>::Operand;
  using Bools = typename Shape<Self>::template With<bool>;
  HEDDLE_COMPARE(operator==, kEq)
  HEDDLE_COMPARE(operator!=, kNe)
};

// Arithmetic and comparison of numbers, beside detail::CommonOperators. Integers wrap around on
// overflow.
template <class Self>
struct NumberOperators : CommonOperators<Self> {
  using Operand = typename Shape<Self>::Operand;
  using Bools = typename Shape<Self>::template With<bool>;
  HEDDLE_BINARY(operator+, kAdd)
  HEDDLE_BINARY(operator-, kSub)
  HEDDLE_BINARY(operator*, kMul)
  HEDDLE_BINARY(operator/, kDiv)
  HEDDLE_UNARY(operator-, kNeg)
  HEDDLE_BINARY(min, kMin)  // the smaller; of floats with one NaN, the other one
  HEDDLE_BINARY(max, kMax)  // the larger; of floats with one NaN, the other one
  HEDDLE_UNARY(abs, kAbs)   // the magnitude; that of the least integer is itself
  HEDDLE_COMPARE(operator<, kLt)
  HEDDLE_COMPARE(operator<=, kLe)
  HEDDLE_COMPARE(operator>, kGt)
  HEDDLE_COMPARE(operator>=, kGe)
  // a * b + c, rounded once.
  friend Self fma(const Operand& a, const Operand& b, const Operand& c) {
    return Self(combine(op::kFma, a, b, c));
  }
};

// Functions of floats, beside detail::NumberOperators; math/math.h has more.
template <class Self>
struct FloatOperators : NumberOperators<Self> {
  using Operand = typename Shape<Self>::Operand;
  HEDDLE_UNARY(sqrt, kSqrt)          // square root, correctly rounded
  HEDDLE_UNARY(rcp, kRcp)            // 1 / a, correctly rounded
  HEDDLE_UNARY(rsqrt, kRsqrt)        // within 2 units in the last place; not for double
  HEDDLE_UNARY(saturate, kSaturate)  // between 0 and 1; a NaN gives 0
  // Minimum and maximum that give a NaN where an operand is one; not for double.
  HEDDLE_BINARY(min_nan, kMinNan)
  HEDDLE_BINARY(max_nan, kMaxNan)
  // Rounding to an integer, as a float: down (floor), up (ceil), toward zero (trunc), to the
  // nearest with ties to even (rint).
  HEDDLE_UNARY(floor, kFloor)
  HEDDLE_UNARY(ceil, kCeil)
  HEDDLE_UNARY(trunc, kTrunc)
  HEDDLE_UNARY(rint, kRint)
};

// Bit operations and remainders of integers, beside detail::NumberOperators; math/integer.h has
// more.
template <class Self>
struct IntegerOperators : NumberOperators<Self> {
  using Operand = typename Shape<Self>::Operand;
  using Count = typename Shape<Self>::Count;
  using Ints = typename Shape<Self>::template With<int32_t>;
  HEDDLE_BINARY(operator%, kRem)
  HEDDLE_BINARY(mulhi, kMulHi)  // the upper half of the product
  HEDDLE_UNARY(brev, kBrev)     // the bits in reverse order
  // Counts of bits, as Ints. popc: set bits. clz: leading zeros, all bits for 0. ffs: the number of
  // the lowest set bit, counted from 1; 0 for 0.
  friend Ints popc(const Operand& a) { return Ints(emit_count(combine(op::kPopc, a), a.loc)); }
  friend Ints clz(const Operand& a) { return Ints(emit_count(combine(op::kClz, a), a.loc)); }
  friend Ints ffs(const Operand& a) {
    const Node lowest = emit(op::kAnd, a.node, combine(op::kNeg, a), a.loc);
    const Node above = emit_count(emit(op::kClz, lowest, a.loc), a.loc);
    constexpr int32_t kBits = sizeof(typename Shape<Self>::Element) * 8;
    return Ints(emit_spread(op::kSub, host_node(kBits), above, a.loc));
  }

  HEDDLE_BINARY(operator&, kAnd)
  HEDDLE_BINARY(operator|, kOr)
  HEDDLE_BINARY(operator^, kXor)
  HEDDLE_UNARY(operator~, kNot)
  friend Self operator<<(const Operand& a, const Count& n) { return Self(shifted(op::kShl, a, n)); }
  friend Self operator>>(const Operand& a, const Count& n) { return Self(shifted(op::kShr, a, n)); }
};

// Logic of conditions, beside detail::CommonOperators. There is no short circuit.
template <class Self>
struct BoolOperators : CommonOperators<Self> {
  using Operand = typename Shape<Self>::Operand;
  HEDDLE_BINARY(operator&, kAnd)
  HEDDLE_BINARY(operator|, kOr)
  HEDDLE_BINARY(operator^, kXor)
};

#undef HEDDLE_UNARY
#undef HEDDLE_BINARY
#undef HEDDLE_COMPARE

// What a family there is for T: smaller integers have int32_t's, whose operands they may be.
template <class T, class Self, class AsInt>
using OperatorFamily = std::conditional_t<
    std::is_same_v<T, bool>, BoolOperators<Self>,
    std::conditional_t<
        is_floating<T>, FloatOperators<Self>,
        std::conditional_t<is_stored_float<T> || is_pair<T>, ChoiceOperators<Self>,
                           std::conditional_t<is_promoted<T>, AsInt, IntegerOperators<Self>>>>>;
template <class T>
using Operators = OperatorFamily<T, Value<T>, IntegerOperators<Value<int32_t>>>;

}  // namespace detail
}  // namespace heddle
