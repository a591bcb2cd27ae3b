// Arithmetic of float and double in a rounding mode of one's own: interval arithmetic, exact
// residues, and sums that must not be fused.
//
//   Float low = mul(a, b, Rounding::down), high = mul(a, b, Rounding::up);
//   Int nearest = cast<int>(x, Rounding::nearest);
//   Float plain = add(mul(a, b, Rounding::nearest), c, Rounding::nearest);  // twice: no fma
//
//   FlushSubnormals flush;                     // to the end of the scope: CUDA's -ftz=true
//
// CUDA's __fadd_rz and its kin.
#pragma once

#include "heddle/dsl/value.h"

namespace heddle {

enum class Rounding : uint8_t { nearest, zero, down, up };  // nearest: ties to even

// While it lives, float arithmetic, comparisons and functions are recorded to take subnormal
// operands for zeros of their sign and to give such zeros for subnormal results. That saves
// instructions where the special function unit or a division is behind them. Moves, conversions,
// negation and |x| keep all bits. In the thread that traces, of the kernel that it traces.
class FlushSubnormals {
 public:
  FlushSubnormals();
  ~FlushSubnormals();
  FlushSubnormals(const FlushSubnormals&) = delete;
  FlushSubnormals& operator=(const FlushSubnormals&) = delete;
};

namespace detail {

// `type` is the result's.
Node emit_rounded(ir::Opcode opcode, NodeType type, Rounding rounding, SourceLoc loc,
                  const Node& a);
Node emit_rounded(ir::Opcode opcode, NodeType type, Rounding rounding, SourceLoc loc, const Node& a,
                  const Node& b);
Node emit_rounded(ir::Opcode opcode, NodeType type, Rounding rounding, SourceLoc loc, const Node& a,
                  const Node& b, const Node& c);

template <class X>
concept WideFloat = Readable<X> && std::is_floating_point_v<typename X::value_type>;
template <class X>
using ValueOf = Value<typename X::value_type>;
template <class X>
using Same = const Arg<typename X::value_type>&;

}  // namespace detail

#define HEDDLE_ROUNDED(name, opcode)                                                          \
  template <detail::WideFloat X>                                                              \
  detail::ValueOf<X> name(const X& a, detail::Same<X> b, Rounding rounding) {                 \
    return detail::ValueOf<X>(detail::emit_rounded(detail::op::opcode, b.node.type, rounding, \
                                                   b.loc, a.read_node(b.loc), b.node));       \
  }
HEDDLE_ROUNDED(add, kAddRounded)
HEDDLE_ROUNDED(sub, kSubRounded)
HEDDLE_ROUNDED(mul, kMulRounded)
HEDDLE_ROUNDED(div, kDivRounded)
#undef HEDDLE_ROUNDED

// a * b + c, rounded once.
template <detail::WideFloat X>
detail::ValueOf<X> fma(const X& a, detail::Same<X> b, detail::Same<X> c, Rounding rounding) {
  return detail::ValueOf<X>(detail::emit_rounded(detail::op::kFmaRounded, b.node.type, rounding,
                                                 b.loc, a.read_node(b.loc), b.node, c.node));
}

template <detail::WideFloat X>
detail::ValueOf<X> sqrt(const X& a, Rounding rounding, SourceLoc loc = SourceLoc::current()) {
  const detail::Node node = a.read_node(loc);
  return detail::ValueOf<X>(
      detail::emit_rounded(detail::op::kSqrtRounded, node.type, rounding, loc, node));
}
// 1 / a
template <detail::WideFloat X>
detail::ValueOf<X> rcp(const X& a, Rounding rounding, SourceLoc loc = SourceLoc::current()) {
  const detail::Node node = a.read_node(loc);
  return detail::ValueOf<X>(
      detail::emit_rounded(detail::op::kRcpRounded, node.type, rounding, loc, node));
}

// From float or double to an integer of 32 or 64 bits, or from such an integer or double to a
// float; integers saturate. From float to float8_e8m0: the magnitude, up or toward zero.
template <class To, detail::Readable X>
Value<To> cast(const X& x, Rounding rounding, SourceLoc loc = SourceLoc::current()) {
  return Value<To>(detail::emit_rounded(detail::op::kConvertRounded, detail::scalar_type<To>(),
                                        rounding, loc, x.read_node(loc)));
}

}  // namespace heddle
