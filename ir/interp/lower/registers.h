// Which bytes of a warp's arena each register gets. Registers whose lifetimes do not overlap share
// them, so that a long kernel's working set stays small. Internal.
//
// Lifetimes are intervals of instruction positions. Code is structured, so the order of positions
// is an order of execution, but for loops: what a loop reads and did not make lives to the loop's
// end.
#pragma once

#include <cstdint>
#include <vector>

namespace heddle::ir::interp {

class RegisterPlan {
 public:
  // A register of that many bytes, at least 32, alive from its first touch to its last.
  uint32_t add(uint32_t bytes);
  // One that keeps its bytes for the whole run.
  uint32_t add_permanent(uint32_t bytes);

  // The instruction at `position` reads or writes the register. Positions never fall.
  void touch(uint32_t reg, uint32_t position);
  // Instructions from `position` on, up to end_loop's, are repeated.
  void begin_loop(uint32_t position);
  void end_loop(uint32_t position);

  // Lays everything out and gives the arena's size, which may be more than offsets can express;
  // where it is not, offset() answers from then on.
  uint64_t allocate();
  uint32_t offset(uint32_t reg) const { return regs_[reg].offset; }

 private:
  static constexpr uint32_t kUntouched = ~uint32_t{0};
  struct Reg {
    uint32_t bytes = 0;
    uint32_t begin = kUntouched;
    uint32_t end = 0;
    uint32_t offset = 0;
    bool permanent = false;
  };
  struct OpenLoop {
    uint32_t begin;
    std::vector<uint32_t> carried;  // registers from outside that are touched inside
  };

  std::vector<Reg> regs_;
  std::vector<OpenLoop> loops_;
};

}  // namespace heddle::ir::interp
