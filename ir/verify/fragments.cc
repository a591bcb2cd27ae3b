// Who owns a fragment's registers. A tie takes them from its operand; a pending fragment, whose
// registers the tensor cores still write or read, has one owner from wgmma.begin to wgmma.wait. Ops that only read
// one do not own it.
//
// Why: ptxas serialises wgmma when the registers of an accumulator in flight are moved, on a
// back-edge or where branches join. Values that are used once, and carried in place, never are.

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "heddle/ir/verify/verifier_internal.h"

namespace heddle::ir {
namespace {

// The operand whose registers a result keeps: by a tie, or round a loop.
std::optional<size_t> source_of(const Op& op, size_t result) {
  if (is_loop(op)) return op.index_of(OperandName::kInits) + result;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (tied_result(op, i) == result) return i;
  }
  return std::nullopt;
}

class FragmentCheck {
 public:
  explicit FragmentCheck(Verification& v) : v_(v), kernel_(v.kernel()) {}

  void run() {
    State state;
    check_region(kernel_.body(), state);
  }

 private:
  // The op that took each value's registers, on the path so far.
  using State = absl::flat_hash_map<ValueId, OpId>;

  bool is_pending(ValueId value) const {
    const Type type = kernel_.type(value);
    return type.is_pending() && !type.slot;
  }
  bool is_fragment(ValueId value) const {
    return kernel_.type(value).kind == TypeKind::kFragment || is_pending(value);
  }

  void check_region(RegionId region, State& state) {
    const OpId owner = kernel_.region(region).parent;
    const bool condition = valid(owner) && kernel_.op(owner).opcode == Opcode::kWhile &&
                           kernel_.op(owner).regions[0] == region;
    for (const OpId id : kernel_.ops(region)) {
      const Op& op = kernel_.op(id);
      for (size_t i = 0; i < op.operands.size(); ++i) check_operand(id, i, state);
      if (op.opcode == Opcode::kIf) {
        check_if(id, state);
      } else {
        for (const RegionId inner : op.regions) check_region(inner, state);
      }
    }
    // The fragments that a while carries pass its condition by.
    if (!condition) {
      for (const ValueId arg : kernel_.region(region).args) require_taken(arg, owner, state);
    }
    for (const OpId id : kernel_.ops(region)) {
      for (const ValueId result : kernel_.op(id).results) require_taken(result, id, state);
    }
  }

  // --- One use ---

  void check_operand(OpId id, size_t i, State& state) {
    const Op& op = kernel_.op(id);
    const ValueId operand = op.operands[i];
    const auto taken = state.find(operand);
    if (taken != state.end()) {
      Diagnostic& wrong = v_.error(
          id,
          absl::StrCat("operand ", i + 1, " of ", v_.quoted(id), ", ", v_.name(operand),
                       ", is used after ", v_.quoted(taken->second), " took its registers"),
          "use what that op returned");
      wrong.notes.push_back({v_.place(taken->second), "its registers were taken here"});
      return;
    }
    if (is_pending(operand) && !may_be_pending(op, i)) {
      if (std::find(op.operands.begin(), op.operands.begin() + i, operand) !=
          op.operands.begin() + i) {
        return;  // reported already
      }
      v_.error(id,
               absl::StrCat("operand ", i + 1, " of ", v_.quoted(id), ", ", v_.name(operand),
                            ", is pending: the tensor cores may still write it"),
               "settle it with wgmma.wait first, and use what the wait returns");
      return;
    }
    if (!is_pending(operand) && !(tied_result(op, i) && is_fragment(operand))) return;
    if (only_reads(op, i)) return check_read(id, operand);
    check_taken_in_loop(id, operand);
    if (has(info(op), kTerminator)) check_yield(id, i);
    state[operand] = id;
  }

  // What the tensor cores read is not what they write: settled first, and begun again.
  void check_read(OpId id, ValueId operand) {
    absl::flat_hash_set<ValueId> seen;
    const OpId writer = writer_of(operand, seen);
    if (!valid(writer)) return;
    Diagnostic& wrong = v_.error(id,
                                 absl::StrCat(v_.quoted(id), " reads ", v_.name(operand),
                                              ", which the tensor cores may still write"),
                                 "settle it with wgmma.wait, and begin what the wait returns");
    wrong.notes.push_back({v_.place(writer), "it is written here"});
  }

