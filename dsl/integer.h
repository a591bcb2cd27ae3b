// Integer arithmetic and bit operations beyond the operators of value.h.
//
//   Int n = popc(mask);                               // value.h: popc clz ffs brev mulhi
//   UInt r = funnelshift_l(x, x, 7);                  // rotate
//   UInt bytes = byte_perm(a, b, 0x5140);             // interleave the lower bytes
//   Int64 wide = mul_wide(i, j);
//   Sum<uint64_t> low = add_carry(a0, b0);            // low.value, low.carry
//   UInt xor3 = lop3<0x96>(a, b, c);
#pragma once

#include "heddle/dsl/value.h"

namespace heddle {

// The upper 32 bits of high:low shifted left, and the lower 32 of it shifted right, by n % 32.
inline UInt funnelshift_l(const detail::Arg<uint32_t>& low, const detail::Arg<uint32_t>& high,
                          const detail::Arg<uint32_t>& n) {
  return UInt(detail::emit(detail::op::kFunnelShl, low.node, high.node, n.node, n.loc));
}
inline UInt funnelshift_r(const detail::Arg<uint32_t>& low, const detail::Arg<uint32_t>& high,
                          const detail::Arg<uint32_t>& n) {
  return UInt(detail::emit(detail::op::kFunnelShr, low.node, high.node, n.node, n.loc));
}

// The same by min(n, 32): 32 gives low, or high.
inline UInt funnelshift_lc(const detail::Arg<uint32_t>& low, const detail::Arg<uint32_t>& high,
                           const detail::Arg<uint32_t>& n) {
  return UInt(detail::emit(detail::op::kFunnelShlClamp, low.node, high.node, n.node, n.loc));
}
inline UInt funnelshift_rc(const detail::Arg<uint32_t>& low, const detail::Arg<uint32_t>& high,
                           const detail::Arg<uint32_t>& n) {
  return UInt(detail::emit(detail::op::kFunnelShrClamp, low.node, high.node, n.node, n.loc));
}

// Nibble i of the selector says which of the eight bytes of b:a becomes byte i of the result; a
// nibble of 8 and up repeats that byte's sign bit.
inline UInt byte_perm(const detail::Arg<uint32_t>& a, const detail::Arg<uint32_t>& b,
                      const detail::Arg<uint32_t>& selector) {
  return UInt(detail::emit(detail::op::kPrmt, a.node, b.node, selector.node, selector.loc));
}

// c plus the products of four pairs of bytes; of a's two halves and the lower, or the upper, two
// bytes of b. Signed ones for Int.
#define HEDDLE_DOT(name, opcode)                                                      \
  inline Int name(const Int& a, const Int& b, const Int& c,                           \
                  SourceLoc loc = SourceLoc::current()) {                             \
    return Int(detail::emit(detail::op::opcode, a.node(), b.node(), c.node(), loc));  \
  }                                                                                   \
  inline UInt name(const UInt& a, const UInt& b, const UInt& c,                       \
                   SourceLoc loc = SourceLoc::current()) {                            \
    return UInt(detail::emit(detail::op::opcode, a.node(), b.node(), c.node(), loc)); \
  }
HEDDLE_DOT(dp4a, kDp4a)
HEDDLE_DOT(dp2a_lo, kDp2aLo)
HEDDLE_DOT(dp2a_hi, kDp2aHi)
#undef HEDDLE_DOT

// The average of two integers, rounded down or up, without overflow.
template <class T>
requires detail::is_word<T> Value<T> hadd(const Value<T>& a, const Value<T>& b,
                                          SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  return (a & b) + ((a ^ b) >> 1);
}
template <class T>
requires detail::is_word<T> Value<T> rhadd(const Value<T>& a, const Value<T>& b,
                                           SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  return (a | b) - ((a ^ b) >> 1);
}

// Any function of three bits, bit by bit: bit 4a + 2b + c of the table is its value. The assembler
// makes one instruction of it.
template <uint8_t kTable>
UInt lop3(const UInt& a, const UInt& b, const UInt& c, SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  UInt result = 0;
  for (int row = 0; row < 8; ++row) {
    if ((kTable >> row & 1) == 0) continue;
    const UInt term =
        ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) & ((row & 1) != 0 ? c : ~c);
    result.node() = (result | term).node();
  }
  return result;
}

// `length` bits of x from bit `start` on, sign-extended for signed types; and x with them replaced.
// Bits past the top are the sign's, or zero; a length of 0 gives 0.
template <class T>
requires detail::is_word<T> Value<T> bit_extract(const Value<T>& x, const UInt& start,
                                                 const UInt& length,
                                                 SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  constexpr int kBits = sizeof(T) * 8;
  const UInt unused = kBits - min(length, kBits);
  return select(length == 0, Value<T>(0), ((x >> start) << unused) >> unused);
}
template <class T>
requires detail::is_word<T> Value<T> bit_insert(const Value<T>& x, const Value<T>& bits,
                                                const UInt& start, const UInt& length,
                                                SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const Value<T> mask = ~(~Value<T>(0) << length) << start;
  return (x & ~mask) | ((bits << start) & mask);
}

namespace detail {
template <class T>
using Wider = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
}  // namespace detail

// The whole product of two 32-bit integers, and that plus a 64-bit one.
template <class T>
requires(detail::is_word<T> &&
         sizeof(T) == 4) Value<detail::Wider<T>> mul_wide(const Value<T>& a, const Value<T>& b,
                                                          SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  return cast<detail::Wider<T>>(a) * cast<detail::Wider<T>>(b);
}
template <class T>
requires(detail::is_word<T> &&
         sizeof(T) == 4) Value<detail::Wider<T>> mad_wide(const Value<T>& a, const Value<T>& b,
                                                          const Value<detail::Wider<T>>& c,
                                                          SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  return mul_wide(a, b) + c;
}

// A sum or difference modulo 2^n, and whether it passed the ends of the unsigned range.
template <class T>
struct Sum {
  Value<T> value;
  Bool carry;
};
template <class T>
requires std::is_unsigned_v<T> Sum<T> add_carry(const Value<T>& a, const Value<T>& b,
                                                const Bool& carry = false,
                                                SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const Value<T> sum = a + b;
  const Value<T> total = sum + cast<T>(carry);
  return {total, (sum < a) | (total < sum)};
}
template <class T>
requires std::is_unsigned_v<T> Sum<T> sub_borrow(const Value<T>& a, const Value<T>& b,
                                                 const Bool& borrow = false,
                                                 SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const Value<T> difference = a - b;
  return {difference - cast<T>(borrow), (a < b) | (borrow & (a == b))};
}

// Division that rounds down, and what is left of it, which has b's sign. Division by zero is
// unspecified, as that of / is.
template <class T>
requires detail::is_word<T> Value<T> floor_mod(const Value<T>& a, const Value<T>& b,
                                               SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const Value<T> rest = a % b;
  if constexpr (!std::is_signed_v<T>) return rest;
  return select((rest != 0) & ((rest ^ b) < 0), rest + b, rest);
}
template <class T>
requires detail::is_word<T> Value<T> floor_div(const Value<T>& a, const Value<T>& b,
                                               SourceLoc loc = SourceLoc::current()) {
  const CallerLines lines(loc);
  const Value<T> quotient = a / b;
  if constexpr (!std::is_signed_v<T>) return quotient;
  const Value<T> rest = a % b;
  return select((rest != 0) & ((rest ^ b) < 0), quotient - 1, quotient);
}

}  // namespace heddle
