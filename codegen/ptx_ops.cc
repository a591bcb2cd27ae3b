#include "heddle/codegen/ptx_ops.h"

#include <array>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "heddle/ir/check.h"

namespace heddle::codegen {
namespace {

using ir::Opcode;
using ir::Scalar;
using ir::ScalarClass;

// In the order of scalars.def.
constexpr TypeSpelling kSpellings[] = {
    {"", "", "", "", Spelling::kBits, false},
    {"pred", "pred", "pred", "", Spelling::kBits, true},
    {"s8", "b32", "s8", "", Spelling::kBits, false},
    {"u8", "b32", "s8", "", Spelling::kBits, false},
    {"s16", "b16", "s16", "", Spelling::kBits, false},
    {"u16", "b16", "s16", "", Spelling::kBits, false},
    {"s32", "b32", "s32", "", Spelling::kSigned, true},
    {"u32", "b32", "s32", "", Spelling::kUnsigned, true},
    {"s64", "b64", "s64", "", Spelling::kSigned, true},
    {"u64", "b64", "s64", "", Spelling::kUnsigned, true},
    {"e4m3", "b32", "e4m3", "e4m3x2", Spelling::kBits, false},
    {"e5m2", "b32", "e5m2", "e5m2x2", Spelling::kBits, false},
    {"ue8m0", "b32", "ue8m0", "ue8m0x2", Spelling::kBits, false},
    {"e2m1x2", "b32", "e2m1x2", "", Spelling::kBits, false},
    {"f16", "b16", "f16", "f16x2", Spelling::kBits, false},
    {"bf16", "b16", "bf16", "bf16x2", Spelling::kBits, false},
    {"tf32", "b32", "tf32", "", Spelling::kBits, false},
    {"f32", "b32", "f32", "", Spelling::kFloat, true},
    {"f64", "b64", "f64", "", Spelling::kFloat, true},
};
static_assert(std::size(kSpellings) == ir::kScalarCount, "an element type has no spelling in PTX");

// $ is the type (s32, f16, or f16x2 on packed registers), # its width without a type (b32), @ the
// signed type of that width, % the op's rounding, ^ the place of .ftz. ~ computes in f32. & exists
// for two f32 in 64 bits too, from sm_100 on. ! is a SIMD video instruction:
// its operands are registers, and a register of zeros follows them. An empty cell is irregular, or not an op.
//
// `.rn` stands wherever PTX allows it: without it ptxas fuses a mul and an add on its own.
struct Row {
  Opcode opcode;
  absl::string_view boolean, integer, half, f32, f64;  // half: f16 and bf16
};
constexpr Row kRows[] = {
    {Opcode::kAdd, "", "add.$", "add.rn.$", "&add.rn^.$", "add.rn.$"},
    {Opcode::kSub, "", "sub.$", "sub.rn.$", "&sub.rn^.$", "sub.rn.$"},
    {Opcode::kMul, "", "mul.lo.$", "mul.rn.$", "&mul.rn^.$", "mul.rn.$"},
    {Opcode::kFma, "", "mad.lo.$", "fma.rn.$", "&fma.rn^.$", "fma.rn.$"},
    {Opcode::kMulHi, "", "mul.hi.$", "", "", ""},
    {Opcode::kDiv, "", "div.$", "~div.rn.f32", "div.rn^.$", "div.rn.$"},
    {Opcode::kRem, "", "rem.$", "", "", ""},
    {Opcode::kMin, "", "min.$", "min.$", "min^.$", "min.$"},
    {Opcode::kMax, "", "max.$", "max.$", "max^.$", "max.$"},
    {Opcode::kNeg, "", "neg.@", "", "", ""},
    {Opcode::kAbs, "", "", "abs.$", "abs.$", "abs.$"},
    {Opcode::kSqrt, "", "", "~sqrt.rn.f32", "sqrt.rn^.$", "sqrt.rn.$"},
    {Opcode::kRcp, "", "", "~rcp.rn.f32", "rcp.rn^.$", "rcp.rn.$"},
    {Opcode::kRcpApprox, "", "", "~rcp.approx.f32", "rcp.approx^.$", ""},
    {Opcode::kExp2, "", "", "~ex2.approx.f32", "ex2.approx^.$", ""},
    {Opcode::kRsqrt, "", "", "~rsqrt.approx.f32", "rsqrt.approx^.$", ""},
    {Opcode::kLog2, "", "", "~lg2.approx.f32", "lg2.approx^.$", ""},
    {Opcode::kSinApprox, "", "", "~sin.approx.f32", "sin.approx^.$", ""},
    {Opcode::kCosApprox, "", "", "~cos.approx.f32", "cos.approx^.$", ""},
    {Opcode::kTanhApprox, "", "", "~tanh.approx.f32", "tanh.approx.$", ""},
    {Opcode::kSaturate, "", "", "~cvt.sat.f32.f32", "cvt^.sat.$.$", "cvt.sat.$.$"},
    {Opcode::kMinNan, "", "", "min.NaN.$", "min^.NaN.$", ""},
    {Opcode::kMaxNan, "", "", "max.NaN.$", "max^.NaN.$", ""},
    {Opcode::kAddRounded, "", "", "", "add.%^.$", "add.%.$"},
    {Opcode::kSubRounded, "", "", "", "sub.%^.$", "sub.%.$"},
    {Opcode::kMulRounded, "", "", "", "mul.%^.$", "mul.%.$"},
    {Opcode::kDivRounded, "", "", "", "div.%^.$", "div.%.$"},
    {Opcode::kFmaRounded, "", "", "", "fma.%^.$", "fma.%.$"},
    {Opcode::kSqrtRounded, "", "", "", "sqrt.%^.$", "sqrt.%.$"},
    {Opcode::kRcpRounded, "", "", "", "rcp.%^.$", "rcp.%.$"},
    {Opcode::kFloor, "", "", "~cvt.rmi.f32.f32", "cvt.rmi^.$.$", "cvt.rmi.$.$"},
    {Opcode::kCeil, "", "", "~cvt.rpi.f32.f32", "cvt.rpi^.$.$", "cvt.rpi.$.$"},
    {Opcode::kTrunc, "", "", "~cvt.rzi.f32.f32", "cvt.rzi^.$.$", "cvt.rzi.$.$"},
    {Opcode::kRint, "", "", "~cvt.rni.f32.f32", "cvt.rni^.$.$", "cvt.rni.$.$"},
    {Opcode::kAnd, "and.#", "and.#", "", "", ""},
    {Opcode::kOr, "or.#", "or.#", "", "", ""},
    {Opcode::kXor, "xor.#", "xor.#", "", "", ""},
    {Opcode::kNot, "not.#", "not.#", "", "", ""},
    {Opcode::kShl, "", "shl.#", "", "", ""},
    {Opcode::kShr, "", "shr.$", "", "", ""},
    {Opcode::kPopc, "", "popc.#", "", "", ""},
    {Opcode::kClz, "", "clz.#", "", "", ""},
    {Opcode::kBrev, "", "brev.#", "", "", ""},
    {Opcode::kFunnelShl, "", "shf.l.wrap.#", "", "", ""},
    {Opcode::kFunnelShr, "", "shf.r.wrap.#", "", "", ""},
    {Opcode::kFunnelShlClamp, "", "shf.l.clamp.#", "", "", ""},
    {Opcode::kFunnelShrClamp, "", "shf.r.clamp.#", "", "", ""},
    {Opcode::kPrmt, "", "prmt.b32", "", "", ""},
    {Opcode::kDp4a, "", "dp4a.$.$", "", "", ""},
    {Opcode::kDp2aLo, "", "dp2a.lo.$.$", "", "", ""},
    {Opcode::kDp2aHi, "", "dp2a.hi.$.$", "", "", ""},
    {Opcode::kVabsdiff4, "", "!vabsdiff4.$.$.$", "", "", ""},
    {Opcode::kEq, "", "setp.eq.$", "setp.eq.$", "setp.eq^.$", "setp.eq.$"},
    // A NaN is unequal to everything: `ne` would say false.
    {Opcode::kNe, "xor.#", "setp.ne.$", "setp.neu.$", "setp.neu^.$", "setp.neu.$"},
    {Opcode::kLt, "", "setp.lt.$", "setp.lt.$", "setp.lt^.$", "setp.lt.$"},
    {Opcode::kLe, "", "setp.le.$", "setp.le.$", "setp.le^.$", "setp.le.$"},
    {Opcode::kGt, "", "setp.gt.$", "setp.gt.$", "setp.gt^.$", "setp.gt.$"},
    {Opcode::kGe, "", "setp.ge.$", "setp.ge.$", "setp.ge^.$", "setp.ge.$"},
};

absl::string_view cell_for(const Row& row, Scalar scalar) {
  if (ir::info(scalar).storage_only) return "";
  switch (ir::info(scalar).scalar_class) {
    case ScalarClass::kNone:
    case ScalarClass::kPair:
      return "";
    case ScalarClass::kBool:
      return row.boolean;
    case ScalarClass::kSigned:
    case ScalarClass::kUnsigned:
      return row.integer;
    case ScalarClass::kFloat:
      break;
  }
  return ir::info(scalar).bits == 16 ? row.half : scalar == Scalar::kF32 ? row.f32 : row.f64;
}

bool is_comparison(const Row& row) { return absl::string_view(row.f32).substr(0, 4) == "setp"; }

std::string spell(absl::string_view cell, absl::string_view type, const TypeSpelling& spelling,
                  absl::string_view ftz = "") {
  return absl::StrReplaceAll(cell, {{"$", type},
                                    {"#", spelling.bits},
                                    {"@", spelling.signed_name},
                                    {"~", ""},
                                    {"&", ""},
                                    {"!", ""},
                                    {"^", ftz}});
}

Instruction make_instruction(const Row& row, Scalar scalar) {
  const absl::string_view cell = cell_for(row, scalar);
  const TypeSpelling& spelling = spelling_of(scalar);
  Instruction result;
  result.scalar = spell(cell, spelling.name, spelling);
  result.in_float32 = !cell.empty() && cell[0] == '~';
  result.is_video = !cell.empty() && cell[0] == '!';
  if (absl::StrContains(cell, '^')) {
    result.flushing = spell(cell, spelling.name, spelling, ".ftz");
  }
  if (!cell.empty() && cell[0] == '&') result.paired = spell(cell, "f32x2", spelling);
  if (!result.in_float32 && !spelling.packed.empty() && !is_comparison(row)) {
    result.packed = spell(cell, spelling.packed, spelling);
  }
  return result;
}

struct Table {
  std::array<std::array<Instruction, ir::kScalarCount>, ir::kOpcodeCount> all;
  // Comparisons of bf16 below sm_90, which has the first instruction for them.
  std::array<Instruction, ir::kOpcodeCount> bf16_in_float32;
};

const Table& table() {
  static const Table* const table = [] {
    auto* t = new Table();
    for (const Row& row : kRows) {
      const size_t opcode = static_cast<size_t>(row.opcode);
      for (int i = 1; i < ir::kScalarCount; ++i) {
        t->all[opcode][static_cast<size_t>(i)] = make_instruction(row, static_cast<Scalar>(i));
      }
      if (is_comparison(row)) {
        t->bf16_in_float32[opcode] = make_instruction(row, Scalar::kF32);
        t->bf16_in_float32[opcode].in_float32 = true;
      }
    }
    return t;
  }();
  return *table;
}

}  // namespace

const TypeSpelling& spelling_of(Scalar scalar) { return kSpellings[static_cast<size_t>(scalar)]; }

const Instruction& instruction_for(Opcode opcode, Scalar scalar, const ir::Target& target) {
  const size_t index = static_cast<size_t>(opcode);
  if (scalar == Scalar::kBF16 && !has(target, ir::Feature::kBf16Arithmetic) &&
      table().bf16_in_float32[index].in_float32) {
    return table().bf16_in_float32[index];
  }
  return table().all[index][static_cast<size_t>(scalar)];
}

}  // namespace heddle::codegen
