// What changes the type of a number, and what only hands bits on.
#include <cmath>

#include "fuzz/oracle_scalar.h"

namespace heddle::fuzz::oracle {
namespace {

using ir::Opcode;
using ir::Rounding;
using ir::Scalar;

using Result = std::optional<uint64_t>;

bool is_number(Scalar scalar) { return ir::is_integer(scalar) || scalar == Scalar::kBool; }

Result same_bits(const ScalarOp&, const uint64_t* operands) { return operands[0]; }

Result integer_to_integer(const ScalarOp& op, const uint64_t* operands) {
  const Int128 value = integer(op.from, operands[0]);
  if (op.to == Scalar::kBool) return value != 0 ? 1 : 0;
  return wrap(op.to, value);
}

Result integer_to_float(const ScalarOp& op, const uint64_t* operands) {
  const Format& format = *find_format(op.to);
  const Int128 value = integer(op.from, operands[0]);
  constexpr Int128 kExact = Int128{1} << 53;  // f64 has every integer up to there
  if (op.rounding == Rounding::kNearest && value <= kExact && value >= -kExact) {
    return rounded(format, static_cast<double>(value));
  }
  return rounded(format, rounded_once(format, op.rounding, value));
}

double whole(Rounding rounding, double value) {
  switch (rounding) {
    case Rounding::kNearest:
      return std::nearbyint(value);
    case Rounding::kZero:
      return std::trunc(value);
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
  }
  return value;
}

Result float_to_integer(const ScalarOp& op, const uint64_t* operands) {
  const double value = number(*find_format(op.from), operands[0]);
  if (op.to == Scalar::kBool) return value != 0 ? 1 : 0;  // of a NaN, too
  const int width = width_of(op.to);
  if (std::isnan(value)) {
    return width == 64 || width_of(op.from) == 64 ? uint64_t{1} << (width - 1) : 0;
  }
  const bool truncates = op.opcode == Opcode::kConvert;
  const double kept = whole(truncates ? Rounding::kZero : op.rounding, value);
  const Int128 most = (Int128{1} << (ir::is_signed(op.to) ? width - 1 : width)) - 1;
  const Int128 least = ir::is_signed(op.to) ? -most - 1 : 0;
  if (kept >= 0x1p64) return wrap(op.to, most);
  if (kept <= -0x1p64) return wrap(op.to, least);
  const auto exact = static_cast<Int128>(kept);
  return wrap(op.to, exact > most ? most : exact < least ? least : exact);
}

Result float_to_float(const ScalarOp& op, const uint64_t* operands) {
  const Format& format = *find_format(op.to);
  const double value = number(*find_format(op.from), operands[0]);
  if (op.rounding == Rounding::kNearest) return rounded(format, value);
  constexpr MpfrFunction kSame = {
      .of_one = [](mpfr_ptr result, mpfr_srcptr x, mpfr_rnd_t direction) {
        return mpfr_set(result, x, direction);
      }};
  return rounded(format, rounded_once(format, op.rounding, kSame, &value));
}

Rule convert_rule(const ScalarOp& op) {
  if (op.from == op.to) return same_bits;
  const bool from = is_number(op.from);
  const bool to = is_number(op.to);
  if ((!from && find_format(op.from) == nullptr) || (!to && find_format(op.to) == nullptr)) {
    return nullptr;
  }
  if (from) return to ? integer_to_integer : integer_to_float;
  return to ? float_to_integer : float_to_float;
}

}  // namespace

Rule conversion_rule(const ScalarOp& op) {
  switch (op.opcode) {
    case Opcode::kConvert:
    case Opcode::kConvertRounded:
      return convert_rule(op);
    case Opcode::kBitcast:
      return same_bits;
    case Opcode::kSelect:
      return [](const ScalarOp&, const uint64_t* operands) -> Result {
        return operands[0] != 0 ? operands[1] : operands[2];
      };
    default:
      return nullptr;
  }
}

Rule find_rule(const ScalarOp& op) {
  for (const auto rule_of : {integer_rule, float_rule, conversion_rule}) {
    if (const Rule rule = rule_of(op)) return rule;
  }
  return nullptr;
}

}  // namespace heddle::fuzz::oracle
