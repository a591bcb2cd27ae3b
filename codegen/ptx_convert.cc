// Conversions between element types.
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"

namespace heddle::codegen {
namespace {

using ir::Scalar;

bool is_half(Scalar scalar) { return ir::info(scalar).bits == 16; }

// What `true` is as a number of that type.
Operand one_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::kF16:
      return Operand::constant(RegClass::kB16, 0x3C00);
    case Scalar::kBF16:
      return Operand::constant(RegClass::kB16, 0x3F80);
    case Scalar::kF32:
      return Operand::b32(0x3F800000);
    case Scalar::kF64:
      return Operand::b64(0x3FF0000000000000);
    case Scalar::kNone:
    case Scalar::kBool:
    case Scalar::kI32:
    case Scalar::kU32:
    case Scalar::kI64:
    case Scalar::kU64:
      break;
  }
  return Operand::constant(class_of(scalar), 1);
}

}  // namespace

void Emitter::emit_convert(const Op& op) {
  if (is_rename(kernel_, op)) return rename(op);
  const ValueId source = op.operands[0];
  const Scalar from = type(source).scalar;
  const Scalar to = type(op.result()).scalar;
  // Between f32 and the 16-bit types, and among these by way of f32, which holds them all exactly.
  const bool from_single = from == Scalar::kF32 || is_half(from);
  if (is_half(to) && from_single) {
    return define_rounded(op.result(), [&](int i) {
      return from == Scalar::kF32 ? lane(source, i) : wide_lane(source, i);
    });
  }
  if (is_half(to)) {
    return define_halves(op.result(), [&](int i, const Operand& d) {
      convert(from, to, in_register(lane(source, i)), d);
    });
  }
  Operand* const d = define(op.result());
  for (int i = 0; i < type(op.result()).count; ++i) {
    if (to == Scalar::kF32 && is_half(from)) {
      widen(source, i, d[i]);
    } else if (from == Scalar::kBF16 && to != Scalar::kBool) {
      // Before sm_90 bf16 converts to nothing but f32.
      convert(Scalar::kF32, to, in_register(wide_lane(source, i)), d[i]);
    } else {
      convert(from, to, in_register(lane(source, i)), d[i]);
    }
  }
}

void Emitter::convert(Scalar from, Scalar to, const Operand& source, const Operand& d) {
  if (to == Scalar::kBool) return convert_to_bool(from, source, d);
  const TypeSpelling& spelling = spelling_of(to);
  if (from == Scalar::kBool) {
    out_->instruction("selp.", spelling.bits, ' ', d, ", ", one_of(to), ", 0, ", source);
    return;
  }
  const absl::string_view a = spelling_of(from).name;
  if (is_integer(to)) {
    // Widening extends by the source's sign; narrowing takes the low half.
    const bool whole = is_integer(from);
    out_->instruction(whole ? "cvt." : "cvt.rzi.", spelling.name, '.', a, ' ', d, ", ", source);
    return;
  }
  if (to == Scalar::kBF16 && target_.sm < 90) {
    const Operand odd = rounded_to_odd(from, source);
    out_->instruction("cvt.rn.bf16.f32 ", d, ", ", odd);
    return;
  }
  // Only widening a float needs no rounding, and allows none.
  const bool exact = is_float(from) && bytes_of(from) < bytes_of(to);
  out_->instruction(exact ? "cvt." : "cvt.rn.", spelling.name, '.', a, ' ', d, ", ", source);
}

void Emitter::convert_to_bool(Scalar from, const Operand& source, const Operand& d) {
  const TypeSpelling& spelling = spelling_of(from);
  if (is_half(from)) {
    const Operand magnitude = fresh(RegClass::kB16);
    out_->instruction("and.b16 ", magnitude, ", ", source, ", 0x7FFF");
    out_->instruction("setp.ne.b16 ", d, ", ", magnitude, ", 0");
    return;
  }
  const Operand zero = Operand::constant(class_of(from), 0);
  out_->instruction(is_float(from) ? "setp.neu." : "setp.ne.", spelling.name, ' ', d, ", ", source,
                    ", ", as(spelling.constants, zero));
}

// Rounding to f32 and then to bf16 goes wrong near bf16's ties. Rounding toward zero first, with
// the lowest bit set where anything was lost, keeps a number on its side of every tie.
Operand Emitter::rounded_to_odd(Scalar from, const Operand& source) {
  const TypeSpelling& spelling = spelling_of(from);
  const Operand cut = fresh(RegClass::kB32);
  out_->instruction("cvt.rz.f32.", spelling.name, ' ', cut, ", ", source);
  const Operand back = fresh(class_of(from));
  if (is_float(from)) {
    out_->instruction("cvt.f64.f32 ", back, ", ", cut);
  } else {
    out_->instruction("cvt.rzi.", spelling.name, ".f32 ", back, ", ", cut);
  }
  const Operand lost = fresh(RegClass::kPred);
  out_->instruction(is_float(from) ? "setp.neu." : "setp.ne.", spelling.name, ' ', lost, ", ", back,
                    ", ", source);
  const Operand sticky = fresh(RegClass::kB32);
  out_->instruction("selp.b32 ", sticky, ", 1, 0, ", lost);
  const Operand odd = fresh(RegClass::kB32);
  out_->instruction("or.b32 ", odd, ", ", cut, ", ", sticky);
  return odd;
}

}  // namespace heddle::codegen
