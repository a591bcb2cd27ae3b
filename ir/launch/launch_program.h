// What the host does for each launch: it computes the values of a kernel's `at_launch` ops and its
// grid, and tests what the kernel requires.
//
//   const ParamLayout layout = launch_layout(kernel, is_needed);
//   const LaunchProgram program(kernel, layout);   // from here on without the kernel
//   LaunchDims dims{.grid = 8, .block = 256};
//   if (!program.run(block, dims)) return error(program.refusal(block, dims));
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "heddle/ir/diagnostic.h"
#include "heddle/ir/dim3.h"
#include "heddle/ir/kernel.h"
#include "heddle/ir/launch/abi.h"
#include "heddle/ir/launch/launch_shape.h"

namespace heddle::ir {

// The first value behind this one, or itself, that the host cannot compute before a launch; nothing
// where it can compute them all. It knows scalar parameters, extents and strides of parameters,
// block_dim, grid_dim (where `knows_grid`), constants, what ops on the elements of integers and
// bools make of these, and other values of the launch.
std::optional<ValueId> unknown_at_launch(const Kernel& kernel, ValueId value,
                                         bool knows_grid = true);

// The arguments, and behind them the values of the at_launch ops that are needed: one place for
// ops that compute the same from the same. Of a verified kernel.
ParamLayout launch_layout(const Kernel& kernel, absl::FunctionRef<bool(OpId)> is_needed);

// The shape of a launch: blocks of the grid, whose x may be kGridOfKernel, and threads of a block.
struct LaunchDims {
  Dim3 grid = {};
  Dim3 block = {};
};

class LaunchProgram {
 public:
  LaunchProgram() = default;
  LaunchProgram(const Kernel& kernel, const ParamLayout& layout);

  // False for launches of a grid with so many blocks in x that run() lets pass and leaves alone.
  bool concerns(int64_t grid_x) const { return !is_empty_ || grid_x == kGridOfKernel; }
  // Reads arguments from the parameter block and writes the values behind them; those of the last
  // arguments are remembered. Fills in a grid that the launch does not name. False where the launch
  // must not happen. What ops.def leaves open (a division by zero) gives 0. Any number of threads
  // may run it at once.
  bool run(std::byte* block, LaunchDims& dims) const;
  // Why run() has just refused that launch, of the same dims as were given to it: what the kernel
  // asks for, with numbers, the place and what to do.
  std::string refusal(const std::byte* block, const LaunchDims& dims) const;
  // Why no launch at all can happen, where that is so.
  std::optional<std::string> refuses_all() const;

 private:
  // A register and its place in the block.
  struct BlockSlot {
    uint32_t index;
    int offset;
    Scalar scalar;
  };
  // A register and the number of the launch's shape that it holds: x, y, z of the grid, then of the
  // block.
  struct Extent {
    uint32_t index;
    uint8_t which;
  };
  struct Step {
    Opcode opcode;
    Scalar operand, result;  // as fold_scalar takes them
    uint8_t count = 0;
    std::array<uint32_t, 3> operands{};
  };
  // A register that is a number, for people.
  struct Number {
    uint32_t index;
    Scalar scalar;
  };
  struct Requirement {
    uint32_t condition;
    std::string message, fix;
    std::vector<Number> numbers;
    ir::SourceLine place;
  };
  struct Grid {
    std::array<Number, 3> extents;
    ir::SourceLine place;
  };
  class Translation;
  struct Memory;

  void read(const std::byte* block, const LaunchDims& dims, uint64_t* registers) const;
  void compute(uint64_t* registers) const;
  bool finish(const uint64_t* registers, std::byte* block, LaunchDims& dims) const;
  Dim3 grid_of(const uint64_t* registers) const;
  std::string describe(const Requirement& requirement, const uint64_t* registers) const;

  // First what is there before the first step, constants and inputs; each step's result lies behind
  // all others so far.
  std::vector<uint64_t> initial_;
  std::vector<BlockSlot> inputs_, outputs_;
  std::vector<Extent> extents_;
  std::vector<Step> steps_;
  std::vector<Requirement> requirements_;
  std::optional<Grid> grid_;
  bool is_empty_ = true;
  std::shared_ptr<Memory> memory_;
};

}  // namespace heddle::ir
