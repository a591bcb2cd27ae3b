// Which ops are printed at all, and which values share registers.
//
// Values that copies would connect (a loop's argument with its initial value and with what the body
// yields for it, an if's result with its branches', a result with the operand that it is tied to)
// get one *home* where their live ranges allow it: then the copy vanishes. A wgmma accumulator
// stays in its registers from wgmma.begin to wgmma.wait that way, across back-edges too.
//
// Ops that rename (extract, bitcast, …) have no registers of their own: a use of their result is a
// use of the operand's registers.
#pragma once

#include <vector>

#include "heddle/codegen/jump_plan.h"
#include "heddle/codegen/offsets.h"
#include "heddle/ir/kernel.h"

namespace heddle::codegen {

// Whether the op's results are the operands' registers, constants, or read-only registers that the
// kernel's entry fills, so that they have no home.
bool is_rename(const ir::Kernel& kernel, const ir::Op& op);

class RegisterPlan {
 public:
  // `keep_checks`: bounds count as used by the accesses that they guard.
  RegisterPlan(const ir::Kernel& kernel, ir::Analyses& analyses, const JumpPlan& jumps,
               bool keep_checks);

  // Whether the op is printed: it has an effect, or something printed uses it.
  bool needed(ir::OpId op) const { return needed_[ir::index_of(op)] != 0; }
  bool used(ir::ValueId value) const { return live_[ir::index_of(value)].last > 0; }
  // Whether the value only goes into float arithmetic, which does not tell one NaN from another.
  bool only_in_arithmetic(ir::ValueId value) const {
    return !live_[ir::index_of(value)].bits_matter;
  }
  // Whether a sum may use the value: assemblers fuse a product with it.
  bool in_sum(ir::ValueId value) const { return live_[ir::index_of(value)].in_sum; }
  // The offset of a needed op that has one: its terms are what the op uses, not the offset itself.
  const SplitOffset& offset(ir::OpId op) const { return offsets_[offset_index_[ir::index_of(op)]]; }
  // The value whose registers `value` lives in; itself where it shares none.
  ir::ValueId home(ir::ValueId value) const;

 private:
  // Positions count ops in program order, two steps an op; a loop or an if has one where it starts
  // and one where it ends. A value is live behind `def`, up to and including `last`.
  struct Live {
    int def = 0;
    int last = 0;
    bool bits_matter = false;
    bool in_sum = false;
    ir::ValueId home = ir::ValueId::kNone;         // kNone: itself
    ir::ValueId next_member = ir::ValueId::kNone;  // of the same home
    ir::ValueId last_member = ir::ValueId::kNone;  // homes only
    int members_last = 0;                          // homes only: the largest `last`
  };
  struct Loop {
    int depth;  // of the regions inside
    int end;
  };

  Live& live(ir::ValueId value) { return live_[ir::index_of(value)]; }
  const Live& live(ir::ValueId value) const { return live_[ir::index_of(value)]; }
  void visit_region(ir::RegionId region, int depth);
  void visit_op(ir::OpId id, int depth);
  void define(ir::ValueId value, int position);
  void use_operands(ir::OpId id, int start, int end);
  // What a use lets show of a value.
  struct Purpose {
    bool bits_matter = true;
    bool in_sum = true;
  };
  void use(ir::ValueId value, int position, Purpose purpose);
  void share(ir::ValueId a, ir::ValueId b);
  // Where `a` is pending or is not, as `pending` says.
  void try_share(ir::ValueId a, ir::ValueId b, bool pending);
  bool has_home(ir::ValueId value) const;
  bool interfere(ir::ValueId home_a, ir::ValueId home_b) const;
  void share_op(const ir::Op& op, bool pending);

  const ir::Kernel& kernel_;
  ir::Analyses& analyses_;
  const JumpPlan& jumps_;
  bool keep_checks_;
  std::vector<Live> live_;
  std::vector<uint8_t> needed_;
  std::vector<uint32_t> offset_index_;
  std::vector<SplitOffset> offsets_;
  std::vector<int> depth_;  // of regions
  AccessedOffsets accessed_;
  std::vector<Loop> loops_;        // around the op being visited, outermost first
  std::vector<ir::OpId> sharing_;  // ops that connect values, innermost and last first
  int position_ = 0;
};

}  // namespace heddle::codegen