  // The wgmma that a pending fragment may come from, round loops too; kNone where there is none.
  OpId writer_of(ValueId value, absl::flat_hash_set<ValueId>& seen) const {
    if (!seen.insert(value).second) return OpId::kNone;
    const Value& v = kernel_.value(value);
    if (const Op* const def = kernel_.def(value)) {
      if (def->opcode == Opcode::kWgmma) return v.def;
      if (!is_loop(*def)) return OpId::kNone;
      const ValueId init = def->inits()[v.index];
      const OpId before = writer_of(init, seen);
      return valid(before) ? before : writer_of(handed_back(*def, v.index), seen);
    }
    const OpId owner = kernel_.region(v.region).parent;
    if (!valid(owner) || !is_loop(kernel_.op(owner))) return OpId::kNone;
    const Op& loop = kernel_.op(owner);
    const size_t carried = v.index - first_carried(loop);
    const OpId before = writer_of(loop.inits()[carried], seen);
    return valid(before) ? before : writer_of(handed_back(loop, carried), seen);
  }
  // What a trip hands to the next one as carried value number i.
  ValueId handed_back(const Op& loop, size_t i) const {
    return kernel_.op(kernel_.terminator(loop.regions.back())).operands[i];
  }

  // A value from outside a loop would be taken again on every trip.
  void check_taken_in_loop(OpId id, ValueId value) {
    const Value& taken = kernel_.value(value);
    const RegionId home = valid(taken.def) ? kernel_.op(taken.def).parent : taken.region;
    for (RegionId region = kernel_.op(id).parent; region != home;) {
      const OpId owner = kernel_.region(region).parent;
      if (is_loop(kernel_.op(owner))) {
        Diagnostic& wrong =
            v_.error(id,
                     absl::StrCat(v_.quoted(id), " takes the registers of ", v_.name(value),
                                  " on every trip of a ", v_.quoted(owner),
                                  ", but it is made once, outside"),
                     absl::StrCat("carry it through the loop: carry(... = ", v_.name(value), ")"));
        wrong.notes.push_back({v_.place(owner), "this is the loop"});
        return;
      }
      region = kernel_.op(owner).parent;
    }
    const OpId owner = kernel_.region(home).parent;
    const bool condition = !valid(taken.def) && valid(owner) &&
                           kernel_.op(owner).opcode == Opcode::kWhile &&
                           kernel_.op(owner).regions[0] == home;
    if (!condition) return;
    v_.error(id,
             absl::StrCat("the condition of a 'while' takes the registers of ", v_.name(value),
                          ", which the loop carries past it"),
             "use it in the loop's body instead");
  }

  // --- Regions ---

  // A loop hands a pending fragment on in the registers that it got it in. What an if yields is
  // reported with the if.
  void check_yield(OpId id, size_t position) {
    const RegionId region = kernel_.op(id).parent;
    const OpId owner = kernel_.region(region).parent;
    if (!valid(owner) || !is_loop(kernel_.op(owner))) return;
    const size_t argument = position + (kernel_.op(owner).opcode == Opcode::kFor ? 1 : 0);
    const auto& args = kernel_.region(region).args;
    if (argument >= args.size()) return;
    ValueId value = kernel_.op(id).operands[position];
    while (const Op* const def = kernel_.def(value)) {
      const std::optional<size_t> source = source_of(*def, kernel_.value(value).index);
      if (def->opcode == Opcode::kIf) return;
      if (def->opcode == Opcode::kWgmmaBegin && def->parent == region) {
        return check_begun_in_trip(id, position, args[argument], kernel_.value(value).def);
      }
      if (!source || *source >= def->operands.size()) break;
      value = def->operands[*source];
    }
    if (value == args[argument]) return;
    v_.error(
        id,
        absl::StrCat("value ", position + 1, " of this yield, ",
                     v_.name(kernel_.op(id).operands[position]), ", is not in the registers of ",
                     v_.name(args[argument]), ", in which the loop carries it"),
        absl::StrCat("yield in this position what wgmma made of ", v_.name(args[argument]),
                     ", or settle that and begin what is yielded in the same trip"));
  }

  // A fragment that is begun inside a trip is in the registers of the argument where nothing that is
  // in them is used any more.
  void check_begun_in_trip(OpId yield, size_t position, ValueId argument, OpId begin) {
    absl::flat_hash_set<ValueId> inside = {argument};
    bool begun = false;
    const std::optional<Use> late = use_behind(kernel_.op(yield).parent, begin, begun, inside);
    if (!late) return;
    Diagnostic& wrong = v_.error(
        yield,
        absl::StrCat("value ", position + 1, " of this yield, ",
                     v_.name(kernel_.op(yield).operands[position]), ", is begun while ",
                     v_.name(late->value), " still is in the registers of ", v_.name(argument),
                     ", in which the loop carries it"),
        "use it in front of that wgmma.begin, or carry the settled fragment and begin it in the "
        "loop");
    wrong.notes.push_back({v_.place(begin), "it is begun here"});
    wrong.notes.push_back({v_.place(late->op), "it is used here"});
  }

