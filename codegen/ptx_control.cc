// Loops and branches.
#include <algorithm>
#include <iterator>
#include <utility>

#include "heddle/codegen/ptx_emitter.h"
#include "heddle/ir/check.h"

namespace heddle::codegen {

using ir::IntRange;
using ir::Opcode;

bool Emitter::warp_agrees(absl::Span<const ValueId> values) {
  for (const ValueId value : values) {
    if (analyses_.get<ir::Uniformity>().of(value) < ir::Scope::kWarp) return false;
  }
  return true;
}

namespace {

bool sum_fits(int64_t a, int64_t b, IntRange type) {
  int64_t sum = 0;
  return !__builtin_add_overflow(a, b, &sum) && type.contains(sum);
}

bool difference_fits(int64_t a, int64_t b, IntRange type) {
  int64_t difference = 0;
  return !__builtin_sub_overflow(a, b, &difference) && type.contains(difference);
}

}  // namespace

Emitter::Bound Emitter::bound_of(const Op& op) {
  const Scalar scalar = type(op.start()).scalar;
  const IntRange all = ir::type_range(scalar);
  const IntRange start = analyses_.get<ir::Ints>().range(op.start());
  const IntRange stop = analyses_.get<ir::Ints>().range(op.stop());
  const IntRange step = analyses_.get<ir::Ints>().range(op.step());
  Bound bound{};
  bound.backwards = step.is_constant() && step.max < 0;
  const int64_t few = all.max >> 20;  // steps by less take a million trips to wrap
  bound.distance_fits = !step.is_constant() || (step.max > -few && step.max < few) ||
                        difference_fits(bound.backwards ? start.max : stop.max,
                                        bound.backwards ? stop.min : start.min, all);
  // In the body, i lies between start and the last number before stop.
  if (bound.backwards) {
    const int64_t before_start = std::max(start.max, all.min + 1) - 1;
    bound.compare_next = sum_fits(stop.min, step.min + 1, all);
    bound.compare_limit = difference_fits(std::min(stop.max, before_start), step.min, all);
  } else {
    const int64_t behind_start = std::min(start.min, all.max - 1) + 1;
    bound.compare_next = sum_fits(stop.max, std::max<int64_t>(step.max, 1) - 1, all);
    bound.compare_limit = difference_fits(std::max(stop.min, behind_start), step.max, all);
  }
  return bound;
}

void Emitter::emit_for(OpId id, const Op& op) {
  const ir::Region& body = kernel_.region(op.regions[0]);
  const ValueId induction = body.args[0];
  define_all(body.args);
  define_all(op.results);
  const Scalar scalar = type(induction).scalar;
  const RegClass reg_class = class_of(scalar);
  const absl::string_view width = reg_class == RegClass::kB64 ? "64" : "32";
  const Operand i = elements(induction)[0];
  const Spelled stop = as(Spelling::kSigned, elements(op.stop())[0]);
  const Spelled step = as(Spelling::kSigned, elements(op.step())[0]);

  absl::InlinedVector<ValueId, 8> initial = {op.start()};
  initial.insert(initial.end(), op.inits().begin(), op.inits().end());
  move_values(id, body.args, initial);

  const ir::IntAnalysis::Trips trips = analyses_.get<ir::Ints>().trips(id);
  if (trips.none) return;
  const Bound bound = bound_of(op);
  const bool uniform = warp_agrees({op.start(), op.stop(), op.step()});
  const Label top = new_label();
  const Label end = new_label();
  const Operand go_on = fresh(RegClass::kPred);
  const absl::string_view before = bound.backwards ? "gt" : "lt";
  if (!trips.at_least_one) {
    out_->instruction("setp.", before, ".s", width, ' ', go_on, ", ", i, ", ", stop);
    branch(go_on, false, end, uniform);
  }
  // Three ways to know whether there is a next trip without letting i wrap: look at the next i, or
  // at this i against stop - step, or count the distance that is left as an unsigned number.
  Operand limit, left;
  if (!bound.compare_next && bound.compare_limit) {
    limit = fresh(reg_class);
    out_->instruction("sub.s", width, ' ', limit, ", ", stop, ", ", step);
  } else if (!bound.compare_next) {
    left = fresh(reg_class);
    const Spelled first = as(Spelling::kSigned, i);
    out_->instruction("sub.s", width, ' ', left, ", ", bound.backwards ? first : stop, ", ",
                      bound.backwards ? stop : first);
  }
  if (!trips.exactly_one) put_label(top);
  // Where stop - start wraps, ptxas 13.0 loses trips of the loops that it unrolls: those with constant steps.
  if (op.attr_or(ir::AttrKey::kUnroll, 0) == 1 || !bound.distance_fits) {
    out_->instruction(".pragma \"nounroll\"");
  }
  emit_region(op.regions[0]);
  const Op& yield = kernel_.op(kernel_.terminator(op.regions[0]));
  set_current_op(id);
  move_values(id, absl::MakeSpan(body.args).subspan(1), yield.operands);
  if (trips.exactly_one) {
    if (!trips.at_least_one) put_label(end);
    return;
  }
  if (bound.compare_next) {
    out_->instruction("add.s", width, ' ', i, ", ", i, ", ", step);
    out_->instruction("setp.", before, ".s", width, ' ', go_on, ", ", i, ", ", stop);
  } else if (bound.compare_limit) {
    out_->instruction("setp.", before, ".s", width, ' ', go_on, ", ", i, ", ", limit);
    out_->instruction("add.s", width, ' ', i, ", ", i, ", ", step);
  } else {
    // Backwards, the step is a negative constant: its distance is its negation.
    Spelled distance = as(Spelling::kUnsigned, step.operand);
    if (bound.backwards) {
      const uint64_t mask = reg_class == RegClass::kB64 ? ~uint64_t{0} : 0xFFFFFFFF;
      distance.operand.payload = (0 - step.operand.payload) & mask;
    }
    out_->instruction("setp.gt.u", width, ' ', go_on, ", ", left, ", ", distance);
    out_->instruction("sub.u", width, ' ', left, ", ", left, ", ", distance);
    out_->instruction("add.s", width, ' ', i, ", ", i, ", ", step);
  }
  branch(go_on, true, top, uniform);
  put_label(end);
}

void Emitter::emit_while(OpId id, const Op& op) {
  const ir::Region& condition = kernel_.region(op.regions[0]);
  define_all(condition.args);
  define_all(kernel_.region(op.regions[1]).args);
  define_all(op.results);
  move_values(id, condition.args, op.inits());
  const Label top = new_label();
  const Label end = behind(id);
  if (jumps_.is_tested(id)) {
    if (jumps_.is_asked_again(id)) put_label(top);
    emit_region(op.regions[0]);
    const ValueId go_on = kernel_.op(kernel_.terminator(op.regions[0])).values()[0];
    set_current_op(id);
    if (reachable_) branch(in_register(elements(go_on)[0]), false, end, warp_agrees({go_on}));
  } else {
    for (const JumpPlan::Step& step : jumps_.entry(id)->steps) {
      if (step.kind == JumpPlan::Step::Kind::kTest) {
        branch(elements(step.value)[0], !step.holds, end, warp_agrees({step.value}));
      } else {
        print_step(step);
      }
    }
  }
  if (jumps_.is_entered(op.regions[1])) put_label(start_of_region(op.regions[1]));
  emit_region(op.regions[1]);
  set_current_op(id);
  finish(op.regions[1], top);
  put_label(end);
}

bool Emitter::is_unreachable(RegionId region) const {
  for (const OpId id : kernel_.ops(region)) {
    if (kernel_.op(id).opcode == Opcode::kUnreachable) return true;
  }
  return false;
}

// The branch that the program expects hardly ever to run; kNone where it says nothing.
ir::RegionId Emitter::cold_branch(const Op& op) const {
  const Op* condition = kernel_.def(op.condition());
  while (condition != nullptr && condition->opcode != Opcode::kExpect) {
    if (!has(info(*condition), ir::kForwards)) return ir::RegionId::kNone;
    condition = kernel_.def(condition->a());
  }
  if (condition == nullptr) return ir::RegionId::kNone;
  return op.regions[*condition->attr(ir::AttrKey::kLikely) != 0 ? 1 : 0];
}

void Emitter::emit_branch(RegionId region) {
  emit_region(region);
  if (reachable_ && valid(kernel_.terminator(region))) hand_over(region);
}

// Behind the kernel's end, where it is in nobody's way.
void Emitter::emit_out_of_line(RegionId region, Label start, Label end) {
  PtxText text;
  const bool reachable = reachable_;
  PtxText* const around = std::exchange(out_, &text);
  loc_ = ir::LocId::kNone;  // each text says its places itself
  put_label(start);
  emit_branch(region);
  jump(end);
  out_ = around;
  reachable_ = reachable;
  loc_ = ir::LocId::kNone;
  cold_.append(text);
}

// Whether a branch is so small that its loads and stores are rather guarded one by one than jumped
// over: what computes their addresses then is shared with other accesses, and ptxas need not find
// out. The rest of the branch is computed in any case, so it is cheap and without effects.
//
// What the branch leaves behind comes from its loads: these write to the if's registers, which have
// the other branch's values by then, so nothing in the branch may read or compute these.
bool Emitter::can_if_convert(const Op& op) {
  constexpr int kMostAccesses = 4;
  constexpr int kMostOps = 12;
  if (options_.device_checks || warp_agrees({op.condition()})) return false;
  for (const OpId id : kernel_.ops(op.regions[1])) {
    const Op& inner = kernel_.op(id);
    const bool prints_nothing = inner.opcode == Opcode::kYield || inner.opcode == Opcode::kUndef ||
                                is_rename(kernel_, inner);
    if (!prints_nothing && plan_.needed(id)) return false;
  }
  // Of values that are there already: whether one of their registers is a result's.
  const auto is_overwritten = [&](ValueId value) {
    const Op* const def = kernel_.def(value);
    if (!type(value).is_data() || (def != nullptr && def->parent == op.regions[0])) return false;
    const Operand* const own = elements(value);
    const int count = layout_of(type(value)).count;
    for (const ValueId result : op.results) {
      const Operand* const d = elements(result);
      for (int i = 0; i < layout_of(type(result)).count; ++i) {
        if (std::find(own, own + count, d[i]) != own + count) return true;
      }
    }
    return false;
  };
  const auto shares_a_home = [&](ValueId value) {
    return std::any_of(op.results.begin(), op.results.end(),
                       [&](ValueId result) { return plan_.home(value) == plan_.home(result); });
  };
  if (is_overwritten(op.condition())) return false;
  int accesses = 0, ops = 0;
  for (const OpId id : kernel_.ops(op.regions[0])) {
    const Op& inner = kernel_.op(id);
    const bool yields = inner.opcode == Opcode::kYield;
    if (!yields && !plan_.needed(id)) continue;
    const bool loads = inner.opcode == Opcode::kLoad, stores = inner.opcode == Opcode::kStore;
    if (loads || stores) {
      const Type accessed = type(loads ? inner.result() : inner.value());
      if (accessed.scalar == Scalar::kBool || ++accesses > kMostAccesses) return false;
    } else if (!yields && (!has(info(inner), ir::kCheap) || ++ops > kMostOps)) {
      return false;
    }
    for (const ValueId result : inner.results) {
      if (!loads && !is_rename(kernel_, inner) && shares_a_home(result)) return false;
    }
    // What an address is made of are its offset's terms, not the offset.
    const int offset = operand_index(inner.opcode, ir::OperandName::kOffset);
    for (size_t i = 0; i < inner.operands.size(); ++i) {
      if (static_cast<int>(i) != offset && is_overwritten(inner.operands[i])) return false;
    }
    if (offset < 0) continue;
    for (const SplitOffset::Term& term : plan_.offset(id).terms) {
      if (is_overwritten(term.value) || shares_a_home(term.value)) return false;
    }
  }
  return accesses > 0;
}

void Emitter::emit_if_converted(OpId id, const Op& op, const Operand& predicate) {
  for (const OpId inner_id : kernel_.ops(op.regions[1])) {
    const Op& inner = kernel_.op(inner_id);
    if (inner.opcode != Opcode::kYield && plan_.needed(inner_id)) emit_op(inner_id, inner);
  }
  move_values(id, op.results, kernel_.op(kernel_.terminator(op.regions[1])).operands);
  for (const OpId inner_id : kernel_.ops(op.regions[0])) {
    const Op& inner = kernel_.op(inner_id);
    if (inner.opcode == Opcode::kYield || !plan_.needed(inner_id)) continue;
    set_current_op(inner_id);
    if (!is_supported(inner_id, inner)) continue;
    const bool accesses = inner.opcode == Opcode::kLoad || inner.opcode == Opcode::kStore;
    if (accesses) guard_.predicate = predicate;
    emit_op(inner_id, inner);
    guard_.predicate.reset();
  }
  set_current_op(id);
  guard_.predicate = predicate;
  move_values(id, op.results, kernel_.op(kernel_.terminator(op.regions[0])).operands);
  guard_.predicate.reset();
}

void Emitter::emit_if(OpId id, const Op& op) {
  const ValueId condition = op.condition();
  if (has_ways(id, op)) return emit_if_with_ways(id, op);
  if (!reachable_) return;
  define_all(op.results);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    if (is_unreachable(op.regions[i])) return emit_branch(op.regions[1 - i]);
  }
  const bool has_then = !is_empty(op.regions[0]);
  const bool has_else = !is_empty(op.regions[1]);
  if (!has_then && !has_else) return;
  const Operand predicate = in_register(elements(condition)[0]);
  const RegionId cold = cold_branch(op);
  if (has_then && !valid(cold) && can_if_convert(op)) return emit_if_converted(id, op, predicate);
  const bool uniform = warp_agrees({condition});
  const Label end = new_label();
  const bool cold_then = has_then && cold == op.regions[0];
  const bool cold_else = has_else && cold == op.regions[1];
  if (cold_then || cold_else) {
    const Label start = new_label();
    branch(predicate, cold_then, start, uniform);
    if (cold_then ? has_else : has_then) emit_branch(op.regions[cold_then ? 1 : 0]);
    emit_out_of_line(cold, start, end);
  } else if (has_then && has_else) {
    const Label otherwise = new_label();
    branch(predicate, false, otherwise, uniform);
    emit_branch(op.regions[0]);
    jump(end);
    put_label(otherwise);
    emit_branch(op.regions[1]);
  } else {
    branch(predicate, has_else, end, uniform);
    emit_branch(op.regions[has_then ? 0 : 1]);
  }
  // Ways may lead out of both branches.
  if (is_used(end)) put_label(end);
}

}  // namespace heddle::codegen
