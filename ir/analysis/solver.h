// Facts about SSA values by demand: a memo, an order of evaluation that needs no deep recursion,
// and a fixpoint over what loops carry. A domain says what a fact is.
//
//   class Domain : public Solver<Domain, Fact> {
//     Fact unknown(Type type);                     // nothing is known
//     bool tracks(Type type);                      // other types are unknown without a look
//     Fact evaluate(const Op& op, uint32_t index); // an op's result; operands by known(v)
//     Fact argument(ValueId param);                // the kernel's parameters
//     Fact induction(const Op& loop);              // a for's induction variable
//     Fact join(Fact a, Fact b);
//     // Of what a loop carries; must reach a fixed point in few steps.
//     Fact widen(Fact before, Fact after, ValueId carried);
//   };
#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "heddle/ir/kernel.h"

namespace heddle::ir {

template <class Domain, class Fact>
class Solver {
 public:
  explicit Solver(const Kernel& kernel) : kernel_(kernel) {}

  Fact get(ValueId value) {
    if (is_known(value)) return memo_[value].fact;
    const size_t base = stack_.size();
    stack_.push_back(value);
    while (stack_.size() > base) {
      const ValueId top = stack_.back();
      if (is_known(top)) {
        stack_.pop_back();
      } else if (!push_missing_operands(top)) {
        stack_.pop_back();
        compute(top);
      }
    }
    return memo_[value].fact;
  }

 protected:
  const Kernel& kernel() const { return kernel_; }
  // The fact of an operand of the op that is being evaluated.
  const Fact& known(ValueId value) const { return memo_[value].fact; }

 private:
  struct Entry {
    Fact fact{};
    bool set = false;
  };
  using Facts = absl::InlinedVector<Fact, 4>;

  Domain& domain() { return static_cast<Domain&>(*this); }
  bool is_known(ValueId value) const { return memo_[value].set; }

  void set(ValueId value, Fact fact) {
    memo_.at(value) = {fact, true};
    if (!active_loops_.empty()) log_.push_back(value);
  }
  void forget_since(size_t mark) {
    while (log_.size() > mark) {
      memo_.at(log_.back()).set = false;
      log_.pop_back();
    }
  }

  // Pushes what must be known before `value` can be computed; false where nothing is missing.
  bool push_missing_operands(ValueId value) {
    if (!domain().tracks(kernel_.type(value))) return false;
    const size_t before = stack_.size();
    const auto need = [&](ValueId operand) {
      if (!is_known(operand)) stack_.push_back(operand);
    };
    const Value& v = kernel_.value(value);
    if (valid(v.region)) {
      const OpId owner = kernel_.region(v.region).parent;
      if (is_induction(value)) {
        const Op& loop = kernel_.op(owner);
        for (const ValueId bound : {loop.start(), loop.stop(), loop.step()}) need(bound);
      }
    } else if (kernel_.op(v.def).opcode == Opcode::kIf) {
      for (const RegionId region : kernel_.op(v.def).regions) {
        const ValueId result = yielded(region, v.index);
        if (valid(result)) need(result);
      }
    } else if (!is_loop(kernel_.op(v.def))) {
      for (const ValueId operand : kernel_.op(v.def).operands) need(operand);
    }
    return stack_.size() > before;
  }

  void compute(ValueId value) {
    const Value v = kernel_.value(value);
    if (!domain().tracks(v.type)) return set(value, domain().unknown(v.type));
    if (valid(v.region)) {
      const OpId owner = kernel_.region(v.region).parent;
      if (!valid(owner)) return set(value, domain().argument(value));
      if (is_induction(value)) return set(value, domain().induction(kernel_.op(owner)));
      return solve_outermost(owner, value);
    }
    const Op& op = kernel_.op(v.def);
    if (is_loop(op)) return solve_outermost(v.def, value);
    if (op.opcode == Opcode::kIf) return set(value, join_branches(op, v));
    set(value, domain().evaluate(op, v.index));
  }

  Fact join_branches(const Op& op, const Value& v) {
    const ValueId a = yielded(op.regions[0], v.index);
    const ValueId b = yielded(op.regions[1], v.index);
    if (!valid(a) || !valid(b)) return domain().unknown(v.type);
    return domain().join(known(a), known(b));
  }

  // What a region hands to its owner; kNone while the region is under construction.
  ValueId yielded(RegionId region, size_t index) const {
    const OpId end = kernel_.terminator(region);
    if (!valid(end) || index >= kernel_.op(end).values().size()) return ValueId::kNone;
    return kernel_.op(end).values()[index];
  }

