// if-convert: if-conversion. An `if` that only chooses between values becomes selects.
//
// What: an `if` with results whose branches have nothing but a few cheap ops without effects. Both branches' ops run, and
// a select chooses each result. It stays where the author said which way is likely, where a result or the condition
// is a flag that tells of an exit (the emitter makes jumps of these), where a result is no scalar, and where a
// value may be uninitialised in the branch that is not taken: a select reads both.
//
// Needs: no-variables. Keeps: aliasing, movable-ints.
//
// Why: a branch is a compare, a jump and, where lanes part, both ways one after the other; a select is one instruction.
//
//   %r = if %p : i32 {            %a = add %x, %one : i32
//     %a = add %x, %one : i32  →  %r = select %p, %a, %x : i32
//     yield %a
//   } else {
//     yield %x
//   }
#include <algorithm>

#include "heddle/ir/builder.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

// Of both branches, those that take an instruction; and selects.
constexpr int kMostOps = 6;
constexpr size_t kMostResults = 4;

// Which values are sure to be initialised where they stand.
class Initialised {
 public:
  explicit Initialised(const Kernel& kernel) : kernel_(kernel) {
    for (const Param& param : kernel.params()) known_.at(param.value) = 1;
    kernel.walk([&](OpId id) {
      const Op& op = kernel.op(id);
      for (const RegionId region : op.regions) {
        for (const ValueId arg : kernel.region(region).args) owner_.at(arg) = id;
      }
    });
  }

  bool is(ValueId value) {
    if (known_[value] != 0) return known_[value] == 1;
    known_.at(value) = 1;  // what it carries to itself, as long as nothing else speaks against it
    asked_.push_back(value);
    ++depth_;
    const bool found = find(value);
    --depth_;
    if (!found) known_.at(value) = 2;
    if (depth_ > 0) return found;
    // What counted on a value that turned out otherwise is asked anew.
    for (const ValueId one : asked_) {
      if (!found && known_[one] == 1) known_.at(one) = 0;
    }
    asked_.clear();
    return found;
  }

 private:
  bool find(ValueId value) {
    const Op* const def = kernel_.def(value);
    if (def == nullptr) return is_argument(value);
    if (def->opcode == Opcode::kUndef) return false;
    if (def->opcode == Opcode::kIf || is_loop(*def)) {
      const size_t index = static_cast<size_t>(
          std::find(def->results.begin(), def->results.end(), value) - def->results.begin());
      if (is_loop(*def)) return is_carried(*def, index);
      return std::all_of(def->regions.begin(), def->regions.end(),
                         [&](RegionId region) { return is(yielded(kernel_, region)[index]); });
    }
    // An op that reads an operand has told of one that is not initialised.
    for (size_t i = 0; i < def->operands.size(); ++i) {
      if (passes_poison(info(*def), i) && !is(def->operands[i])) return false;
    }
    return true;
  }

  bool is_argument(ValueId arg) {
    if (!valid(owner_[arg])) return false;
    const Op& loop = kernel_.op(owner_[arg]);
    for (const RegionId region : loop.regions) {
      const auto& args = kernel_.region(region).args;
      const auto at = static_cast<size_t>(std::find(args.begin(), args.end(), arg) - args.begin());
      if (at == args.size()) continue;
      return at < first_carried(loop) || is_carried(loop, at - first_carried(loop));
    }
    return false;
  }
  bool is_carried(const Op& loop, size_t index) {
    return is(loop.inits()[index]) && is(yielded(kernel_, loop.regions.back())[index]);
  }

  const Kernel& kernel_;
  IdMap<ValueId, uint8_t> known_;  // 0: not asked yet, 1: yes, 2: not sure
  std::vector<ValueId> asked_;     // since the one at the bottom
  int depth_ = 0;
  IdMap<ValueId, OpId> owner_{OpId::kNone};
};

class IfConversion {
 public:
  explicit IfConversion(Kernel& kernel) : kernel_(kernel), initialised_(kernel), b_(kernel) {}

