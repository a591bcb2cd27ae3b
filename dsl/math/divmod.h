// Fast division by one divisor, many times.
//
//   const FastDivmod columns(x.shape(1));
//   const auto [row, column] = columns.divmod(i);      // or: i / columns, i % columns
//
// Where the divisor follows from the kernel's arguments, the host computes a multiplier for it
// before each launch. A quotient is then a multiplication and a shift, where a division takes some
// twenty instructions. Layouts divide by such numbers in the same way. With any other divisor this
// is the usual division.
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
// Whether the host can compute it before a launch.
bool is_known_at_launch(const Node& node, SourceLoc loc);
Node quotient(const Node& n, const Divider& divider, SourceLoc loc);

}  // namespace detail

// What a division gives.
template <class T>
struct Divmod {
  Value<T> quotient, remainder;  // n / divisor, n % divisor
};

// A divisor for many divisions. Divisors and dividends have 32 bits. The author promises that the
// divisor is positive and that no dividend is negative; the interpreter checks it.
class FastDivmod {
 public:
  // A signed operand: a value of the kernel that is an Int, or a host number.
  using Signed = detail::Arg<int32_t>;
  // An unsigned operand: a value of the kernel that is a UInt.
  struct Unsigned : detail::Arg<uint32_t> {
    // From a value of the kernel.
    template <detail::Readable X>
    requires detail::StandsFor<X, uint32_t> Unsigned(const X& x,
                                                     SourceLoc where = SourceLoc::current())
        : Arg(x, where) {}
  };

  // From an integer of the kernel or the host.
  explicit FastDivmod(const Signed& divisor);

  // Quotient and remainder of n by the divisor.
  Divmod<int32_t> divmod(const Signed& n) const;
  Divmod<uint32_t> divmod(const Unsigned& n) const;

  friend Int operator/(const Signed& n, const FastDivmod& by) { return by.divmod(n).quotient; }
  friend UInt operator/(const Unsigned& n, const FastDivmod& by) { return by.divmod(n).quotient; }
  friend Int operator%(const Signed& n, const FastDivmod& by) { return by.divmod(n).remainder; }
  friend UInt operator%(const Unsigned& n, const FastDivmod& by) { return by.divmod(n).remainder; }

 private:
  detail::Divider divider_;
};

}  // namespace heddle