  bool is_induction(ValueId value) const {
    const Value& v = kernel_.value(value);
    if (!valid(v.region) || v.index != 0) return false;
    const OpId owner = kernel_.region(v.region).parent;
    return valid(owner) && kernel_.op(owner).opcode == Opcode::kFor;
  }

  // A loop inside another is solved under assumptions on the outer one, so the outermost unsolved
  // loop goes first.
  void solve_outermost(OpId loop, ValueId asked) {
    absl::InlinedVector<OpId, 8> chain = {loop};
    for (RegionId r = kernel_.op(loop).parent; valid(r);) {
      const OpId owner = kernel_.region(r).parent;
      if (!valid(owner)) break;
      if (is_loop(kernel_.op(owner))) chain.push_back(owner);
      r = kernel_.op(owner).parent;
    }
    for (; !chain.empty(); chain.pop_back()) {
      if (!is_active(chain.back()) && !is_solved(chain.back())) solve(chain.back());
    }
    if (!is_known(asked)) set(asked, domain().unknown(kernel_.type(asked)));
  }
  bool is_active(OpId loop) const {
    for (const OpId active : active_loops_) {
      if (active == loop) return true;
    }
    return false;
  }

  bool is_solved(OpId loop) const {
    for (const ValueId result : kernel_.op(loop).results) {
      if (!is_known(result)) return false;
    }
    return true;
  }

  // Assumes that a loop carries what it starts with, looks what a trip makes of that, and assumes
  // less until a trip makes nothing new.
  //
  // Each new assumption on an outer loop asks the inner ones again, which would be exponential in
  // the depth. So after a number of solutions a loop goes on from the last one, which holds for the
  // next assumption as a rule, and does not look for a tighter one.
  void solve(OpId loop_id) {
    const Op& loop = kernel_.op(loop_id);
    const size_t count = loop.results.size();
    const RegionId body = loop.regions.back();
    if (count == 0 || !valid(yielded(body, count - 1))) return;
    const size_t first_arg = first_carried(loop);

    Facts init;
    absl::InlinedVector<ValueId, 4> nexts;
    for (size_t i = 0; i < count; ++i) {
      init.push_back(get(loop.inits()[i]));
      nexts.push_back(yielded(body, i));
    }
    constexpr int kFreshSolutions = 4;
    const bool fresh =
        ++solved_.at(loop_id).times <= kFreshSolutions || solved_[loop_id].facts.size() != count;
    active_loops_.push_back(loop_id);
    const size_t mark = log_.size();
    Facts assumed = init;
    for (size_t i = 0; !fresh && i < count; ++i) {
      assumed[i] = domain().join(init[i], solved_[loop_id].facts[i]);
    }
    Facts wide;  // the last assumption that held, while a tighter one is tried
    for (int attempt = fresh ? 0 : 1;; ++attempt) {
      for (size_t i = 0; i < count; ++i) {
        for (const RegionId region : loop.regions) {
          set(kernel_.region(region).args[first_arg + i], assumed[i]);
        }
      }
      Facts after = assumed;
      Facts tight = assumed;
      for (size_t i = 0; i < count; ++i) {
        if (!domain().tracks(kernel_.type(nexts[i]))) continue;
        const Fact next = get(nexts[i]);
        after[i] = domain().join(assumed[i], next);
        tight[i] = domain().join(init[i], next);
      }
      const bool stable = after == assumed;
      if (stable && (tight == assumed || !wide.empty() || !fresh)) break;
      forget_since(mark);
      if (stable) {
        // Widening went too far; what it led to may be enough.
        wide = assumed;
        assumed = tight;
      } else if (!wide.empty()) {
        assumed = wide;
      } else {
        for (size_t i = 0; i < count; ++i) {
          if (after[i] == assumed[i]) continue;
          const ValueId carried = kernel_.region(body).args[first_arg + i];
          if (attempt >= 1) after[i] = domain().widen(assumed[i], after[i], carried);
          if (attempt >= 4) after[i] = domain().unknown(kernel_.type(carried));
        }
        assumed = after;
      }
    }
    active_loops_.pop_back();
    solved_.at(loop_id).facts = assumed;
    // With no assumption left, all that was found is for good.
    if (active_loops_.empty()) log_.clear();
    for (size_t i = 0; i < count; ++i) set(loop.results[i], assumed[i]);
  }

  const Kernel& kernel_;
  IdMap<ValueId, Entry> memo_;
  std::vector<ValueId> stack_;
  std::vector<OpId> active_loops_;  // whose carried values are assumed just now
  std::vector<ValueId> log_;        // what was found under those assumptions
  struct Solved {
    int times = 0;
    Facts facts;  // of the carried values, by the last solution
  };
  IdMap<OpId, Solved> solved_;
};

}  // namespace heddle::ir
