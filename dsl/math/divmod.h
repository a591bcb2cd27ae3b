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
// Whether the host can compute it before a launch.
bool is_known_at_launch(const Node& node, SourceLoc loc);
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
  // Any integer that stands for an Int; the kernel's own that stand for a UInt.
  using Signed = detail::Arg<int32_t>;
  struct Unsigned : detail::Arg<uint32_t> {
    template <detail::Readable X>
    requires detail::StandsFor<X, uint32_t> Unsigned(const X& x,
                                                     SourceLoc where = SourceLoc::current())
        : Arg(x, where) {}
  };

  explicit FastDivmod(const Signed& divisor);

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
