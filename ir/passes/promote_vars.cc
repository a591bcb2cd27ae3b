// promote-vars: variables become values.
//
// What: a variable (var, var.load, var.store) becomes SSA values. A load is the value stored last;
// where that depends on the way taken, the `if` or loop hands the value on as a result, and a loop
// carries it. Only what a region writes is handed on. A variable that is read before it is written
// gives what it was initialised with: undef, where the author gave nothing.
//
// Needs: nothing. Gives: no-variables. Keeps: nothing.
//
// Why: every later pass and the emitter see values, not places.
//
//   %s = var %zero : var<f32>                    %0 = for %i in %a .. %n step %k carry(%s = %zero)
//   { for %i in %a .. %n step %k {                   %v = load %x, %i : f32
//     %v = load %x, %i : f32                       %t = add %s, %v : f32
//     %c = var.load %s : f32               →       yield %t
//     %t = add %c, %v : f32                      }
//     var.store %s, %t                           store %y, %0, %row
//     yield
//   }
//   %r = var.load %s : f32
//   store %y, %r, %row
#include <algorithm>

#include "heddle/ir/builder.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

class Promotion {
 public:
  explicit Promotion(Kernel& kernel) : kernel_(kernel) {}

  bool run() {
    bool any = false;
    std::vector<OpId> impure_conditions;
    kernel_.walk([&](OpId id) {
      any |= kernel_.op(id).opcode == Opcode::kVar;
      if (kernel_.op(id).opcode == Opcode::kVarStore) note_conditions(id, impure_conditions);
    });
    if (!any) return false;
    for (const OpId loop : impure_conditions) move_condition_into_body(loop);
    kernel_.walk([&](OpId id) {
      if (kernel_.op(id).opcode == Opcode::kVarStore) note_store(id);
    });
    promote(kernel_.body());
    return true;
  }

 private:
  using Slots = absl::InlinedVector<ValueId, 4>;

  // Calls visit(region) for each region around a store, up to the one that declares the variable.
  template <class Visit>
  void up_to_declaration(OpId store, Visit visit) {
    const ValueId slot = kernel_.op(store).slot();
    const RegionId declared = kernel_.op(kernel_.value(slot).def).parent;
    for (RegionId region = kernel_.op(store).parent; region != declared;) {
      visit(region);
      region = kernel_.op(kernel_.region(region).parent).parent;
    }
  }

  void note_conditions(OpId store, std::vector<OpId>& found) {
    up_to_declaration(store, [&](RegionId region) {
      const OpId owner = kernel_.region(region).parent;
      const Op& op = kernel_.op(owner);
      if (op.opcode != Opcode::kWhile || op.regions[0] != region) return;
      if (std::find(found.begin(), found.end(), owner) == found.end()) found.push_back(owner);
    });
  }

  void note_store(OpId store) {
    const ValueId slot = kernel_.op(store).slot();
    up_to_declaration(store, [&](RegionId region) {
      Slots& slots = written_.at(kernel_.region(region).parent);
      if (std::find(slots.begin(), slots.end(), slot) == slots.end()) slots.push_back(slot);
    });
  }

  // A condition's region hands on nothing but its bool, so what it writes would be lost:
  //
  //   while carry(%a) { C; yield %b }        while carry(%a, %go = true) { yield %go }
  //   do(%a) { B; yield %n }           →     do(%a, %go) { C; %r = if %b { B; yield %n }
  //                                                              else { yield %a }; yield %r, %b }
  void move_condition_into_body(OpId loop) {
    const RegionId condition = kernel_.op(loop).regions[0];
    const RegionId body = kernel_.op(loop).regions[1];
    const OpId condition_end = kernel_.terminator(condition);
    const ValueId goes_on = kernel_.op(condition_end).values().front();
    const Region before = kernel_.region(body);
    Replacements arguments;
    for (size_t i = 0; i < before.args.size(); ++i) {
      arguments.add(kernel_.region(condition).args[i], before.args[i]);
    }

    Builder b(kernel_);
    b.set_loc(kernel_.op(loop).loc);
    b.set_insertion_before(loop);
    const ValueId yes = b.constant_int(kBoolType, 1);
    kernel_.op(loop).operands.push_back(yes);
    kernel_.add_result(loop, kBoolType);
    const ValueId again = kernel_.add_region_arg(condition, kBoolType);
    kernel_.add_region_arg(body, kBoolType);

    absl::InlinedVector<Type, 4> types;
    for (const ValueId arg : before.args) types.push_back(kernel_.type(arg));
    const OpId body_end = kernel_.terminator(body);
    const auto next = kernel_.op(body_end).operands;
    b.set_insertion_before(body_end);
    const OpId choice = b.begin_if(goes_on, types);
    for (const OpId id : kernel_.ops(body)) {
      if (id == choice) break;
      kernel_.unlink(id);
      kernel_.append(kernel_.op(choice).regions[0], id);
    }
    b.yield(next);
    b.next_region();
    b.yield(before.args);
    for (const OpId id : kernel_.ops(condition)) {
      if (id == condition_end) break;
      kernel_.unlink(id);
      kernel_.insert_before(choice, id);
    }
    kernel_.op(body_end).operands.assign(kernel_.op(choice).results.begin(),
                                         kernel_.op(choice).results.end());
    kernel_.op(body_end).operands.push_back(goes_on);
    kernel_.op(condition_end).set_operand(OperandName::kValues, again);
    arguments.apply_everywhere(kernel_);
  }

