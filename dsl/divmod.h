// Many divisions by one number.
//
//   const FastDivmod columns(x.shape(1));
//   const auto [row, column] = columns.divmod(i);      // or: i / columns, i % columns
//
// A divisor that follows from the kernel's arguments is turned into a multiplier by the host, anew
// for each launch: a quotient is then a multiplication and a shift, where a division takes some
// twenty instructions. Layouts divide by such numbers in the same way. By another divisor it is the
// division that `/` is.
#pragma once

#include "heddle/dsl/value.h"

namespace heddle {
namespace detail {

// A u32 to divide by. Where `at_launch`, n / divisor is (n * multiplier + addend) >> 32 >> shift
// for all n.
struct Divider {
  Node divisor;
  Node multiplier, addend, shift;  // u32, u64, u32
  bool at_launch = false;
};
Divider make_divider(const Node& divisor, SourceLoc loc);
Node quotient(const Node& n, const Divider& divider, SourceLoc loc);

}  // namespace detail

template <class T>
struct Divmod {
  Value<T> quotient, remainder;
};

// Divisors and dividends have 32 bits. That a divisor is positive, and an Int that is divided not
// negative, is a promise, which the interpreter checks.
class FastDivmod {
 public:
  explicit FastDivmod(const detail::Arg<int32_t>& divisor);

  Divmod<int32_t> divmod(const detail::Arg<int32_t>& n) const;
  Divmod<uint32_t> divmod(const detail::Arg<uint32_t>& n) const;

  friend Int operator/(const detail::Arg<int32_t>& n, const FastDivmod& by) {
    return by.divmod(n).quotient;
  }
  friend UInt operator/(const detail::Arg<uint32_t>& n, const FastDivmod& by) {
    return by.divmod(n).quotient;
  }
  friend Int operator%(const detail::Arg<int32_t>& n, const FastDivmod& by) {
    return by.divmod(n).remainder;
  }
  friend UInt operator%(const detail::Arg<uint32_t>& n, const FastDivmod& by) {
    return by.divmod(n).remainder;
  }

 private:
  detail::Divider divider_;
};

}  // namespace heddle
