#include "heddle/ir/interp/lower/unwritten.h"

namespace heddle::ir::interp {
namespace {

// The operands whose poison an op's results have. The others of these ops are tested where it runs.
absl::Span<const ValueId> operands_that_pass(const Op& op) {
  constexpr struct {
    Opcode opcode;
    size_t count;
  } kFirst[] = {
      {Opcode::kLoad, 0},       {Opcode::kVoteAny, 0},   {Opcode::kVoteAll, 0},
      {Opcode::kVoteUni, 0},    {Opcode::kBallot, 0},    {Opcode::kShflIdx, 1},
      {Opcode::kShflUp, 1},     {Opcode::kShflDown, 1},  {Opcode::kShflXor, 1},
      {Opcode::kWgmma, 1},      {Opcode::kAtomic, 0},    {Opcode::kAtomicCas, 0},
      {Opcode::kAtomicLoad, 0}, {Opcode::kMatchAny, 0},  {Opcode::kMatchAll, 0},
      {Opcode::kRedux, 0},      {Opcode::kElect, 0},     {Opcode::kE2m1Pack, 0},
      {Opcode::kE2m1Unpack, 0}, {Opcode::kInlinePtx, 0}, {Opcode::kInlinePtxVolatile, 0},
      {Opcode::kLdMatrix, 0},
  };
  for (const auto& row : kFirst) {
    if (row.opcode == op.opcode) return absl::MakeConstSpan(op.operands).subspan(0, row.count);
  }
  return op.operands;
}

}  // namespace

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
  if (op.opcode == Opcode::kVarStore) return join(op.operands[0], op.operands[1]);
  bool changed = false;
  for (size_t i = 0; i < op.results.size(); ++i) {
    if (op.opcode == Opcode::kWgmmaWait) {
      changed |= join(op.results[i], op.operands[i]);
      continue;
    }
    for (const ValueId operand : operands_that_pass(op)) changed |= join(op.results[i], operand);
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
  // A for's body has the induction variable in front, and its op the range.
  const bool counted = op.opcode == Opcode::kFor;
  const Region& first = kernel.region(op.regions[0]);
  for (size_t i = 0; i < op.results.size(); ++i) {
    const ValueId carried = first.args[counted ? i + 1 : i];
    changed |= join(carried, op.operands[counted ? i + 3 : i]);
    changed |= join(carried, yielded(counted ? 0 : 1).operands[i]);
    changed |= join(op.results[i], carried);
    if (!counted) changed |= join(kernel.region(op.regions[1]).args[i], carried);
  }
  return changed;
}

}  // namespace heddle::ir::interp
