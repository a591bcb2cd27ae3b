// Formats of floats: numbers from bits, rounding, and MPFR, which rounds to any of them.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "fuzz/oracle_scalar.h"

namespace heddle::fuzz::oracle {
namespace {

using ir::Rounding;
using ir::Scalar;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr Format kFormats[] = {
    {Scalar::kF64, 52, 1023, std::numeric_limits<double>::max(), false, 0x7FF8'0000'0000'0000},
    {Scalar::kF32, 23, 127, std::numeric_limits<float>::max(), false, 0x7FC0'0000},
    {Scalar::kBF16, 7, 127, 0x1.FEp127, false, 0x7FC0},
    {Scalar::kF16, 10, 15, 65504, false, 0x7E00},
    {Scalar::kE5M2, 2, 15, 57344, true, 0x7F},
    // Its exponents are all those of numbers; 0x7f alone is none.
    {Scalar::kE4M3, 3, 7, 448, true, 0x7F},
};

// 2^exponent, of a normal number.
double power(int exponent) {
  return std::bit_cast<double>(static_cast<uint64_t>(exponent + 1023) << 52);
}

constexpr mpfr_rnd_t kDirections[] = {MPFR_RNDN, MPFR_RNDZ, MPFR_RNDD, MPFR_RNDU};
static_assert(std::size(kDirections) == ir::kRoundingCount);

// A number of MPFR.
class Big {
 public:
  explicit Big(int precision) { mpfr_init2(value_, precision); }
  explicit Big(double value) : Big(53) { mpfr_set_d(value_, value, MPFR_RNDN); }
  ~Big() { mpfr_clear(value_); }
  Big(const Big&) = delete;
  Big& operator=(const Big&) = delete;
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

int apply(const MpfrFunction& function, mpfr_ptr result, const double* operands,
          mpfr_rnd_t direction) {
  Big a(operands[0]);
  if (function.of_one != nullptr) return function.of_one(result, a.get(), direction);
  Big b(operands[1]);
  if (function.of_two != nullptr) return function.of_two(result, a.get(), b.get(), direction);
  Big c(operands[2]);
  return function.of_three(result, a.get(), b.get(), c.get(), direction);
}

// Ends a computation that rounded to the format's digits, with any exponent: `inexact` says which
// way. MPFR's numbers lie between 1/2 and 1 times a power of two.
double in_range(const Format& format, Big& result, int inexact, mpfr_rnd_t direction) {
  const mpfr_exp_t least = mpfr_get_emin();
  const mpfr_exp_t most = mpfr_get_emax();
  mpfr_set_emin(2 - format.bias - format.fraction);
  mpfr_set_emax(format.bias + 1);
  inexact = mpfr_check_range(result.get(), inexact, direction);
  mpfr_subnormalize(result.get(), inexact, direction);
  mpfr_set_emin(least);
  mpfr_set_emax(most);
  return mpfr_get_d(result.get(), MPFR_RNDN);
}

}  // namespace

const Format* find_format(Scalar scalar) {
  static const auto by_scalar = [] {
    std::array<const Format*, ir::kScalarCount> table{};
    for (const Format& format : kFormats) table[static_cast<size_t>(format.scalar)] = &format;
    return table;
  }();
  return by_scalar[static_cast<size_t>(scalar)];
}

double number(const Format& format, uint64_t bits) {
  if (format.scalar == Scalar::kF64) return std::bit_cast<double>(bits);
  if (format.scalar == Scalar::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  const int width = width_of(format.scalar);
  const uint64_t magnitude = bits & ~(uint64_t{1} << (width - 1));
  const double sign = magnitude == bits ? 1 : -1;
  const uint64_t ones = (uint64_t{1} << (width - 1 - format.fraction)) - 1;
  const uint64_t exponent = magnitude >> format.fraction;
  const uint64_t fraction = magnitude & ((uint64_t{1} << format.fraction) - 1);
  const bool number = exponent < ones || (format.scalar == Scalar::kE4M3 && magnitude != 0x7F);
  if (!number) {
    const bool infinite = fraction == 0 && format.scalar != Scalar::kE4M3;
    return infinite ? sign * kInfinity : std::numeric_limits<double>::quiet_NaN();
  }
  const uint64_t leading = exponent == 0 ? 0 : uint64_t{1} << format.fraction;
  const int scale = std::max(static_cast<int>(exponent), 1) - format.bias - format.fraction;
  return sign * static_cast<double>(leading + fraction) * power(scale);
}

uint64_t rounded(const Format& format, double value) {
  if (std::isnan(value)) return format.nan;
  if (format.scalar == Scalar::kF64) return std::bit_cast<uint64_t>(value);
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (width_of(format.scalar) - 1) : 0;
  const double magnitude = std::fabs(value);
  const int least = 1 - format.bias;
  int exponent = magnitude < power(least) ? least : format.bias + 1;
  if (magnitude >= power(least) && magnitude <= 2 * format.largest)
    exponent = std::ilogb(magnitude);
  // A whole number of what the last digit counts: exact, but for the rounding that is wanted.
  const double unit = power(exponent - format.fraction);
  double digits = std::nearbyint(magnitude / unit);
  if (digits * unit > format.largest) {
    const uint64_t beyond =
        (uint64_t{1} << (width_of(format.scalar) - 1)) - (uint64_t{1} << format.fraction);
    if (!format.saturates) return sign | beyond;
    exponent = std::ilogb(format.largest);
    digits = format.largest / power(exponent - format.fraction);
  }
  // Digits beyond the fraction carry into the exponent.
  const auto lower = static_cast<uint64_t>(digits) - (uint64_t{1} << format.fraction);
  return sign | ((static_cast<uint64_t>(exponent + format.bias) << format.fraction) + lower);
}

uint64_t flushed(uint64_t bits) { return (bits & 0x7F80'0000) == 0 ? bits & 0x8000'0000 : bits; }

double rounded_once(const Format& format, Rounding rounding, const MpfrFunction& function,
                    const double* operands) {
  const mpfr_rnd_t direction = kDirections[static_cast<size_t>(rounding)];
  Big result(format.fraction + 1);
  const int inexact = apply(function, result.get(), operands, direction);
  return in_range(format, result, inexact, direction);
}

double rounded_once(const Format& format, Rounding rounding, Int128 integer) {
  const mpfr_rnd_t direction = kDirections[static_cast<size_t>(rounding)];
  Big result(format.fraction + 1);
  const int inexact = integer < 0
                          ? mpfr_set_si(result.get(), static_cast<int64_t>(integer), direction)
                          : mpfr_set_ui(result.get(), static_cast<uint64_t>(integer), direction);
  return in_range(format, result, inexact, direction);
}

double nearest(const MpfrFunction& function, double operand) {
  Big result(64);
  apply(function, result.get(), &operand, MPFR_RNDN);
  return mpfr_get_d(result.get(), MPFR_RNDN);
}

}  // namespace heddle::fuzz::oracle
