// What a while loop's condition depends on, for the report of one that does not end.
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "heddle/ir/interp/lower/lowering.h"

namespace heddle::ir::interp {

// Follows the condition back through what the loop computes.
LoopCondition Lowering::describe_condition(const Op& loop) {
  LoopCondition result;
  const auto is_inside = [&](RegionId region) {
    while (valid(region)) {
      const OpId owner = kernel_.region(region).parent;
      if (!valid(owner)) return false;
      if (&kernel_.op(owner) == &loop) return true;
      region = kernel_.op(owner).parent;
    }
    return false;
  };
  absl::flat_hash_set<ValueId> met;
  std::vector<ValueId> open;
  const auto follow = [&](ValueId value) {
    if (met.insert(value).second) open.push_back(value);
  };
  const auto follow_yields = [&](const Op& op) {
    for (const RegionId region : op.regions) {
      for (const ValueId value : kernel_.op(kernel_.terminator(region)).operands) follow(value);
    }
  };
  follow(kernel_.op(kernel_.terminator(loop.regions[0])).values().front());
  while (!open.empty()) {
    const ValueId value = open.back();
    open.pop_back();
    const Op* const op = kernel_.def(value);
    if (op == nullptr) {
      // What this loop carries changes where its body yields something else; what loops inside it
      // carry, and count, always does.
      const Op& yield = kernel_.op(kernel_.terminator(loop.regions[1]));
      bool carried_here = false;
      for (const RegionId region : loop.regions) {
        const auto& args = kernel_.region(region).args;
        for (size_t i = 0; i < args.size(); ++i) {
          if (args[i] != value) continue;
          carried_here = true;
          const ValueId next = yield.operands[i];
          const bool stays = next == kernel_.region(loop.regions[0]).args[i] ||
                             next == kernel_.region(loop.regions[1]).args[i];
          result.changes |= !stays;
          if (!stays) follow(next);
        }
      }
      result.changes |= !carried_here && is_inside(kernel_.value(value).region);
      continue;
    }
    if (!is_inside(op->parent)) continue;
    const bool is_read = op->opcode == Opcode::kLoad || op->opcode == Opcode::kAtomic ||
                         op->opcode == Opcode::kAtomicCas || op->opcode == Opcode::kAtomicLoad;
    if (is_read) {
      const uint32_t view = bound_[op->view()].view;
      result.reads.push_back({place(op->loc), views_[view].name});
    }
    result.changes |= (info(*op).traits & (kPure | kRegions)) == 0;
    for (const ValueId operand : op->operands) follow(operand);
    follow_yields(*op);
  }
  return result;
}

}  // namespace heddle::ir::interp
