#include "ir/interp/oracle.h"

#include <random>

#include "absl/strings/str_cat.h"

namespace heddle::ir::interp {
namespace {

struct Format {
  int precision;     // bits of the significand, the hidden one included
  int min_exponent;  // of normal numbers
  int max_exponent;
  bool has_infinity = true;
};

// Conversions to these never give infinity.
bool saturates(Scalar scalar) { return info(scalar).bits == 8; }

Format format_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::kE4M3:
      return {4, -6, 8, false};
    case Scalar::kE5M2:
      return {3, -14, 15};
    case Scalar::kF16:
      return {11, -14, 15};
    case Scalar::kBF16:
      return {8, -126, 127};
    case Scalar::kTF32:  // its ties are its own: narrow_float_test.cc
      return {11, -126, 127};
    case Scalar::kF32:
      return {24, -126, 127};
    case Scalar::kF64:
      return {53, -1022, 1023};
    case Scalar::kE8M0:  // has no sign: narrow_float_test.cc
    case Scalar::kE2M1X2:
    case Scalar::kNone:
    case Scalar::kBool:
    case Scalar::kI8:
    case Scalar::kU8:
    case Scalar::kI16:
    case Scalar::kU16:
    case Scalar::kI32:
    case Scalar::kU32:
    case Scalar::kI64:
    case Scalar::kU64:
      break;
  }
  return {};
}

// Products of two f64 are below 2^2048.
constexpr int kLargestExponent = 2200;

bool negative(Exact value) { return value < 0 || (value == 0 && 1 / value < 0); }

}  // namespace

Exact power_of_two(int exponent) {
  static const std::vector<Exact>* const table = [] {
    auto* powers = new std::vector<Exact>(2 * kLargestExponent + 1);
    Exact up = 1;
    Exact down = 1;
    for (int i = 0; i <= kLargestExponent; ++i, up *= 2, down /= 2) {
      (*powers)[static_cast<size_t>(kLargestExponent + i)] = up;
      (*powers)[static_cast<size_t>(kLargestExponent - i)] = down;
    }
    return powers;
  }();
  return (*table)[static_cast<size_t>(kLargestExponent + exponent)];
}

bool is_nan(Exact value) { return value != value; }

Exact value_of(Scalar scalar, uint64_t bits) {
  const int width = info(scalar).bits;
  if (scalar == Scalar::kBool) return bits != 0 ? 1 : 0;
  if (is_integer(scalar)) {
    if (!is_signed(scalar)) return Exact(bits);
    const bool is_negative = (bits >> (width - 1) & 1) != 0;
    return Exact(bits) - (is_negative ? power_of_two(width) : Exact(0));
  }
  const Format format = format_of(scalar);
  const int fraction_bits = format.precision - 1;
  const uint64_t fraction = bits & ((uint64_t{1} << fraction_bits) - 1);
  const int exponent_bits = width - 1 - fraction_bits;
  const int field = static_cast<int>(bits >> fraction_bits & ((uint64_t{1} << exponent_bits) - 1));
  const Exact sign = (bits >> (width - 1) & 1) != 0 ? -1 : 1;
  if (field == (1 << exponent_bits) - 1) {
    if (format.has_infinity) return fraction == 0 ? sign / Exact(0) : Exact(0) / Exact(0);
    if (fraction == (uint64_t{1} << fraction_bits) - 1) return Exact(0) / Exact(0);
  }
  if (field == 0) {
    return sign * Exact(fraction) * power_of_two(format.min_exponent - fraction_bits);
  }
  const Exact significand = Exact(fraction + (uint64_t{1} << fraction_bits));
  return sign * significand * power_of_two(field - 1 + format.min_exponent - fraction_bits);
}

Exact round_to(Scalar scalar, Exact value) {
  const Format format = format_of(scalar);
  // All ones, but for the bit that would make it the NaN of a format without infinity.
  const int ones = format.precision - (format.has_infinity ? 0 : 1);
  const Exact largest = (2 - power_of_two(1 - ones)) * power_of_two(format.max_exponent);
  if (saturates(scalar) && value > largest) return largest;
  if (saturates(scalar) && value < -largest) return -largest;
  if (is_nan(value) || value == 0 || value - value != 0) return value;
  Exact magnitude = value < 0 ? -value : value;
  // The largest exponent whose power of two is not above it, but no subnormal's.
  int exponent = format.min_exponent;
  for (int step = 4096; step > 0; step /= 2) {
    if (exponent + step <= kLargestExponent && power_of_two(exponent + step) <= magnitude) {
      exponent += step;
    }
  }
  // Everything is a multiple of one unit in the last place; scaling by it is exact.
  const Exact unit = power_of_two(exponent - format.precision + 1);
  const Exact scaled = magnitude / unit;
  int64_t whole = static_cast<int64_t>(scaled);
  const Exact rest = scaled - Exact(whole);
  if (rest > Exact(0.5) || (rest == Exact(0.5) && whole % 2 != 0)) ++whole;
  magnitude = Exact(whole) * unit;
  const Exact too_large = power_of_two(format.max_exponent + 1);
  if (magnitude >= too_large) magnitude = Exact(1) / Exact(0);
  return value < 0 ? -magnitude : magnitude;
}

