// An op in a kernel of a few lines, and the PTX that becomes of it.
//
//   absl::StatusOr<OpExample> example = example_of(ir::Opcode::kAdd);
//   example->ir      // "%r = add %a, %b : f32"
//   example->ptx     // {"add.rn.f32 %f3, %f1, %f2;"}
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "heddle/ir/op_info.h"

namespace heddle::tools {

struct OpExample {
  std::string ir;
  std::vector<std::string> ptx;  // for sm_90a; empty: no instruction of its own
  std::string why_none;          // where the emitter never meets the op; the others are empty then
};

// kInternal, with the text, where the example is not a kernel or lacks the op; kUnimplemented where
// an op has none and its signature alone does not tell how to use it.
absl::StatusOr<OpExample> example_of(ir::Opcode opcode);

}  // namespace heddle::tools
