// The integers that layouts are made of: host numbers, or numbers that are known only later, with
// what is known of them now.
//
//   SymInt rows = SymInt::unknown(8);         // ?{div=8}: some positive multiple of 8
//   SymInt tiles = ceil_div(rows, 4);          // ?{div=2}
//   tiles * 4 == rows                           // true: proved, not computed
//
// What is not a host number is kept as a polynomial over *symbols* with rational coefficients, so
// that sums and products have one form and equality is comparison. Quotients that need not come out
// even, remainders and minima become symbols of their own. Unknown numbers are positive; overflow
// of 64 bits is remembered and reported by the function that met it.
#pragma once

#include <cstdint>

namespace heddle {
namespace detail {

struct Polynomial;
struct Symbol;

}  // namespace detail

class SymInt {
 public:
  constexpr SymInt(int64_t value = 0) : value_(value) {}  // NOLINT: a number is an SymInt
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
  // What arithmetic gives whose result does not fit 64 bits, and all that is computed from it.
  static SymInt overflow();

  bool is_constant() const { return polynomial_ == nullptr; }
  bool is_constant(int64_t value) const { return is_constant() && value_ == value; }
  bool is_overflow() const;
  // Of a constant.
  int64_t value() const { return value_; }
  // The greatest number that is known to divide it, whatever it will be; 0 for 0.
  int64_t divisor() const;
  // Of what it can be; INT64_MIN or INT64_MAX where nothing is known.
  int64_t least() const;
  int64_t most() const;

  friend SymInt operator+(const SymInt& a, const SymInt& b);
  friend SymInt operator-(const SymInt& a, const SymInt& b);
  friend SymInt operator*(const SymInt& a, const SymInt& b);
  SymInt operator-() const { return 0 - *this; }
  // Whether they are the same, whatever the symbols will be.
  friend bool operator==(const SymInt& a, const SymInt& b);

  // The polynomial of a number that is no constant; and the number of one.
  const detail::Polynomial& polynomial() const { return *polynomial_; }
  static SymInt of(const detail::Polynomial* polynomial);

 private:
  void keep() const;
  void drop();

  int64_t value_;
  const detail::Polynomial* polynomial_ = nullptr;
};

// The quotient rounded up. Of numbers that are no constants neither may turn out to be negative:
// else the result is overflow().
SymInt ceil_div(const SymInt& a, const SymInt& b);
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }
// Rounded down, and what is left.
SymInt floor_div(const SymInt& a, const SymInt& b);
SymInt mod(const SymInt& a, const SymInt& b);
SymInt min(const SymInt& a, const SymInt& b);
SymInt max(const SymInt& a, const SymInt& b);
SymInt abs(const SymInt& a);
SymInt gcd(const SymInt& a, const SymInt& b);
// -1, 0 or 1; unknown numbers are positive.
int signum(const SymInt& a);

// a / b where it is known to come out even; false where it is not.
bool divides(const SymInt& b, const SymInt& a, SymInt* quotient = nullptr);
// Whether a <= b, and a < b, whatever the symbols will be.
bool always_at_most(const SymInt& a, const SymInt& b);
bool always_less(const SymInt& a, const SymInt& b);

}  // namespace heddle
