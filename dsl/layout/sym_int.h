// Symbolic integers, of which layouts are made: host numbers, or numbers that are known only later,
// with what is known of them now.
//
//   SymInt rows = SymInt::unknown(8);         // ?{div=8}: some positive multiple of 8
//   SymInt tiles = ceil_div(rows, 4);          // ?{div=2}
//   tiles * 4 == rows                           // true: proved, not computed
//
// In a kernel, traced integers convert to them, and they convert to traced integers. Only what is
// used is computed:
//
//   SymInt tiles = ceil_div(SymInt(x.shape(0)), 128);
//   for (Int i : range(tiles)) …
//
// A number that is not the host's is a polynomial over *symbols* with rational coefficients. Sums
// and products so have one form, and comparing two tells whether they are equal. Remainders,
// minima, and quotients that need not be whole become symbols of their own. Unknown numbers are
// positive. Overflow of 64 bits is remembered, and reported by the function that finds it.
//
// Extents of a kernel's tensors count as positive too: where one is 0, numbers that are computed
// from it are as for 1. within() compares with the extents themselves.
#pragma once

#include <cstdint>

#include "heddle/dsl/index.h"

namespace heddle {

class SymInt;

namespace detail {

struct Polynomial;
struct Symbol;

// A kernel's integer as a number of layouts: it is taken to be no less than 0, as coordinates,
// extents and strides are, which the interpreter checks. And back: as an i32, or where `wide` as an
// i64. Where not `exact`, what quotients are made of is known to fit 32 bits if it is made of such.
SymInt traced_int(const Node& node, SourceLoc loc);
Node materialize(const SymInt& number, bool wide, SourceLoc loc, bool exact = true);
// The number of a kernel that is being traced, with its author's word that the divisor divides it.
SymInt promised_multiple(const SymInt& number, int64_t divisor, SourceLoc loc);

// An integer of the kernel.
template <class X>
concept TracedInteger =
    Readable<X> && std::is_convertible_v<const X&, Index> && !std::is_same_v<X, SymInt>;

}  // namespace detail

// A symbolic integer: a host number, or one that is known only at a launch or in the kernel. A
// value.
class SymInt {
 public:
  // From a host number, or an integer of the kernel.
  constexpr SymInt(int64_t value = 0) : value_(value) {}  // NOLINT: a number is an SymInt
  template <detail::TracedInteger X>
  SymInt(const X& x, SourceLoc loc = SourceLoc::current())  // NOLINT: so is a traced one
      : SymInt(detail::traced_int(detail::Index(x, loc).node, loc)) {}
  SymInt(const SymInt& other) : value_(other.value_), polynomial_(other.polynomial_) {
    if (polynomial_ != nullptr) keep();
  }
  SymInt(SymInt&& other) noexcept : value_(other.value_), polynomial_(other.polynomial_) {
    other.polynomial_ = nullptr;
  }
  SymInt& operator=(const SymInt& other) { return *this = SymInt(other); }
  SymInt& operator=(SymInt&& other) noexcept {
    const auto* const mine = polynomial_;
    value_ = other.value_;
    polynomial_ = other.polynomial_;
    other.polynomial_ = mine;
    return *this;
  }
  ~SymInt() {
    if (polynomial_ != nullptr) drop();
  }

  // A positive number of which nothing but a divisor is known. Each call makes another one.
  static SymInt unknown(int64_t divisor = 1);
  // The result of arithmetic that does not fit 64 bits, and of all arithmetic with such a result.
  static SymInt overflow();

  // Whether it is a host number, or this one.
  bool is_constant() const { return polynomial_ == nullptr; }
  bool is_constant(int64_t value) const { return is_constant() && value_ == value; }
  // Whether it is overflow().
  bool is_overflow() const { return !is_constant() && has_overflowed(); }
  // The host number; only where is_constant().
  int64_t value() const { return value_; }
  // The greatest number that is known to divide it; 0 for 0.
  int64_t divisor() const;
  // Likewise, without what is known of a kernel's arguments, which might become a guard.
  int64_t divisor_if_known() const;
  // Bounds: the least and the greatest number that it can be; INT64_MIN, INT64_MAX where nothing is
  // known.
  int64_t least() const;
  int64_t most() const;

