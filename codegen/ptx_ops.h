// Ops that are one PTX instruction for every register of their operands, as a table.
#pragma once

#include <string>

#include "heddle/codegen/ptx_text.h"
#include "heddle/ir/atomic.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/op_info.h"
#include "heddle/ir/target.h"

namespace heddle::codegen {

// How PTX spells a type.
struct TypeSpelling {
  absl::string_view name;         // "s32"
  absl::string_view bits;         // "b32"
  absl::string_view signed_name;  // "s32" for u32 too
  absl::string_view packed;       // of two elements: "f16x2"; empty where there is none
  Spelling constants;
  bool takes_constants;  // as operands of arithmetic; 16-bit floats have no literals
};
const TypeSpelling& spelling_of(ir::Scalar scalar);

// The order and scope of an op's attributes, or these: ".release.cta".
std::string ordering_of(const ir::Op& op, ir::MemoryOrder order, ir::MemoryScope scope);
// How atomics and bulk reductions spell the elements of an operation: ".u64", ".noftz.f16".
std::string atomic_type(ir::AtomicOp op, ir::Type element);

struct Instruction {
  std::string scalar;       // "add.rn.f32"; empty: the op is irregular for this type
  std::string flushing;     // "add.rn.ftz.f32"; empty: the op keeps subnormals
  std::string packed;       // the same for two 16-bit elements; empty: one at a time
  std::string paired;       // the same for two f32 in 64 bits, from sm_100 on; empty: there is none
  bool is_video = false;    // takes registers alone, and a last one of zeros
  bool in_float32 = false;  // f16 and bf16: widen the operands, `scalar` them, round the result
};

// The instruction of an op whose operands have that element type, on that target.
const Instruction& instruction_for(ir::Opcode opcode, ir::Scalar scalar, const ir::Target& target);

}  // namespace heddle::codegen
