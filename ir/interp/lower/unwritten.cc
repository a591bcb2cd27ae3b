#include "heddle/ir/interp/lower/unwritten.h"

namespace heddle::ir::interp {

UnwrittenAnalysis::UnwrittenAnalysis(const Kernel& kernel) {
  kernel.walk([&](OpId id) { any_ |= kernel.op(id).opcode == Opcode::kUndef; });
  if (!any_) return;
  // Loops feed values back to their arguments, hence the repetition: one more time than loops nest.
  bool changed = true;
  while (changed) {
    changed = false;
    kernel.walk([&](OpId id) { changed |= visit(kernel, id); });
  }
}

bool UnwrittenAnalysis::join(ValueId to, ValueId from) {
  if (!reached_[from] || reached_[to]) return false;
  reached_.at(to) = true;
  return true;
}

bool UnwrittenAnalysis::visit(const Kernel& kernel, OpId id) {
  const Op& op = kernel.op(id);
  if (!op.regions.empty()) return visit_regions(kernel, op);
  if (op.opcode == Opcode::kUndef) {
    const bool changed = !reached_[op.result()];
    reached_.at(op.result()) = true;
    return changed;
  }
  if (op.opcode == Opcode::kVarStore) return join(op.slot(), op.value());
  bool changed = false;
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (op.opcode == Opcode::kWgmmaWait) {
      changed |= join(op.results[i], op.fragments()[i]);
      continue;
    }
    for (size_t k = 0; k < op.operands.size(); ++k) {
      if (passes_poison(info(op), k)) changed |= join(op.results[i], op.operands[k]);
    }
  }
  return changed;
}

bool UnwrittenAnalysis::visit_regions(const Kernel& kernel, const Op& op) {
  bool changed = false;
  const auto yielded = [&](size_t region) -> const Op& {
    return kernel.op(kernel.terminator(op.regions[region]));
  };
  if (op.opcode == Opcode::kIf) {
    for (size_t i = 0; i < op.results.size(); ++i) {
      changed |= join(op.results[i], yielded(0).operands[i]);
      changed |= join(op.results[i], yielded(1).operands[i]);
    }
    return changed;
  }
  const bool counted = op.opcode == Opcode::kFor;
  const Region& first = kernel.region(op.regions[0]);
  for (size_t i = 0; i < op.results.size(); ++i) {
    const ValueId argument = first.args[first_carried(op) + i];
    changed |= join(argument, op.inits()[i]);
    changed |= join(argument, yielded(counted ? 0 : 1).operands[i]);
    changed |= join(op.results[i], argument);
    if (!counted) changed |= join(kernel.region(op.regions[1]).args[i], argument);
  }
  return changed;
}

}  // namespace heddle::ir::interp
