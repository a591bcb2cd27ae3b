#include "heddle/codegen/jump_plan.h"

#include <algorithm>
#include <utility>

namespace heddle::codegen {

using ir::Op;
using ir::Opcode;
using ir::OpId;
using ir::RegionId;
using ir::ValueId;

namespace {

constexpr int kBudget = 128;      // ops that one way may pass
constexpr int kDepth = 6;         // of conditions of conditions
constexpr size_t kMostTests = 3;  // ops of a condition that are printed again

// An integer comparison as `a < b` or `a == b`, or the opposite of it.
struct Relation {
  bool equal = false, opposite = false;
  ValueId a = ValueId::kNone, b = ValueId::kNone;
};
std::optional<Relation> relation_of(const ir::Kernel& kernel, const Op& op) {
  const auto relation = [&](bool equal, bool opposite, bool swapped) {
    return Relation{equal, opposite, swapped ? op.b() : op.a(), swapped ? op.a() : op.b()};
  };
  std::optional<Relation> found;
  if (op.opcode == Opcode::kLt) found = relation(false, false, false);
  if (op.opcode == Opcode::kGe) found = relation(false, true, false);
  if (op.opcode == Opcode::kGt) found = relation(false, false, true);
  if (op.opcode == Opcode::kLe) found = relation(false, true, true);
  if (op.opcode == Opcode::kEq) found = relation(true, false, false);
  if (op.opcode == Opcode::kNe) found = relation(true, true, false);
  // With a NaN neither of two opposites need hold.
  if (!found || !is_integer(kernel.type(op.a()).scalar)) return std::nullopt;
  return found;
}

}  // namespace

bool JumpPlan::prints_nothing(const Op& op) {
  return op.opcode == Opcode::kConst || op.opcode == Opcode::kUndef || has(info(op), ir::kForwards);
}

JumpPlan::JumpPlan(const ir::Kernel& kernel, ir::Analyses& analyses)
    : kernel_(kernel),
      analyses_(analyses),
      entered_(kernel.region_count()),
      holds_target_(kernel.region_count()),
      ends_(kernel.region_count()),
      left_(kernel.op_count()),
      untested_(kernel.op_count()),
      never_again_(kernel.op_count()),
      collective_(kernel.op_count()),
      facts_(kernel.value_count(), Fact::kUnknown) {
  bool splits_registers = false;
  kernel.walk([&](OpId id) {
    splits_registers |= kernel.op(id).opcode == Opcode::kSetMaxRegisters;
    if (!is_convergent(info(kernel.op(id)))) return;
    for (OpId around = id; ir::valid(around) && collective_[ir::index_of(around)] == 0;) {
      collective_[ir::index_of(around)] = 1;
      around = kernel.region(kernel.op(around).parent).parent;
    }
  });
  // Roles with registers of their own use all that there are: ptxas spilled some where blocks stood in another
  // order, which costs more than the tests do.
  if (splits_registers) return;
  visit(kernel.body(), true);
  if (any_) find_live();
}

// --- The walk over the kernel -----------------------------------------------------------------

bool JumpPlan::visit(RegionId region, bool reached) {
  for (const OpId id : kernel_.ops(region)) reached = visit_op(id, reached);
  ends_[ir::index_of(region)] = reached ? 1 : 0;
  // In a condition everything is asked: a later trip's way may come to any place there.
  if (reached && conditions_ == 0) search_from(region);
  return falls_out(region);
}

bool JumpPlan::falls_out(RegionId region) {
  return ends_[ir::index_of(region)] != 0 && ways_.count(region) == 0;
}

bool JumpPlan::visit_op(OpId id, bool reached) {
  const Op& op = kernel_.op(id);
  if (op.opcode == Opcode::kIf) return visit_if(id, reached);
  if (!reached || !is_loop(op)) return reached;
  if (op.opcode == Opcode::kWhile) {
    visit_while(id);
  } else {
    const size_t mark = changes_.size();
    loops_.push_back({id, mark});
    visit(op.regions[0], true);
    loops_.pop_back();
    forget_since(mark);
  }
  return true;
}

bool JumpPlan::visit_if(OpId id, bool reached) {
  const Op& op = kernel_.op(id);
  if (!reached) untested_[ir::index_of(id)] = 1;
  bool falls = false;
  for (const size_t i : {size_t{0}, size_t{1}}) {
    const RegionId region = op.regions[i];
    if (is_unreachable(region)) continue;
    if (!reached && !holds_target(region)) continue;
    const size_t mark = changes_.size();
    learn(op.condition(), i == 0);
    falls |= visit(region, reached || is_entered(region));
    forget_since(mark);
  }
  return falls || is_left(id);
}

void JumpPlan::visit_while(OpId id) {
  const Op& op = kernel_.op(id);
  search_entry(id);
  const size_t mark = changes_.size();
  loops_.push_back({id, mark});
  ++conditions_;
  visit(op.regions[0], true);
  --conditions_;
  learn(kernel_.op(kernel_.terminator(op.regions[0])).values()[0], true);
  learn_pairs(kernel_.region(op.regions[1]).args, kernel_.region(op.regions[0]).args);
  const bool again = visit(op.regions[1], true);
  loops_.pop_back();
  forget_since(mark);
  never_again_[ir::index_of(id)] = again ? 0 : 1;
  if (entry(id) == nullptr) return;
  if (again || holds_target(op.regions[0])) {
    entries_.erase(id);
  } else {
    untested_[ir::index_of(id)] = 1;
    mark_target(*entry(id));
  }
}

bool JumpPlan::is_unreachable(RegionId region) const {
  for (const OpId id : kernel_.ops(region)) {
    if (kernel_.op(id).opcode == Opcode::kUnreachable) return true;
  }
  return false;
}

// --- What is known ----------------------------------------------------------------------------

void JumpPlan::set(ValueId value, Fact fact) {
  Fact& now = facts_[ir::index_of(value)];
  if (now == fact) return;
  changes_.push_back({value, now});
  now = fact;
}

void JumpPlan::forget_since(size_t mark) {
  for (; changes_.size() > mark; changes_.pop_back()) {
    facts_[ir::index_of(changes_.back().value)] = changes_.back().before;
  }
}

void JumpPlan::learn(ValueId value, bool holds) {
  if (facts_[ir::index_of(value)] != Fact::kUnknown) return;
  const Op* const op = kernel_.def(value);
  if (op != nullptr && op->opcode == Opcode::kConst) return;
  set(value, holds ? Fact::kTrue : Fact::kFalse);
  if (op == nullptr) return;
  if (op->opcode == Opcode::kNot) {
    learn(op->a(), !holds);
  } else if (has(info(*op), ir::kForwards)) {
    learn(op->a(), holds);
  } else if (op->opcode == (holds ? Opcode::kAnd : Opcode::kOr)) {
    learn(op->a(), holds);
    learn(op->b(), holds);
  } else if (op->opcode == Opcode::kIf) {
    // The branch that would have given something else has not been taken.
    const auto at = std::find(op->results.begin(), op->results.end(), value);
    const auto i = static_cast<size_t>(at - op->results.begin());
    for (const size_t branch : {size_t{0}, size_t{1}}) {
      const auto other = known(kernel_.op(kernel_.terminator(op->regions[branch])).operands[i]);
      if (!other || *other == holds) continue;
      learn(op->condition(), branch != 0);
      learn(kernel_.op(kernel_.terminator(op->regions[1 - branch])).operands[i], holds);
    }
  } else if (relation_of(kernel_, *op)) {
    comparisons_.push_back(value);
  }
}

std::optional<bool> JumpPlan::opposite(const Op& comparison) const {
  constexpr size_t kMost = 16;
  const std::optional<Relation> asked = relation_of(kernel_, comparison);
  if (!asked) return std::nullopt;
  for (size_t i = comparisons_.size(); i > 0 && comparisons_.size() - i < kMost; --i) {
    const ValueId value = comparisons_[i - 1];
    const Fact fact = facts_[ir::index_of(value)];
    if (fact == Fact::kUnknown) continue;
    const Relation there = *relation_of(kernel_, *kernel_.def(value));
    if (there.equal != asked->equal || there.a != asked->a || there.b != asked->b) continue;
    return (fact == Fact::kTrue) == (there.opposite == asked->opposite);
  }
  return std::nullopt;
}

std::optional<bool> JumpPlan::known(ValueId value, int depth) {
  const Fact fact = facts_[ir::index_of(value)];
  if (fact != Fact::kUnknown) return fact == Fact::kTrue;
  const Op* const op = kernel_.def(value);
  if (op == nullptr || depth > kDepth || kernel_.type(value) != ir::kBoolType) return std::nullopt;
  if (op->opcode == Opcode::kConst) return *op->attr(ir::AttrKey::kBits) != 0;
  if (has(info(*op), ir::kForwards)) return known(op->a(), depth + 1);
  if (op->opcode == Opcode::kNot) {
    const auto a = known(op->a(), depth + 1);
    return a ? std::optional<bool>(!*a) : std::nullopt;
  }
  if (op->opcode != Opcode::kAnd && op->opcode != Opcode::kOr) return opposite(*op);
  const auto a = known(op->a(), depth + 1), b = known(op->b(), depth + 1);
  const bool decides = op->opcode == Opcode::kOr;
  if (a == decides || b == decides) return decides;
  return a && b ? std::optional<bool>(!decides) : std::nullopt;
}

void JumpPlan::learn_pairs(absl::Span<const ValueId> to, absl::Span<const ValueId> from) {
  std::vector<std::optional<bool>> handed;
  for (const ValueId value : from) handed.push_back(known(value));
  for (size_t i = 0; i < to.size(); ++i) {
    set(to[i], !handed[i] ? Fact::kUnknown : *handed[i] ? Fact::kTrue : Fact::kFalse);
  }
}

bool JumpPlan::agrees(const Search& search) {
  return std::all_of(search.asked.begin(), search.asked.end(), [&](ValueId value) {
    return analyses_.get<ir::Uniformity>().of(value) >= ir::Scope::kWarp;
  });
}

// --- Ways -------------------------------------------------------------------------------------

void JumpPlan::search_from(RegionId region) {
  const size_t mark = changes_.size();
  Search search;
  search.budget = kBudget;
  OpId at = leave(search, region);
  while (ir::valid(at)) at = pass(search, at);
  forget_since(mark);
  if (search.decided_steps == 0) return;
  search.way.steps.resize(search.decided_steps);
  search.way.start = search.start;
  search.way.behind = search.behind;
  mark_target(search.way);
  ways_.emplace(region, std::move(search.way));
}

void JumpPlan::search_entry(OpId loop) {
  const Op& op = kernel_.op(loop);
  const size_t mark = changes_.size();
  learn_pairs(kernel_.region(op.regions[0]).args, op.inits());
  Search search;
  search.budget = kBudget;
  OpId at = kernel_.region(op.regions[0]).first;
  // No further than the condition's answer.
  while (ir::valid(at) && !ir::valid(search.start)) {
    if (kernel_.op(at).opcode == Opcode::kIf) break;
    if (kernel_.op(at).opcode == Opcode::kYield) {
      answer(search, loop);
      break;
    }
    at = pass(search, at);
  }
  forget_since(mark);
  const bool goes_in = search.start == op.regions[1];
  const bool asks = !search.way.steps.empty() && search.way.steps.back().kind == Step::Kind::kTest;
  if (!goes_in && !asks) return;
  search.way.start = op.regions[1];
  entries_.emplace(loop, std::move(search.way));
}

void JumpPlan::mark_target(const Way& way) {
  any_ = true;
  const auto enter = [&](RegionId region) {
    entered_[ir::index_of(region)] = 1;
    mark_around(region);
  };
  if (ir::valid(way.start)) enter(way.start);
  if (ir::valid(way.behind)) {
    left_[ir::index_of(way.behind)] = 1;
    mark_around(kernel_.op(way.behind).parent);
  }
  for (const Step& step : way.steps) {
    if (step.kind != Step::Kind::kTest) continue;
    enter(kernel_.op(step.op).regions[1]);
    questions_[step.op].push_back(step.value);
  }
}

void JumpPlan::mark_around(RegionId region) {
  while (!holds_target(region)) {
    holds_target_[ir::index_of(region)] = 1;
    const OpId owner = kernel_.region(region).parent;
    if (!ir::valid(owner)) return;
    region = kernel_.op(owner).parent;
  }
}

void JumpPlan::commit(Search& search, RegionId start, OpId behind) {
  search.decided_steps = search.way.steps.size();
  search.start = start;
  search.behind = behind;
}

OpId JumpPlan::pass(Search& search, OpId at) {
  if (--search.budget < 0) return OpId::kNone;
  const Op& op = kernel_.op(at);
  if (op.opcode == Opcode::kYield) return leave(search, op.parent);
  if (op.opcode == Opcode::kIf) return decide(search, at);
  if (prints_nothing(op)) {
    search.way.steps.push_back({.kind = Step::Kind::kPrint, .op = at});
    return op.next;
  }
  if (op.results.size() != 1) return OpId::kNone;
  if (const auto holds = known(op.result())) {
    search.way.steps.push_back(
        {.kind = Step::Kind::kSet, .holds = *holds, .op = at, .value = op.result()});
    return op.next;
  }
  // A condition may be asked here as well.
  if (!is_condition(op.parent) || !is_repeatable(op)) return OpId::kNone;
  search.way.steps.push_back({.kind = Step::Kind::kPrint, .op = at});
  return op.next;
}

// Scalars in registers of their own, computed by an instruction or two.
bool JumpPlan::is_repeatable(const Op& op) const {
  const ir::OpInfo& row = info(op);
  const auto is_plain = [&](ValueId value) {
    const ir::Type type = kernel_.type(value);
    const int bits = ir::info(type.scalar).bits;
    return type.is_scalar() && (type.scalar == ir::Scalar::kBool || bits == 32 || bits == 64);
  };
  if (!has(row, ir::kPure) || has(row, ir::kNotSpeculatable) || !is_plain(op.result()))
    return false;
  if (!has(row, ir::kCheap) && op.opcode != Opcode::kNot && !relation_of(kernel_, op)) return false;
  return std::all_of(op.operands.begin(), op.operands.end(), is_plain);
}

OpId JumpPlan::decide(Search& search, OpId id) {
  const Op& op = kernel_.op(id);
  const auto holds = known(op.condition());
  if (!holds || is_unreachable(op.regions[0]) || is_unreachable(op.regions[1])) return OpId::kNone;
  // What the threads of a warp do together they would no longer do together.
  if (flag(collective_, id) && !agrees(search)) return OpId::kNone;
  search.decided = id;
  const RegionId branch = op.regions[*holds ? 0 : 1];
  commit(search, branch, OpId::kNone);
  return kernel_.region(branch).first;
}

OpId JumpPlan::leave(Search& search, RegionId region) {
  const OpId owner = kernel_.region(region).parent;
  if (!ir::valid(owner)) return OpId::kNone;
  const Op& op = kernel_.op(owner);
  if (op.opcode == Opcode::kFor) return OpId::kNone;
  if (is_condition(region)) return answer(search, owner);
  const auto yielded = kernel_.op(kernel_.terminator(region)).values();
  search.way.steps.push_back({.kind = Step::Kind::kHand, .op = owner, .region = region});
  if (op.opcode == Opcode::kIf) {
    learn_pairs(op.results, yielded);
    // What decided ifs skip, they skip for all threads that come this way.
    if (search.decided != owner) search.asked.push_back(op.condition());
    if (search.decided == owner) commit(search, RegionId::kNone, owner);
    return op.next;
  }
  // A trip ends: what was known of its values says nothing of the next one's.
  std::vector<Fact> next;
  for (const ValueId value : yielded) {
    const auto holds = known(value);
    next.push_back(!holds ? Fact::kUnknown : *holds ? Fact::kTrue : Fact::kFalse);
  }
  const auto loop = std::find_if(loops_.begin(), loops_.end(),
                                 [&](const Loop& around) { return around.op == owner; });
  for (size_t i = changes_.size(); i-- > loop->mark;) set(changes_[i].value, Fact::kUnknown);
  const auto& args = kernel_.region(op.regions[0]).args;
  for (size_t i = 0; i < args.size(); ++i) set(args[i], next[i]);
  search.condition_steps = search.way.steps.size();
  return kernel_.region(op.regions[0]).first;
}

bool JumpPlan::is_condition(RegionId region) const {
  const OpId owner = kernel_.region(region).parent;
  return ir::valid(owner) && kernel_.op(owner).opcode == Opcode::kWhile &&
         region == kernel_.op(owner).regions[0];
}

// At the end of a condition.
OpId JumpPlan::answer(Search& search, OpId loop) {
  const Op& op = kernel_.op(loop);
  const RegionId condition = op.regions[0];
  const ValueId asked = kernel_.op(kernel_.terminator(condition)).values()[0];
  if (flag(collective_, loop) && !agrees(search)) return OpId::kNone;
  const auto& args = kernel_.region(condition).args;
  auto goes_on = known(asked);
  if (goes_on) {
    search.way.steps.resize(search.condition_steps);  // nobody else sees what it computes
  } else {
    const Question question = unknown_part(asked);
    if (!question.is_shorter) return OpId::kNone;
    keep_what_decides(search.way.steps, search.condition_steps, question.value);
    if (search.way.steps.size() - search.condition_steps > kMostTests) return OpId::kNone;
    search.way.steps.push_back({.kind = Step::Kind::kTest,
                                .holds = question.goes_on,
                                .op = loop,
                                .value = question.value});
    search.asked.push_back(question.value);
    learn(question.value, !question.goes_on);
    goes_on = false;
  }
  if (*goes_on) {
    commit(search, op.regions[1], OpId::kNone);
    return OpId::kNone;
  }
  learn_pairs(op.results, args);
  commit(search, RegionId::kNone, loop);
  return op.next;
}

JumpPlan::Question JumpPlan::unknown_part(ValueId condition) {
  Question question{condition, true, false};
  for (;;) {
    const Op* const op = kernel_.def(question.value);
    if (op == nullptr) return question;
    if (op->opcode == Opcode::kNot) {
      question.value = op->a();
      question.goes_on = !question.goes_on;
    } else if (op->opcode == Opcode::kAnd || op->opcode == Opcode::kOr) {
      const bool knows_a = known(op->a()).has_value();
      if (!knows_a && !known(op->b())) return question;
      question.value = knows_a ? op->b() : op->a();
      question.is_shorter = true;
    } else {
      return question;
    }
  }
}

// Of a condition's ops that are printed again, those that compute the value.
void JumpPlan::keep_what_decides(std::vector<Step>& steps, size_t first, ValueId value) const {
  std::vector<ValueId> wanted = {value};
  std::vector<Step> kept;
  for (size_t i = steps.size(); i-- > first;) {
    const Op& op = kernel_.op(steps[i].op);
    if (std::find(wanted.begin(), wanted.end(), op.result()) == wanted.end()) continue;
    wanted.insert(wanted.end(), op.operands.begin(), op.operands.end());
    kept.push_back(steps[i]);
  }
  steps.resize(first);
  steps.insert(steps.end(), kept.rbegin(), kept.rend());
}

// --- Flags that nobody reads ------------------------------------------------------------------

void JumpPlan::find_live() {
  live_.assign(kernel_.value_count(), 0);
  std::vector<ValueId> work;
  for (uint32_t i = 0; i < kernel_.value_count(); ++i) {
    if (kernel_.type(ValueId{i}) != ir::kBoolType) live_[i] = 1;
  }
  // Whether an op reads its operands only for the sake of its result, a bool.
  const auto hands_on = [&](const Op& op) {
    return op.results.size() == 1 && kernel_.type(op.result()) == ir::kBoolType &&
           (op.opcode == Opcode::kNot || op.opcode == Opcode::kAnd || op.opcode == Opcode::kOr ||
            has(info(op), ir::kForwards));
  };
  kernel_.walk([&](OpId id) {
    const Op& op = kernel_.op(id);
    if (op.opcode == Opcode::kYield || hands_on(op)) return;
    if (op.opcode == Opcode::kIf && !is_tested(id)) return;
    if (op.opcode == Opcode::kWhile) {
      if (!is_tested(id)) return;
      return make_live(kernel_.op(kernel_.terminator(op.regions[0])).values()[0], work);
    }
    if (op.opcode == Opcode::kFor) return;
    for (const ValueId operand : op.operands) make_live(operand, work);
  });
  for (const auto& [loop, values] : questions_) {
    for (const ValueId value : values) make_live(value, work);
  }
  const auto carried = [&](OpId loop, size_t i) {
    const Op& op = kernel_.op(loop);
    make_live(op.results[i], work);
    make_live(op.inits()[i], work);
    for (const RegionId region : op.regions) {
      const auto& args = kernel_.region(region).args;
      make_live(args[args.size() - op.results.size() + i], work);
    }
    make_live(kernel_.op(kernel_.terminator(op.regions.back())).values()[i], work);
  };
  while (!work.empty()) {
    const ValueId value = work.back();
    work.pop_back();
    const ir::Value& v = kernel_.value(value);
    const OpId owner = ir::valid(v.def) ? v.def : kernel_.region(v.region).parent;
    if (!ir::valid(owner)) continue;
    const Op& op = kernel_.op(owner);
    if (ir::valid(v.def) && !has(info(op), ir::kRegions)) {
      if (!hands_on(op)) continue;
      for (const ValueId operand : op.operands) make_live(operand, work);
      continue;
    }
    const absl::Span<const ValueId> list =
        ir::valid(v.def) ? absl::MakeConstSpan(op.results) : kernel_.region(v.region).args;
    const size_t extra = list.size() - op.results.size();  // a loop's own index
    const auto i = static_cast<size_t>(std::find(list.begin(), list.end(), value) - list.begin());
    if (is_loop(op)) {
      if (i >= extra) carried(owner, i - extra);
      continue;
    }
    for (const RegionId region : op.regions) {
      make_live(kernel_.op(kernel_.terminator(region)).values()[i], work);
    }
  }
}

void JumpPlan::make_live(ValueId value, std::vector<ValueId>& work) {
  uint8_t& live = live_[ir::index_of(value)];
  if (live != 0) return;
  live = 1;
  work.push_back(value);
}

}  // namespace heddle::codegen
