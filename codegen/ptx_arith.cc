// Elementwise arithmetic: the ops of the table, and the few that are not one instruction.
#include <algorithm>

#include "absl/strings/str_replace.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"

namespace heddle::codegen {

using ir::Opcode;

namespace {

// In the order of ir::Rounding.
constexpr absl::string_view kRoundings[] = {"rn", "rz", "rm", "rp"};

std::string rounded(const std::string& mnemonic, const ir::Op& op) {
  const auto rounding = op.attr(ir::AttrKey::kRounding);
  if (!rounding) return mnemonic;
  return absl::StrReplaceAll(mnemonic, {{"%", kRoundings[*rounding]}});
}

}  // namespace

void Emitter::print(absl::string_view mnemonic, const Operand& d,
                    absl::Span<const Spelled> operands) {
  switch (operands.size()) {
    case 1:
      return out_->instruction(mnemonic, ' ', d, ", ", operands[0]);
    case 2:
      return out_->instruction(mnemonic, ' ', d, ", ", operands[0], ", ", operands[1]);
    default:
      return out_->instruction(mnemonic, ' ', d, ", ", operands[0], ", ", operands[1], ", ",
                               operands[2]);
  }
}

void Emitter::emit_elementwise(const Op& op) {
  switch (op.opcode) {
    case Opcode::kEq:
      return emit_equal(op);
    case Opcode::kNeg:
      return emit_neg(op);
    case Opcode::kAbs:
      return emit_abs(op);
    case Opcode::kSelect:
      return emit_select(op);
    case Opcode::kConvert:
      return emit_convert(op);
    case Opcode::kConvertRounded:
      return emit_convert_rounded(op);
    case Opcode::kPopc:
    case Opcode::kClz:
      return emit_bit_count(op);
    case Opcode::kShl:
      return emit_shl(op);
    default:
      return emit_regular(op);
  }
}

// Shifted out of all its bits a number is 0: ptxas 13.0 keeps the bit of a `selp` of 1 and 0.
void Emitter::emit_shl(const Op& op) {
  const Type t = type(op.result());
  const std::optional<int64_t> by = kernel_.constant_int(op.count());
  if (!by || *by < ir::info(t.scalar).bits) return emit_regular(op);
  Operand* const d = define(op.result());
  for (int i = 0; i < layout_of(t).count; ++i) {
    move(d[i], Operand::constant(layout_of(t).reg_class, 0));
  }
}

void Emitter::emit_regular(const Op& op) {
  const Type t = type(op.a());
  const Instruction& instruction = instruction_for(op.opcode, t.scalar, target_);
  HEDDLE_CHECK(!instruction.scalar.empty(), "an op has no PTX for this type");
  const TypeSpelling& spelling = spelling_of(t.scalar);
  const bool whole_registers = is_packed(t) && !instruction.packed.empty();
  if (instruction.in_float32 || (is_packed(t) && !whole_registers)) {
    return emit_in_halves(op, instruction);
  }
  const bool flushes = op.attr_or(ir::AttrKey::kFtz, 0) != 0;
  if (!flushes && comes_in_pairs(op, instruction)) return emit_in_pairs(op, instruction);
  const std::string mnemonic = rounded(whole_registers ? instruction.packed
                                       : flushes       ? instruction.flushing
                                                       : instruction.scalar,
                                       op);
  Operand* const d = define(op.result());
  const int count = layout_of(t).count;
  const bool constants = spelling.takes_constants && !instruction.is_video;
  absl::InlinedVector<Spelled, 3> operands(op.operands.size());
  if (instruction.is_video) operands.push_back({in_register(Operand::b32(0))});
  for (int i = 0; i < count; ++i) {
    for (size_t j = 0; j < op.operands.size(); ++j) {
      const Type operand_type = type(op.operands[j]);
      const Operand& operand = elements(op.operands[j])[operand_type.is_scalar() ? 0 : i];
      operands[j] = as(spelling_of(operand_type.scalar).constants,
                       constants ? operand : in_register(operand));
    }
    print(mnemonic, d[i], operands);
  }
}

// ptxas fuses a product of pairs with a sum of pairs, although both say `.rn`; and it takes a fused
// one that adds a zero for a product.
bool Emitter::comes_in_pairs(const Op& op, const Instruction& instruction) {
  const Type t = type(op.a());
  if (instruction.paired.empty() || t.count < 2 || !target_has(ir::Feature::kPackedF32))
    return false;
  if (op.opcode == Opcode::kMul) return !plan_.in_sum(op.result());
  if (op.opcode != Opcode::kFma) return true;
  const Operand* const addend = elements(op.c());
  return std::none_of(addend, addend + t.count, [](const Operand& c) {
    return c.is_constant && (c.payload & 0x7FFFFFFF) == 0;
  });
}

Operand Emitter::wide_pair(ValueId value, int i) {
  const ScopedCache::Key key = {ir::index_of(value), static_cast<uint64_t>(i)};
  if (const ScopedCache::Operands* known = cache_.find(key)) return (*known)[0];
  const Operand* const pair = elements(value) + 2 * i;
  Operand wide = Operand::b64(pair[0].payload | pair[1].payload << 32);
  if (!pair[0].is_constant || !pair[1].is_constant) {
    wide = fresh(RegClass::kB64);
    out_->instruction("mov.b64 ", wide, ", ", Vector{pair, 2});
  }
  wide = in_register(wide);
  cache_.add(key, {wide, wide});
  return wide;
}

void Emitter::emit_in_pairs(const Op& op, const Instruction& instruction) {
  use(ir::Feature::kPackedF32);
  Operand* const d = define(op.result());
  const int count = type(op.result()).count;
  absl::InlinedVector<Spelled, 3> operands(op.operands.size());
  for (int i = 0; i < count / 2; ++i) {
    for (size_t j = 0; j < op.operands.size(); ++j) operands[j] = {wide_pair(op.operands[j], i)};
    const Operand wide = fresh(RegClass::kB64);
    print(instruction.paired, wide, operands);
    out_->instruction("mov.b64 ", Vector{d + 2 * i, 2}, ", ", wide);
    cache_.add({ir::index_of(op.result()), static_cast<uint64_t>(i)}, {wide, wide});
  }
  if (count % 2 == 0) return;
  for (size_t j = 0; j < op.operands.size(); ++j) {
    operands[j] = as(Spelling::kFloat, elements(op.operands[j])[count - 1]);
  }
  print(instruction.scalar, d[count - 1], operands);
}

// 16-bit elements one at a time: in f32, or because PTX compares no pairs.
void Emitter::emit_in_halves(const Op& op, const Instruction& instruction) {
  const auto operands_of = [&](int i) {
    absl::InlinedVector<Spelled, 3> operands;
    for (const ValueId operand : op.operands) {
      operands.push_back(instruction.in_float32
                             ? as(Spelling::kFloat, wide_lane(operand, i))
                             : as(Spelling::kBits, in_register(lane(operand, i))));
    }
    return operands;
  };
  if (type(op.result()).scalar == Scalar::kBool) {
    Operand* const d = define(op.result());
    for (int i = 0; i < type(op.result()).count; ++i) {
      print(instruction.scalar, d[i], operands_of(i));
    }
  } else if (instruction.in_float32) {
    define_rounded(op.result(), [&](int i) {
      const auto operands = operands_of(i);
      const Operand wide = fresh(RegClass::kB32);
      print(instruction.scalar, wide, operands);
      return wide;
    });
  } else {
    define_halves(op.result(),
                  [&](int i, const Operand& d) { print(instruction.scalar, d, operands_of(i)); });
  }
}

void Emitter::emit_convert_rounded(const Op& op) {
  const Scalar from = type(op.a()).scalar;
  const Type to = type(op.result());
  if (to.scalar == Scalar::kE8M0) {
    return define_float8(op.result(), op.a(), kRoundings[*op.attr(ir::AttrKey::kRounding)]);
  }
  // To integers PTX spells "to the nearest integer" and so on: rni.
  const absl::string_view mode = kRoundings[*op.attr(ir::AttrKey::kRounding)];
  Operand* const d = define(op.result());
  for (int i = 0; i < to.count; ++i) {
    out_->instruction("cvt.", mode, is_integer(to.scalar) ? "i." : ".", spelling_of(to.scalar).name,
                      '.', spelling_of(from).name, ' ', d[i], ", ",
                      in_register(elements(op.a())[i]));
  }
}

void Emitter::emit_neg(const Op& op) {
  const Type t = type(op.a());
  if (!is_float(t.scalar)) return emit_regular(op);
  const TypeSpelling& spelling = spelling_of(t.scalar);
  Operand* const d = define(op.result());
  const RegLayout layout = layout_of(t);
  // ptxas turns `neg` into an addition, whose NaN has a sign of its own, or merges it into the
  // instruction that uses it. Where the bits show, the sign bit is flipped as a bit.
  const bool merge = plan_.only_in_arithmetic(op.result());
  const uint64_t sign = layout.reg_class == RegClass::kB64   ? uint64_t{1} << 63
                        : layout.reg_class == RegClass::kB16 ? 0x8000
                        : is_packed(t)                       ? 0x80008000
                                                             : 0x80000000;
  for (int i = 0; i < layout.count; ++i) {
    const Operand a = in_register(elements(op.a())[i]);
    if (merge) {
      out_->instruction("neg.", is_packed(t) ? spelling.packed : spelling.name, ' ', d[i], ", ", a);
    } else {
      out_->instruction("xor.", info(layout.reg_class).type, ' ', d[i], ", ", a, ", ",
                        Operand::constant(layout.reg_class, sign));
    }
  }
}

// ptxas takes comparisons of -abs(x) with constants for true or false (PTXAS.md), so that an integer's abs is printed as
// something else that costs as much.
void Emitter::emit_abs(const Op& op) {
  const Type t = type(op.a());
  if (is_float(t.scalar)) return emit_regular(op);
  Operand* const d = define(op.result());
  for (int i = 0; i < layout_of(t).count; ++i) {
    const Operand& a = elements(op.a())[i];
    if (!is_signed(t.scalar)) {
      move(d[i], a);
    } else if (ir::info(t.scalar).bits == 64) {
      const Operand x = in_register(a), negated = fresh(RegClass::kB64),
                    below = fresh(RegClass::kPred);
      out_->instruction("neg.s64 ", negated, ", ", x);
      out_->instruction("setp.lt.s64 ", below, ", ", x, ", 0");
      out_->instruction("selp.b64 ", d[i], ", ", negated, ", ", x, ", ", below);
    } else {
      out_->instruction("sad.s32 ", d[i], ", ", as(Spelling::kSigned, a), ", 0, 0");
    }
  }
}

// PTX counts the bits of 64-bit integers in 32.
void Emitter::emit_bit_count(const Op& op) {
  const Type t = type(op.result());
  if (ir::info(t.scalar).bits == 32) return emit_regular(op);
  Operand* const d = define(op.result());
  for (int i = 0; i < layout_of(t).count; ++i) {
    const Operand count = fresh(RegClass::kB32);
    out_->instruction(op.opcode == Opcode::kPopc ? "popc.b64 " : "clz.b64 ", count, ", ",
                      in_register(elements(op.a())[i]));
    out_->instruction("cvt.u64.u32 ", d[i], ", ", count);
  }
}

void Emitter::emit_equal(const Op& op) {
  if (type(op.a()).scalar != Scalar::kBool) return emit_regular(op);
  Operand* const d = define(op.result());
  for (int i = 0; i < type(op.result()).count; ++i) {
    const Operand differ = fresh(RegClass::kPred);
    out_->instruction("xor.pred ", differ, ", ", elements(op.a())[i], ", ", elements(op.b())[i]);
    out_->instruction("not.pred ", d[i], ", ", differ);
  }
}

void Emitter::emit_select(const Op& op) {
  const Operand condition = in_register(elements(op.condition())[0]);
  const Type t = type(op.result());
  const RegLayout layout = layout_of(t);
  const Operand* const a = elements(op.a());
  const Operand* const b = elements(op.b());
  Operand* const d = define(op.result());
  for (int i = 0; i < layout.count; ++i) {
    if (layout.reg_class != RegClass::kPred) {
      out_->instruction("selp.", info(layout.reg_class).type, ' ', d[i], ", ", a[i], ", ", b[i],
                        ", ", condition);
      continue;
    }
    // There is no selp of predicates: (condition & a) | (!condition & b).
    const Operand taken = fresh(RegClass::kPred);
    const Operand inverse = fresh(RegClass::kPred);
    const Operand other = fresh(RegClass::kPred);
    out_->instruction("and.pred ", taken, ", ", condition, ", ", a[i]);
    out_->instruction("not.pred ", inverse, ", ", condition);
    out_->instruction("and.pred ", other, ", ", inverse, ", ", b[i]);
    out_->instruction("or.pred ", d[i], ", ", taken, ", ", other);
  }
}

}  // namespace heddle::codegen
