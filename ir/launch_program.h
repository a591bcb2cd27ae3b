// What the host computes for each launch: the values of a kernel's `at_launch` ops.
//
//   const ParamLayout layout = launch_layout(kernel, is_needed);
//   const LaunchProgram program(kernel, layout);   // from here on without the kernel
//   program.run(block);                            // the arguments lie in the block already
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "heddle/ir/abi.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

// The first value behind this one, or itself, that the host cannot compute from the arguments;
// nothing where it can compute them all. It knows scalar parameters, extents and strides of
// parameters, constants, what ops on the elements of integers and bools make of these, and other
// values of the launch.
std::optional<ValueId> unknown_at_launch(const Kernel& kernel, ValueId value);

// The arguments, and behind them the values of the at_launch ops that are needed: one place for
// ops that compute the same from the same. Of a verified kernel.
ParamLayout launch_layout(const Kernel& kernel, absl::FunctionRef<bool(OpId)> is_needed);

class LaunchProgram {
 public:
  LaunchProgram() = default;
  LaunchProgram(const Kernel& kernel, const ParamLayout& layout);

  // Reads arguments from the parameter block and writes the values behind them; those of the last
  // arguments are remembered. What ops.def leaves open (a division by zero) gives 0. Any number of
  // threads may run it at once.
  void run(std::byte* block) const;

 private:
  // A register and its place in the block.
  struct Place {
    uint32_t index;
    int offset;
    Scalar scalar;
  };
  struct Step {
    Opcode opcode;
    Scalar operand, result;  // as fold_scalar takes them
    uint8_t count = 0;
    std::array<uint32_t, 3> operands{};
  };
  class Translation;
  struct Memory;

  void compute(uint64_t* registers) const;
  void write(const uint64_t* registers, std::byte* block) const;

  // First what is there before the first step, constants and inputs; each step's result lies behind
  // all others so far.
  std::vector<uint64_t> initial_;
  std::vector<Place> inputs_, outputs_;
  std::vector<Step> steps_;
  std::shared_ptr<Memory> memory_;
};

}  // namespace heddle::ir
