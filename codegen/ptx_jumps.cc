// Labels, jumps, and the ways that control takes between regions (jump_plan.h).
#include "absl/strings/str_cat.h"
#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"

namespace heddle::codegen {

using ir::Opcode;
using Step = JumpPlan::Step;

void Emitter::put_label(Label label) {
  out_->take_back(absl::StrCat("\tbra.uni $L", label.number, ";\n"));
  out_->line(label, ':');
  reachable_ = true;
  // Another path joins: it may come without a fence.
  wgmma_fenced_ = false;
}

void Emitter::jump(Label target) {
  if (!reachable_) return;
  out_->instruction("bra.uni ", target);
  targets_.insert(target.number);
  reachable_ = false;
}

void Emitter::branch(const Operand& condition, bool when, Label target, bool uniform) {
  out_->instruction(when ? "@" : "@!", condition, uniform ? " bra.uni " : " bra ", target);
  targets_.insert(target.number);
}

Label Emitter::start_of_region(RegionId region) {
  const auto [it, is_new] = starts_.try_emplace(region);
  if (is_new) it->second = new_label();
  return it->second;
}

Label Emitter::behind(OpId op) {
  const auto [it, is_new] = behinds_.try_emplace(op);
  if (is_new) it->second = new_label();
  return it->second;
}

void Emitter::define_all(absl::Span<const ValueId> values) {
  for (const ValueId value : values) {
    if (!jumps_.is_dead(value)) define(value);
  }
}

// --- Ends of regions --------------------------------------------------------------------------

namespace {

// What takes a region's values: its owner's results, or the arguments of the loop's next trip.
absl::Span<const ir::ValueId> takers(const ir::Kernel& kernel, ir::RegionId region) {
  const ir::Op& owner = kernel.op(kernel.region(region).parent);
  if (owner.opcode == Opcode::kIf) return owner.results;
  return kernel.region(owner.regions[0]).args;
}

}  // namespace

void Emitter::hand_over(RegionId region) {
  const auto to = takers(kernel_, region);
  define_all(to);
  move_values(kernel_.region(region).parent, to, kernel_.op(kernel_.terminator(region)).operands);
}

bool Emitter::hands_nothing(RegionId region) {
  const auto to = takers(kernel_, region);
  const auto& from = kernel_.op(kernel_.terminator(region)).operands;
  for (size_t i = 0; i < from.size(); ++i) {
    const Op* const def = kernel_.def(from[i]);
    const bool is_undef = def != nullptr && def->opcode == Opcode::kUndef;
    if (is_undef || jumps_.is_dead(to[i])) continue;
    if (plan_.home(from[i]) != plan_.home(to[i])) return false;
  }
  return true;
}

// Whether a branch of an `if` prints nothing.
bool Emitter::is_empty(RegionId region) {
  for (const OpId id : kernel_.ops(region)) {
    if (kernel_.op(id).opcode != Opcode::kYield && plan_.needed(id)) return false;
  }
  return hands_nothing(region);
}

void Emitter::finish(RegionId region, Label next) {
  if (!reachable_) return;
  if (const JumpPlan::Way* const way = jumps_.way(region)) return take(*way);
  hand_over(region);
  jump(next);
}

Label Emitter::target_of(const JumpPlan::Way& way) {
  return valid(way.start) ? start_of_region(way.start) : behind(way.behind);
}

void Emitter::take(const JumpPlan::Way& way) {
  for (const Step& step : way.steps) print_step(step);
  jump(target_of(way));
}

void Emitter::print_step(const Step& step) {
  switch (step.kind) {
    case Step::Kind::kHand:
      return hand_over(step.region);
    case Step::Kind::kPrint:
      if (plan_.needed(step.op)) emit_op(step.op, kernel_.op(step.op));
      return;
    case Step::Kind::kSet:
      if (!plan_.needed(step.op)) return;
      return move(define(step.value)[0], Operand::constant(RegClass::kPred, step.holds ? 1 : 0));
    case Step::Kind::kTest:
      return branch(elements(step.value)[0], step.holds,
                    start_of_region(kernel_.op(step.op).regions[1]), warp_agrees({step.value}));
  }
}

// --- Branches with ways -----------------------------------------------------------------------

bool Emitter::has_ways(OpId id, const Op& op) const {
  if (!jumps_.is_tested(id) || jumps_.is_left(id)) return true;
  for (const RegionId region : op.regions) {
    if (jumps_.way(region) != nullptr || jumps_.holds_target(region)) return true;
  }
  return false;
}

std::optional<Label> Emitter::shortcut(RegionId region, Label end) {
  if (!is_empty(region)) return std::nullopt;
  const JumpPlan::Way* const way = jumps_.way(region);
  if (way == nullptr) return end;
  for (const Step& step : way->steps) {
    const bool prints = step.kind == Step::Kind::kHand   ? !hands_nothing(step.region)
                        : step.kind == Step::Kind::kTest ? true
                        : step.kind == Step::Kind::kSet  ? plan_.needed(step.op)
                                                         : false;
    if (prints) return std::nullopt;
  }
  // What it names is named all the same.
  for (const Step& step : way->steps) print_step(step);
  return target_of(*way);
}

void Emitter::emit_if_with_ways(OpId id, const Op& op) {
  define_all(op.results);
  const Label end = behind(id);
  const RegionId then = op.regions[0], otherwise = op.regions[1];
  std::array<std::optional<Label>, 2> leads_to;
  if (reachable_) {
    const bool certain = is_unreachable(then) || is_unreachable(otherwise);
    const Operand predicate = certain ? Operand() : in_register(elements(op.condition())[0]);
    const bool uniform = certain || warp_agrees({op.condition()});
    leads_to = {shortcut(then, end), shortcut(otherwise, end)};
    if (is_unreachable(then)) {
      jump(leads_to[1] ? *leads_to[1] : start_of_region(otherwise));
    } else if (is_unreachable(otherwise)) {
      jump(leads_to[0] ? *leads_to[0] : start_of_region(then));
    } else if (leads_to[0]) {
      branch(predicate, true, *leads_to[0], uniform);
      if (leads_to[1]) jump(*leads_to[1]);
    } else {
      branch(predicate, false, leads_to[1] ? *leads_to[1] : start_of_region(otherwise), uniform);
    }
  }
  // What the test falls into comes first.
  const bool else_first = leads_to[0] && !leads_to[1];
  for (const size_t i : {size_t{else_first ? 1u : 0u}, size_t{else_first ? 0u : 1u}}) {
    const RegionId region = op.regions[i];
    if (is_unreachable(region)) continue;
    if (leads_to[i] && !jumps_.holds_target(region)) continue;
    const bool is_target = starts_.contains(region) && is_used(start_of_region(region));
    if (is_target || jumps_.is_entered(region)) put_label(start_of_region(region));
    if (!reachable_ && !jumps_.holds_target(region)) continue;
    emit_region(region);
    set_current_op(id);
    finish(region, end);
  }
  if (is_used(end) || jumps_.is_left(id)) put_label(end);
}

}  // namespace heddle::codegen
