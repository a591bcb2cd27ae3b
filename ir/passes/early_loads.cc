// early-loads: loads behind a pin that asks for them start in front of it.
//
// What: of a `pin` with early_loads, the loads that follow it in its block move in front of it, with what their
// addresses take: those up to the next pin, wait, loop, or op that may end the kernel. An `if` that does nothing
// but load counts as a load. One whose memory may be written between the two stays, and so do loads of more
// than 16 registers a pin.
//
// Needs: no-variables. Keeps: aliasing, movable-ints.
//
// Why: assemblers move nothing past a pin, so what is pinned would run first, and loads be waited for
// after it. A wgmma.wait does not hold loads up: they are under way while the tensor cores finish.
//
//   pin %results {early_loads = 1}         %bias = load %x, %i : f32
//   %bias = load %x, %i : f32         →    pin %results {early_loads = 1}
#include <algorithm>
#include <vector>

#include "heddle/ir/analysis/aliasing.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

constexpr int kRegisterBits = 32;

class EarlyLoads {
 public:
  explicit EarlyLoads(PassContext& context)
      : kernel_(context.kernel()),
        aliasing_(context.analysis<Aliasing>()),
        tied_(tied_values(kernel_)),
        most_registers_(static_cast<int>(context.option("registers"))) {}

  bool run() {
    visit(kernel_.body());
    return moved_;
  }

 private:
  void visit(RegionId region) {
    pin_ = OpId::kNone;
    for (OpId id = kernel_.region(region).first; valid(id);) {
      const OpId next = kernel_.op(id).next;
      look_at(id);
      id = next;
    }
    for (const OpId id : kernel_.ops(region)) {
      for (size_t i = 0; i < kernel_.op(id).regions.size(); ++i) visit(kernel_.op(id).regions[i]);
    }
  }

  void look_at(OpId id) {
    const Op& op = kernel_.op(id);
    if (op.opcode == Opcode::kPin) {
      pin_ = op.attr_or(AttrKey::kEarlyLoads, 0) != 0 ? id : OpId::kNone;
      behind_ = IdMap<OpId, uint8_t>();
      writes_.clear();
      registers_ = 0;
      return;
    }
    if (!valid(pin_)) return;
    behind_.at(id) = 1;
    if (only_loads(id)) {
      move(id);
    } else if (all_of(id, [](const Op& each) { return lets_loads_pass(each); })) {
      for_each(id, [&](const Op& each) {
        if (Aliasing::may_clobber(each)) writes_.push_back(&each);
      });
    } else {
      pin_ = OpId::kNone;
    }
  }

  // An op, and all that are inside.
  template <class Visit>
  void for_each(OpId id, const Visit& visit) const {
    visit(kernel_.op(id));
    for (const RegionId region : kernel_.op(id).regions) {
      kernel_.walk(region, [&](OpId inside) { visit(kernel_.op(inside)); });
    }
  }
  template <class Holds>
  bool all_of(OpId id, const Holds& holds) const {
    bool all = true;
    for_each(id, [&](const Op& each) { all = all && holds(each); });
    return all;
  }
  static bool lets_loads_pass(const Op& op) {
    if (op.opcode == Opcode::kWgmmaWait) return true;
    return !is_loop(op) && !has(info(op), kMayStop) && !has(info(op), kBlocking);
  }
  static bool is_load(const Op& op) {
    return op.opcode == Opcode::kLoad && op.attr_or(AttrKey::kVolatile, 0) == 0;
  }
  // A load, or an if of nothing else: what is computed for them may be inside.
  bool only_loads(OpId id) const {
    const Op& op = kernel_.op(id);
    if (op.opcode != Opcode::kIf) return is_load(op);
    const bool nothing_else = all_of(id, [&](const Op& each) {
      return &each == &op || is_load(each) || has(info(each), kPure) ||
             each.opcode == Opcode::kYield;
    });
    return nothing_else && !all_of(id, [](const Op& each) { return !is_load(each); });
  }

  void move(OpId id) {
    int registers = 0;
    for (const ValueId result : kernel_.op(id).results) {
      const Type type = kernel_.type(result);
      registers += (type.count * info(type.scalar).bits + kRegisterBits - 1) / kRegisterBits;
    }
    std::vector<OpId> with;
    if (registers_ + registers > most_registers_ || !gather(id, &with) || is_written(id)) return;
    for (const OpId op : with) {
      kernel_.unlink(op);
      kernel_.insert_before(pin_, op);
      behind_.at(op) = 0;
    }
    registers_ += registers;
    moved_ = true;
  }

  // Whether the memory of loads may be written between the pin and them. The fact that it does not overlap
  // with what is written is asked only where it decides.
  bool is_written(OpId id) {
    std::vector<int> unless_no_overlap;
    bool written = false;
    for_each(id, [&](const Op& each) {
      if (each.opcode != Opcode::kLoad) return;
      const int object = aliasing_.object_of(each.view());
      Clobber clobber = Clobber::kNo;
      for (const Op* write : writes_) {
        clobber = std::max(clobber, aliasing_.clobber(*write, object));
      }
      written |= clobber == Clobber::kYes;
      if (clobber == Clobber::kUnlessNoOverlap) unless_no_overlap.push_back(object);
    });
    return written || !std::all_of(unless_no_overlap.begin(), unless_no_overlap.end(),
                                   [&](int object) { return aliasing_.no_overlap(object); });
  }

  // An op behind the pin, with those that compute its operands in front of it; whether all can move.
  bool gather(OpId id, std::vector<OpId>* with) {
    bool can = true;
    const auto operands_of = [&](const Op& op) {
      for (const ValueId operand : op.operands) {
        const OpId def = kernel_.value(operand).def;
        if (!can || !valid(def) || behind_[def] == 0) continue;
        if (std::find(with->begin(), with->end(), def) != with->end()) continue;
        const Op& before = kernel_.op(def);
        can = before.regions.empty() && (has(info(before), kPure) || has(info(before), kPromise)) &&
              gather(def, with);
      }
    };
    for_each(id, operands_of);
    for (const ValueId result : kernel_.op(id).results) can = can && tied_[result] == 0;
    with->push_back(id);
    return can;
  }

  Kernel& kernel_;
  const Aliasing& aliasing_;
  IdMap<ValueId, uint8_t> tied_;
  OpId pin_ = OpId::kNone;         // the last one, if it asks for loads
  IdMap<OpId, uint8_t> behind_;    // whether an op of the block stands behind it
  std::vector<const Op*> writes_;  // behind it, which loads may not pass
  int most_registers_;
  int registers_ = 0;  // of what has been moved
  bool moved_ = false;
};

}  // namespace

bool early_loads(PassContext& context) { return EarlyLoads(context).run(); }

}  // namespace heddle::ir
