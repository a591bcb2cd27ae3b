#include "heddle/codegen/register_plan.h"

#include <algorithm>

#include "heddle/codegen/registers.h"
#include "heddle/ir/check.h"
#include "heddle/ir/launch/launch_program.h"

namespace heddle::codegen {
namespace {

using ir::Kernel;
using ir::Op;
using ir::Opcode;
using ir::OpId;
using ir::RegionId;
using ir::Type;
using ir::ValueId;

bool is_volatile(const Op& op) {
  return op.opcode == Opcode::kLoad && op.attr_or(ir::AttrKey::kVolatile, 0) != 0;
}

bool has_ties(const Op& op) {
  const ir::Signature& signature = info(op).signature;
  for (int i = 0; i < signature.operand_count; ++i) {
    if (signature.operands[i].tied) return true;
  }
  return false;
}

}  // namespace

bool is_rename(const Kernel& kernel, const Op& op) {
  if (has(info(op), ir::kRename)) return true;
  if (op.opcode != Opcode::kConvert) return false;
  const Type from = kernel.type(op.a());
  const Type to = kernel.type(op.result());
  return from == to || (is_integer(from.scalar) && is_integer(to.scalar) &&
                        bytes_of(from.scalar) == bytes_of(to.scalar));
}

RegisterPlan::RegisterPlan(const Kernel& kernel, ir::Analyses& analyses, const JumpPlan& jumps,
                           bool keep_checks)
    : kernel_(kernel),
      analyses_(analyses),
      jumps_(jumps),
      keep_checks_(keep_checks),
      live_(kernel.value_count()),
      needed_(kernel.op_count()),
      offset_index_(kernel.op_count()),
      depth_(kernel.region_count()),
      accessed_(kernel) {
  // Backwards, so that an op's uses are known before the op: needed or not, and for how long.
  position_ = 4 * static_cast<int>(kernel.op_count()) + 8;
  visit_region(kernel.body(), 0);
  // What tensor cores write cannot be copied at all. Loops next: a copy there is made on every trip.
  for (size_t i = sharing_.size(); i-- > 0;) share_op(kernel.op(sharing_[i]), /*pending=*/true);
  for (const bool loops : {true, false}) {
    for (size_t i = sharing_.size(); i-- > 0;) {
      const Op& op = kernel.op(sharing_[i]);
      if ((op.opcode != Opcode::kIf) == loops) share_op(op, /*pending=*/false);
    }
  }
}

ValueId RegisterPlan::home(ValueId value) const {
  while (valid(live(value).home)) value = live(value).home;
  return value;
}

void RegisterPlan::visit_region(RegionId region, int depth) {
  depth_[ir::index_of(region)] = depth;
  for (OpId id = kernel_.region(region).last; valid(id); id = kernel_.op(id).prev) {
    visit_op(id, depth);
  }
}

void RegisterPlan::visit_op(OpId id, int depth) {
  const Op& op = kernel_.op(id);
  const ir::OpInfo& row = info(op);
  // Of what a program promises nothing is left in PTX but what follows from it.
  const bool acts =
      has_side_effect(row) && op.opcode != Opcode::kUnreachable && !has(row, ir::kHostOnly);
  bool needed = acts || has(row, ir::kRegions) || is_volatile(op);
  for (const ValueId result : op.results) needed |= live(result).last > 0;
  if (!needed) return;
  needed_[ir::index_of(id)] = 1;

  const int end = position_;
  position_ -= 2;
  int condition_end = 0;
  if (has(row, ir::kRegions)) {
    if (is_loop(op)) loops_.push_back({.depth = depth + 1, .end = end});
    for (size_t i = op.regions.size(); i-- > 0;) {
      condition_end = position_;
      // What ways ask in its place they ask at the condition's end too.
      if (i == 0) {
        for (const ValueId value : jumps_.questions(id)) use(value, condition_end, {});
      }
      visit_region(op.regions[i], depth + 1);
    }
    if (is_loop(op)) loops_.pop_back();
  }
  const int start = has(row, ir::kRegions) ? position_ : end;
  if (has(row, ir::kRegions)) position_ -= 2;

  for (const ValueId result : op.results) define(result, end);
  for (const RegionId region : op.regions) {
    for (const ValueId arg : kernel_.region(region).args) define(arg, start);
  }
  // The value that a loop carries is in the same registers before, in and behind it.
  if (op.opcode == Opcode::kFor) {
    const auto& args = kernel_.region(op.regions[0]).args;
    use(args[0], end, {});
    for (size_t i = 0; i < op.results.size(); ++i) share(args[i + 1], op.results[i]);
  } else if (op.opcode == Opcode::kWhile) {
    for (size_t i = 0; i < op.results.size(); ++i) {
      const ValueId before = kernel_.region(op.regions[0]).args[i];
      const ValueId inside = kernel_.region(op.regions[1]).args[i];
      // It has to survive the condition: what follows reads it.
      use(before, condition_end, {});
      share(before, inside);
      share(before, op.results[i]);
    }
  }

  use_operands(id, start, end);
  if (has(row, ir::kRegions) || has_ties(op)) sharing_.push_back(id);
}

void RegisterPlan::use_operands(OpId id, int start, int end) {
  const Op& op = kernel_.op(id);
  // What only the host computes is no part of the kernel.
  if (op.opcode == Opcode::kAtLaunch) return;
  const bool rename = is_rename(kernel_, op);
  const int offset = operand_index(op.opcode, ir::OperandName::kOffset);
  for (size_t i = 0; i < op.operands.size(); ++i) {
    const ValueId operand = op.operands[i];
    if (kernel_.type(operand).kind == ir::TypeKind::kCheck && !keep_checks_) continue;
    if (static_cast<int>(i) == offset) {
      offset_index_[ir::index_of(id)] = static_cast<uint32_t>(offsets_.size());
      offsets_.push_back(split_offset(kernel_, depth_, accessed_, analyses_, id));
      for (const SplitOffset::Term& term : offsets_.back().terms) use(term.value, start, {});
    } else if (rename) {
      // One step later than the last use of the result, so that nothing computes into registers
      // that it still reads under another name, perhaps in another order.
      const Live& result = live(op.result());
      use(operand, std::max(start, result.last + 1), {result.bits_matter, result.in_sum});
    } else {
      const bool whole_loop =
          op.opcode == Opcode::kFor && (operand == op.stop() || operand == op.step());
      const bool arithmetic =
          has(info(op), ir::kCanonicalNans) && is_float(kernel_.type(operand).scalar);
      use(operand, whole_loop ? end : start, {!arithmetic, !has(info(op), ir::kNeverFused)});
    }
  }
}

void RegisterPlan::define(ValueId value, int position) {
  Live& l = live(value);
  l.def = position;
  // Even a value that nobody reads is written.
  l.members_last = std::max(l.last, position + 1);
}

void RegisterPlan::use(ValueId value, int position, Purpose purpose) {
  if (jumps_.is_dead(value)) return;
  const ir::Value& v = kernel_.value(value);
  const RegionId region = valid(v.def) ? kernel_.op(v.def).parent : v.region;
  // A loop reads what comes from outside on every trip.
  for (const Loop& loop : loops_) {
    if (loop.depth > depth_[ir::index_of(region)]) {
      position = std::max(position, loop.end);
      break;
    }
  }
  Live& l = live(value);
  l.last = std::max(l.last, position);
  l.members_last = std::max(l.members_last, l.last);
  l.bits_matter |= purpose.bits_matter;
  l.in_sum |= purpose.in_sum;
}

bool RegisterPlan::has_home(ValueId value) const {
  const ir::Value& v = kernel_.value(value);
  if (layout_of(v.type).count == 0 || v.region == kernel_.body()) return false;
  return !valid(v.def) || !is_rename(kernel_, kernel_.op(v.def));
}

void RegisterPlan::share(ValueId a, ValueId b) {
  const ValueId home_a = home(a);
  const ValueId home_b = home(b);
  if (home_a == home_b) return;
  Live& winner = live(home_a);
  Live& loser = live(home_b);
  // Members are a list: winner's, then loser's.
  const ValueId tail = valid(winner.last_member) ? winner.last_member : home_a;
  live(tail).next_member = home_b;
  winner.last_member = valid(loser.last_member) ? loser.last_member : home_b;
  winner.members_last = std::max(winner.members_last, loser.members_last);
  loser.home = home_a;
}

bool RegisterPlan::interfere(ValueId home_a, ValueId home_b) const {
  if (live(home_a).members_last <= live(home_b).def && !valid(live(home_b).next_member)) {
    return false;
  }
  for (ValueId a = home_a; valid(a); a = live(a).next_member) {
    const int a_last = std::max(live(a).last, live(a).def + 1);
    for (ValueId b = home_b; valid(b); b = live(b).next_member) {
      const int b_last = std::max(live(b).last, live(b).def + 1);
      if (live(a).def < b_last && live(b).def < a_last) return true;
    }
  }
  return false;
}

void RegisterPlan::try_share(ValueId a, ValueId b, bool pending) {
  if (kernel_.type(a).is_pending() != pending) return;
  if (!has_home(a) || !has_home(b)) return;
  if (layout_of(kernel_.type(a)) != layout_of(kernel_.type(b))) return;
  const ValueId home_a = home(a);
  const ValueId home_b = home(b);
  if (home_a != home_b && !interfere(home_a, home_b)) share(home_a, home_b);
}

void RegisterPlan::share_op(const Op& op, bool pending) {
  if (!is_loop(op) && op.opcode != Opcode::kIf) {
    const ir::Signature& signature = info(op).signature;
    size_t result = 0;
    for (size_t i = 0; i < op.operands.size() && result < op.results.size(); ++i) {
      const size_t position = std::min<size_t>(i, signature.operand_count - size_t{1});
      if (signature.operands[position].tied)
        try_share(op.operands[i], op.results[result++], pending);
    }
    return;
  }
  for (const RegionId region : op.regions) {
    const OpId end = kernel_.terminator(region);
    const bool is_condition = op.opcode == Opcode::kWhile && region == op.regions[0];
    if (is_condition) continue;
    for (size_t i = 0; i < op.results.size(); ++i) {
      if (is_loop(op)) try_share(op.results[i], op.inits()[i], pending);
      try_share(op.results[i], kernel_.op(end).operands[i], pending);
    }
  }
}

}  // namespace heddle::codegen
