// dce: what nothing depends on goes away.
//
// What: ops that are pure, fresh or load and whose results nothing needs; variables, local arrays and shared arrays
// that are never read, with their stores; loops and ifs without an effect; and single carried values of loops and
// results of ifs, also where they only keep each other alive around the loop. Volatile accesses,
// barriers and their like, assertions, promises, stores to other memory and arrays of arenas stay. A `while` without an
// effect is taken to end, as C++ takes it.
//
// Needs: nothing. Keeps: aliasing, ints, guarded-ints, movable-ints, uniformity.
//
// Why: other passes replace values and leave the ops behind; traces compute what nobody asks for.
//
//   %s, %n = for %i … carry(%a = %z, %b = %z) {    %s = for %i … carry(%a = %z) {
//     %c = add %a, %x                                %c = add %a, %x
//     %d = add %b, %one                       →      yield %c
//     yield %c, %d                                 }
//   }                                              store %y, %s, %i
//   store %y, %s, %i
#include "heddle/ir/analysis/views.h"
#include "heddle/ir/passes/passes.h"
#include "heddle/ir/passes/rewrite.h"

namespace heddle::ir {
namespace {

// Marks what is needed, from effects backwards. A value that a loop carries is one thing: its first
// value, its arguments, what the body yields and the loop's result are needed together.
class Elimination {
 public:
  explicit Elimination(Kernel& kernel) : kernel_(kernel) {}

  bool run() {
    live_ops_.assign(kernel_.op_count(), false);
    live_values_.assign(kernel_.value_count(), false);
    std::vector<std::pair<OpId, ValueId>> stores;
    kernel_.walk([&](OpId id) {
      const Op& op = kernel_.op(id);
      if (const ValueId written = written_alone(op); valid(written)) {
        stores.emplace_back(id, written);
      } else if (is_root(op)) {
        need_op(id);
      }
    });
    drain();
    // A store to a variable or array is needed once that is read; what it stores may read others.
    for (bool found = true; found;) {
      found = false;
      for (const auto& [store, written] : stores) {
        if (is_live(store) || !is_live(written)) continue;
        need_op(store);
        found = true;
      }
      drain();
    }
    sweep(kernel_.body());
    return changed_;
  }

 private:
  static bool is_root(const Op& op) {
    if (has(info(op), kTerminator)) return false;
    // An array of an arena says where those behind it lie, which others share bytes with.
    if (op.attr(AttrKey::kArena)) return true;
    return has_side_effect(info(op)) || has(info(op), kPromise) ||
           op.attr_or(AttrKey::kVolatile, 0) != 0;
  }

  // The variable or array that a store writes, if nothing else can be read of what it stores; else none.
  ValueId written_alone(const Op& op) const {
    if (op.opcode == Opcode::kVarStore) return op.slot();
    if (op.opcode != Opcode::kStore || op.attr_or(AttrKey::kVolatile, 0) != 0) {
      return ValueId::kNone;
    }
    const ValueId array = root_of(kernel_, op.view());
    const Op* const def = kernel_.def(array);
    const bool is_own =
        def != nullptr && (def->opcode == Opcode::kLocal ||
                           (def->opcode == Opcode::kShared && !def->attr(AttrKey::kArena)));
    return is_own ? array : ValueId::kNone;
  }

  bool is_live(OpId id) const { return live_ops_[index_of(id)]; }
  bool is_live(ValueId id) const { return live_values_[index_of(id)]; }

  void need(ValueId value) {
    if (is_live(value)) return;
    live_values_[index_of(value)] = true;
    pending_.push_back(value);
  }
  void need_all(absl::Span<const ValueId> values) {
    for (const ValueId value : values) need(value);
  }

