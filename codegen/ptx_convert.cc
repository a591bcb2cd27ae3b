// Conversions between element types.
#include <algorithm>

#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"

namespace heddle::codegen {
namespace {

using ir::Scalar;

bool is_float8(Scalar scalar) { return is_float(scalar) && ir::info(scalar).bits == 8; }

// What `true` is as a number of that type.
Operand one_of(Scalar scalar) {
  switch (scalar) {
    case Scalar::kF16:
      return Operand::constant(RegClass::kB16, 0x3C00);
    case Scalar::kBF16:
      return Operand::constant(RegClass::kB16, 0x3F80);
    case Scalar::kTF32:
    case Scalar::kF32:
      return Operand::b32(0x3F800000);
    case Scalar::kF64:
      return Operand::b64(0x3FF0000000000000);
    case Scalar::kE4M3:
      return Operand::b32(0x38);
    case Scalar::kE5M2:
      return Operand::b32(0x3C);
    case Scalar::kE8M0:
      return Operand::b32(0x7F);
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
  return Operand::constant(class_of(scalar), 1);
}

// Whether it is the bits of an integer. Where these are a bool's, ptxas takes the number 1 for them as it converts them to
// f64 (PTXAS.md), if it sees the bool.
bool is_of_bits(const ir::Kernel& kernel, ir::ValueId value) {
  const ir::OpId def = kernel.value(value).def;
  if (!ir::valid(def) || !is_rename(kernel, kernel.op(def))) return false;
  const auto& operands = kernel.op(def).operands;
  return std::any_of(operands.begin(), operands.end(), [&](ir::ValueId from) {
    return ir::is_integer(kernel.type(from).scalar) || is_of_bits(kernel, from);
  });
}

}  // namespace

void Emitter::emit_convert(const Op& op) {
  if (is_rename(kernel_, op)) return rename(op);
  const ValueId source = op.a();
  const Scalar from = type(source).scalar;
  const Scalar to = type(op.result()).scalar;
  if (is_float8(to)) {
    return define_float8(op.result(), source, to == Scalar::kE8M0 ? "rp" : "rn");
  }
  if (to == Scalar::kTF32) return define_tf32(op.result(), source);
  // Between f32 and the 16-bit floats, and among these by way of f32, which holds them all exactly.
  const bool from_single =
      from == Scalar::kF32 || from == Scalar::kTF32 || is_half(from) || is_float8(from);
  if (is_half(to) && from_single) {
    return define_rounded(op.result(), [&](int i) { return single(source, i); });
  }
  const auto convert_lane = [&](int i, const Operand& d) {
    if (to == Scalar::kF32 && is_half(from)) return widen(source, i, d);
    const Element element = computable(source, i);
    Operand operand = in_register(element.operand);
    if (to == Scalar::kF64 && from == Scalar::kF32 && is_of_bits(kernel_, source)) {
      const Operand same = fresh(RegClass::kB32);
      out_->instruction("prmt.b32 ", same, ", ", operand, ", 0, 0x3210");
      operand = same;
    }
    convert(element.scalar, to, operand, d);
  };
  if (ir::info(to).bits == 16) return define_halves(op.result(), convert_lane);
  if (ir::info(to).bits == 8 && to != Scalar::kBool) {
    return define_bytes(op.result(), [&](int i) {
      const Operand d = fresh(RegClass::kB32);
      convert_lane(i, d);
      return d;
    });
  }
  Operand* const d = define(op.result());
  for (int i = 0; i < type(op.result()).count; ++i) convert_lane(i, d[i]);
}

Emitter::Element Emitter::computable(ValueId value, int i) {
  const Type t = type(value);
  switch (t.scalar) {
    case Scalar::kI8:
    case Scalar::kU8: {
      const bool sign = is_signed(t.scalar);
      const Scalar as = sign ? Scalar::kI32 : Scalar::kU32;
      const Operand alone = is_packed(t) ? elements(value)[i / 4] : elements(value)[0];
      if (alone.is_constant || !sign) {
        const Operand b = lane(value, i);
        return {as, !b.is_constant || !sign
                        ? b
                        : Operand::b32(static_cast<uint32_t>(static_cast<int8_t>(b.payload)))};
      }
      return {as, byte(alone, is_packed(t) ? i % 4 : 0, sign)};
    }
    case Scalar::kE4M3:
    case Scalar::kE5M2: {
      // PTX converts pairs, to f16, which has all their numbers.
      const Operand pair = fresh(RegClass::kB16);
      out_->instruction("cvt.u16.u32 ", pair, ", ", in_register(lane(value, i)));
      const Operand wide = fresh(RegClass::kB32);
      out_->instruction("cvt.rn.f16x2.", spelling_of(t.scalar).packed, ' ', wide, ", ", pair);
      const std::array<Operand, 2> halves = {fresh(RegClass::kB16), fresh(RegClass::kB16)};
      out_->instruction("mov.b32 ", Vector{halves.data(), 2}, ", ", wide);
      return {Scalar::kF16, halves[0]};
    }
    case Scalar::kE8M0: {
      // Pairs to bf16, the upper half of an f32.
      const Operand pair = fresh(RegClass::kB16);
      out_->instruction("cvt.u16.u32 ", pair, ", ", in_register(lane(value, i)));
      const Operand wide = fresh(RegClass::kB32);
      out_->instruction("cvt.rn.bf16x2.ue8m0x2 ", wide, ", ", pair);
      const Operand d = fresh(RegClass::kB32);
      out_->instruction("shl.b32 ", d, ", ", wide, ", 16");
      return {Scalar::kF32, d};
    }
    case Scalar::kTF32: {
      const Operand d = fresh(RegClass::kB32);
      out_->instruction("and.b32 ", d, ", ", lane(value, i), ", 0xFFFFE000");
      return {Scalar::kF32, d};
    }
    case Scalar::kBF16:
      // Before sm_90 bf16 converts to nothing but f32.
      return {Scalar::kF32, wide_lane(value, i)};
    default:
      return {t.scalar, lane(value, i)};
  }
}

Operand Emitter::single(ValueId value, int i) {
  if (is_half(type(value).scalar)) return wide_lane(value, i);
  const Element element = computable(value, i);
  if (element.scalar == Scalar::kF32) return element.operand;
  const Operand d = fresh(RegClass::kB32);
  convert(element.scalar, Scalar::kF32, in_register(element.operand), d);
  return d;
}

// An element as f32, in a register. What f32 does not hold is cut to it in a way that a second rounding does not
// notice.
Operand Emitter::single_or_odd(ValueId value, int i) {
  const Scalar from = type(value).scalar;
  const bool fits = is_float(from) ? from != Scalar::kF64 : ir::info(from).bits < 32;
  return in_register(fits ? single(value, i) : rounded_to_odd(from, in_register(lane(value, i))));
}

// Pairs from f32.
void Emitter::define_float8(ValueId result, ValueId source, absl::string_view rounding) {
  const auto element = [&](int i) { return single_or_odd(source, i); };
  const auto pair = [&](const Operand& low, const Operand& high) {
    const Operand d = fresh(RegClass::kB16);
    out_->instruction("cvt.", rounding, ".satfinite.", spelling_of(type(result).scalar).packed,
                      ".f32 ", d, ", ", high, ", ", low);
    return d;
  };
  const Type t = type(result);
  Operand* const d = define(result);
  if (t.is_scalar()) {
    const Operand one = element(0);
    const Operand both = pair(one, in_register(Operand::b32(0)));
    out_->instruction("cvt.u32.u16 ", d[0], ", ", both);
    return;
  }
  for (int k = 0; 4 * k < t.count; ++k) {
    std::array<Operand, 2> halves;
    for (int h = 0; h < 2; ++h) {
      const int i = std::min(4 * k + 2 * h, t.count - 1);
      const Operand low = element(i);
      halves[static_cast<size_t>(h)] = pair(low, i + 1 < t.count ? element(i + 1) : low);
    }
    out_->instruction("mov.b32 ", d[k], ", ", Vector{halves.data(), 2});
  }
}

// From f32, likewise.
void Emitter::define_tf32(ValueId result, ValueId source) {
  Operand* const d = define(result);
  for (int i = 0; i < type(result).count; ++i) {
    out_->instruction("cvt.rna.tf32.f32 ", d[i], ", ", single_or_odd(source, i));
  }
}

// Pairs of 4-bit floats are bytes, and PTX's instructions want them in registers of that size.
void Emitter::emit_e2m1_pack(const Op& op) {
  const Type t = type(op.result());
  const auto byte_of = [&](int i) {
    const Operand low = in_register(lane(op.a(), 2 * i));
    const Operand high = in_register(lane(op.a(), 2 * i + 1));
    const Operand d = fresh(RegClass::kB8);
    out_->instruction("cvt.rn.satfinite.e2m1x2.f32 ", d, ", ", high, ", ", low);
    return d;
  };
  Operand* const d = define(op.result());
  if (t.is_scalar()) return out_->instruction("cvt.u32.u8 ", d[0], ", ", byte_of(0));
  for (int k = 0; 4 * k < t.count; ++k) {
    std::array<Operand, 4> bytes;
    for (int i = 0; i < 4; ++i) {
      bytes[static_cast<size_t>(i)] = 4 * k + i < t.count ? byte_of(4 * k + i) : bytes[0];
    }
    out_->instruction("mov.b32 ", d[k], ", ", Vector{bytes.data(), 4});
  }
}

void Emitter::emit_e2m1_unpack(const Op& op) {
  const Type t = type(op.a());
  Operand* const d = define(op.result());
  const auto unpack = [&](int i, const Operand& byte) {
    out_->instruction("cvt.rn.f16x2.e2m1x2 ", d[i], ", ", byte);
  };
  const int words = layout_of(t).count;
  for (int k = 0; k < words; ++k) {
    const Operand word = in_register(elements(op.a())[k]);
    std::array<Operand, 4> bytes;
    for (Operand& byte : bytes) byte = fresh(RegClass::kB8);
    if (t.is_scalar()) {
      out_->instruction("cvt.u8.u32 ", bytes[0], ", ", word);
    } else {
      out_->instruction("mov.b32 ", Vector{bytes.data(), 4}, ", ", word);
    }
    for (int i = 4 * k; i < std::min<int>(4 * k + 4, t.count); ++i) {
      unpack(i, bytes[static_cast<size_t>(i % 4)]);
    }
  }
}

void Emitter::convert(Scalar from, Scalar to, const Operand& source, const Operand& d) {
  if (to == Scalar::kBool) return convert_to_bool(from, source, d);
  if (from == to) return move(d, source);  // what was only kept has been widened to it
  const TypeSpelling& spelling = spelling_of(to);
  if (from == Scalar::kBool) {
    out_->instruction("selp.", spelling.bits, ' ', d, ", ", one_of(to), ", 0, ", source);
    return;
  }
  const absl::string_view a = spelling_of(from).name;
  if (is_integer(to)) {
    // Widening extends by the source's sign; narrowing takes the low half. The result is spelled with the source's
    // sign, which changes no bit: ptxas 13.0 takes cvt.s64.u32 before a shl for cvt.s64.s32.
    const bool whole = is_integer(from);
    const bool other_sign = whole && ir::is_signed(from) != ir::is_signed(to);
    out_->instruction(whole ? "cvt." : "cvt.rzi.",
                      other_sign ? a.substr(0, 1) : spelling.name.substr(0, 1),
                      spelling.name.substr(1), '.', a, ' ', d, ", ", source);
    return;
  }
  if (to == Scalar::kBF16 && !target_has(ir::Feature::kBf16Arithmetic)) {
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
