// How many registers hold values at each op.
//
//   const Liveness liveness(kernel);
//   liveness.registers_at(op)       // of 32 bits, as the op starts
//   liveness.peak_op()              // where there are most
//
// Ops stand in the order of the text. A value lives from its op to its last use, one that a loop uses but does not make to
// the loop's end, as do a for's index, stop and step; what a trip hands on from where it is computed. Registers are counted as the emitter has them: none for constants, conditions, views of arrays and
// parameters, and what renames its operands. Assemblers add addresses and move ops, so that their number is another one;
// where this one grows, theirs does.
#pragma once

#include "heddle/ir/kernel.h"

namespace heddle::ir {

class Liveness {
 public:
  static constexpr absl::string_view kName = "liveness";
  explicit Liveness(const Kernel& kernel);

  int registers_at(OpId op) const { return registers_[op]; }
  // The first op with the most registers; kNone in an empty kernel.
  OpId peak_op() const { return peak_; }
  int peak() const { return valid(peak_) ? registers_[peak_] : 0; }

 private:
  IdMap<OpId, int> registers_{0};
  OpId peak_ = OpId::kNone;
};

// 32-bit registers of a value of that type; 0 for what has none of its own.
int registers_of(Type type);

}  // namespace heddle::ir
