// Operations that programs and plug-ins add: to parser, verifier, passes, interpreter and emitter they are like those
// of ops.def.
//
//   const RegisteredOp dot4({.row = op_row("acme.dot4", "a:u32 b:u32 c:i32 -> i32", kPure),
//                            .summary = "c and the products of four signed bytes of a and b, added up",
//                            .ptx = {{"dp4a.s32.s32 %0, %1, %2, %3;"}},
//                            .meaning = [](absl::Span<const uint64_t> in, absl::Span<uint64_t> out) {…}});
//   builder.create(dot4.opcode(), {a, b, c});
//
// Kernels call them as functions: dsl/extend/custom_function.h.
//
// An op may take and give scalars, and where its row says T, B or U also vectors and fragments: PTX and meaning are then
// those of an element. The passes treat it as its traits say: an op that is kPure, which has one result, is merged, moved, and
// where it has a meaning folded; one that is neither kPure nor kVolatile is removed where nothing uses its results, and
// never merged or moved. An op with neither PTX nor meaning is a mark: a pass replaces it (dsl/extend/replace_op.h).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/op_row.h"
#include "heddle/ir/status.h"
#include "heddle/ir/target.h"

namespace heddle::ir {

// An op as PTX: %0, %1, … are registers of the results and then of the operands, as in inline PTX (ops.def); %#1 is the
// number of an operand that has to be a constant. A mask that is not given is one of all lanes.
struct PtxForm {
  std::string text;
  // The type of T that it is for; kNone: whatever T is.
  Scalar type = Scalar::kNone;
  // The targets that it is for, and the version of the PTX ISA that has it: {"", 90, FeatureInfo::Extent::kAlone, 80} is
  // sm_90a alone, from PTX 8.0 on.
  FeatureInfo needs = info(Feature::kBase);
};

// What an op computes, for the interpreter: the lanes of a warp that run it, bit by bit, and for each of them its outputs
// from its inputs. inputs[i * 32 + lane] is operand i of a lane as bits, outputs are alike and begin as zeros.
using WarpRule = std::function<void(uint32_t lanes, absl::Span<const uint64_t> inputs,
                                    absl::Span<uint64_t> outputs)>;

// What is wrong with an op, and how to mend it.
struct OpFault {
  std::string message, fix;
};

struct CustomOp {
  OpInfo row;
  absl::string_view summary{};  // one line; row and summary must outlive the op
  // The first form that is for the kernel's target and types is taken. Of an op without PTX kernels come to none.
  std::vector<PtxForm> ptx{};
  // What a thread computes from operands alone. With an op that has no meaning kernels run on GPUs only.
  PtxRule meaning{};
  // Instead, of an op that a warp's lanes run together: its row says Scope::kWarp, and its last operand may be the mask of
  // the lanes that take part, `mask:u32?`.
  WarpRule warp_meaning{};
  // What the row cannot say of an op: nullopt where it is right.
  std::function<std::optional<OpFault>(const Kernel&, const Op&)> check{};
};

// The op behind an opcode; nullptr for one of ops.def.
const CustomOp* custom_op(Opcode opcode);
// How many elements an op computes one by one: those of its T, or 1.
int elements_of(const Kernel& kernel, const Op& op);
// The type that T of the op's row is; kNone where it has no T.
Scalar type_of_t(const Kernel& kernel, const Op& op);
// The form that an op of the kernel takes; nullptr where there is none.
const PtxForm* form_for(const Kernel& kernel, const Op& op);
// All ops: those of ops.def, and those that have been added, in order.
std::vector<Opcode> all_opcodes();

// Adds an op for the rest of the process, from any thread: a constant of a program or plug-in. What cannot be an op is not
// added: status() says why, as does the parser where it meets the name, and a kernel that calls it.
class RegisteredOp {
 public:
  explicit RegisteredOp(CustomOp op);

  // InvalidArgument: the row is not one of a custom op, or the PTX names no value of it. AlreadyExists: an op has that
  // name. ResourceExhausted: there are 1024.
  const Status& status() const { return status_; }
  absl::string_view mnemonic() const { return mnemonic_; }
  Opcode opcode() const;

 private:
  absl::string_view mnemonic_;
  Status status_;
  Opcode opcode_{};
};

// Ops that were refused, and why, in order.
struct RefusedOp {
  std::string mnemonic;
  Status why;
};
std::vector<RefusedOp> refused_ops();

}  // namespace heddle::ir
