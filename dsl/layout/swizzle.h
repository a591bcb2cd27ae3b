// Swizzles: permutations of indices that spread the rows of a shared-memory tile over its banks.
//
//   const Swizzle s(3, 4, 3);                   // S<3,4,3>
//   s(72);                                      // the index with bits 7-9 added (xor) to bits 4-6
#pragma once

#include <iosfwd>

#include "heddle/dsl/layout/int_tuple.h"

namespace heddle {

// S<B,M,S>: `bits` bits from bit `base` on are combined by exclusive or with as many bits that lie
// `shift` bits higher, or lower where shift is negative. |shift| >= bits, and all lies below bit
// 62: else it is not ok(), and neither are layouts made with it.
class Swizzle {
 public:
  constexpr Swizzle() = default;  // changes nothing: S<0,4,3>
  // S<bits,base,shift>.
  Swizzle(int bits, int base, int shift, SourceLoc loc = SourceLoc::current());

  // Whether the numbers are within the limits above.
  bool ok() const {
    // None is large enough for the sums to overflow.
    const bool small = bits_ <= 62 && base_ <= 62 && shift_ <= 62 && shift_ >= -62;
    const int distance = small && shift_ < 0 ? -shift_ : shift_;
    return small && bits_ >= 0 && base_ >= 0 && distance >= bits_ && bits_ + base_ + distance <= 62;
  }
  // Why it is not ok(), and how to mend it. Empty where it is.
  std::string error() const;

  constexpr int bits() const { return bits_; }
  constexpr int base() const { return base_; }
  constexpr int shift() const { return shift_; }
  // The length of the ranges that are permuted in themselves, which begin at its multiples:
  // 2^(B+M+|S|) indices.
  int64_t span() const {
    return ok() ? int64_t{1} << (bits_ + base_ + (shift_ < 0 ? -shift_ : shift_)) : 1;
  }
  // Masks of the bits that change, and of those that they are combined with.
  int64_t target_mask() const { return mask(shift_ < 0 ? -shift_ : 0); }
  int64_t source_mask() const { return mask(shift_ < 0 ? 0 : shift_); }

  // The permuted index. A swizzle is its own inverse; one that is not ok() changes nothing.
  int64_t operator()(int64_t index) const;
  SymInt operator()(const SymInt& index) const;
  std::string to_string() const;  // "S<3,4,3>"

  friend constexpr bool operator==(const Swizzle&, const Swizzle&) = default;

 private:
  friend Swizzle recast_layout(const Swizzle&, int, int, SourceLoc);
  int64_t mask(int from) const { return ((int64_t{1} << bits_) - 1) << (base_ + from); }

  int bits_ = 0;
  int base_ = 4;
  int shift_ = 3;
};

// The swizzle that does the same to elements of another width, in bits. Where there is none, it is
// not ok().
Swizzle recast_layout(const Swizzle& swizzle, int old_bits, int new_bits,
                      SourceLoc loc = SourceLoc::current());
inline Swizzle recast(const Swizzle& swizzle, int old_bits, int new_bits,
                      SourceLoc loc = SourceLoc::current()) {
  return recast_layout(swizzle, old_bits, new_bits, loc);
}
// n elements as one (upcast), and one as n (downcast).
inline Swizzle upcast(const Swizzle& swizzle, int n, SourceLoc loc = SourceLoc::current()) {
  return recast_layout(swizzle, 1, n, loc);
}
inline Swizzle downcast(const Swizzle& swizzle, int n, SourceLoc loc = SourceLoc::current()) {
  return recast_layout(swizzle, n, 1, loc);
}

}  // namespace heddle