  void promote(RegionId region) {
    for (const OpId id : kernel_.ops(region)) {
      replaced_.resolve_operands(kernel_.op(id));
      promote_op(id);
    }
  }

  void promote_op(OpId id) {
    const Op& op = kernel_.op(id);
    if (op.opcode == Opcode::kVar) {
      current_.at(op.result()) = op.init();
      kernel_.erase(id);
    } else if (op.opcode == Opcode::kVarLoad) {
      replaced_.add(op.result(), current_[op.slot()]);
      kernel_.erase(id);
    } else if (op.opcode == Opcode::kVarStore) {
      current_.at(op.slot()) = op.value();
      kernel_.erase(id);
    } else if (op.opcode == Opcode::kIf) {
      promote_if(id);
    } else if (is_loop(op)) {
      promote_loop(id);
    }
  }

  absl::InlinedVector<ValueId, 4> current_of(const Slots& slots) const {
    absl::InlinedVector<ValueId, 4> values;
    for (const ValueId slot : slots) values.push_back(current_[slot]);
    return values;
  }

  void name_after(ValueId value, ValueId slot) {
    const auto name = kernel_.def(slot)->attr(AttrKey::kName);
    kernel_.value(value).name =
        name ? StringId{static_cast<uint32_t>(*name)} : kernel_.value(slot).name;
  }

  ValueId add_result(OpId id, ValueId slot) {
    const ValueId result = kernel_.add_result(id, kernel_.type(slot).content());
    name_after(result, slot);
    return result;
  }

  void promote_if(OpId id) {
    const Slots& slots = written_[id];
    const auto before = current_of(slots);
    promote(kernel_.op(id).regions[0]);
    const auto then = current_of(slots);
    for (size_t i = 0; i < slots.size(); ++i) current_.at(slots[i]) = before[i];
    promote(kernel_.op(id).regions[1]);
    const auto otherwise = current_of(slots);
    const OpId then_end = kernel_.terminator(kernel_.op(id).regions[0]);
    const OpId else_end = kernel_.terminator(kernel_.op(id).regions[1]);
    for (size_t i = 0; i < slots.size(); ++i) {
      if (then[i] == otherwise[i]) continue;  // seen by both branches, so it comes from before
      kernel_.op(then_end).operands.push_back(then[i]);
      kernel_.op(else_end).operands.push_back(otherwise[i]);
      current_.at(slots[i]) = add_result(id, slots[i]);
    }
  }

  void promote_loop(OpId id) {
    const Slots& slots = written_[id];
    for (const ValueId slot : slots) kernel_.op(id).operands.push_back(current_[slot]);
    for (const RegionId region : absl::InlinedVector<RegionId, 2>(kernel_.op(id).regions)) {
      for (const ValueId slot : slots) {
        const ValueId arg = kernel_.add_region_arg(region, kernel_.type(slot).content());
        name_after(arg, slot);
        current_.at(slot) = arg;
      }
      promote(region);
    }
    const OpId end = kernel_.terminator(kernel_.op(id).regions.back());
    for (const ValueId slot : slots) {
      kernel_.op(end).operands.push_back(current_[slot]);
      current_.at(slot) = add_result(id, slot);
    }
  }

  Kernel& kernel_;
  IdMap<OpId, Slots> written_;  // variables from outside that an op's regions write
  IdMap<ValueId, ValueId> current_{ValueId::kNone};
  Replacements replaced_;
};

}  // namespace

bool promote_vars(Kernel& kernel) { return Promotion(kernel).run(); }

}  // namespace heddle::ir
