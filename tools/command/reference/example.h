// An op in a kernel of a few lines, and the PTX that becomes of it: the first case of the op's filetest,
// tests/filetests/ops/<mnemonic>.ir, from when this was built.
//
//   StatusOr<OpExample> example = example_of(ir::Opcode::kAdd);
//   example->ir      // "%r = add %a, %b : f32"
//   example->ptx     // {"add.rn.f32 %f3, %f1, %f2;"}
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "heddle/ir/op_info.h"
#include "heddle/ir/status.h"

namespace heddle::tools {

struct OpExample {
  std::string ir;
  std::vector<std::string>
      ptx;               // for sm_90a, or the first target that has it; empty: no instruction
  std::string why_none;  // where the emitter never meets the op; there is no PTX then
};

// kInternal, with the text, where the example is not a kernel or lacks the op; kUnimplemented where
// an op has none.
StatusOr<OpExample> example_of(ir::Opcode opcode);

// What the build has found: the first case of each file.
struct OpExampleText {
  absl::string_view mnemonic;
  absl::string_view text;
};
absl::Span<const OpExampleText> op_example_texts();

}  // namespace heddle::tools
