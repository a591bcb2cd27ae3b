#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "heddle/dsl/exits_internal.h"
#include "heddle/dsl/trace/trace_internal.h"

namespace heddle::detail {
namespace {

using ir::Opcode;
using ir::OpId;
using ir::RegionId;
using ir::ValueId;

constexpr size_t kMostFreeOps = 8;  // that are computed without need

// Whether an op may run where the program would not come to it.
bool is_free(const ir::Op& op) {
  const ir::OpInfo& row = info(op);
  return op.opcode == Opcode::kVarLoad || (has(row, ir::kPure) && !has(row, ir::kNotSpeculatable));
}

constexpr absl::string_view kNames[] = {"Break()", "Continue()", "Return()"};

absl::string_view name_of(ExitKind kind) { return kNames[static_cast<size_t>(kind)]; }

void add(absl::InlinedVector<ValueId, 3>* flags, const absl::InlinedVector<ValueId, 3>& more) {
  for (const ValueId flag : more) {
    if (std::find(flags->begin(), flags->end(), flag) == flags->end()) flags->push_back(flag);
  }
}

}  // namespace

void Exits::record(ExitKind kind, SourceLoc loc) {
  ir::Kernel& kernel = trace_.kernel();
  OpId loop = OpId::kNone;
  for (RegionId region = trace_.builder().region(); kind != ExitKind::kReturn;) {
    loop = kernel.region(region).parent;
    if (!ir::valid(loop) || is_loop(kernel.op(loop))) break;
    region = kernel.op(loop).parent;
  }
  if (kind != ExitKind::kReturn && !ir::valid(loop)) {
    return trace_.report(loc, absl::StrCat(name_of(kind), " outside a traced loop"),
                         "use it in the body of a For() or While(), or write Return()");
  }
  if (kind == ExitKind::kContinue && in_condition(loop)) {
    return trace_.report(loc, "Continue() in a While()'s condition, which belongs to no trip",
                         "use it in the body");
  }
  trace_.set_place(loc);
  const ValueId slot = flag_for(kind, loop);
  ir::Builder& b = trace_.builder();
  const OpId store = b.create_op(Opcode::kVarStore, {slot, b.constant(ir::kBoolType, 1)});
  exits_.push_back({store, slot, kind, loc});
}

// Whether the current place is in a loop's condition.
bool Exits::in_condition(OpId loop) const {
  const ir::Kernel& kernel = trace_.kernel();
  RegionId region = trace_.builder().region();
  while (kernel.region(region).parent != loop) {
    region = kernel.op(kernel.region(region).parent).parent;
  }
  const auto& regions = kernel.op(loop).regions;
  return regions.size() > 1 && region == regions[0];
}

// A loop's break is declared in front of it, continue anew in each trip, return first of all.
ValueId Exits::flag_for(ExitKind kind, OpId loop) {
  for (const Flag& flag : flags_) {
    if (flag.kind == kind && flag.loop == loop) return flag.slot;
  }
  ir::Builder& b = trace_.builder();
  const ir::Kernel& kernel = trace_.kernel();
  const RegionId here = b.region();
  OpId before = loop;
  if (kind == ExitKind::kReturn) before = kernel.region(kernel.body()).first;
  if (kind == ExitKind::kContinue) before = kernel.region(kernel.op(loop).regions.back()).first;
  if (ir::valid(before)) b.set_insertion_before(before);
  const ValueId slot = b.create(Opcode::kVar, {b.constant(ir::kBoolType, 0)});
  b.set_insertion_end(here);
  flags_.push_back({kind, loop, slot});
  return slot;
}

void Exits::lower() {
  if (!exits_.empty()) lower_region(trace_.kernel().body());
}

Exits::Flags Exits::lower_region(RegionId region) {
  const ir::Kernel& kernel = trace_.kernel();
  Flags all;
  for (OpId id = kernel.region(region).first; ir::valid(id);) {
    const OpId next = kernel.op(id).next;
    const Flags here = lower_op(id);
    if (!here.empty()) {
      add(&all, here);
      const RegionId rest = guard_rest(next, here);
      if (ir::valid(rest)) add(&all, lower_region(rest));
      break;
    }
    id = next;
  }
  return all;
}

Exits::Flags Exits::lower_op(OpId id) {
  const ir::Op& op = trace_.kernel().op(id);
  for (const Exit& exit : exits_) {
    if (exit.store == id) return {exit.slot};
  }
  if (is_loop(op)) return lower_loop(id);
  Flags flags;
  const auto regions = op.regions;
  for (const RegionId region : regions) add(&flags, lower_region(region));
  if (!flags.empty() && !trace_.kernel().op(id).results.empty()) report_values_lost(id, flags);
  return flags;
}

// The condition's value outlives what an exit skips: it is kept in a variable, false where an exit
// was taken.
Exits::Flags Exits::lower_condition(OpId loop) {
  ir::Kernel& kernel = trace_.kernel();
  const RegionId condition = kernel.op(loop).regions[0];
  bool exits = false;
  kernel.walk(condition, [&](OpId id) {
    for (const Exit& exit : exits_) exits |= exit.store == id;
  });
  if (!exits) return {};
  ir::Builder& b = trace_.builder();
  b.set_insertion_before(loop);
  const ValueId goes_on = b.create(Opcode::kVar, {b.constant(ir::kBoolType, 0)});
  const OpId yield = kernel.terminator(condition);
  b.set_insertion_before(kernel.region(condition).first);
  b.create_op(Opcode::kVarStore, {goes_on, b.constant(ir::kBoolType, 0)});
  b.set_insertion_before(yield);
  b.create_op(Opcode::kVarStore, {goes_on, kernel.op(yield).values()[0]});
  const Flags flags = lower_region(condition);
  b.set_insertion_before(yield);
  const ValueId outcome = b.create(Opcode::kVarLoad, {goes_on}, ir::kBoolType);
  kernel.op(yield).set_operand(ir::OperandName::kValues, outcome);
  return flags;
}

Exits::Flags Exits::lower_loop(OpId loop) {
  ask_first_break_ahead(loop);
  const auto regions = trace_.kernel().op(loop).regions;
  Flags flags = lower_region(regions.back());
  if (regions.size() > 1) add(&flags, lower_condition(loop));
  if (!flags.empty() && !trace_.kernel().op(loop).results.empty()) {
    report_values_lost(loop, flags);
    return {};
  }
  Flags stops, outer;
  for (const ValueId slot : flags) {
    const auto flag =
        std::find_if(flags_.begin(), flags_.end(), [&](const Flag& f) { return f.slot == slot; });
    const bool own = flag->loop == loop;
    if (own && flag->kind == ExitKind::kContinue) continue;
    stops.push_back(slot);
    if (!own) outer.push_back(slot);
  }
  if (stops.empty()) return {};
  if (trace_.kernel().op(loop).opcode == Opcode::kWhile) {
    stop_while(loop, stops);
  } else {
    turn_into_while(loop, stops);
  }
  return outer;
}

// Whether a condition may be computed once more than the program asks for it.
bool Exits::may_always_ask(RegionId condition) const {
  const ir::Kernel& kernel = trace_.kernel();
  size_t ops = 0;
  for (const OpId id : kernel.ops(condition)) {
    const ir::Op& op = kernel.op(id);
    if (op.opcode != Opcode::kYield && (!is_free(op) || ++ops > kMostFreeOps)) return false;
  }
  return true;
}

// While(C, [&] { If(p, [] { Break(); }); … }): a p that is free is asked together with C, so that a
// trip has one branch less.
void Exits::ask_first_break_ahead(OpId loop) {
  ir::Kernel& kernel = trace_.kernel();
  const ir::Op& op = kernel.op(loop);
  if (op.opcode != Opcode::kWhile || !op.results.empty()) return;
  const RegionId condition = op.regions[0];
  if (!may_always_ask(condition)) return;
  std::vector<OpId> before;
  OpId test = kernel.region(op.regions[1]).first;
  for (; is_free(kernel.op(test)); test = kernel.op(test).next) before.push_back(test);
  if (kernel.op(test).opcode != Opcode::kIf || before.size() > kMostFreeOps) return;
  const auto exit = std::find_if(exits_.begin(), exits_.end(), [&](const Exit& each) {
    return kernel.op(each.store).parent == kernel.op(test).regions[0];
  });
  if (exit == exits_.end()) return;
  const auto flag = std::find_if(flags_.begin(), flags_.end(),
                                 [&](const Flag& each) { return each.slot == exit->slot; });
  if (flag->kind != ExitKind::kBreak || flag->loop != loop) return;
  for (const RegionId region : kernel.op(test).regions) {
    for (const OpId id : kernel.ops(region)) {
      const Opcode opcode = kernel.op(id).opcode;
      if (id != exit->store && opcode != Opcode::kConst && opcode != Opcode::kYield) return;
    }
  }
  ir::Builder& b = trace_.builder();
  const OpId yield = kernel.terminator(condition);
  b.set_insertion_before(yield);
  absl::flat_hash_map<ValueId, ValueId> copies;
  const auto copy_of = [&](ValueId value) {
    const auto copy = copies.find(value);
    return copy == copies.end() ? value : copy->second;
  };
  for (const OpId id : before) {
    const ir::Op original = kernel.op(id);
    absl::InlinedVector<ValueId, 4> operands;
    for (const ValueId operand : original.operands) operands.push_back(copy_of(operand));
    copies[original.result()] =
        b.create(original.opcode, operands, kernel.type(original.result()), original.attrs);
  }
  const ValueId breaks = copy_of(kernel.op(test).condition());
  const ValueId goes_on = kernel.op(yield).values()[0];
  const ValueId both = b.create(Opcode::kAnd, {goes_on, b.create(Opcode::kNot, {breaks})});
  kernel.op(yield).set_operand(ir::OperandName::kValues, both);
  exits_.erase(exit);
  kernel.erase(test);
}

// The condition is not even computed once a flag is set: what it reads may not be there.
void Exits::stop_while(OpId loop, const Flags& flags) {
  ir::Kernel& kernel = trace_.kernel();
  const RegionId condition = kernel.op(loop).regions[0];
  const OpId first = kernel.region(condition).first;
  const OpId yield = kernel.terminator(condition);
  const ValueId goes_on = kernel.op(yield).values()[0];
  ir::Builder& b = trace_.builder();
  if (may_always_ask(condition)) {
    b.set_insertion_before(yield);
    const ValueId both = b.create(Opcode::kAnd, {goes_on, none_set(flags)});
    return kernel.op(yield).set_operand(ir::OperandName::kValues, both);
  }
  b.set_insertion_before(first);
  const OpId guarded = b.begin_if(none_set(flags), {ir::kBoolType});
  move_ops(first, yield, b.region());
  b.yield({goes_on});
  b.next_region();
  b.yield({b.constant(ir::kBoolType, 0)});
  b.end_region();
  kernel.op(yield).set_operand(ir::OperandName::kValues, kernel.op(guarded).result());
}

// for (i = start; i < stop; i += step) without a wrap at the end: by steps of one i stops at `stop`;
// else whether there is another trip is decided before i moves on. Where an exit was taken i stays.
void Exits::turn_into_while(OpId loop, const Flags& flags) {
  ir::Kernel& kernel = trace_.kernel();
  ir::Builder& b = trace_.builder();
  const ir::Op old = kernel.op(loop);
  const ValueId start = old.start(), stop = old.stop();
  ValueId step = old.step();
  const auto known_step = kernel.constant_int(step);
  if (known_step == 0) return;  // the verifier's, as it is
  const bool backwards = known_step && *known_step < 0;
  const ir::Type type = kernel.type(start);
  const ir::Type bits =
      ir::Type::of(type.scalar == ir::Scalar::kI64 ? ir::Scalar::kU64 : ir::Scalar::kU32);
  b.set_insertion_before(loop);
  b.set_loc(old.loc);
  if (!known_step) {
    // What a `for` says of its step.
    const auto name = static_cast<int64_t>(ir::index_of(kernel.intern("a loop's step")));
    step = b.create(Opcode::kAssumeRange, {step}, ir::Type::none(),
                    {{ir::AttrKey::kMin, 1}, {ir::AttrKey::kName, name}});
  }
  const bool by_one = known_step == 1 || known_step == -1;
  const Opcode before = backwards ? Opcode::kGt : Opcode::kLt;
  const ValueId index = b.create(Opcode::kVar, {start});
  const ValueId more =
      by_one ? ValueId::kNone : b.create(Opcode::kVar, {b.create(before, {start, stop})});
  b.begin_while({});
  const ValueId goes_on = by_one
                              ? b.create(before, {b.create(Opcode::kVarLoad, {index}, type), stop})
                              : b.create(Opcode::kVarLoad, {more}, ir::kBoolType);
  b.yield({b.create(Opcode::kAnd, {goes_on, none_set(flags)})});
  b.next_region();
  const ValueId i = b.create(Opcode::kVarLoad, {index}, type);
  const RegionId body = old.regions[0];
  const ValueId argument = kernel.region(body).args[0];
  kernel.value(i).name = kernel.value(argument).name;
  move_ops(kernel.region(body).first, kernel.terminator(body), b.region());
  kernel.replace_all_uses(argument, i);
  const auto distance = [&](ValueId from, ValueId to) {
    return b.create(Opcode::kBitcast, {b.create(Opcode::kSub, {to, from})}, bits);
  };
  b.begin_if(none_set(flags));
  if (!by_one) {
    const ValueId left = backwards ? distance(stop, i) : distance(i, stop);
    const ValueId stride = backwards ? b.create(Opcode::kNeg, {step}) : step;
    b.create(Opcode::kVarStore,
             {more, b.create(Opcode::kGt, {left, b.create(Opcode::kBitcast, {stride}, bits)})});
  }
  b.create(Opcode::kVarStore, {index, b.create(Opcode::kAdd, {i, step})});
  b.yield({});
  b.next_region();
  b.yield({});
  b.end_region();
  b.yield({});
  b.end_region();
  kernel.erase(loop);
}

// Puts the ops from one on, but for the region's end, under a condition of their own; kNone where
// there are none.
RegionId Exits::guard_rest(OpId behind, const Flags& flags) {
  ir::Kernel& kernel = trace_.kernel();
  if (!ir::valid(behind) || kernel.op(behind).opcode == Opcode::kYield) return RegionId::kNone;
  const OpId end = kernel.terminator(kernel.op(behind).parent);
  ir::Builder& b = trace_.builder();
  b.set_insertion_before(behind);
  trace_.set_place(exit_of(flags).loc);
  const OpId guarded = b.begin_if(none_set(flags));
  const RegionId rest = b.region();
  move_ops(behind, end, rest);
  b.yield({});
  b.next_region();
  b.yield({});
  b.end_region();
  return kernel.op(guarded).regions[0];
}

ValueId Exits::none_set(const Flags& flags) {
  ir::Builder& b = trace_.builder();
  ValueId any = ValueId::kNone;
  for (const ValueId flag : flags) {
    const ValueId set = b.create(Opcode::kVarLoad, {flag}, ir::kBoolType);
    any = ir::valid(any) ? b.create(Opcode::kOr, {any, set}) : set;
  }
  return b.create(Opcode::kNot, {any});
}

const Exits::Exit& Exits::exit_of(const Flags& flags) const {
  return *std::find_if(exits_.begin(), exits_.end(),
                       [&](const Exit& exit) { return exit.slot == flags[0]; });
}

void Exits::report_values_lost(OpId owner, const Flags& flags) {
  const Exit& exit = exit_of(flags);
  const bool loop = is_loop(trace_.kernel().op(owner));
  const ir::Loc loc = trace_.kernel().loc(owner);
  trace_.report(exit.loc,
                absl::StrCat(name_of(exit.kind), loop ? " leaves a loop that carries values"
                                                      : " leaves an If() that returns values"),
                "keep them in Vars, and let the bodies return nothing",
                {{{std::string(loc.file), loc.line}, loop ? "the loop" : "the If()"}});
}

void Exits::move_ops(OpId first, OpId end, RegionId to) {
  ir::Kernel& kernel = trace_.kernel();
  for (OpId id = first; ir::valid(id) && id != end;) {
    const OpId next = kernel.op(id).next;
    kernel.unlink(id);
    kernel.append(to, id);
    id = next;
  }
}

void emit_exit(ExitKind kind, SourceLoc loc) {
  Trace* const trace = Trace::current();
  if (trace == nullptr) {
    return report(loc, absl::StrCat(name_of(kind), " outside a kernel").c_str(),
                  "use C++'s own break, continue and return on the host");
  }
  trace->exits().record(kind, loc);
}

}  // namespace heddle::detail
