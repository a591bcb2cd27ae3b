// What a floating-point result has to be, from exact arithmetic: an oracle of its own, written from
// the definition of the formats and not from anything in Heddle.
#pragma once

#include <cfloat>
#include <cstdint>
#include <string>
#include <vector>

#include "heddle/ir/type.h"

namespace heddle::ir::interp {

// 113 bits of precision: holds sums and products of narrower floats exactly where their exponents
// are close, and is precise enough everywhere that rounding its result again is rounding once.
#if LDBL_MANT_DIG == 113
using Exact = long double;
#else
__extension__ typedef __float128 Exact;
#endif

// 2^exponent
Exact power_of_two(int exponent);
// The value of an element's bits; integers too.
Exact value_of(Scalar scalar, uint64_t bits);
// The nearest value of a floating-point type, ties to even; too large ones give infinity.
Exact round_to(Scalar scalar, Exact value);
bool is_nan(Exact value);
bool is_nan(Scalar scalar, uint64_t bits);
// Whether bits are that value: the same number, zero of the same sign, infinity, or any NaN.
bool is_value(Scalar scalar, uint64_t bits, Exact value);
std::string text_of(Scalar scalar, uint64_t bits);

// Zeros, subnormals, largest numbers, infinities, NaNs of both kinds and signs, numbers near one,
// and `random` others whose exponents are within `spread` of one's; as bits.
std::vector<uint64_t> interesting_floats(Scalar scalar, int random, int spread);
// Boundaries and bit patterns of an integer type, or both bools.
std::vector<uint64_t> interesting_integers(Scalar scalar);

// All pairs (and triples) of a list, as columns.
using Columns = std::vector<std::vector<uint64_t>>;
Columns pairs(const std::vector<uint64_t>& values);
Columns triples(const std::vector<uint64_t>& values);

}  // namespace heddle::ir::interp
