// A kernel as linear code for the interpreter.
//
//   const StatusOr<Program> program = compile(kernel);
//   Status status = run(*program, {.grid = {4, 1, 1}, .block = {128, 1, 1}, .params = bytes},
//                             memory);                            // interpreter.h
//
// Traced and optimised kernels alike: anything that the verifier accepts. A Program keeps nothing
// of the Kernel, is immutable and cheap to copy; several threads may run one at a time each.
#pragma once

#include <memory>
#include <string>

#include "heddle/ir/kernel.h"
#include "heddle/ir/status.h"

namespace heddle::ir::interp {

struct Code;

struct CompileOptions {
  // Tests every access (bounds, allocation, alignment, whether the memory was ever written), reads
  // of values that nobody wrote, divisors, and which lanes take part in collectives. Without them a
  // wrong kernel may read and write anything in the host process, like any C++ program; barriers
  // that not every thread reaches and failed asserts are found all the same.
  bool checks = true;
};

class Program {
 public:
  explicit Program(std::shared_ptr<const Code> code) : code_(std::move(code)) {}

  const std::string& name() const;
  // The block that it must be launched with; {0, 0, 0} where any will do.
  Dim3 block() const;
  // Size of the parameter block, as laid out by param_layout.
  int param_bytes() const;
  bool checks() const;
  // Instructions, and bytes of registers for each warp.
  int instruction_count() const;
  int64_t register_bytes() const;

  const Code& code() const { return *code_; }

 private:
  std::shared_ptr<const Code> code_;
};

// Kernels must have passed the verifier. kUnimplemented, with the line, for what the interpreter
// does not run; the time is that of a pass over the IR.
StatusOr<Program> compile(const Kernel& kernel, const CompileOptions& options = {});

}  // namespace heddle::ir::interp