bool is_nan(Scalar scalar, uint64_t bits) { return is_nan(value_of(scalar, bits)); }

bool is_value(Scalar scalar, uint64_t bits, Exact value) {
  const Exact got = value_of(scalar, bits);
  if (is_nan(got) || is_nan(value)) return is_nan(got) && is_nan(value);
  return got == value && negative(got) == negative(value);
}

std::string text_of(Scalar scalar, uint64_t bits) {
  return absl::StrCat("0x", absl::Hex(bits), " (", static_cast<double>(value_of(scalar, bits)),
                      ")");
}

std::vector<uint64_t> interesting_floats(Scalar scalar, int random, int spread) {
  const Format format = format_of(scalar);
  const int width = info(scalar).bits;
  const int fraction_bits = format.precision - 1;
  const uint64_t hidden = uint64_t{1} << fraction_bits;
  const uint64_t one = static_cast<uint64_t>(format.max_exponent) << fraction_bits;
  const uint64_t infinity = (static_cast<uint64_t>(2 * format.max_exponent + 1)) << fraction_bits;
  const uint64_t magnitudes[] = {0,
                                 1,             // smallest subnormal
                                 hidden - 1,    // largest subnormal
                                 hidden,        // smallest normal
                                 one - 1,       // just below 1
                                 one,           // 1
                                 one + 1,       // just above 1
                                 one + hidden,  // 2
                                 one + hidden / 2,
                                 infinity - 1,  // largest
                                 infinity,
                                 infinity + hidden / 2,  // a quiet NaN
                                 infinity + 1};          // a signalling NaN
  std::vector<uint64_t> values;
  for (const uint64_t magnitude : magnitudes) {
    values.push_back(magnitude);
    values.push_back(magnitude | uint64_t{1} << (width - 1));
  }
  std::mt19937_64 generator(scalar == Scalar::kF16 ? 1 : 2);
  for (int i = 0; i < random; ++i) {
    const uint64_t fraction = generator() & (hidden - 1);
    const uint64_t field = static_cast<uint64_t>(
        format.max_exponent +
        static_cast<int>(generator() % static_cast<uint64_t>(2 * spread + 1)) - spread);
    const uint64_t sign = generator() & 1;
    values.push_back(sign << (width - 1) | field << fraction_bits | fraction);
  }
  for (uint64_t& value : values) value &= ~uint64_t{0} >> (64 - width);
  return values;
}

std::vector<uint64_t> interesting_integers(Scalar scalar) {
  if (scalar == Scalar::kBool) return {0, 1};
  const int width = info(scalar).bits;
  const uint64_t mask = width == 64 ? ~uint64_t{0} : (uint64_t{1} << width) - 1;
  const uint64_t top = uint64_t{1} << (width - 1);
  std::vector<uint64_t> values = {0,        1,       2,           3,       7,
                                  top,      top - 1, top + 1,     mask,    mask - 1,
                                  mask / 3, 12345,   mask - 9999, top / 2, 0x55555555u};
  for (uint64_t& value : values) value &= mask;
  std::mt19937_64 generator(7);
  for (int i = 0; i < 12; ++i) values.push_back(generator() & mask);
  return values;
}

Columns pairs(const std::vector<uint64_t>& values) {
  Columns columns(2);
  for (const uint64_t a : values) {
    for (const uint64_t b : values) {
      columns[0].push_back(a);
      columns[1].push_back(b);
    }
  }
  return columns;
}

Columns triples(const std::vector<uint64_t>& values) {
  Columns columns(3);
  for (const uint64_t a : values) {
    for (const uint64_t b : values) {
      for (const uint64_t c : values) {
        columns[0].push_back(a);
        columns[1].push_back(b);
        columns[2].push_back(c);
      }
    }
  }
  return columns;
}

}  // namespace heddle::ir::interp