  // The op itself, whatever decides whether and how often it runs, and its operands, but for those
  // that belong to single results.
  void need_op(OpId id) {
    if (is_live(id)) return;
    live_ops_[index_of(id)] = true;
    const Op& op = kernel_.op(id);
    const OpId owner = kernel_.region(op.parent).parent;
    if (valid(owner)) need_op(owner);
    if (op.opcode == Opcode::kFor) return need_all({op.start(), op.stop(), op.step()});
    if (op.opcode == Opcode::kWhile) return need_all(yielded(kernel_, op.regions[0]));
    if (op.opcode == Opcode::kIf) return need(op.condition());
    need_all(op.operands);
  }

  void need_carried(OpId id, size_t index) {
    need_op(id);
    const Op& loop = kernel_.op(id);
    need(loop.results[index]);
    need(loop.inits()[index]);
    for (const RegionId region : loop.regions) {
      need(kernel_.region(region).args[first_carried(loop) + index]);
    }
    need(yielded(kernel_, loop.regions.back())[index]);
  }

  void drain() {
    while (!pending_.empty()) {
      const Value value = kernel_.value(pending_.back());
      pending_.pop_back();
      if (valid(value.region)) {
        const OpId owner = kernel_.region(value.region).parent;
        if (!valid(owner)) continue;  // a parameter
        const size_t first = first_carried(kernel_.op(owner));
        if (value.index < first) {
          need_op(owner);
        } else {
          need_carried(owner, value.index - first);
        }
      } else if (is_loop(kernel_.op(value.def))) {
        need_carried(value.def, value.index);
      } else {
        need_op(value.def);
        const Op& op = kernel_.op(value.def);
        if (op.opcode != Opcode::kIf) continue;
        for (const RegionId region : op.regions) need(yielded(kernel_, region)[value.index]);
      }
    }
  }

  void sweep(RegionId region) {
    for (const OpId id : kernel_.ops(region)) {
      if (has(info(kernel_.op(id)), kTerminator)) continue;
      if (!is_live(id)) {
        kernel_.erase(id);
        changed_ = true;
        continue;
      }
      const size_t regions = kernel_.op(id).regions.size();
      for (size_t i = 0; i < regions; ++i) sweep(kernel_.op(id).regions[i]);
      if (regions != 0) drop_dead_results(id);
    }
  }

  // Keeps those elements from `first` on whose result is needed.
  template <class List>
  void keep_live(List& list, size_t first, absl::Span<const ValueId> results) {
    size_t kept = first;
    for (size_t i = 0; i < results.size(); ++i) {
      if (is_live(results[i])) list[kept++] = list[first + i];
    }
    list.resize(kept);
  }
  void renumber(absl::Span<const ValueId> values) {
    for (size_t i = 0; i < values.size(); ++i) {
      kernel_.value(values[i]).index = static_cast<uint32_t>(i);
    }
  }

  void drop_dead_results(OpId id) {
    Op& op = kernel_.op(id);
    const absl::InlinedVector<ValueId, 4> results(op.results.begin(), op.results.end());
    bool all_live = true;
    for (const ValueId result : results) all_live &= is_live(result);
    if (all_live) return;
    changed_ = true;
    keep_live(op.results, 0, results);
    renumber(op.results);
    const bool loop = is_loop(op);
    if (loop) keep_live(op.operands, op.index_of(OperandName::kInits), results);
    for (const RegionId region : op.regions) {
      if (loop) {
        keep_live(kernel_.region(region).args, first_carried(op), results);
        renumber(kernel_.region(region).args);
      }
      // The condition of a `while` yields its bool and nothing else.
      if (op.opcode == Opcode::kWhile && region == op.regions[0]) continue;
      keep_live(kernel_.op(kernel_.terminator(region)).operands, 0, results);
    }
  }

  Kernel& kernel_;
  std::vector<bool> live_ops_;
  std::vector<bool> live_values_;
  std::vector<ValueId> pending_;
  bool changed_ = false;
};

}  // namespace

bool dce(Kernel& kernel) { return Elimination(kernel).run(); }

}  // namespace heddle::ir