  bool run() {
    std::vector<OpId> ifs;
    kernel_.walk([&](OpId id) {
      if (kernel_.op(id).opcode == Opcode::kIf && !kernel_.op(id).results.empty())
        ifs.push_back(id);
    });
    // Inner ones first: what is around them may be converted then.
    std::reverse(ifs.begin(), ifs.end());
    bool changed = false;
    for (const OpId id : ifs) {
      if (!pays(kernel_.op(id))) continue;
      convert(id);
      changed = true;
    }
    if (changed) replaced_.apply_everywhere(kernel_);
    for (const OpId id : converted_) {
      for (const RegionId region : kernel_.op(id).regions) {
        for (const OpId inner : kernel_.ops(region)) kernel_.erase(inner);
      }
    }
    return changed;
  }

 private:
  // Whether a bool may be a flag: what an `if` or a loop hands on, or computed from that.
  bool may_be_flag(ValueId value) const {
    if (kernel_.type(value).scalar != Scalar::kBool) return false;
    const Op* const def = kernel_.def(value);
    if (def == nullptr) return !kernel_.param_index(value).has_value();
    return def->opcode == Opcode::kIf || is_loop(*def) ||
           std::any_of(def->operands.begin(), def->operands.end(),
                       [&](ValueId operand) { return may_be_flag(operand); });
  }

  bool pays(const Op& op) {
    const Op* const condition = kernel_.def(op.condition());
    if (condition != nullptr && condition->opcode == Opcode::kExpect) return false;
    if (op.results.size() > kMostResults || may_be_flag(op.condition())) return false;
    for (const ValueId result : op.results) {
      const Type type = kernel_.type(result);
      if (!type.is_scalar() || type.scalar == Scalar::kBool) return false;
    }
    int ops = 0;
    for (const RegionId region : op.regions) {
      for (const OpId id : kernel_.ops(region)) {
        const Op& inner = kernel_.op(id);
        const OpInfo& row = info(inner);
        if (inner.opcode != Opcode::kYield) {
          if (inner.results.empty()) return false;
          const bool compares = kernel_.type(inner.results[0]).scalar == Scalar::kBool;
          if (!has(row, kPure) || has(row, kNotSpeculatable)) return false;
          if (!has(row, kCheap) && !compares) return false;
          ops += has(row, kRename) ? 0 : 1;
        }
        for (const ValueId operand : inner.operands) {
          if (!initialised_.is(replaced_.resolve(operand))) return false;
        }
      }
    }
    return ops <= kMostOps;
  }

  void convert(OpId id) {
    b_.set_insertion_before(id);
    b_.set_loc(kernel_.op(id).loc);
    absl::InlinedVector<ValueId, 4> values[2];
    for (const size_t branch : {0, 1}) {
      const RegionId region = kernel_.op(id).regions[branch];
      for (const ValueId value : yielded(kernel_, region)) {
        values[branch].push_back(replaced_.resolve(value));
      }
      for (const OpId inner : kernel_.ops(region)) {
        if (kernel_.op(inner).opcode == Opcode::kYield) continue;
        kernel_.unlink(inner);
        kernel_.insert_before(id, inner);
      }
    }
    const Op op = kernel_.op(id);
    for (size_t i = 0; i < op.results.size(); ++i) {
      const ValueId chosen =
          b_.create(Opcode::kSelect, {op.condition(), values[0][i], values[1][i]});
      inherit_name(kernel_, chosen, op.results[i]);
      replaced_.add(op.results[i], chosen);
    }
    kernel_.unlink(id);
    converted_.push_back(id);
  }

  Kernel& kernel_;
  Initialised initialised_;
  Builder b_;
  Replacements replaced_;
  std::vector<OpId> converted_;
};

}  // namespace

bool if_convert(Kernel& kernel) { return IfConversion(kernel).run(); }

}  // namespace heddle::ir