  // Arithmetic. Most numbers are host numbers that fit, which is computed in place.
  friend SymInt operator+(const SymInt& a, const SymInt& b) {
    int64_t sum;
    if (are_constant(a, b) && !__builtin_add_overflow(a.value_, b.value_, &sum)) return sum;
    return a.plus(b);
  }
  friend SymInt operator-(const SymInt& a, const SymInt& b) {
    int64_t difference;
    if (are_constant(a, b) && !__builtin_sub_overflow(a.value_, b.value_, &difference)) {
      return difference;
    }
    return a.minus(b);
  }
  friend SymInt operator*(const SymInt& a, const SymInt& b) {
    int64_t product;
    if (are_constant(a, b) && !__builtin_mul_overflow(a.value_, b.value_, &product)) return product;
    return a.times(b);
  }
  SymInt operator-() const { return 0 - *this; }
  // Whether they are equal for all values of the symbols.
  friend bool operator==(const SymInt& a, const SymInt& b) {
    return are_constant(a, b) ? a.value_ == b.value_ : a.same(b);
  }
  // Quotient and remainder of a division that is rounded down; least, greatest and magnitude.
  // Dividends and divisors that are not constant must be known not to be negative, else the result
  // is overflow(). (Friends, so that a kernel's integers keep their own functions of these names.)
  friend SymInt floor_div(const SymInt& a, const SymInt& b);
  friend SymInt mod(const SymInt& a, const SymInt& b);
  friend SymInt min(const SymInt& a, const SymInt& b);
  friend SymInt max(const SymInt& a, const SymInt& b);
  friend SymInt abs(const SymInt& a);

  // The constant term: 12 of 4 * ? + 12.
  int64_t constant_part() const;

  // In a kernel it stands for an Int.
  using value_type = int32_t;
  detail::Node read_node(SourceLoc loc) const { return detail::materialize(*this, false, loc); }
  // All 64 bits, in a kernel.
  Int64 wide(SourceLoc loc = SourceLoc::current()) const {
    return Int64(detail::materialize(*this, true, loc));
  }

  // The polynomial of a number that is not constant, and the number of a polynomial.
  const detail::Polynomial& polynomial() const { return *polynomial_; }
  static SymInt of(const detail::Polynomial* polynomial);

 private:
  static bool are_constant(const SymInt& a, const SymInt& b) {
    return a.is_constant() && b.is_constant();
  }
  // The operators where they are not, or where the result does not fit.
  SymInt plus(const SymInt& b) const;
  SymInt minus(const SymInt& b) const;
  SymInt times(const SymInt& b) const;
  bool same(const SymInt& b) const;
  bool has_overflowed() const;
  void keep() const;
  void drop();

  int64_t value_;
  const detail::Polynomial* polynomial_ = nullptr;
};

// The quotient, rounded up.
SymInt ceil_div(const SymInt& a, const SymInt& b);
template <detail::TracedInteger X>
SymInt ceil_div(const X& a, const SymInt& b, SourceLoc loc = SourceLoc::current()) {
  return ceil_div(SymInt(a, loc), b);
}
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }
// The greatest number that is known to divide both.
SymInt gcd(const SymInt& a, const SymInt& b);
// The sign: -1, 0 or 1; unknown numbers are positive.
int signum(const SymInt& a);

// Whether b is known to divide a; `quotient` receives a / b then.
bool divides(const SymInt& b, const SymInt& a, SymInt* quotient = nullptr);
// Whether a <= b, or a < b, for all values of the symbols.
bool always_at_most(const SymInt& a, const SymInt& b);
bool always_less(const SymInt& a, const SymInt& b);

}  // namespace heddle
