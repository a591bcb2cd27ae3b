// What the oracle takes an elementwise op to mean: the op on one element of each operand, written
// from the comments in ir/ops.def. It shares no code with the constant folder or the interpreter:
// integers are computed in 128 bits, floats by the host's processor and, where it has no such
// operation, by MPFR.
#pragma once

#include <mpfr.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/types/span.h"
#include "heddle/ir/op_info.h"
#include "heddle/ir/rounding.h"

namespace heddle::fuzz::oracle {

struct ScalarOp {
  ir::Opcode opcode{};
  ir::Scalar from{};  // of the first operand
  ir::Scalar to{};    // of the result
  ir::Rounding rounding = ir::Rounding::kNearest;
  bool ftz = false;
};

// The result's bits from the operands' bits, zero-extended; nullopt where ops.def leaves the result
// unspecified, or where a host's approximation is not as near as ops.def wants.
using Rule = std::optional<uint64_t> (*)(const ScalarOp& op, const uint64_t* operands);

// The function that a table of opcodes has for one; nullptr where it has none.
template <class Function>
Function find_in(absl::Span<const std::pair<ir::Opcode, Function>> rows, ir::Opcode opcode) {
  for (const auto& [of, function] : rows) {
    if (of == opcode) return function;
  }
  return nullptr;
}

// nullptr where the oracle does not know the op for these types.
Rule find_rule(const ScalarOp& op);

// Of one file each; nullptr for ops of the others.
Rule integer_rule(const ScalarOp& op);
Rule float_rule(const ScalarOp& op);
Rule conversion_rule(const ScalarOp& op);

// Whether a value of f32 is as near an approximate op's exact result of x as ops.def wants it.
bool keeps_bound(ir::Opcode opcode, double x, double value);

// --- Integers and bools -----------------------------------------------------------------------

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

// How many bits count: one of a bool.
inline int width_of(ir::Scalar scalar) {
  return scalar == ir::Scalar::kBool ? 1 : ir::info(scalar).bits;
}
// The number that bits stand for.
inline Int128 integer(ir::Scalar scalar, uint64_t bits) {
  const bool negative = ir::is_signed(scalar) && (bits >> (width_of(scalar) - 1) & 1) != 0;
  return static_cast<Int128>(bits) - (negative ? Int128{1} << width_of(scalar) : 0);
}
// Modulo 2^n.
inline uint64_t wrap(ir::Scalar scalar, Int128 number) {
  const Uint128 modulus = Uint128{1} << width_of(scalar);
  return static_cast<uint64_t>(static_cast<Uint128>(number) & (modulus - 1));
}

// --- Floats -----------------------------------------------------------------------------------

// A binary format: digits behind the point, and the bias of its exponent.
struct Format {
  ir::Scalar scalar;
  int fraction;
  int bias;
  double largest;
  bool saturates;  // beyond it lies no infinity
  uint64_t nan;
};
// nullptr where the oracle does not know the type.
const Format* find_format(ir::Scalar scalar);

// Every number of every format is one of f64.
double number(const Format& format, uint64_t bits);
// Rounded to nearest even.
uint64_t rounded(const Format& format, double value);
// Of f32 bits, with zeros for subnormal numbers.
uint64_t flushed(uint64_t bits);

// A function of MPFR: of one operand, of two or of three.
struct MpfrFunction {
  int (*of_one)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t) = nullptr;
  int (*of_two)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t) = nullptr;
  int (*of_three)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t) = nullptr;
};
// The result of a function of numbers, or an integer of up to 64 bits, rounded to a format once, as
// `rounding` says.
double rounded_once(const Format& format, ir::Rounding rounding, const MpfrFunction& function,
                    const double* operands);
double rounded_once(const Format& format, ir::Rounding rounding, Int128 integer);
// The function's value, as near as f64 comes to it.
double nearest(const MpfrFunction& function, double operand);

}  // namespace heddle::fuzz::oracle
