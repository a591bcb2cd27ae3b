#include "heddle/ir/analysis/barrier_phases.h"

namespace heddle::ir {

BarrierPhases::BarrierPhases(const Kernel& kernel) : kernel_(kernel) {
  kernel.walk([&](OpId id) {
    const Op& op = kernel.op(id);
    const bool harmless = op.opcode == Opcode::kLoad || op.opcode == Opcode::kStore ||
                          op.opcode == Opcode::kBounds || op.opcode == Opcode::kExtent ||
                          op.opcode == Opcode::kStride;
    if (harmless) return;
    for (const ValueId operand : op.operands) {
      if (is_own_array(operand)) shared_.insert(operand);
    }
  });
}

bool BarrierPhases::is_own_array(ValueId view) const {
  const Op* const def = kernel_.def(view);
  return def != nullptr && def->opcode == Opcode::kShared;
}

bool BarrierPhases::settles(OpId load) {
  const ValueId array = kernel_.op(load).view();
  if (!is_own_array(array) || shared_.contains(array)) return false;
  const OpId barrier = barrier_before(load);
  return valid(barrier) && !written_after(barrier).contains(array);
}

OpId BarrierPhases::barrier_before(OpId op) const {
  while (valid(op)) {
    for (OpId id = kernel_.op(op).prev; valid(id); id = kernel_.op(id).prev) {
      if (kernel_.op(id).opcode == Opcode::kBarrier) return id;
    }
    op = kernel_.region(kernel_.op(op).parent).parent;
  }
  return OpId::kNone;
}

const BarrierPhases::Arrays& BarrierPhases::written_after(OpId barrier) {
  const auto [entry, is_new] = written_.try_emplace(barrier);
  if (is_new) {
    absl::flat_hash_set<RegionId> begun;
    const Op& op = kernel_.op(barrier);
    follow(op.next, op.parent, begun, entry->second);
  }
  return entry->second;
}

void BarrierPhases::follow(OpId op, RegionId region, absl::flat_hash_set<RegionId>& begun,
                           Arrays& written) const {
  const auto note = [&](OpId id) {
    if (kernel_.op(id).opcode == Opcode::kStore) written.insert(kernel_.op(id).view());
  };
  for (; valid(op); op = kernel_.op(op).next) {
    if (kernel_.op(op).opcode == Opcode::kBarrier) return;
    note(op);
    // A barrier in there may be passed by, so none counts.
    for (const RegionId inner : kernel_.op(op).regions) kernel_.walk(inner, note);
  }
  const OpId owner = kernel_.region(region).parent;
  if (!valid(owner)) return;
  if (kernel_.op(owner).opcode != Opcode::kIf) {
    for (const RegionId again : kernel_.op(owner).regions) {
      if (begun.insert(again).second) follow(kernel_.region(again).first, again, begun, written);
    }
  }
  follow(kernel_.op(owner).next, kernel_.op(owner).parent, begun, written);
}

}  // namespace heddle::ir
