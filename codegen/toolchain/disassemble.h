// Machine code as text and as a list of instructions, for people and for tests that look at SASS.
//
//   StatusOr<std::string> text = disassemble(assembly.cubin);
//   for (const SassInstruction& i : sass_opcodes(*text)) print(i.offset, i.opcode, i.line);
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "heddle/ir/status.h"

namespace heddle::codegen {

struct DisassembleOptions {
  // Absolute; empty = look for them (tool_path.h).
  std::string nvdisasm_path{}, cuobjdump_path{};
  std::chrono::milliseconds timeout{60'000};
};

// The listing of nvdisasm, with source lines; that of cuobjdump, which has none, where nvdisasm is
// not there or cuobjdump alone was asked for (by the option or HEDDLE_CUOBJDUMP). kNotFound:
// neither is there (the message says how to get one); kDataLoss: not a cubin; kDeadlineExceeded;
// kUnknown with what the program printed.
StatusOr<std::string> disassemble(absl::string_view cubin, const DisassembleOptions& options = {});

struct SassInstruction {
  std::string kernel;
  uint64_t offset = 0;  // bytes from the kernel's start
  std::string opcode;   // with modifiers, without its predicate: "LDG.E.128"
  std::string file;     // of the source; empty = not known
  int line = 0;         // 0 = not known
  std::string text{};   // all of it: "@P0 LDG.E R0, desc[UR6][R2.64]"
};

// Every instruction of a listing of nvdisasm or cuobjdump, in order.
std::vector<SassInstruction> sass_opcodes(absl::string_view listing);
// How often each opcode stands there.
std::map<std::string, int> count_opcodes(const std::vector<SassInstruction>& instructions);

}  // namespace heddle::codegen
