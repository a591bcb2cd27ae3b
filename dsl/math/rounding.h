// Rounding modes: arithmetic of float and double in a mode that the call names, for interval
// arithmetic, exact residues, and sums that must not be fused.
//
//   Float low = mul(a, b, Rounding::down), high = mul(a, b, Rounding::up);
//   Int nearest = cast<int>(x, Rounding::nearest);
//   Float plain = add(mul(a, b, Rounding::nearest), c, Rounding::nearest);  // twice: no fma
//
//   FlushSubnormals flush;                     // to the end of the scope: CUDA's -ftz=true
//
// These are CUDA's __fadd_rz and the like.
#pragma once

#include "heddle/dsl/together.h"

namespace heddle {

// A rounding mode: to nearest with ties to even, toward zero, down (toward minus infinity), up.
enum class Rounding : uint8_t { nearest, zero, down, up };

// Flush to zero, within the scope of this object: arithmetic, comparisons and functions of float
// take subnormal operands as zeros of their sign, and give such zeros for subnormal results. That
// saves instructions of divisions and of functions that use the special function unit. Moves,
// conversions, negation and |x| keep all bits. It applies to the kernel that this host thread
// traces.
class FlushSubnormals {
 public:
  // Begins.
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

template <class S, class... X>
concept WideFloats =
    Elementwise<S, X...> && std::is_floating_point_v<typename ShapeElement<S>::type>;

}  // namespace detail

// Arithmetic of float or double in a rounding mode, never fused with other operations.
#define HEDDLE_ROUNDED(name, opcode)                                                          \
  template <class A, class B, class S = detail::Together<A, B>>                               \
  requires detail::WideFloats<S, A, B> S name(const A& a, const B& b, Rounding rounding,      \
                                              SourceLoc loc = SourceLoc::current()) {         \
    const auto [x, y] = detail::together<S>(loc, a, b);                                       \
    return S(detail::emit_rounded(detail::op::opcode, x.node().type, rounding, loc, x.node(), \
                                  y.node()));                                                 \
  }
HEDDLE_ROUNDED(add, kAddRounded)
HEDDLE_ROUNDED(sub, kSubRounded)
HEDDLE_ROUNDED(mul, kMulRounded)
HEDDLE_ROUNDED(div, kDivRounded)
#undef HEDDLE_ROUNDED

// a * b + c, rounded once.
template <class A, class B, class C, class S = detail::Together<A, B, C>>
requires detail::WideFloats<S, A, B, C> S fma(const A& a, const B& b, const C& c, Rounding rounding,
                                              SourceLoc loc = SourceLoc::current()) {
  const auto [x, y, z] = detail::together<S>(loc, a, b, c);
  return S(detail::emit_rounded(detail::op::kFmaRounded, x.node().type, rounding, loc, x.node(),
                                y.node(), z.node()));
}

// Square root and reciprocal, 1 / a, of float or double in a rounding mode.
#define HEDDLE_ROUNDED(name, opcode)                                                    \
  template <class X, class S = detail::Together<X>>                                     \
  requires detail::WideFloats<S, X> S name(const X& a, Rounding rounding,               \
                                           SourceLoc loc = SourceLoc::current()) {      \
    const detail::Node node = detail::together<S>(loc, a)[0].node();                    \
    return S(detail::emit_rounded(detail::op::opcode, node.type, rounding, loc, node)); \
  }
HEDDLE_ROUNDED(sqrt, kSqrtRounded)
HEDDLE_ROUNDED(rcp, kRcpRounded)
#undef HEDDLE_ROUNDED

// Conversion in a rounding mode: from float or double to an integer of 32 or 64 bits, which
// saturates; from such an integer or double to a float. From float to float8_e8m0: the magnitude,
// up or toward zero.
template <class To, detail::Readable X>
Value<To> cast(const X& x, Rounding rounding, SourceLoc loc = SourceLoc::current()) {
  return Value<To>(detail::emit_rounded(detail::op::kConvertRounded, detail::scalar_type<To>(),
                                        rounding, loc, x.read_node(loc)));
}
template <class To, class X, class S = detail::Together<X>>
requires detail::is_group<S>
auto cast(const X& x, Rounding rounding, SourceLoc loc = SourceLoc::current()) {
  using Result = typename detail::Shape<S>::template With<To>;
  const detail::Node node = detail::together<S>(loc, x)[0].node();
  return Result(detail::emit_rounded(detail::op::kConvertRounded,
                                     detail::with_scalar(node.type, detail::scalar_of<To>()),
                                     rounding, loc, node));
}

}  // namespace heddle
