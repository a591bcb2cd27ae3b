// Integer arithmetic and bit operations beyond the operators of value.h.
//
//   Int n = popc(mask);                               // value.h: popc clz ffs brev mulhi
//   UInt r = funnelshift_l(x, x, 7);                  // rotate
//   UInt bytes = byte_perm(a, b, 0x5140);             // interleave the lower bytes
//   Int64 wide = mul_wide(i, j);
//   Sum<uint64_t> low = add_carry(a0, b0);            // low.value, low.carry
//   UInt xor3 = lop3<0x96>(a, b, c);
#pragma once

#include "heddle/dsl/together.h"

namespace heddle {
namespace detail {

// Operands of integers that stand together: values, vectors, fragments, host numbers beside them.
template <class S, class... X>
concept Words = Elementwise<S, X...> && is_word<typename ShapeElement<S>::type>;
template <class T, class S, class... X>
concept WordsOf = Elementwise<S, X...> && std::is_same_v<typename ShapeElement<S>::type, T>;
template <class S, class... X>
concept ShortWords = Words<S, X...> && sizeof(typename ShapeElement<S>::type) == 4;
// The shape of three 32-bit words of which host numbers may be all: then they are values.
template <class... X>
using UIntsOf = std::conditional_t<std::is_void_v<Together<X...>>, UInt, Together<X...>>;

// Vectors and fragments whose elements are as wide as a T.
template <class S, class T>
concept HasBitsOf = is_group<S> && sizeof(typename ShapeElement<S>::type) == sizeof(T);

template <class T>
using Wider = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
template <class S>
using WiderElement = Wider<typename ShapeElement<S>::type>;

}  // namespace detail

// The same bits as another type, of each element of a vector or fragment: bitcast<uint32_t>(v).
template <class To, class X, class S = detail::Together<X>>
requires detail::HasBitsOf<S, To>
auto bitcast(const X& x, SourceLoc loc = SourceLoc::current()) {
  const detail::Node node = typename detail::Shape<S>::Operand(x, loc).node;
  const detail::NodeType type = detail::with_scalar(node.type, detail::scalar_of<To>());
  return typename detail::Shape<S>::template With<To>(
      detail::emit_as(type, detail::op::kBitcast, node, loc));
}

// Funnel shifts of the 64-bit number high:low: its upper 32 bits after a shift left
// (funnelshift_l), or its lower 32 bits after a shift right (funnelshift_r), by n % 32. The _lc and
// _rc forms shift by min(n, 32), where 32 gives low, or high.
#define HEDDLE_FUNNEL(name, opcode)                                                    \
  template <class A, class B, class S = detail::UIntsOf<A, B>>                         \
  requires detail::WordsOf<uint32_t, S, A, B> S name(const A& low, const B& high,      \
                                                     const detail::Arg<uint32_t>& n) { \
    const auto [x, y] = detail::together<S>(n.loc, low, high);                         \
    return S(detail::emit(detail::op::opcode, x.node(), y.node(), n.node, n.loc));     \
  }
HEDDLE_FUNNEL(funnelshift_l, kFunnelShl)
HEDDLE_FUNNEL(funnelshift_r, kFunnelShr)
HEDDLE_FUNNEL(funnelshift_lc, kFunnelShlClamp)
HEDDLE_FUNNEL(funnelshift_rc, kFunnelShrClamp)
#undef HEDDLE_FUNNEL

// Byte permutation: nibble i of the selector chooses which of the eight bytes of b:a becomes byte i
// of the result. A nibble of 8 and up repeats the sign bit of the byte with that number less 8.
template <class A, class B, class C, class S = detail::UIntsOf<A, B, C>>
requires detail::WordsOf<uint32_t, S, A, B, C> S byte_perm(const A& a, const B& b,
                                                           const C& selector,
                                                           SourceLoc loc = SourceLoc::current()) {
  const auto [x, y, z] = detail::together<S>(loc, a, b, selector);
  return S(detail::emit_byte_perm(x.node(), y.node(), z.node(), loc));
}

// Dot products with accumulation: c plus the products of four pairs of bytes (dp4a); or of a's two
// 16-bit halves with the lower (dp2a_lo) or upper (dp2a_hi) two bytes of b. Signed for Ints,
// unsigned for UInts.
#define HEDDLE_DOT(name, opcode)                                                         \
  template <class A, class B, class C, class S = detail::Together<A, B, C>>              \
  requires detail::ShortWords<S, A, B, C> S name(const A& a, const B& b, const C& c,     \
                                                 SourceLoc loc = SourceLoc::current()) { \
    const auto [x, y, z] = detail::together<S>(loc, a, b, c);                            \
    return S(detail::emit(detail::op::opcode, x.node(), y.node(), z.node(), loc));       \
  }
HEDDLE_DOT(dp4a, kDp4a)
HEDDLE_DOT(dp2a_lo, kDp2aLo)
HEDDLE_DOT(dp2a_hi, kDp2aHi)
#undef HEDDLE_DOT

// The absolute differences of four pairs of bytes, each an unsigned byte of the result. The bytes are
// signed ones of Ints, unsigned ones of UInts.
template <class A, class B, class S = detail::Together<A, B>>
requires detail::ShortWords<S, A, B> S vabsdiff4(const A& a, const B& b,
                                                 SourceLoc loc = SourceLoc::current()) {
  const auto [x, y] = detail::together<S>(loc, a, b);
  return S(detail::emit(detail::op::kVabsdiff4, x.node(), y.node(), loc));
}

// The average of two integers without overflow, rounded down (hadd) or up (rhadd).
template <class A, class B, class S = detail::Together<A, B>>
requires detail::Words<S, A, B> S hadd(const A& a, const B& b,
                                       SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const auto [x, y] = detail::together<S>(loc, a, b);
  return (x & y) + ((x ^ y) >> 1);
}
template <class A, class B, class S = detail::Together<A, B>>
requires detail::Words<S, A, B> S rhadd(const A& a, const B& b,
                                        SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const auto [x, y] = detail::together<S>(loc, a, b);
  return (x | y) - ((x ^ y) >> 1);
}

// A logical function of three operands, bit by bit: bit 4a + 2b + c of the table is its value. One
// instruction after assembling.
template <uint8_t kTable, class A, class B, class C, class S = detail::UIntsOf<A, B, C>>
requires detail::WordsOf<uint32_t, S, A, B, C> S lop3(const A& a, const B& b, const C& c,
                                                      SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const auto [x, y, z, zero] = detail::together<S>(loc, a, b, c, 0);
  S result = zero;
  for (int row = 0; row < 8; ++row) {
    if ((kTable >> row & 1) == 0) continue;
    const S term =
        ((row & 4) != 0 ? x : ~x) & ((row & 2) != 0 ? y : ~y) & ((row & 1) != 0 ? z : ~z);
    result.node() = (result | term).node();
  }
  return result;
}

// Bit fields: the `length` bits of x from bit `start` on, sign-extended for signed types
// (bit_extract); and x with these bits replaced by the lowest ones of `bits` (bit_insert). Bits
// beyond the top of x are its sign, or zero; a length of 0 gives 0.
template <class X, class S = detail::Together<X>>
requires detail::Words<S, X> S bit_extract(const X& x, const detail::Arg<uint32_t>& start,
                                           const detail::Arg<uint32_t>& length,
                                           SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const auto [value, zero] = detail::together<S>(loc, x, 0);
  constexpr int kBits = sizeof(typename detail::ShapeElement<S>::type) * 8;
  const UInt from(start.node), count(length.node), unused = kBits - min(count, kBits);
  return select(count == 0, zero, ((value >> from) << unused) >> unused);
}
template <class X, class B, class S = detail::Together<X, B>>
requires detail::Words<S, X, B> S bit_insert(const X& x, const B& bits,
                                             const detail::Arg<uint32_t>& start,
                                             const detail::Arg<uint32_t>& length,
                                             SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using T = typename detail::ShapeElement<S>::type;
  const auto [value, inserted] = detail::together<S>(loc, x, bits);
  const UInt from(start.node);
  const Value<T> mask = ~(~Value<T>(0) << UInt(length.node)) << from;
  return (value & ~mask) | ((inserted << from) & mask);
}

// The 64-bit product of two 32-bit integers (mul_wide), and that plus a 64-bit one (mad_wide).
template <class A, class B, class S = detail::Together<A, B>>
requires detail::ShortWords<S, A, B>
auto mul_wide(const A& a, const B& b, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  using W = detail::WiderElement<S>;
  const auto [x, y] = detail::together<S>(loc, a, b);
  return cast<W>(x, loc) * cast<W>(y, loc);
}
template <class A, class B, class C, class S = detail::Together<A, B>>
requires detail::ShortWords<S, A, B>
auto mad_wide(const A& a, const B& b, const C& c, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  return mul_wide(a, b, loc) + c;
}

// A sum or difference of unsigned integers with its carry; of vectors and fragments, element by
// element.
template <class T, class S = Value<T>>
struct Sum {
  S value;                                               // modulo 2^32 or 2^64
  typename detail::Shape<S>::template With<bool> carry;  // whether it passed the end of the range
};
namespace detail {
template <class S, class A, class B>
concept Carries = Words<S, A, B> && std::is_unsigned_v<typename ShapeElement<S>::type>;
}
// a + b + carry, or a - b - borrow, of unsigned integers, with the carry for the next word.
template <class A, class B, class S = detail::Together<A, B>>
requires detail::Carries<S, A, B>
auto add_carry(const A& a, const B& b, const typename detail::Shape<S>::Condition& carry = false,
               SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const auto [x, y, one, zero] = detail::together<S>(loc, a, b, 1, 0);
  const S sum = x + y, total = sum + select(carry, one, zero);
  return Sum<typename detail::ShapeElement<S>::type, S>{total, (sum < x) | (total < sum)};
}
template <class A, class B, class S = detail::Together<A, B>>
requires detail::Carries<S, A, B>
auto sub_borrow(const A& a, const B& b, const typename detail::Shape<S>::Condition& borrow = false,
                SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const auto [x, y, one, zero] = detail::together<S>(loc, a, b, 1, 0);
  return Sum<typename detail::ShapeElement<S>::type, S>{
      x - y - select(borrow, one, zero), (x < y) | select(borrow, x == y, one == zero)};
}

// Division that rounds down (floor_div), and its remainder, which has b's sign (floor_mod).
// Division by zero is unspecified, as it is for /.
template <class A, class B, class S = detail::Together<A, B>>
requires detail::Words<S, A, B> S floor_mod(const A& a, const B& b,
                                            SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const auto [x, y] = detail::together<S>(loc, a, b);
  const S rest = x % y;
  if constexpr (!std::is_signed_v<typename detail::ShapeElement<S>::type>) return rest;
  return select((rest != 0) & ((rest ^ y) < 0), rest + y, rest);
}
template <class A, class B, class S = detail::Together<A, B>>
requires detail::Words<S, A, B> S floor_div(const A& a, const B& b,
                                            SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const auto [x, y] = detail::together<S>(loc, a, b);
  const S quotient = x / y;
  if constexpr (!std::is_signed_v<typename detail::ShapeElement<S>::type>) return quotient;
  const S rest = x % y;
  return select((rest != 0) & ((rest ^ y) < 0), quotient - 1, quotient);
}

}  // namespace heddle