  struct Use {
    OpId op;
    ValueId value;
  };
  // The first use behind `begin` of a value that is `inside` the registers: of one that the set
  // starts with, or that ties and renames make of it.
  std::optional<Use> use_behind(RegionId region, OpId begin, bool& begun,
                                absl::flat_hash_set<ValueId>& inside) const {
    for (const OpId id : kernel_.ops(region)) {
      const Op& op = kernel_.op(id);
      for (size_t i = 0; i < op.operands.size(); ++i) {
        if (!inside.contains(op.operands[i])) continue;
        if (begun) return Use{id, op.operands[i]};
        if (id == begin) continue;
        for (size_t result = 0; result < op.results.size(); ++result) {
          const bool carried = is_loop(op) && is_pending(op.results[result]);
          if (has(info(op), kRename) || tied_result(op, i) == result ||
              (carried && source_of(op, result) == i)) {
            inside.insert(op.results[result]);
          }
        }
      }
      for (const RegionId inner : op.regions) {
        if (const auto use = use_behind(inner, begin, begun, inside)) return use;
      }
      begun |= id == begin;
    }
    return std::nullopt;
  }

  void check_if(OpId id, State& state) {
    const Op& op = kernel_.op(id);
    for (const ValueId result : op.results) {
      if (!is_pending(result)) continue;
      v_.error(id,
               absl::StrCat("this 'if' joins two pending fragments in ", v_.name(result),
                            ", which takes copies while the tensor cores write them"),
               "settle them with wgmma.wait in both branches, and yield what it returns");
    }
    State then_state = state;
    State else_state = state;
    check_region(op.regions[0], then_state);
    check_region(op.regions[1], else_state);
    report_one_sided(id, state, then_state, else_state, "first");
    report_one_sided(id, state, else_state, then_state, "second");
    state = std::move(then_state);
    state.insert(else_state.begin(), else_state.end());
  }

  // Pending fragments of outside that one branch takes must not be left over in the other.
  void report_one_sided(OpId id, const State& before, const State& taken, const State& left,
                        absl::string_view branch) {
    std::vector<ValueId> values;
    for (const auto& [value, op] : taken) {
      if (is_pending(value) && !before.contains(value) && !left.contains(value) &&
          !is_inside(kernel_, value, id)) {
        values.push_back(value);
      }
    }
    std::sort(values.begin(), values.end());
    for (const ValueId value : values) {
      const OpId taker = taken.at(value);
      Diagnostic& wrong =
          v_.error(id,
                   absl::StrCat(v_.name(value), " is pending, and only the ", branch,
                                " branch of this 'if' takes it, with ", v_.quoted(taker)),
                   "settle it before the if, or in both branches");
      wrong.notes.push_back({v_.place(taker), "it is taken here"});
    }
  }

  // At the end of the region in which `maker` made it.
  void require_taken(ValueId value, OpId maker, const State& state) {
    if (!is_pending(value) || state.contains(value) || !valid(maker)) return;
    // Other ops cannot make one: their own mistake has been reported.
    const OpInfo& row = info(kernel_.op(maker));
    const bool makes =
        row.signature.result_count > 0 && row.signature.results[0].role == Role::kPending;
    if (!makes && !has(row, kRegions)) return;
    v_.error(
        maker,
        absl::StrCat(v_.name(value), " is still pending when its region ends: nothing takes it"),
        "settle it with wgmma.wait, or yield it to the loop that carries it");
  }

  Verification& v_;
  const Kernel& kernel_;
};

}  // namespace

bool is_inside(const Kernel& kernel, ValueId id, OpId op) {
  const Value& value = kernel.value(id);
  RegionId region = valid(value.def) ? kernel.op(value.def).parent : value.region;
  while (valid(kernel.region(region).parent)) {
    if (kernel.region(region).parent == op) return true;
    region = kernel.op(kernel.region(region).parent).parent;
  }
  return false;
}

void verify_fragments(Verification& v) { FragmentCheck(v).run(); }

}  // namespace heddle::ir
